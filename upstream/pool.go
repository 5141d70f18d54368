package upstream

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/upstream/h1"
)

// Timeouts bound the stages of one exchange. Zero means no bound.
type Timeouts struct {
	// Connect bounds making a connection.
	Connect time.Duration
	// FirstByte bounds the time from sending the request to the head of the
	// answer.
	FirstByte time.Duration
	// BetweenEvents bounds a pause in the body of the answer.
	BetweenEvents time.Duration
	// Total bounds the whole exchange.
	Total time.Duration
}

// PoolSpec says what a pool is made of.
type PoolSpec struct {
	// Name is the pool's name in logs and metrics.
	Name    string
	Workers []WorkerSpec
	// Sources are the names that Pool.SetMembers takes. A pool with any may be
	// empty.
	Sources []string
	// Balance names the way a worker is chosen, see Balances.
	Balance string
	// LoadFactor, at least 1, is how many times its share of the requests under
	// way a worker may have before ConsistentHash and PrefixAware send requests
	// elsewhere that would be its.
	LoadFactor float64
	// Prefix is for PrefixAware.
	Prefix   Prefix
	Timeouts Timeouts
	// Protocol is one of Protocols; empty is HTTP1.
	Protocol string
	Health   Health
	Breaker  Breaker
	Retry    Retry
	Limits   Limits
	// TLS is how https workers are spoken to: root certificates, server name,
	// client certificates. The pool keeps a copy. Nil means the roots of the
	// system and the name in the URL. At least TLS 1.2 is spoken in any case.
	TLS *tls.Config
	// Fields edit the header of all that is sent to the workers.
	Fields FieldEdits
	// AbortPath is the request target that Pool.Abort posts to. Empty means
	// that the engine knows no such thing.
	AbortPath string
}

// WorkerSpec says what a worker is.
type WorkerSpec struct {
	// URL is the base URL of the worker, http://host:port.
	URL string
	// Weight is the worker's share of the requests relative to that of others.
	// Zero means 1.
	Weight int
}

// Pool is a set of workers that serve the same models. It is safe for
// concurrent use.
type Pool struct {
	name   string
	aborts aborts

	conf atomic.Pointer[settings]
	all  atomic.Pointer[[]*Worker] // what Workers returns

	// usable are the workers that may be chosen. It is made anew at each change,
	// so that a choice reads it without a lock.
	usable atomic.Pointer[roster]
	trials atomic.Int32  // workers that wait for a request to try them
	turn   atomic.Uint64 // of RoundRobin
	ring   *ring         // of ConsistentHash and PrefixAware; guarded by changes

	retries   atomic.Uint64
	exhausted atomic.Uint64
	reasons   [NumRetryReasons]atomic.Uint64

	admission

	membership

	mu      sync.Mutex // guards the breakers of the workers
	workers []*Worker  // all, the same as all
	arrange arranger
	closed  bool

	ctx    context.Context // of the pool's goroutines
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // the reaper, where a worker that left has come to rest
}

// NewPool builds the pool that spec describes and starts its goroutines: one
// that closes rested connections, one a worker that probes its health, and a few
// that send aborts. Close ends them. See Apply for what is refused.
func NewPool(spec PoolSpec) (*Pool, error) {
	p := &Pool{name: spec.Name, wake: make(chan struct{}, 1)}
	p.aborts.queue = make(chan abort, maxAborts)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if err := p.Apply(spec); err != nil {
		p.cancel()
		return nil, err
	}
	p.done.Go(p.reap)
	return p, nil
}

// Name returns the pool's name.
func (p *Pool) Name() string { return p.name }

// EditFields edits the header fields of a request to a worker of the pool, as
// FieldEdits.Apply does.
func (p *Pool) EditFields(fields []h1.Field) []h1.Field { return p.conf.Load().fields.Apply(fields) }

// Workers returns the pool's workers, without those that leave. The slice must
// not be changed.
func (p *Pool) Workers() []*Worker { return *p.all.Load() }

// Usable returns how many workers may be chosen.
func (p *Pool) Usable() int { return len(p.usable.Load().workers) }

// Affinity returns what of a Key the pool's choices depend on, so that nothing
// else needs to be computed.
func (p *Pool) Affinity() Affinity { return p.conf.Load().affinity }

// pick chooses a worker other than avoid, which may be nil, for a request with
// the key k and counts one more request on it. It returns nil where none is
// usable or all are full.
func (p *Pool) pick(k *Key, avoid *Worker) *Worker {
	var w *Worker
	if p.trials.Load() > 0 {
		w = p.takeTrial(avoid)
	}
	if w == nil {
		w = p.pickUsable(k, avoid)
	}
	if w != nil {
		w.conf.prefixes.served(k.Blocks, w)
	}
	return w
}

func (p *Pool) pickUsable(k *Key, avoid *Worker) *Worker {
	r := p.usable.Load()
	if len(r.workers) > 0 {
		if w := r.choose(k, avoid); w != avoid && p.admit(w) { // Fast path
			return w
		}
	}
	for {
		if w := p.pickAny(r.workers, avoid); w != nil {
			return w
		}
		last := r
		if r = p.usable.Load(); r == last {
			return nil
		}
		// All of them may have left meanwhile.
	}
}

// pickAny takes any worker but avoid. What was chosen is full, or it is the one
// that failed, which is the least loaded when it refuses connections.
func (p *Pool) pickAny(usable []*Worker, avoid *Worker) *Worker {
	if len(usable) == 0 {
		return nil
	}
	start := rand.IntN(len(usable))
	for i := range usable {
		if w := usable[(start+i)%len(usable)]; w != avoid && p.admit(w) {
			return w
		}
	}
	return nil
}

// unpick takes back what pick did.
func (p *Pool) unpick(w *Worker) {
	p.Report(w, Neutral) // it may have been a trial
	w.picks.Add(^uint64(0))
	p.release(w)
}

// Close closes the rested connections and waits for the pool's goroutines. It
// must be called once. Exchanges under way go on; their connections are closed
// when they end. What would change the pool after it returns ErrClosed.
func (p *Pool) Close() {
	p.changes.Lock()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	all := slices.Concat(p.Workers(), p.leavers)
	p.changes.Unlock()
	p.cancel()
	p.done.Wait()
	for _, w := range all {
		p.retire(w)
	}
}

// retire closes what w has at rest, for good.
func (p *Pool) retire(w *Worker) {
	p.mu.Lock()
	if w.cooldown != nil {
		w.cooldown.Stop()
	}
	p.mu.Unlock()
	w.close()
}

// reap closes connections that rested for longer than idleLimit, so that the
// worker does not close them under a request, measures the pool's pace and lets
// workers go that have left.
func (p *Pool) reap() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	var ended uint64
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
			p.retireLeavers()
		case now := <-t.C:
			ended = p.measure(ended)
			for _, w := range p.Workers() {
				w.reap(now)
			}
			for _, w := range p.retireLeavers() {
				w.reap(now)
			}
		}
	}
}

// wakeReaper has it look at the workers that leave.
func (p *Pool) wakeReaper() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to
	}
}

// retireLeavers retires the workers that have left and have no request under
// way, and returns the others.
func (p *Pool) retireLeavers() []*Worker {
	p.changes.Lock()
	var kept, idle []*Worker
	for _, w := range p.leavers {
		// It was marked before. admit looks at the mark after it has counted.
		if w.load.Load() == 0 {
			idle = append(idle, w)
			last := w.Counters()
			p.departed.add(&last)
		} else {
			kept = append(kept, w)
		}
	}
	p.leavers = kept
	p.changes.Unlock()
	for _, w := range idle {
		p.retire(w)
	}
	return kept
}
