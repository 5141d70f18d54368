package upstream

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// roster is the workers of a pool that may be chosen, and how. It does not
// change: a pool publishes a new one whenever a worker comes or goes.
type roster struct {
	workers []*Worker
	chooser

	weight uint64 // of all workers
	// places is the sum of the weights without their common divisor, and ends
	// the sums up to each worker: laid end to end, a worker covers as many
	// places as it weighs. Where all weigh the same ends is nil.
	places uint64
	ends   []uint32
	// guide is where in ends to begin the search for a place, for each 1<<step
	// places, which are no more than the mean worker covers.
	guide []uint32
	step  int
}

func newRoster(workers []*Worker) *roster {
	r := &roster{workers: workers}
	divisor, equal := 0, true
	for _, w := range workers {
		r.weight += uint64(w.weight)
		divisor = gcd(w.weight, divisor)
		equal = equal && w.weight == workers[0].weight
	}
	if equal {
		r.places = uint64(len(workers))
		return r
	}
	r.ends = make([]uint32, len(workers))
	for i, w := range workers {
		r.places += uint64(w.weight / divisor)
		r.ends[i] = uint32(r.places)
	}
	r.step = bits.Len64(r.places/uint64(len(workers))) - 1
	for i, end := range r.ends {
		for uint64(len(r.guide))<<r.step < uint64(end) {
			r.guide = append(r.guide, uint32(i))
		}
	}
	return r
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// at returns the worker that covers the place.
func (r *roster) at(place uint64) *Worker {
	if r.ends == nil { // Fast path
		return r.workers[place]
	}
	i := r.guide[place>>r.step]
	for uint64(r.ends[i]) <= place {
		i++
	}
	return r.workers[i]
}

// draw returns a worker drawn at random by weight.
func (r *roster) draw() *Worker {
	// How far a random number scaled to the places (Lemire) is from even is
	// beyond measuring at any size of a pool.
	place, _ := bits.Mul64(rand.Uint64(), r.places)
	return r.at(place)
}

// drawTwo is draw for two at the price of one: the halves of a random number are
// still as good as even.
func (r *roster) drawTwo() (a, b *Worker) {
	n := rand.Uint64()
	return r.at(n >> 32 * r.places >> 32), r.at(n & math.MaxUint32 * r.places >> 32)
}

// lighter reports whether a would have less load for its weight than b with one
// more request.
func lighter(a, b *Worker) bool {
	return (a.load.Load()+1)*int64(b.weight) < (b.load.Load()+1)*int64(a.weight)
}

// byID returns the workers of the roster at their ids, which are below n, and
// nil in place of the others.
func (r *roster) byID(n int) []*Worker {
	some := make([]*Worker, n)
	for _, w := range r.workers {
		some[w.id] = w
	}
	return some
}
