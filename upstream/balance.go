package upstream

import "fmt"

// The ways to choose a worker.
const (
	// RoundRobin takes the workers in turn, each as often as its weight says
	// and not many times in a row.
	RoundRobin = "round_robin"
	// Random takes any worker.
	Random = "random"
	// LeastRequests takes a worker with the fewest requests under way for its
	// weight, any of them where there are several. In a pool of more than
	// exactWorkers it is the least loaded of a random sample.
	LeastRequests = "least_requests"
	// PowerOfTwo takes the less loaded of two workers drawn at random.
	PowerOfTwo = "power_of_two"
	// ConsistentHash takes the worker that the session of a request belongs to,
	// on which all routers with the same workers agree, or the next one where
	// that has more than its share. A request without a session goes to the
	// least loaded worker.
	ConsistentHash = "consistent_hash"
	// PrefixAware takes the worker that last served the longest beginning of
	// the request's conversation, or the least loaded one where that has more
	// than its share. A session decides as for ConsistentHash.
	PrefixAware = "prefix_aware"
)

// Balances are the names that PoolSpec.Balance takes.
var Balances = []string{RoundRobin, Random, LeastRequests, PowerOfTwo, ConsistentHash, PrefixAware}

// chooser chooses one of the workers of its roster. It allocates nothing and is
// safe for concurrent use.
type chooser interface {
	// choose returns a worker for a request with the key k, which is not nil.
	// It is not called on an empty roster. It should not be avoid, which may be
	// nil, and may be all the same: the caller looks.
	choose(k *Key, avoid *Worker) *Worker
}

// arranger makes the chooser of a roster. What a choice must remember from one
// roster to the next is its own.
type arranger func(r *roster) chooser

// newArranger returns how workers, which are all of p with the settings s, are
// chosen.
func (p *Pool) newArranger(s *settings, workers []*Worker) (arranger, error) {
	if s.balance != ConsistentHash && s.balance != PrefixAware {
		p.ring = nil
	}
	switch s.balance {
	case RoundRobin:
		return func(r *roster) chooser { return newRoundRobin(r, &p.turn) }, nil
	case Random:
		return func(r *roster) chooser { return random{r} }, nil
	case LeastRequests:
		return func(r *roster) chooser { return leastRequests{r} }, nil
	case PowerOfTwo:
		return func(r *roster) chooser { return powerOfTwo{r} }, nil
	}
	places := 0
	for _, w := range workers {
		places = max(places, w.id+1)
	}
	if places > maxPlaces {
		return nil, fmt.Errorf("%s takes at most %d workers, got %d", s.balance, maxPlaces, len(workers))
	}
	ring := p.ring
	if !ring.fits(workers) {
		ring = newRing(workers)
		p.ring = ring
	}
	byHash := func(r *roster) *consistentHash {
		return &consistentHash{leastRequests{r}, newShare(r, p, s), r.byID(places), ring}
	}
	if s.balance == ConsistentHash {
		return func(r *roster) chooser { return byHash(r) }, nil
	}
	return func(r *roster) chooser { return &prefixAware{byHash(r), s.prefixes} }, nil
}

// roster arranges the workers, which it keeps.
func (a arranger) roster(workers []*Worker) *roster {
	r := newRoster(workers)
	r.chooser = a(r)
	return r
}
