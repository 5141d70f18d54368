package router

import (
	"slices"
	"sync/atomic"
	"time"
)

// keptFailures is how many of the latest failures are kept for the status page.
const keptFailures = 50

// failure is a request that failed, without its body, its header and whatever else
// the client sent but its id.
type failure struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	Status    int       `json:"status"`
	Outcome   outcome   `json:"outcome"`
	Code      errorCode `json:"code,omitempty"`
	Pool      string    `json:"pool,omitempty"`
	Worker    string    `json:"worker,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// failures is a ring of the latest ones. It takes no lock, so that a fleet in
// trouble has no queue here. The zero value is ready.
type failures struct {
	next  atomic.Uint64
	slots [keptFailures]atomic.Pointer[failure]
}

func (f *failures) add(one *failure) {
	f.slots[(f.next.Add(1)-1)%keptFailures].Store(one)
}

// latest returns what is kept, the latest first.
func (f *failures) latest() []failure {
	all := []failure{}
	for i := range f.slots {
		if one := f.slots[i].Load(); one != nil {
			all = append(all, *one)
		}
	}
	slices.SortFunc(all, func(a, b failure) int { return b.Time.Compare(a.Time) })
	return all
}

// noteFailure keeps the request that ends if it failed, and not by its client's
// doing.
func (q *request) noteFailure(status int, code errorCode) {
	if q.outcome == outcomeClientGone || status < 500 && (q.fault == nil || q.outcome == outcomeOK) && q.outcome != outcomeUpstreamError {
		return
	}
	one := &failure{Time: time.Now(), RequestID: string(q.id), Status: status, Outcome: q.outcome, Code: code}
	if q.pool != nil {
		one.Pool = q.pool.up.Name()
	}
	if q.worker != nil {
		one.Worker = q.worker.URL()
	}
	if q.fault != nil {
		one.Error = q.fault.Error()
	}
	q.router.failures.add(one)
}
