package upstream

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// share says when a worker of a roster has more than its share of the requests
// under way in the pool.
type share struct {
	inFlight  *atomic.Int64 // in the pool
	perWeight float64       // the share of a weight of 1 in each of them
	limit     int64         // of each worker
}

// freeLoad is what a worker may always have, whatever its share: few requests
// of a pool at rest must not drive a session from its worker.
const freeLoad = 4

func newShare(r *roster, p *Pool, s *settings) share {
	sh := share{&p.inFlight, s.loadFactor / float64(r.weight), math.MaxInt64}
	if m := s.limits.PerWorker; m > 0 {
		sh.limit = int64(m)
	}
	return sh
}

// exceeded reports whether one more request would be too many for w.
func (s *share) exceeded(w *Worker) bool {
	load := w.load.Load() + 1
	if load <= freeLoad {
		return load > s.limit
	}
	most := math.Ceil(s.perWeight * float64(s.inFlight.Load()+1) * float64(w.weight))
	return load > s.limit || float64(load) > most
}

// consistentHash takes the worker that the session belongs to by a ring of all
// workers of the pool. In place of one that is not usable or has more than its
// share (consistent hashing with bounded loads, Mirrokni et al. 2018) comes the
// one to which a hash of the session's hash belongs: so only the sessions of
// such a worker move, to all others evenly, and return when it does.
type consistentHash struct {
	leastRequests // for requests without a session
	share
	usable []*Worker // by id, nil in place of others
	ring   *ring
}

// rehashes bounds how many workers are tried for a session. That none of them
// is usable is likely only where most of the pool is not.
const rehashes = 32

func (c *consistentHash) choose(k *Key, avoid *Worker) *Worker {
	if k.Session == 0 {
		return c.leastRequests.choose(k, avoid)
	}
	h := k.Session
	for range rehashes {
		w := c.usable[c.ring.at(h)]
		if w != nil && w != avoid && !c.exceeded(w) {
			return w
		}
		h = mix(h^wy0, wy1)
	}
	return c.leastRequests.choose(k, avoid)
}

// ring is a consistent hash of workers: each has points on a circle, by its URL
// alone, and what lies before a point, up to the one before that, belongs to
// it. A worker that comes or goes so moves its own part of the circle and
// nothing else. The circle is cut into slots of one owner each, which makes a
// look-up a single read. It does not change.
type ring struct {
	slots   []uint16 // ids of workers
	shift   int      // from a hash to a slot
	workers []*Worker
}

const (
	// ringPoints is how many points a worker of mean weight has. The parts of
	// workers differ from their weights by one part in the root of it.
	ringPoints = 160
	// noOwner is the owner of a slot without a point, while a ring is made.
	noOwner = math.MaxUint16
	// maxPlaces is how many workers a ring and the memory of prefixes can tell
	// apart.
	maxPlaces = math.MaxUint16 - 1
)

func newRing(workers []*Worker) *ring {
	weight := 0
	for _, w := range workers {
		weight += w.weight
	}
	if len(workers) == 0 {
		return nil
	}
	mean := float64(weight) / float64(len(workers))
	order := bits.Len(uint(2 * ringPoints * len(workers))) // slots, more than twice the points
	r := &ring{make([]uint16, 1<<order), 64 - order, workers}
	first := make([]uint64, len(r.slots)) // point of each slot
	for i := range r.slots {
		r.slots[i] = noOwner
	}
	for _, w := range workers {
		point := hash([]byte(w.url), 0)
		for range max(int(math.Round(ringPoints*float64(w.weight)/mean)), 1) {
			point = mix(point^wy2, wy3)
			if slot := point >> r.shift; r.slots[slot] == noOwner || point < first[slot] {
				r.slots[slot], first[slot] = uint16(w.id), point
			}
		}
	}
	r.fill()
	return r
}

// fits reports whether r is the ring of workers, too.
func (r *ring) fits(workers []*Worker) bool {
	return r != nil && slices.EqualFunc(r.workers, workers, func(a, b *Worker) bool {
		return a.backend == b.backend && a.weight == b.weight
	})
}

// fill gives the slots without a point to the next point's owner.
func (r *ring) fill() {
	next := uint16(noOwner)
	for range 2 { // the circle has no end
		for i := len(r.slots) - 1; i >= 0; i-- {
			if r.slots[i] == noOwner {
				r.slots[i] = next
			}
			next = r.slots[i]
		}
	}
}

// at returns the id of the worker that h belongs to.
func (r *ring) at(h uint64) uint16 { return r.slots[h>>r.shift] }
