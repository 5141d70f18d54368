package upstream

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Retry says how often a request that failed is sent again, to another worker.
type Retry struct {
	// Attempts bounds the tries of one request, the first one included: 0 and
	// 1 both mean exactly one.
	Attempts int
	// Budget bounds retries to a share of the pool's requests, so that a
	// fleet in trouble is not sent a multiple of its load: 0.2 is one retry for
	// five requests.
	Budget float64
	// Backoff is the wait before a retry, see Pool.Backoff.
	Backoff Backoff
}

// Backoff is a wait that is drawn from zero to a bound: Base before the first
// retry and twice as much before each further one, up to Max.
type Backoff struct {
	// Base zero is no wait.
	Base, Max time.Duration
}

// RetryReason is why a request is sent to another worker.
type RetryReason uint8

// The reasons.
const (
	RetryConnect   RetryReason = iota // no connection was made
	RetryClosed                       // the worker closed it, or its h2c stream, before an answer
	RetryFirstByte                    // no answer came in time
	Retry502
	Retry503
	Retry504
	// NumRetryReasons is how many there are.
	NumRetryReasons
)

// String returns the reason as metrics name it.
func (r RetryReason) String() string {
	return [NumRetryReasons]string{"connect", "closed", "first_byte", "status_502", "status_503", "status_504"}[r]
}

// StatusRetry returns the reason behind a status that RetryStatus holds for.
func StatusRetry(status int) RetryReason {
	switch status {
	case 502:
		return Retry502
	case 503:
		return Retry503
	}
	return Retry504
}

// Retry returns the reason behind an error that is Retriable.
func (e *Error) Retry() RetryReason {
	switch e.Fault {
	case FaultConnect:
		return RetryConnect
	case FaultFirstByte:
		return RetryFirstByte
	}
	return RetryClosed
}

const (
	// retryCost is the price of one retry in the unit of the budget.
	retryCost = 1000
	// retryBurst is how many retries a pool that had none may make at once.
	retryBurst = 10
)

// budget is a token bucket that requests fill and retries empty. It is safe
// for concurrent use.
type budget struct {
	income int64 // of each request
	tokens atomic.Int64
}

func newBudget(share float64) *budget {
	b := &budget{income: int64(share * retryCost)}
	if b.income > 0 {
		b.tokens.Store(retryBurst * retryCost)
	}
	return b
}

// earn counts a request.
func (b *budget) earn() {
	if b.tokens.Load() < retryBurst*retryCost {
		b.tokens.Add(b.income)
	}
}

// spend pays for a retry, or returns false.
func (b *budget) spend() bool {
	if b.tokens.Add(-retryCost) >= 0 {
		return true
	}
	b.tokens.Add(retryCost)
	return false
}

// RetryStatus reports whether an answer with the status may be had better from
// another worker. A client's fault may not, and 429 is the worker's own word
// to the client.
func RetryStatus(status int) bool { return status == 502 || status == 503 || status == 504 }

// Retriable reports whether the request may be sent to another worker: nothing
// of an answer has come. What the failed one has done so far is lost with its
// connection.
func (e *Error) Retriable() bool {
	return e.Fault == FaultConnect || e.Fault == FaultClosed || e.Fault == FaultFirstByte
}

// Retry chooses another worker than failed for try number n (the first one is
// 1), within the pool's attempts and budget, and counts one more request on
// it. k is as for Acquire. It returns nil where there shall be no further try.
func (p *Pool) Retry(n int, failed *Worker, k *Key) *Worker {
	conf := p.conf.Load()
	if n > conf.retry.Attempts {
		return nil
	}
	w := p.pick(k.orNone(), failed.current.Load())
	if w == nil {
		p.dispatch() // see admit
		return nil
	}
	if !conf.budget.spend() {
		p.exhausted.Add(1)
		p.unpick(w)
		return nil
	}
	p.retries.Add(1)
	return w
}

// Backoff returns how long to wait before try number n (the first retry is 2)
// reaches the worker that Retry gave for it, and counts it. It must be called
// once for each of them.
//
// Who could not connect goes elsewhere at once: nothing was asked of anybody. All
// else comes from fleets in trouble, which requests that come back in step would
// keep there, so that the wait is drawn evenly from all that it may be ("full
// jitter"). The wait is the caller's, who sees whether the client leaves, and how
// much is left of the time for the whole request.
func (p *Pool) Backoff(n int, why RetryReason) time.Duration {
	p.reasons[why].Add(1)
	b := p.conf.Load().retry.Backoff
	if n <= 2 && why == RetryConnect || b.Base <= 0 {
		return 0
	}
	return rand.N(b.bound(n) + 1)
}

// bound returns what the wait before try number n may be at most.
func (b Backoff) bound(n int) time.Duration {
	bound := b.Base
	for range n - 2 {
		if bound >= b.Max/2 {
			return max(b.Base, b.Max)
		}
		bound *= 2
	}
	return bound
}

// Retries returns how many requests were sent to another worker.
func (p *Pool) Retries() uint64 { return p.retries.Load() }

// RetriesBy returns how many of them Backoff was told of, by reason.
func (p *Pool) RetriesBy() (n [NumRetryReasons]uint64) {
	for i := range n {
		n[i] = p.reasons[i].Load()
	}
	return n
}

// Exhausted returns how many retries the budget has forbidden.
func (p *Pool) Exhausted() uint64 { return p.exhausted.Load() }
