package upstream

import (
	"math"
	"sync/atomic"
)

// roundRobin takes places in turn, in strides that are coprime to their number:
// after as many choices as there are places each was taken once, so that every
// worker was chosen exactly as often as it weighs. The stride divides the whole
// by the golden ratio, so that the places taken so far always lie about evenly
// (the three-gap theorem): what nginx gets from its smooth weighted round robin
// with a lock around all workers.
type roundRobin struct {
	*roster
	turn   *atomic.Uint64
	stride uint64
}

func newRoundRobin(r *roster, turn *atomic.Uint64) *roundRobin {
	c := &roundRobin{r, turn, 1}
	if r.ends != nil {
		c.stride = goldenStride(r.places)
	}
	return c
}

func (c *roundRobin) choose(*Key, *Worker) *Worker {
	turn := (c.turn.Add(1) - 1) % c.places
	return c.at(turn * c.stride % c.places)
}

// goldenStride returns a number coprime to n, as near to n divided by the golden
// ratio as there is.
func goldenStride(n uint64) uint64 {
	ideal := uint64(math.Round(float64(n) / math.Phi))
	for d := uint64(0); ; d++ {
		if ideal+d < n && gcd(int(n), int(ideal+d)) == 1 {
			return ideal + d
		}
		if d < ideal && gcd(int(n), int(ideal-d)) == 1 {
			return ideal - d
		}
	}
}
