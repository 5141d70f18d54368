package router

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/upstream"
	"sluice/upstream/gone"
)

// forward sends the request to a worker, and to another one where the pool
// allows it and no byte of an answer has reached the client, and turns to the
// answer.
func (q *request) forward() {
	if err := q.admit(); err != nil {
		q.turnAway(err)
		return
	}
	if refused := q.giveLimit(); refused != nil {
		q.outcome = outcomeUpstreamError
		q.passed(refused)
		return
	}
	q.arm(&q.exchange)
	for q.tries = 1; ; q.tries++ {
		if q.mustStop() {
			q.exchange.Cancel()
		}
		next, err := q.try()
		if q.tries == 1 {
			q.router.metrics.work.overhead.observe(q.exchange.Started().Sub(q.ready) - q.queued)
		}
		if next == nil {
			if err != nil {
				q.fail(err)
				return
			}
			q.releaseBody()
			q.relay()
			return
		}
		// Close forgets a Cancel, but what called for it is known by then.
		q.exchange.Close()
		q.worker.Release()
		q.worker, q.reported = next, false
		q.backoff()
	}
}

// admit takes a worker of the pool, or of one of those that the decision falls
// back to where that one has none, or a full queue.
func (q *request) admit() error {
	first := q.dest
	for i := 0; ; i++ {
		q.prepare()
		var err error
		if q.worker, err = q.acquire(); err == nil || errors.Is(err, upstream.ErrCanceled) {
			return err
		}
		i = q.fallBack(i)
		if i < 0 {
			q.to(first) // whose answer this is
			q.enter()
			return err
		}
	}
}

// fallBack makes the i-th pool that the decision falls back to, or a later one,
// that of the request, and returns its index, or -1 where there is none. A pool
// whose own contract refuses the request is passed over.
func (q *request) fallBack(i int) int {
	for ; i < len(q.route.fallback); i++ {
		q.to(q.route.fallback[i])
		if q.edit(&q.intake) == nil {
			q.enter()
			q.pool.fallbacks.Inc()
			return i
		}
	}
	return -1
}

// prepare makes what is sent to a worker of the pool.
func (q *request) prepare() {
	q.noteSampling()
	q.workerFields()
	q.noteRID()
	q.up = upstream.Request{
		Method: q.ctx.Method(),
		Target: q.ctx.Request.Header.RequestURI(),
		Fields: q.fields,
		Body:   q.segments,
		Length: -1,
	}
	if q.hasBody {
		q.up.Length = 0
		for _, s := range q.segments {
			q.up.Length += int64(len(s))
		}
	}
}

// acquire takes a worker, and waits for one where all are full.
func (q *request) acquire() (*upstream.Worker, error) {
	up := q.pool.up
	w, err := up.Acquire(q.affinityKey())
	if !errors.Is(err, upstream.ErrFull) {
		return w, err
	}
	q.ticket.Prepare()
	q.arm(&q.ticket)
	if q.mustStop() {
		q.ticket.Cancel()
	}
	start := time.Now()
	w, err = up.Wait(&q.ticket, &q.key)
	q.queued = time.Since(start)
	q.pool.queueWait.Update(q.queued.Seconds())
	return w, err
}

// turnAway answers a request that got no worker.
func (q *request) turnAway(err error) {
	switch {
	case errors.Is(err, upstream.ErrCanceled):
		q.interrupted()
		return
	case errors.Is(err, upstream.ErrNoWorkers):
		q.ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
		q.outcome = outcomeUpstreamError
		q.refuse(fasthttp.StatusServiceUnavailable, codeNoWorkers, "no worker for the model is well", "")
		return
	}
	q.ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(q.pool.up.RetryAfter()))
	q.outcome = outcomeOverloaded
	q.refuse(fasthttp.StatusServiceUnavailable, codeOverloaded, "the model is overloaded; try again later", "")
}

// arm has c canceled when the client leaves.
func (q *request) arm(c gone.Canceler) {
	if q.client != nil {
		q.client.Arm(c)
		q.armed = true
	}
}

// mustStop reports that the client has left, or that the drain is over.
func (q *request) mustStop() bool {
	return q.router.cutting.Load() || (q.client != nil && q.client.Gone())
}

// backoff waits before the request goes to another worker, as the pool wants it.
// It ends at once when the client leaves.
func (q *request) backoff() {
	wait := q.pool.up.Backoff(q.tries+1, q.why)
	if wait == 0 {
		return
	}
	q.ticket.Prepare()
	q.arm(&q.ticket)
	if !q.mustStop() {
		q.ticket.Sleep(wait)
	}
	q.arm(&q.exchange)
}

// try sends the request to q.worker. next is the worker to send it to again,
// if the answer is none that should be relayed.
func (q *request) try() (next *upstream.Worker, failed *upstream.Error) {
	up := q.pool.up
	if q.router.records != nil {
		q.tried = time.Now()
	}
	err := q.exchange.Do(q.worker, &q.up)
	if err == nil {
		if !upstream.RetryStatus(q.exchange.Status()) {
			return nil, nil
		}
		status := q.exchange.Status()
		if next = up.Retry(q.tries+1, q.worker, &q.key); next != nil {
			q.report(upstream.StatusOutcome(status))
			q.recordAttempt(status, "")
			q.why = upstream.StatusRetry(status)
		}
		return next, nil
	}
	failed = upstreamError(err)
	q.report(failed.Outcome())
	if failed.Retriable() && !q.mustStop() {
		next = up.Retry(q.tries+1, q.worker, &q.key)
	}
	if next != nil {
		q.recordAttempt(attemptFault(failed))
		q.why = failed.Retry()
	}
	return next, failed
}

// upstreamError returns the error of an exchange, which is always one of
// upstream's. It stands alone because errors.As makes its target escape.
func upstreamError(err error) *upstream.Error {
	var e *upstream.Error
	if !errors.As(err, &e) {
		panic("BUG: an exchange failed without an upstream.Error: " + err.Error())
	}
	return e
}

// report tells the pool of q.worker.
func (q *request) report(o upstream.Outcome) {
	q.pool.up.Report(q.worker, o)
	q.reported = o != upstream.Began
}

// fail answers a request whose exchange failed before a byte reached the
// client.
func (q *request) fail(e *upstream.Error) {
	q.fault = e
	if e.Fault == upstream.FaultCanceled {
		q.interrupted()
		return
	}
	msg := "the model cannot be reached"
	q.outcome = outcomeUpstreamError
	switch {
	case e.Fault.Timeout():
		msg, q.outcome = "the model did not answer in time", outcomeUpstreamTimeout
	case e.Fault == upstream.FaultIncomplete:
		msg, q.outcome = "the model's answer ended too early", outcomeUpstreamBroken
	}
	status, code := attemptFault(e)
	q.refuse(status, code, msg, "")
}

// statusClientGone is what a request is recorded as whose client left before
// it was answered (nginx's 499). It is never sent.
const statusClientGone = 499

// interrupted ends a request that was canceled before its answer began: its
// client has left, or the drain is over.
func (q *request) interrupted() {
	if q.client != nil && q.client.Gone() {
		q.canceled()
		return
	}
	q.outcome = outcomeCut
	q.ctx.SetConnectionClose()
	q.refuse(fasthttp.StatusServiceUnavailable, codeNoWorkers, "the router is shutting down", "")
}

// canceled ends a request without an answer: to a client that closed only its
// sending side, an empty one would look like success.
func (q *request) canceled() {
	q.ctx.HijackSetNoResponse(true)
	q.ctx.Hijack(func(net.Conn) {}) // fasthttp closes the connection after it
	q.outcome = outcomeClientGone
	q.finish(statusClientGone, "")
}
