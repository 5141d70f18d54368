package cache

import "time"

// Store keeps entries by key. It is safe for concurrent use, until Close.
type Store interface {
	// Get returns the entry of k, or nil.
	Get(k *Key) *Entry
	// Put makes e the entry of k for ttl, or until there is no more room. It may
	// take effect after it has returned, or not at all.
	Put(k *Key, e *Entry, ttl time.Duration)
	// Close ends what runs in the background and waits for it.
	Close()
}

// Cache is a store, what is counted of it and the requests that wait for one
// another. Safe for concurrent use.
//
// A request is looked up with Get. On a miss it may Join equal ones under way; it
// gathers the engine's answer in a Capture, stores it with Commit once it has come
// whole, and Lands with what Commit returned. A client that says no-store does none
// of it, one that says no-cache neither Get nor Join.
type Cache struct {
	stats   *Stats
	store   Store
	flights flights
}

// New returns a cache that keeps its entries in store, which it closes with
// itself, and counts in stats, which the store was given, too.
func New(store Store, stats *Stats) *Cache {
	c := &Cache{stats: stats, store: store}
	c.flights.init()
	return c
}

// Stats returns the counters.
func (c *Cache) Stats() *Stats { return c.stats }

// Get looks for an entry of k that serves a request: usage is whether its client
// wants the usage in a stream, see Entry.Serves. nil is a miss.
func (c *Cache) Get(k *Key, usage bool) *Entry {
	e := c.store.Get(k)
	if e == nil || !e.Serves(usage) {
		c.stats.Misses.Add(1)
		return nil
	}
	c.stats.Hits.Add(1)
	return e
}

// Commit stores what cp gathered, a whole answer with a clean end, under k for
// ttl and returns it; nil if it may not be stored. cp is ready for its next use.
func (c *Cache) Commit(k *Key, cp *Capture, ttl time.Duration) *Entry {
	if !cp.active {
		if cp.overflow {
			c.stats.TooLarge.Add(1)
		}
		cp.Drop()
		return nil
	}
	e := cp.entry(time.Now())
	c.stats.Stores.Add(1)
	c.store.Put(k, e, ttl)
	return e
}

// Close closes the store.
func (c *Cache) Close() { c.store.Close() }
