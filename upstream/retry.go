package upstream

import "sync/atomic"

// Retry says how often a request that failed is sent again, to another worker.
type Retry struct {
	// Attempts bounds the tries of one request, the first one included: 0 and
	// 1 both mean exactly one.
	Attempts int
	// Budget bounds retries to a share of the pool's requests, so that a
	// fleet in trouble is not sent a multiple of its load: 0.2 is one retry for
	// five requests.
	Budget float64
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
