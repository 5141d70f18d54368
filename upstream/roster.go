package upstream

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// roster is the workers of a pool that may be chosen, and how. It does not
// change: a pool publishes a new one whenever a worker comes or goes.
type roster struct {
	workers []*Worker
	// loads are those of the workers, at the same indexes: a choice among many
	// reads little else of them.
	loads []*atomic.Int64
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
	r := &roster{workers: workers, loads: make([]*atomic.Int64, len(workers))}
	divisor, equal := 0, true
	for i, w := range workers {
		r.loads[i] = &w.load
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
func (r *roster) at(place uint64) *Worker { return r.workers[r.index(place)] }

// index returns the index of the worker that covers the place.
func (r *roster) index(place uint64) uint64 {
	if r.ends == nil { // Fast path
		return place
	}
	i := uint64(r.guide[place>>r.step])
	for uint64(r.ends[i]) <= place {
		i++
	}
	return i
}

// weightAt returns what the worker at the index weighs among the others.
func (r *roster) weightAt(i uint64) int64 {
	if r.ends == nil { // Fast path
		return 1
	}
	return int64(r.workers[i].weight)
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
	i, j := r.drawIndexes()
	return r.workers[i], r.workers[j]
}

// drawIndexes is drawTwo for the indexes.
func (r *roster) drawIndexes() (i, j uint64) {
	n := rand.Uint64()
	return r.index(n >> 32 * r.places >> 32), r.index(n & math.MaxUint32 * r.places >> 32)
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
