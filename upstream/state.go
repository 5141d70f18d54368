package upstream

import (
	"slices"
	"time"
)

// State is whether requests are sent to a worker.
type State uint8

// The states.
const (
	// StateUp: the worker takes part.
	StateUp State = iota
	// StateDown: it has failed probes, or its breaker is not closed.
	StateDown
	// StateDraining: it gets no new requests, by Pool.Drain. It is still probed.
	StateDraining
	// StateLeaving: it is not a member any more, and has requests under way.
	StateLeaving
)

// String returns the state as metrics and the admin listener name it.
func (s State) String() string {
	return [...]string{"up", "down", "draining", "leaving"}[s]
}

// stateLocked returns the state of w.
func (w *Worker) stateLocked() State {
	switch {
	case w.leaving.Load():
		return StateLeaving
	case w.drained:
		return StateDraining
	case !w.healthy.Load() || w.breaker != BreakerClosed:
		return StateDown
	}
	return StateUp
}

// noteLocked publishes the state of w.
func (w *Worker) noteLocked(now time.Time) State {
	s := w.stateLocked()
	if State(w.state.Load()) != s {
		w.state.Store(uint32(s))
		w.since.Store(now.UnixNano())
	}
	return s
}

// refreshLocked publishes the workers that may be chosen.
func (p *Pool) refreshLocked() {
	now := time.Now()
	usable := make([]*Worker, 0, len(p.workers))
	for _, w := range p.workers {
		if w.noteLocked(now) == StateUp {
			usable = append(usable, w)
		}
	}
	health := &p.conf.Load().health
	if n := health.MinHealthy - len(usable); n > 0 {
		usable = append(usable, p.keptLocked(n)...)
	}
	if len(usable) == 0 && health.FailOpen {
		for _, w := range p.workers {
			if !w.drained {
				usable = append(usable, w)
			}
		}
	}
	p.usable.Store(p.arrange.roster(usable))
	p.countTrialsLocked()
}

// keptLocked returns up to n workers that are down for failed probes alone, those
// first that failed last.
func (p *Pool) keptLocked(n int) []*Worker {
	var kept []*Worker
	for _, w := range p.workers {
		if !w.healthy.Load() && w.breaker == BreakerClosed && !w.drained {
			kept = append(kept, w)
		}
	}
	slices.SortStableFunc(kept, func(a, b *Worker) int { return b.failed.Compare(a.failed) })
	return kept[:min(n, len(kept))]
}

// triableLocked reports whether w waits for a request to try it.
func (w *Worker) triableLocked() bool {
	return w.breaker == BreakerHalfOpen && !w.trial && w.healthy.Load() && !w.drained
}

// countTrialsLocked publishes how many workers wait for a request to try them.
func (p *Pool) countTrialsLocked() {
	n := int32(0)
	for _, w := range p.workers {
		if w.triableLocked() {
			n++
		}
	}
	p.trials.Store(n)
}

// takeTrial returns a worker that is to be tried, once, or nil. avoid is not
// tried.
func (p *Pool) takeTrial(avoid *Worker) *Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w != avoid && w.triableLocked() && p.admit(w) {
			w.trial = true
			p.countTrialsLocked()
			return w
		}
	}
	return nil
}
