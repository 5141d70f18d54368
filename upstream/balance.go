package upstream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// The ways to choose a worker.
const (
	// RoundRobin takes the workers in turn.
	RoundRobin = "round_robin"
	// Random takes any worker.
	Random = "random"
	// LeastRequests takes a worker with the fewest requests under way, any of
	// them where there are several. In a pool of more than exactWorkers it is
	// the least loaded of a random sample.
	LeastRequests = "least_requests"
)

// Balances are the names that PoolSpec.Balance takes.
var Balances = []string{RoundRobin, Random, LeastRequests}

// chooser chooses one of the workers it is given, at least one. It never
// returns nil, allocates nothing and is safe for concurrent use.
type chooser interface {
	choose(workers []*Worker) *Worker
}

func newChooser(name string) (chooser, error) {
	switch name {
	case RoundRobin:
		return new(roundRobin), nil
	case Random:
		return random{}, nil
	case LeastRequests:
		return leastRequests{}, nil
	}
	return nil, fmt.Errorf("unknown balance %q; want one of %q", name, Balances)
}

type roundRobin struct{ next atomic.Uint64 }

func (r *roundRobin) choose(workers []*Worker) *Worker {
	return workers[(r.next.Add(1)-1)%uint64(len(workers))]
}

type random struct{}

func (random) choose(workers []*Worker) *Worker { return workers[rand.IntN(len(workers))] }

type leastRequests struct{}

const (
	// exactWorkers is the largest pool whose every worker is looked at for a
	// choice. What is read lies in a cache line of its own for each worker, so
	// that the whole of a fleet would cost microseconds.
	exactWorkers = 64
	// sampled is how many workers are drawn of a larger pool, to take the least
	// loaded of them. It keeps the largest load within two requests of the
	// mean, and does not send everything to one that has just become free.
	sampled = 8
)

func (leastRequests) choose(workers []*Worker) *Worker {
	if len(workers) > exactWorkers {
		return sample(workers)
	}
	// Equals are drawn for. To begin at a random place and take the first of
	// them would favour one that stands behind workers with more requests.
	var equals [exactWorkers]uint8
	n := 0
	least := int64(math.MaxInt64)
	for i, w := range workers {
		load := w.load.Load()
		if load > least {
			continue
		}
		if load < least {
			least, n = load, 0
		}
		equals[n] = uint8(i)
		n++
	}
	return workers[equals[rand.IntN(n)]]
}

// sample returns the least loaded of a few workers drawn at random.
func sample(workers []*Worker) *Worker {
	var best *Worker
	least := int64(math.MaxInt64)
	for range sampled / 2 {
		// The halves of one random number scaled to the pool (Lemire): how far
		// that is from even is beyond measuring at any size of a pool.
		r := rand.Uint64()
		for _, half := range [...]uint64{r >> 32, r & math.MaxUint32} {
			w := workers[half*uint64(len(workers))>>32]
			if load := w.load.Load(); load < least {
				best, least = w, load
			}
		}
	}
	return best
}
