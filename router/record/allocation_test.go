//go:build !race

package record

import (
	"context"
	"testing"
)

// A row costs no allocation, be it written or dropped, once the rows of a full
// queue are there.
func TestAdd_Allocations(t *testing.T) {
	const queue = 64
	f := func(name string, open opener) {
		r, err := start(Options{Queue: queue, Batch: 4}, open)
		if err != nil {
			t.Fatal(err)
		}
		add := func() {
			w := r.Get()
			fillRow(w)
			r.Add(w)
		}
		for range 4 * queue {
			add()
		}
		// A collection during the runs may empty the pool of rows.
		n := testing.AllocsPerRun(1000, add)
		if n != 0 {
			t.Errorf("%s: %v allocations a row; want 0", name, n)
		}
		if s := r.Stats(); s.Written == 0 && s.DroppedQueueFull == 0 {
			t.Errorf("%s: unexpected stats %+v", name, s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = r.Close(ctx) // rows may be lost
	}
	f("written", nowhere{}.open)
	blocked := &fakeStore{gate: make(chan struct{})}
	f("dropped", blocked.open)
}

func TestStats_Allocations(t *testing.T) {
	r, err := start(Options{}, nowhere{}.open)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRecorder(t, r)
	if n := testing.AllocsPerRun(100, func() { _ = r.Stats() }); n != 0 {
		t.Errorf("%v allocations; want 0", n)
	}
}
