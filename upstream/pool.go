package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
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
	Name string
	// Workers are the base URLs of the workers, http://host:port.
	Workers []string
	// Balance names the way a worker is chosen, see Balances.
	Balance  string
	Timeouts Timeouts
	Health   Health
	Breaker  Breaker
	Retry    Retry
}

// Pool is a set of workers that serve the same models. It is safe for
// concurrent use.
type Pool struct {
	name    string
	workers []*Worker
	choose  chooser
	health  Health
	breaker Breaker
	retry   Retry
	budget  *budget

	// usable are the workers that are well and whose breaker is closed. It is
	// made anew at each change, so that a choice reads it without a lock.
	usable atomic.Pointer[[]*Worker]
	trials atomic.Int32 // workers that wait for a request to try them

	retries, exhausted atomic.Uint64

	mu     sync.Mutex // guards the breakers of the workers
	closed bool

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// NewPool builds the pool that spec describes and starts its goroutines: one
// that closes rested connections, and one a worker that probes its health.
// Close ends them.
func NewPool(spec PoolSpec) (*Pool, error) {
	p := &Pool{
		name:    spec.Name,
		health:  spec.Health,
		breaker: spec.Breaker,
		retry:   spec.Retry,
		budget:  newBudget(spec.Retry.Budget),
	}
	for _, u := range spec.Workers {
		w, err := newWorker(u, spec.Timeouts)
		if err != nil {
			return nil, fmt.Errorf("pool %q: %w", spec.Name, err)
		}
		p.workers = append(p.workers, w)
	}
	if len(p.workers) == 0 {
		return nil, fmt.Errorf("pool %q has no workers", spec.Name)
	}
	var err error
	if p.choose, err = newChooser(spec.Balance); err != nil {
		return nil, fmt.Errorf("pool %q: %w", spec.Name, err)
	}
	p.refreshLocked() // nobody else has the pool yet
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() { p.reap(ctx) })
	if p.health.Interval > 0 {
		for _, w := range p.workers {
			p.done.Go(func() { p.watchHealth(ctx, w) })
		}
	}
	return p, nil
}

// Name returns the pool's name.
func (p *Pool) Name() string { return p.name }

// Workers returns the pool's workers. The slice must not be changed.
func (p *Pool) Workers() []*Worker { return p.workers }

// Usable returns how many workers may be chosen.
func (p *Pool) Usable() int { return len(*p.usable.Load()) }

// Retries returns how many requests were sent to another worker, Exhausted how
// many were not, for want of budget.
func (p *Pool) Retries() uint64 { return p.retries.Load() }

// Exhausted returns how many retries the budget has forbidden.
func (p *Pool) Exhausted() uint64 { return p.exhausted.Load() }

// Pick chooses a worker and counts one more request on it, until Release. It
// returns nil when no worker is usable. A worker whose breaker has cooled down
// is chosen once, to try it.
func (p *Pool) Pick() *Worker {
	p.budget.earn()
	return p.pick(nil)
}

// pick chooses a worker other than avoid, which may be nil.
func (p *Pool) pick(avoid *Worker) *Worker {
	var w *Worker
	if p.trials.Load() > 0 {
		w = p.takeTrial(avoid)
	}
	if w == nil {
		w = p.pickUsable(avoid)
	}
	if w != nil {
		w.load.Add(1)
		w.picks.Add(1)
	}
	return w
}

func (p *Pool) pickUsable(avoid *Worker) *Worker {
	usable := *p.usable.Load()
	if len(usable) == 0 || (len(usable) == 1 && usable[0] == avoid) {
		return nil
	}
	w := p.choose.choose(usable)
	if w != avoid {
		return w
	}
	// The one that failed is chosen again when it is the least loaded, as a
	// worker is that refuses connections.
	others := make([]*Worker, 0, len(usable)-1)
	for _, o := range usable {
		if o != avoid {
			others = append(others, o)
		}
	}
	return p.choose.choose(others)
}

// unpick takes back what pick did.
func (p *Pool) unpick(w *Worker) {
	p.Report(w, Neutral) // it may have been a trial
	w.picks.Add(^uint64(0))
	w.Release()
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
	}
}

// reap closes connections that rested for longer than idleLimit, so that the
// worker does not close them under a request.
func (p *Pool) reap(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			for _, w := range p.workers {
				w.reap(now)
			}
		}
	}
}
