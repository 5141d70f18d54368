package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sluice/upstream/h1"
)

// Health says how workers are asked whether they are well.
type Health struct {
	// Path is the request target of a probe.
	Path string
	// Interval is the time between the probes of one worker, give or take a
	// tenth. Zero turns them off.
	Interval time.Duration
	// Timeout bounds one probe.
	Timeout time.Duration
	// UnhealthyAfter failed probes in a row a worker is not chosen any more,
	// and HealthyAfter good ones in a row it is again.
	UnhealthyAfter, HealthyAfter int
	// MinHealthy workers stay usable whatever probes say: where fewer would be,
	// those that failed them last are chosen all the same. It holds against
	// probes alone; a breaker or a drain takes a worker out.
	MinHealthy int
	// FailOpen lets all workers be chosen when none is well or has a closed
	// breaker. Otherwise none is.
	FailOpen bool
}

// stopOldProbes ends the probes of workers that leave, and those that are made
// in another way from now on.
func (p *Pool) stopOldProbes(workers []*Worker, leaving map[*backend]*Worker) {
	for _, w := range workers {
		if w.stopProbes != nil && w.probedWith != w.conf.health {
			w.stopProbes()
			w.stopProbes = nil
		}
	}
	for b := range leaving {
		if b.stopProbes != nil {
			b.stopProbes()
			b.stopProbes = nil
		}
	}
}

// startProbes begins to probe the workers that are not yet.
func (p *Pool) startProbes(workers []*Worker) {
	for _, w := range workers {
		if w.conf.health.Interval == 0 || w.stopProbes != nil {
			continue
		}
		var ctx context.Context
		ctx, w.stopProbes = context.WithCancel(p.ctx)
		w.probedWith = w.conf.health
		p.done.Go(func() { p.watchHealth(ctx, w) })
	}
}

// watchHealth probes w until ctx ends. There is never more than one probe of a
// worker under way.
func (p *Pool) watchHealth(ctx context.Context, w *Worker) {
	// A probe has connections and limits of its own: it must tell whether the
	// worker takes a connection, and a full pool must not delay it.
	health := &w.conf.health
	t := health.Timeout
	probed := w.shadow(Timeouts{Connect: t, FirstByte: t, BetweenEvents: t, Total: t})
	probed.rest = 2 * health.Interval
	defer probed.close()
	var x Exchange
	stop := context.AfterFunc(ctx, x.Cancel)
	defer stop()
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(health.Interval)))) // not all workers at once
	defer timer.Stop()
	streak := 0 // of results that contradict the state
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		probed.h2.Store(w.h2.Load())
		good, late := p.probe(&x, probed, health.Path)
		probed.reap(time.Now()) // nobody else knows of it
		if ctx.Err() != nil {
			return
		}
		// Traffic that is served well says more than a probe that is late.
		if late && time.Since(time.Unix(0, w.lastGood.Load())) < health.Interval {
			good = true
		}
		w.probes.Add(1)
		need := health.UnhealthyAfter
		if !w.healthy.Load() {
			need = health.HealthyAfter
		}
		if good == w.healthy.Load() {
			streak = 0
		} else if streak++; streak >= need {
			streak = 0
			p.setHealthy(ctx, w, good)
		}
		timer.Reset(health.pause(time.Now()))
	}
}

// pauseSteps is how many times in an interval probes may begin.
const pauseSteps = 50

// pause returns how long a worker is left alone after a probe that ended now:
// the interval, give or take a tenth, up to a time that is the same for many
// workers. A process that is woken for one probe after the other spends more on
// that than on the probes of a fleet.
func (h *Health) pause(now time.Time) time.Duration {
	tenth := h.Interval / 10
	at := now.Add(h.Interval - tenth + rand.N(2*tenth+1))
	return max(at.Truncate(max(h.Interval/pauseSteps, 1)).Sub(now), 0)
}

// probe asks once. An answer below 500 is good: an engine that says 429 lives,
// and one that says 404 serves no such path. late reports a timeout.
func (p *Pool) probe(x *Exchange, w *Worker, path string) (good, late bool) {
	defer x.Close()
	err := x.Do(w, &Request{
		Method: []byte("GET"),
		Target: []byte(path),
		Fields: p.conf.Load().fields.Apply([]h1.Field{{Name: []byte("User-Agent"), Value: []byte(userAgent)}}),
		Length: -1,
	})
	var e *Error
	if errors.As(err, &e) {
		return false, e.Fault.Timeout()
	}
	return x.Status() < 500 && skim(x), false
}

// setHealthy changes what active probes say of w, unless they have ended with
// ctx.
func (p *Pool) setHealthy(ctx context.Context, w *Worker, healthy bool) {
	defer p.dispatch()
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.healthy.Store(healthy)
	if !healthy {
		w.failed = time.Now()
	} else {
		w.streak.Store(0)
		p.lookAgain(w)
	}
	p.refreshLocked()
}
