package upstream

import "time"

// Outcome is what an exchange says of its worker.
type Outcome uint8

// The outcomes.
const (
	// Neutral says nothing: the client left, or the worker asked for patience.
	Neutral Outcome = iota
	// Began: the head of an answer came, and its body has yet to.
	Began
	// Success: a whole answer came.
	Success
	// Failure: the worker does not answer as it should.
	Failure
)

// StatusOutcome is what the status of a worker's whole answer says of it. A client's
// fault is none of the worker's; 429 and 503 are back-pressure and not death.
func StatusOutcome(status int) Outcome {
	switch {
	case status == 429, status == 503:
		return Neutral
	case status >= 500:
		return Failure
	}
	return Success
}

// Outcome is what a failed exchange says of its worker. One that took too long
// in whole was served well until then.
func (e *Error) Outcome() Outcome {
	if e.Fault == FaultCanceled || e.Fault == FaultTotal {
		return Neutral
	}
	return Failure
}

// Breaker says when a worker that fails is left alone.
type Breaker struct {
	// Failures is the number of failures in a row that opens the breaker. Zero
	// turns it off.
	Failures int
	// Cooldown is how long it stays open. Then one request tries the worker:
	// its success closes the breaker, its failure opens it again.
	//
	// That of a pool's last usable worker does not open: what it still does is
	// better than nothing.
	Cooldown time.Duration
}

// BreakerState is the state of a worker's breaker.
type BreakerState uint8

// The states.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
)

// String returns the state as metrics and the admin listener name it.
func (s BreakerState) String() string {
	return [...]string{"closed", "open", "half_open"}[s]
}

// Report tells the pool how an exchange with w went. It must be called once for
// every exchange that Acquire, Wait or Retry gave w for, and may be called with Began
// before: a stream that takes minutes must not keep a worker on trial for as
// long, and one that breaks must not count as good before.
func (p *Pool) Report(w *Worker, o Outcome) {
	switch o {
	case Success, Began:
		w.lastGood.Store(time.Now().UnixNano())
		if !w.troubled.Load() && (o == Began || w.streak.Load() == 0) { // Fast path
			return
		}
	case Neutral:
		if !w.troubled.Load() { // Fast path
			return
		}
	}
	defer p.dispatch() // another worker may have become usable
	p.mu.Lock()
	defer p.mu.Unlock()
	switch o {
	case Success, Began:
		if o == Success {
			w.streak.Store(0)
		}
		if w.breaker != BreakerClosed {
			p.setBreakerLocked(w, BreakerClosed)
		}
	case Neutral:
		w.trial = false
		p.countTrialsLocked()
	case Failure:
		conf, n := p.conf.Load(), w.streak.Add(1)
		switch {
		case w.breaker == BreakerHalfOpen:
			p.setBreakerLocked(w, BreakerOpen)
		case w.breaker == BreakerClosed && conf.breaker.Failures > 0 && int(n) >= conf.breaker.Failures && !p.lastUsable(w):
			p.setBreakerLocked(w, BreakerOpen)
		}
	}
}

// lastUsable reports that no worker but w may be chosen.
func (p *Pool) lastUsable(w *Worker) bool {
	usable := p.usable.Load().workers
	return len(usable) == 1 && usable[0].backend == w.backend
}

// Breaker returns the state of w's breaker.
func (p *Pool) Breaker(w *Worker) BreakerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.breaker
}

// setBreakerLocked changes the state of w's breaker and who may be chosen.
func (p *Pool) setBreakerLocked(w *Worker, s BreakerState) {
	w.breaker = s
	w.trial = false
	w.troubled.Store(s != BreakerClosed)
	w.trips.Add(1)
	if w.cooldown != nil {
		w.cooldown.Stop()
		w.cooldown = nil
	}
	if s == BreakerClosed {
		p.lookAgain(w)
	}
	if s == BreakerOpen && !p.closed {
		w.cooldown = time.AfterFunc(p.conf.Load().breaker.Cooldown, func() { p.cooled(w) })
	}
	p.refreshLocked()
}

// cooled lets one request try w.
func (p *Pool) cooled(w *Worker) {
	defer p.dispatch()
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.breaker == BreakerOpen && !p.closed {
		p.setBreakerLocked(w, BreakerHalfOpen)
	}
}
