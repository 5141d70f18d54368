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

// chooser chooses one of the workers of its roster. It allocates nothing and is
// safe for concurrent use.
type chooser interface {
	// choose returns a worker for a request with the key k, which is not nil.
	// It is not called on an empty roster. It should not be avoid, which may be
	// nil, and may be all the same: the caller looks.
	choose(k *Key, avoid *Worker) *Worker
}

// roster is the workers of a pool that may be chosen, and how. It does not
// change: a pool publishes a new one whenever a worker comes or goes.
type roster struct {
	workers []*Worker
	chooser
}

// arranger makes the chooser of a roster. What a choice must remember from one
// roster to the next is its own.
type arranger func(r *roster) chooser

func newArranger(balance string) (arranger, error) {
	switch balance {
	case RoundRobin:
		turn := new(atomic.Uint64)
		return func(r *roster) chooser { return &roundRobin{r, turn} }, nil
	case Random:
		return func(r *roster) chooser { return random{r} }, nil
	case LeastRequests:
		return func(r *roster) chooser { return leastRequests{r} }, nil
	}
	return nil, fmt.Errorf("unknown balance %q; want one of %q", balance, Balances)
}

// roster arranges the workers, which it keeps.
func (a arranger) roster(workers []*Worker) *roster {
	r := &roster{workers: workers}
	r.chooser = a(r)
	return r
}

type roundRobin struct {
	*roster
	turn *atomic.Uint64
}

func (c *roundRobin) choose(*Key, *Worker) *Worker {
	return c.workers[(c.turn.Add(1)-1)%uint64(len(c.workers))]
}

type random struct{ *roster }

func (c random) choose(*Key, *Worker) *Worker { return c.workers[rand.IntN(len(c.workers))] }

type leastRequests struct{ *roster }

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

func (c leastRequests) choose(*Key, *Worker) *Worker {
	workers := c.workers
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
