package upstream

import "testing"

func TestRoundRobin_Exact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		p := newFleet(t, RoundRobin, n)
		for i := range 5 * n {
			w := p.Pick()
			if want := p.Workers()[i%n]; w != want {
				t.Fatalf("unexpected worker at pick %d; got %s; want %s", i, w.URL(), want.URL())
			}
			w.Release()
		}
	}
}

// shares picks and releases many times and returns the picks of each worker.
// The bounds that are asked of them lie more than 8 standard deviations from
// what is expected.
func shares(p *Pool, picks int) []int {
	before := make([]uint64, len(p.Workers()))
	for i, w := range p.Workers() {
		before[i] = w.Picks()
	}
	for range picks {
		p.Pick().Release()
	}
	n := make([]int, len(before))
	for i, w := range p.Workers() {
		n[i] = int(w.Picks() - before[i])
	}
	return n
}

func TestRandom_Spread(t *testing.T) {
	for i, n := range shares(newFleet(t, Random, 8), 80_000) {
		if n < 9_000 || n > 11_000 {
			t.Errorf("unexpected picks of worker %d; got %d; want about 10000", i, n)
		}
	}
}

func TestLeastRequests_PicksTheLeast(t *testing.T) {
	for _, n := range []int{1, 2, 5, exactWorkers} {
		p := newFleet(t, LeastRequests, n)
		for round := range 4 {
			for range n { // one for each of them
				p.Pick()
			}
			for i, w := range p.Workers() {
				if got := w.Load(); got != int64(round+1) {
					t.Fatalf("unexpected load of worker %d of %d; got %d; want %d", i, n, got, round+1)
				}
			}
		}
		free := p.Workers()[n/2]
		free.Release()
		if got := p.Pick(); got != free {
			t.Fatalf("unexpected worker of %d; got %s; want %s", n, got.URL(), free.URL())
		}
	}
}

// TestLeastRequests_SharesAmongEquals has some workers busy: those that are not
// share, wherever they stand.
func TestLeastRequests_SharesAmongEquals(t *testing.T) {
	p := newFleet(t, LeastRequests, 8)
	for _, i := range []int{1, 2, 3, 6} {
		p.Workers()[i].load.Store(1)
	}
	for i, n := range shares(p, 40_000) {
		if busy := p.Workers()[i].Load() > 0; busy && n != 0 {
			t.Errorf("unexpected picks of busy worker %d; got %d; want 0", i, n)
		} else if !busy && (n < 9_000 || n > 11_000) {
			t.Errorf("unexpected picks of worker %d; got %d; want about 10000", i, n)
		}
	}
}

// TestLeastRequests_LargeFleet holds the choice among a sample to loads that
// an exact choice would hardly better.
func TestLeastRequests_LargeFleet(t *testing.T) {
	const n, each = 4096, 10
	p := newFleet(t, LeastRequests, n)
	for range n * each {
		p.Pick()
	}
	for i, w := range p.Workers() {
		if got := w.Load(); got > each+2 {
			t.Fatalf("unexpected load of worker %d; got %d; want at most %d", i, got, each+2)
		}
	}
}

func TestUnknownBalance(t *testing.T) {
	_, err := NewPool(PoolSpec{Name: "p", Workers: []WorkerSpec{{URL: "http://w:1"}}, Balance: "fastest"})
	const want = `pool "p": unknown balance "fastest"; want one of ["round_robin" "random" "least_requests" "power_of_two" "consistent_hash" "prefix_aware"]`
	if err == nil || err.Error() != want {
		t.Fatalf("unexpected error; got %v; want %s", err, want)
	}
}
