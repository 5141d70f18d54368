package cache

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Memory is a Store in the memory of the process, bounded in bytes. The entry that
// was not asked for for the longest time makes room first (LRU): each shard has an
// order of its own, and the oldest of their last ones goes.
//
// A hit takes one lock of one shard for a look-up and five pointers; the entry is
// shared, not copied. Entries are collected as garbage once nobody sends them.
type Memory struct {
	stats  *Stats
	max    int64
	start  time.Time    // of the clock that does not jump
	held   atomic.Int64 // by entries in the shards and on their way in
	shards [numShards]shard
}

const numShards = 16

// shard is a map and a ring of its nodes, the latest used first.
type shard struct {
	mu    sync.Mutex
	nodes map[Key]*node
	peak  int  // the most nodes that the map has had
	ring  node // before the first and after the last
	_     [64]byte
}

type node struct {
	key        Key
	entry      *Entry
	expires    time.Duration // since Memory.start, as is used
	used       time.Duration
	prev, next *node
}

// nodeCost is what an entry takes beside its bytes: a node of 96 bytes, an Entry of
// 80, and about 94 in the map, whose slots are half filled at worst.
const nodeCost = 288

// NewMemory returns a store of at most max bytes, with all that belongs to the
// entries counted in.
func NewMemory(max int64, stats *Stats) *Memory {
	m := &Memory{stats: stats, max: max, start: time.Now()}
	for i := range m.shards {
		s := &m.shards[i]
		s.nodes = make(map[Key]*node)
		s.ring.prev, s.ring.next = &s.ring, &s.ring
	}
	return m
}

func (m *Memory) shard(k *Key) *shard {
	return &m.shards[binary.LittleEndian.Uint32(k[:])%numShards]
}

// Get implements Store.
func (m *Memory) Get(k *Key) *Entry {
	now := time.Since(m.start)
	s := m.shard(k)
	s.mu.Lock()
	n := s.nodes[*k]
	if n == nil {
		s.mu.Unlock()
		return nil
	}
	if now >= n.expires {
		m.removeLocked(s, n)
		s.mu.Unlock()
		m.stats.Expired.Add(1)
		return nil
	}
	n.used = now
	s.ring.afterLocked(n.outLocked())
	e := n.entry
	s.mu.Unlock()
	return e
}

// Put implements Store.
func (m *Memory) Put(k *Key, e *Entry, ttl time.Duration) {
	now := time.Since(m.start)
	n := &node{key: *k, entry: e, expires: now + ttl, used: now}
	s := m.shard(k)
	s.mu.Lock()
	if old := s.nodes[*k]; old != nil {
		m.removeLocked(s, old)
	}
	s.mu.Unlock()
	if !m.reserve(n.cost()) {
		m.stats.TooLarge.Add(1)
		return
	}
	s.mu.Lock()
	if old := s.nodes[*k]; old != nil { // put in between
		m.removeLocked(s, old)
	}
	s.nodes[*k] = n
	s.peak = max(s.peak, len(s.nodes))
	s.ring.afterLocked(n)
	s.mu.Unlock()
	m.stats.Entries.Add(1)
}

// Close implements Store. It gives up all entries.
func (m *Memory) Close() {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for s.ring.prev != &s.ring {
			m.removeLocked(s, s.ring.prev)
		}
		s.mu.Unlock()
	}
}

// reserve adds cost to what is held, and removes entries first where it would be
// too much. It reports false for what is larger than everything.
func (m *Memory) reserve(cost int64) bool {
	if cost > m.max {
		return false
	}
	for {
		held := m.held.Load()
		switch {
		case held+cost <= m.max:
			if m.held.CompareAndSwap(held, held+cost) {
				m.stats.Bytes.Add(cost)
				return true
			}
		case m.evict():
		default: // it is held by entries on their way in
			runtime.Gosched()
		}
	}
}

// evict removes the entry that was used longest ago. It reports false if there is
// none.
func (m *Memory) evict() bool {
	var oldest *shard
	var used time.Duration
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		if last := s.ring.prev; last != &s.ring && (oldest == nil || last.used < used) {
			oldest, used = s, last.used
		}
		s.mu.Unlock()
	}
	if oldest == nil {
		return false
	}
	oldest.mu.Lock()
	defer oldest.mu.Unlock()
	if last := oldest.ring.prev; last != &oldest.ring { // else somebody was faster
		m.removeLocked(oldest, last)
		m.stats.Evictions.Add(1)
	}
	return true
}

// removeLocked takes n out of s and of what is held.
func (m *Memory) removeLocked(s *shard, n *node) {
	n.outLocked()
	delete(s.nodes, n.key)
	m.stats.Bytes.Add(-n.cost()) // before held, so that it never shows more
	m.held.Add(-n.cost())
	m.stats.Entries.Add(-1)
	s.shrinkLocked()
}

// shrinkLocked makes a smaller map when there are far fewer nodes than there were:
// maps grow and do not shrink, and many small entries may have made room for few
// large ones.
func (s *shard) shrinkLocked() {
	const worth = 256
	if s.peak < worth || len(s.nodes) > s.peak/4 {
		return
	}
	nodes := make(map[Key]*node, len(s.nodes))
	for k, n := range s.nodes {
		nodes[k] = n
	}
	s.nodes, s.peak = nodes, len(nodes)
}

// cost is what n takes in bytes.
func (n *node) cost() int64 { return int64(cap(n.entry.raw)) + nodeCost }

// afterLocked puts n after at.
func (at *node) afterLocked(n *node) {
	n.prev, n.next = at, at.next
	n.prev.next, n.next.prev = n, n
}

// outLocked takes n out of its ring.
func (n *node) outLocked() *node {
	n.prev.next, n.next.prev = n.next, n.prev
	return n
}
