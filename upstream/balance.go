package upstream

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// The ways to choose a worker.
const (
	// RoundRobin takes the workers in turn.
	RoundRobin = "round_robin"
	// Random takes any worker.
	Random = "random"
	// LeastRequests takes a worker with the fewest requests under way, and
	// any of them where there are several.
	LeastRequests = "least_requests"
)

// Balances are the names that PoolSpec.Balance takes.
var Balances = []string{RoundRobin, Random, LeastRequests}

// chooser chooses one of the workers it was made for. It never returns nil,
// allocates nothing and is safe for concurrent use.
type chooser interface{ choose() *Worker }

func newChooser(name string, workers []*Worker) (chooser, error) {
	switch name {
	case RoundRobin:
		return &roundRobin{workers: workers}, nil
	case Random:
		return random(workers), nil
	case LeastRequests:
		return leastRequests(workers), nil
	}
	return nil, fmt.Errorf("unknown balance %q; want one of %q", name, Balances)
}

type roundRobin struct {
	workers []*Worker
	next    atomic.Uint64
}

func (r *roundRobin) choose() *Worker {
	return r.workers[(r.next.Add(1)-1)%uint64(len(r.workers))]
}

type random []*Worker

func (r random) choose() *Worker { return r[rand.IntN(len(r))] }

type leastRequests []*Worker

// choose starts at a random worker, so that equals share the requests.
func (l leastRequests) choose() *Worker {
	start := rand.IntN(len(l))
	best := l[start]
	least := best.load.Load()
	for i := start + 1; i < start+len(l) && least > 0; i++ {
		w := l[i%len(l)]
		if n := w.load.Load(); n < least {
			best, least = w, n
		}
	}
	return best
}
