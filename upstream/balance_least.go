package upstream

import (
	"math"
	"math/rand/v2"
)

// leastRequests takes a worker with the least load for its weight.
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

func (c leastRequests) choose(_ *Key, avoid *Worker) *Worker {
	if len(c.workers) > exactWorkers {
		return c.sample(avoid)
	}
	// Equals are drawn for. To begin at a random place and take the first of
	// them would favour one that stands behind workers with more requests.
	var equals [exactWorkers]uint8
	n := 0
	var load, weight int64 // of the best so far
	for i, w := range c.workers {
		l, m := c.loads[i].Load()+1, c.weightAt(uint64(i))
		if w == avoid || n > 0 && l*weight > load*m {
			continue
		}
		if n == 0 || l*weight < load*m {
			load, weight, n = l, m, 0
		}
		equals[n] = uint8(i)
		n++
	}
	if n == 0 {
		return avoid
	}
	return c.workers[equals[rand.IntN(n)]]
}

// sample returns the least loaded of a few workers drawn at random.
func (c leastRequests) sample(avoid *Worker) *Worker {
	best, weight, load := avoid, int64(1), int64(math.MaxInt64>>32)
	for range sampled / 2 {
		i, j := c.drawIndexes()
		for _, i := range [...]uint64{i, j} {
			w, l, m := c.workers[i], c.loads[i].Load()+1, c.weightAt(i)
			if w != avoid && l*weight < load*m {
				best, weight, load = w, m, l
			}
		}
	}
	return best
}
