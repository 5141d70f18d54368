package cache

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newTestCache() *Cache {
	stats := new(Stats)
	return New(NewMemory(1<<20, stats), stats)
}

// waiter joins as one that follows and waits in the background.
func waiter(t *testing.T, c *Cache, k *Key, usage bool) (s *Seat, done chan error) {
	t.Helper()
	s, done = new(Seat), make(chan error, 1)
	if c.Join(k, s) {
		t.Fatal("leads beside another")
	}
	s.Prepare()
	go func() {
		e, err := s.Wait(time.Minute, usage)
		if (e == nil) == (err == nil) {
			err = errors.Join(err, errors.New("neither an entry nor an error, or both"))
		}
		done <- err
	}()
	return s, done
}

func TestJoin_FollowersGetTheEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache()
		k, e := testKey(1), testEntry("x")
		var lead Seat
		if !c.Join(&k, &lead) {
			t.Fatal("the first does not lead")
		}
		var waits []chan error
		for range 5 {
			_, done := waiter(t, c, &k, false)
			waits = append(waits, done)
		}
		synctest.Wait()
		lead.Land(e)
		lead.Land(nil) // does nothing
		for _, done := range waits {
			if err := <-done; err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		if n := c.Stats().Coalesced.Load(); n != 5 {
			t.Errorf("unexpected count; got %d; want 5", n)
		}
		var other Seat
		if !c.Join(&k, &other) {
			t.Error("the next does not lead")
		}
		other.Land(nil)
	})
}

func TestJoin_OtherKeysLead(t *testing.T) {
	c := newTestCache()
	var seats [100]Seat
	for i := range seats {
		if k := testKey(i); !c.Join(&k, &seats[i]) {
			t.Errorf("%d follows another key", i)
		}
	}
	for i := range seats {
		seats[i].Land(nil)
	}
}

// TestJoin_FailedLeader has all go on alone at once when the leader fails, while
// a request that comes later leads anew.
func TestJoin_FailedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache()
		k := testKey(1)
		var lead Seat
		c.Join(&k, &lead)
		_, first := waiter(t, c, &k, false)
		_, second := waiter(t, c, &k, false)
		synctest.Wait()
		start := time.Now()
		lead.Land(nil)
		for _, done := range []chan error{first, second} {
			if err := <-done; !errors.Is(err, ErrAlone) {
				t.Errorf("unexpected error; got %v; want %v", err, ErrAlone)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("they wait for %v", waited)
		}
		if n := c.Stats().Coalesced.Load(); n != 0 {
			t.Errorf("unexpected count; got %d; want 0", n)
		}
		if !c.Join(&k, &lead) {
			t.Error("nobody leads any more, and yet the next follows")
		}
		lead.Land(nil)
	})
}

func TestJoin_UsageDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache()
		k := testKey(1)
		var lead Seat
		c.Join(&k, &lead)
		_, with := waiter(t, c, &k, true)
		_, without := waiter(t, c, &k, false)
		synctest.Wait()
		var cp Capture
		cp.Begin(200, nil, Shape{MaxEntry: 10, Streamed: true})
		lead.Land(c.Commit(&k, &cp, time.Hour))
		if err := <-with; !errors.Is(err, ErrAlone) {
			t.Errorf("unexpected error; got %v; want %v", err, ErrAlone)
		}
		if err := <-without; err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		if c.Get(&k, true) != nil || c.Get(&k, false) == nil {
			t.Error("the entry serves whom it should not, or not whom it should")
		}
		if hits, misses := c.Stats().Hits.Load(), c.Stats().Misses.Load(); hits != 1 || misses != 1 {
			t.Errorf("unexpected counts; got %d hits, %d misses; want 1, 1", hits, misses)
		}
	})
}

func TestJoin_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache()
		k := testKey(1)
		var lead, s Seat
		c.Join(&k, &lead)
		for range 3 { // a Seat is used again
			c.Join(&k, &s)
			s.Prepare()
			start := time.Now()
			if _, err := s.Wait(5*time.Second, false); !errors.Is(err, ErrWaited) {
				t.Fatalf("unexpected error; got %v; want %v", err, ErrWaited)
			}
			if waited := time.Since(start); waited != 5*time.Second {
				t.Errorf("unexpected wait; got %v; want 5s", waited)
			}
		}
		lead.Land(testEntry("x"))
		if len(s.landed) != 0 {
			t.Error("an entry landed where nobody waits")
		}
	})
}

// TestJoin_Canceled has clients leave: first, middle and last of those that wait,
// and one before it waits.
func TestJoin_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCache()
		k := testKey(1)
		var lead Seat
		c.Join(&k, &lead)
		var seats [5]*Seat
		var waits [5]chan error
		for i := range seats {
			seats[i], waits[i] = waiter(t, c, &k, false)
		}
		synctest.Wait()
		for _, i := range []int{4, 2, 0} {
			seats[i].Cancel()
			seats[i].Cancel()
			if err := <-waits[i]; !errors.Is(err, ErrCanceled) {
				t.Errorf("unexpected error; got %v; want %v", err, ErrCanceled)
			}
		}
		var early Seat
		c.Join(&k, &early)
		early.Prepare()
		early.Cancel()
		if _, err := early.Wait(time.Minute, false); !errors.Is(err, ErrCanceled) {
			t.Errorf("unexpected error; got %v; want %v", err, ErrCanceled)
		}
		lead.Land(testEntry("x"))
		for _, i := range []int{1, 3} {
			if err := <-waits[i]; err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		for i := range seats {
			if len(seats[i].landed) != 0 {
				t.Errorf("something landed at %d twice", i)
			}
		}
	})
}

// TestJoin_Storm has seats used again and again by requests that lead, fail, wait
// briefly and are canceled; every one must end, and none may get another's entry.
func TestJoin_Storm(t *testing.T) {
	c := newTestCache()
	var keys [4]Key
	var entries [4]*Entry
	for i := range keys {
		keys[i], entries[i] = testKey(i), testEntry(string(rune('a'+i)))
	}
	var wg sync.WaitGroup
	var got atomic.Int64
	for g := range 16 {
		wg.Go(func() {
			var s Seat
			for n := range 500 {
				i := (g*7 + n) % len(keys)
				if c.Join(&keys[i], &s) {
					if n%3 == 0 {
						time.Sleep(50 * time.Microsecond)
					}
					if n%5 == 0 {
						s.Land(nil)
					} else {
						s.Land(entries[i])
					}
					continue
				}
				s.Prepare()
				canceled := make(chan struct{})
				go func() {
					if n%4 == 0 {
						s.Cancel()
					}
					close(canceled)
				}()
				e, _ := s.Wait(time.Duration(n%7)*20*time.Microsecond, false)
				<-canceled
				if e != nil && e != entries[i] {
					t.Errorf("got the entry of another key")
				}
				if e != nil {
					got.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := c.Stats().Coalesced.Load(); int64(n) != got.Load() {
		t.Errorf("unexpected count; got %d; want %d", n, got.Load())
	}
	for i := range c.flights.shards {
		if n := len(c.flights.shards[i].leaders); n != 0 {
			t.Errorf("%d leaders are left", n)
		}
	}
}
