package cache

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemory_HitIsNoCopy(t *testing.T) {
	m := NewMemory(1<<20, new(Stats))
	k, e := testKey(1), testEntry("body")
	if m.Get(&k) != nil {
		t.Fatal("a hit in an empty store")
	}
	m.Put(&k, e, time.Hour)
	if got := m.Get(&k); got != e {
		t.Errorf("unexpected entry; got %p; want %p", got, e)
	}
	other := testEntry("other")
	m.Put(&k, other, time.Hour)
	if got := m.Get(&k); got != other {
		t.Error("the entry is not replaced")
	}
	if n := m.stats.Entries.Load(); n != 1 {
		t.Errorf("unexpected number of entries; got %d; want 1", n)
	}
	if got, want := m.stats.Bytes.Load(), int64(cap(other.raw))+nodeCost; got != want {
		t.Errorf("unexpected bytes; got %d; want %d", got, want)
	}
	m.Close()
	if m.Get(&k) != nil || m.stats.Entries.Load() != 0 || m.stats.Bytes.Load() != 0 || m.stats.Evictions.Load() != 0 {
		t.Error("Close leaves something")
	}
}

func TestMemory_TTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1<<20, new(Stats))
		short, long := testKey(1), testKey(2)
		m.Put(&short, testEntry("a"), time.Second)
		m.Put(&long, testEntry("b"), time.Hour)
		time.Sleep(time.Second - time.Nanosecond)
		if m.Get(&short) == nil || m.stats.Expired.Load() != 0 {
			t.Error("an entry is gone before its time")
		}
		time.Sleep(time.Nanosecond)
		if m.Get(&short) != nil || m.stats.Expired.Load() != 1 || m.stats.Entries.Load() != 1 {
			t.Error("an entry is there after its time")
		}
		if m.Get(&short) != nil || m.stats.Expired.Load() != 1 {
			t.Error("an entry expires twice")
		}
		if m.Get(&long) == nil {
			t.Error("another entry is gone")
		}
	})
}

// TestMemory_LRU fills a store and uses one entry all the time: it stays, while
// others make room, the oldest first.
func TestMemory_LRU(t *testing.T) {
	stats := new(Stats)
	m := NewMemory(1<<20, stats)
	kept := testKey(-1)
	m.Put(&kept, testEntry(strings.Repeat("k", 1<<10)), time.Hour)
	const n = 10_000
	for i := range n {
		k := testKey(i)
		m.Put(&k, testEntry(strings.Repeat("x", 1<<10)), time.Hour)
		if m.Get(&kept) == nil {
			t.Fatalf("the entry that is used most is gone after %d others", i+1)
		}
		if held := stats.Bytes.Load(); held > 1<<20 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if got, want := stats.Evictions.Load(), n+1-uint64(stats.Entries.Load()); got != want {
		t.Errorf("unexpected evictions; got %d; want %d", got, want)
	}
	held := 0
	for i := range n {
		if k := testKey(i); m.Get(&k) != nil {
			held++
			if i <= n-int(stats.Entries.Load()) {
				t.Errorf("entry %d is there, of %d, with room for %d", i, n, stats.Entries.Load())
			}
		}
	}
	if want := int(stats.Entries.Load()) - 1; held != want || held < 700 {
		t.Errorf("unexpected number of entries; got %d; want %d, at least 700", held, want)
	}
}

func TestMemory_TooLarge(t *testing.T) {
	stats := new(Stats)
	m := NewMemory(64<<10, stats)
	small, large := testKey(1), testKey(2)
	m.Put(&small, testEntry("x"), time.Hour)
	m.Put(&large, testEntry(strings.Repeat("x", 64<<10)), time.Hour)
	if m.Get(&large) != nil || stats.TooLarge.Load() != 1 {
		t.Error("an entry larger than everything is stored")
	}
	if m.Get(&small) == nil || stats.Evictions.Load() != 0 {
		t.Error("something made room for it")
	}
	m.Put(&large, testEntry(strings.Repeat("x", 50<<10)), time.Hour)
	if m.Get(&large) == nil {
		t.Error("an entry as large as nearly everything is not stored")
	}
}

// TestMemory_Accounting compares what is counted with what the heap grows by.
func TestMemory_Accounting(t *testing.T) {
	f := func(n, size int) {
		t.Helper()
		body := strings.Repeat("x", size)
		before := heap()
		stats := new(Stats)
		m := NewMemory(1<<40, stats)
		for i := range n {
			k := testKey(i)
			m.Put(&k, testEntry(body), time.Hour)
		}
		grown, counted := heap()-before, stats.Bytes.Load()
		if grown > counted+64<<10 {
			t.Errorf("%d entries of %d bytes: the heap grows by %d, %d are counted", n, size, grown, counted)
		}
		runtime.KeepAlive(m)
	}
	f(30_000, 0)
	f(57_345, 10) // maps of 896 slots and a few, just grown
	f(5_000, 4<<10)
	f(20, 1<<20)
}

func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestMemory_MapsShrink has many small entries make room for few large ones.
func TestMemory_MapsShrink(t *testing.T) {
	before := heap()
	stats := new(Stats)
	m := NewMemory(12<<20, stats)
	small := testEntry("")
	for i := range 36_000 {
		k := testKey(i)
		m.Put(&k, small, time.Hour)
	}
	for i := range 20 {
		k := testKey(-1 - i)
		m.Put(&k, testEntry(strings.Repeat("x", 1<<20)), time.Hour)
	}
	if grown, counted := heap()-before, stats.Bytes.Load(); grown > counted+counted/16 {
		t.Errorf("the heap grows by %d, %d are counted", grown, counted)
	}
	runtime.KeepAlive(m)
}

func TestMemory_Concurrent(t *testing.T) {
	stats := new(Stats)
	m := NewMemory(256<<10, stats)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 0))
			for range 3000 {
				i := rnd.IntN(300)
				k := testKey(i)
				want := bytes.Repeat([]byte{byte(i)}, 1+i*13)
				if e := m.Get(&k); e != nil && !bytes.Equal(e.Body(), want) {
					t.Errorf("the entry %d has another's body", i)
				}
				if rnd.IntN(2) == 0 {
					m.Put(&k, testEntry(string(want)), time.Duration(rnd.IntN(3))*time.Millisecond)
				}
				if held := stats.Bytes.Load(); held > 256<<10 || held < 0 {
					t.Errorf("%d bytes are held", held)
				}
			}
		})
	}
	wg.Wait()
	m.Close()
	if stats.Bytes.Load() != 0 || stats.Entries.Load() != 0 {
		t.Errorf("an empty store holds %d bytes and %d entries", stats.Bytes.Load(), stats.Entries.Load())
	}
	for i := range m.shards {
		if n := len(m.shards[i].nodes); n != 0 {
			t.Errorf("shard %d has %d nodes that are not in its ring", i, n)
		}
	}
}
