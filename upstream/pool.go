package upstream

import (
	"fmt"
	"sync"
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
}

// Pool is a set of workers that serve the same models. It is safe for
// concurrent use.
type Pool struct {
	name    string
	workers []*Worker
	choose  chooser

	stop chan struct{}
	done sync.WaitGroup
}

// NewPool builds the pool that spec describes and starts the goroutine that
// closes its rested connections. Close ends it.
func NewPool(spec PoolSpec) (*Pool, error) {
	p := &Pool{name: spec.Name, stop: make(chan struct{})}
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
	if p.choose, err = newChooser(spec.Balance, p.workers); err != nil {
		return nil, fmt.Errorf("pool %q: %w", spec.Name, err)
	}
	p.done.Add(1)
	go p.reap()
	return p, nil
}

// Name returns the pool's name.
func (p *Pool) Name() string { return p.name }

// Workers returns the pool's workers. The slice must not be changed.
func (p *Pool) Workers() []*Worker { return p.workers }

// Pick chooses a worker and counts one more request on it, until Release.
func (p *Pool) Pick() *Worker {
	w := p.choose.choose()
	w.load.Add(1)
	w.picks.Add(1)
	return w
}

// Close closes the rested connections and waits for the pool's goroutine. It
// must be called once. Exchanges under way go on; their connections are closed
// when they end.
func (p *Pool) Close() {
	close(p.stop)
	p.done.Wait()
	for _, w := range p.workers {
		w.close()
	}
}

// reap closes connections that rested for longer than idleLimit, so that the
// worker does not close them under a request.
func (p *Pool) reap() {
	defer p.done.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-t.C:
			for _, w := range p.workers {
				w.reap(now)
			}
		}
	}
}
