package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
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
	name    string
	workers []*Worker
	arrange arranger
	// affinity is what of a key the choices depend on.
	affinity Affinity
	prefixes *prefixes // nil but for PrefixAware
	health   Health
	breaker  Breaker
	retry    Retry
	budget   *budget
	fields   FieldEdits
	aborts   aborts

	// usable are the workers that are well and whose breaker is closed. It is
	// made anew at each change, so that a choice reads it without a lock.
	usable atomic.Pointer[roster]
	trials atomic.Int32 // workers that wait for a request to try them

	retries, exhausted atomic.Uint64

	admission

	mu     sync.Mutex // guards the breakers of the workers
	closed bool

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// NewPool builds the pool that spec describes and starts its goroutines: one
// that closes rested connections, one a worker that probes its health, and a few
// that send aborts. Close ends them.
func NewPool(spec PoolSpec) (*Pool, error) {
	p := &Pool{
		name:    spec.Name,
		health:  spec.Health,
		breaker: spec.Breaker,
		retry:   spec.Retry,
		budget:  newBudget(spec.Retry.Budget),
		fields:  spec.Fields,
	}
	p.limits = spec.Limits
	p.counted = p.limits.Pool > 0
	for i, s := range spec.Workers {
		w, err := newWorker(s.URL, spec.Timeouts)
		if err != nil {
			return nil, fmt.Errorf("pool %q: %w", spec.Name, err)
		}
		w.pool, w.id, w.weight = p, i, max(s.Weight, 1)
		w.protocol = spec.Protocol
		w.h2.Store(spec.Protocol == H2C)
		w.secure(spec.TLS)
		p.workers = append(p.workers, w)
	}
	if len(p.workers) == 0 {
		return nil, fmt.Errorf("pool %q has no workers", spec.Name)
	}
	var err error
	if p.arrange, err = p.newArranger(&spec); err != nil {
		return nil, fmt.Errorf("pool %q: %w", spec.Name, err)
	}
	p.refreshLocked() // nobody else has the pool yet
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.startAborts(ctx, spec.AbortPath)
	p.done.Go(func() { p.reap(ctx) })
	for _, w := range p.workers {
		p.lookAgain(w)
	}
	if p.health.Interval > 0 {
		for _, w := range p.workers {
			p.done.Go(func() { p.watchHealth(ctx, w) })
		}
	}
	return p, nil
}

// Name returns the pool's name.
func (p *Pool) Name() string { return p.name }

// EditFields edits the header fields of a request to a worker of the pool, as
// FieldEdits.Apply does.
func (p *Pool) EditFields(fields []h1.Field) []h1.Field { return p.fields.Apply(fields) }

// Workers returns the pool's workers. The slice must not be changed.
func (p *Pool) Workers() []*Worker { return p.workers }

// Usable returns how many workers may be chosen.
func (p *Pool) Usable() int { return len(p.usable.Load().workers) }

// Affinity returns what of a Key the pool's choices depend on, so that nothing
// else needs to be computed.
func (p *Pool) Affinity() Affinity { return p.affinity }

// Retries returns how many requests were sent to another worker, Exhausted how
// many were not, for want of budget.
func (p *Pool) Retries() uint64 { return p.retries.Load() }

// Exhausted returns how many retries the budget has forbidden.
func (p *Pool) Exhausted() uint64 { return p.exhausted.Load() }

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
		p.prefixes.served(k.Blocks, w)
	}
	return w
}

func (p *Pool) pickUsable(k *Key, avoid *Worker) *Worker {
	r := p.usable.Load()
	usable := r.workers
	if len(usable) == 0 {
		return nil
	}
	if w := r.choose(k, avoid); w != avoid && p.admit(w) {
		return w
	}
	// What was chosen is full, or it is the one that failed, which is the least
	// loaded when it refuses connections. Any other will do.
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
// when they end.
func (p *Pool) Close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for _, w := range p.workers {
		if w.cooldown != nil {
			w.cooldown.Stop()
		}
	}
	p.mu.Unlock()
	p.done.Wait()
	for _, w := range p.workers {
		w.close()
		if w.side != nil {
			w.side.close()
		}
	}
}

// reap closes connections that rested for longer than idleLimit, so that the
// worker does not close them under a request, and measures the pool's pace.
func (p *Pool) reap(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	var released uint64
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			released = p.measure(released)
			for _, w := range p.workers {
				w.reap(now)
				if w.side != nil {
					w.side.reap(now)
				}
			}
		}
	}
}
