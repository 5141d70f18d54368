package router

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/policy"
	"sluice/probe"
	"sluice/upstream"
	"sluice/upstream/gone"
	"sluice/upstream/h1"
)

// request is one request from its head to the last byte of its answer, with
// all the memory it needs. It is pooled; fasthttp's goroutine for the client's
// connection owns it, and the stream relay after the handler has returned.
//
// Client bytes (header, target) stay in fasthttp's buffers, which live until
// the answer is written, and in bodyBuffer, which is given back as soon as the
// worker has the request.
type request struct {
	router *Router
	snap   *snapshot
	ctx    *fasthttp.RequestCtx
	client *gone.Conn // nil where the connection is not ours (tests)

	start time.Time
	ready time.Time // the body was read
	id    []byte

	connection []byte // the client's Connection options
	bodyBuffer *[]byte
	bodyRead   bool // to its end
	bytesIn    int
	decoded    bool // the body is no longer under its Content-Encoding

	intake
	ruling

	pool   *pool
	series *series
	worker *upstream.Worker

	forwarded []byte
	fields    []h1.Field
	up        upstream.Request
	room      policy.AutoLimit
	exchange  upstream.Exchange
	rid       []byte // the engine's id of the request, a JSON string; may be empty
	tries     int
	why       upstream.RetryReason // the last try was not the last one
	reported  bool                 // the pool knows how q.worker did
	armed     bool                 // the client's connection holds something to cancel
	key       upstream.Key
	ticket    upstream.Ticket
	queued    time.Duration // the time in the pool's queue

	ledger
	cached     *cached // nil until it is needed
	cacheState string  // what x-sluice-cache says; empty: nothing
	storing    bool    // the answer is gathered for the cache

	answer
}

func newRequest(r *Router) *request {
	return &request{
		router: r,
		id:     make([]byte, 0, maxRequestID),
		fields: make([]h1.Field, 0, 32),
		ruling: ruling{segments: make([][]byte, 0, 16)},
	}
}

// begin takes ctx's request on. The clock is read once.
func (q *request) begin(ctx *fasthttp.RequestCtx) {
	q.ctx = ctx
	q.start = time.Now()
	q.snap = q.router.hold()
	q.client = gone.Of(ctx.Conn())
	q.series = q.router.metrics.none[probe.SurfaceNone]
	if q.router.draining.Load() {
		ctx.SetConnectionClose()
	}
}

// serve is the request's way from top to bottom. Each step that returns false
// has answered the request.
func (q *request) serve() {
	q.identify()
	q.snap.cors.mark(q.ctx)
	if fault := q.framingFault(); fault != "" {
		closeAfter(q.ctx)
		q.refuse(fasthttp.StatusBadRequest, codeBadRequest, fault, "")
		return
	}
	if q.preflight() || !q.locate() {
		return
	}
	if q.endpoint.kind > kindPass {
		q.answerLocally()
		return
	}
	if q.read() && q.rule() && !q.recall() {
		q.forward()
	}
}

// locate finds the endpoint and checks the method.
func (q *request) locate() bool {
	h := &q.ctx.Request.Header
	refused := q.intake.locate(h.RequestURI(), q.ctx.Method(), q.snap.rules.passes)
	if q.endpoint != nil {
		q.series = q.router.metrics.none[q.endpoint.surface]
	}
	if refused != nil && refused.code == codeMethodNotAllowed {
		q.ctx.Response.Header.Set(fasthttp.HeaderAllow, q.endpoint.methods)
	}
	return q.passed(refused)
}

// read reads the body and finds its members.
func (q *request) read() bool {
	boundary, refused := q.accept(q.ctx.Request.Header.ContentType())
	if refused != nil {
		return q.passed(refused)
	}
	if !q.readBody(q.snap.maxBody) {
		return false
	}
	q.ready = time.Now()
	return q.passed(q.parse(boundary, q.snap.rules.numbers))
}

// rule finds the decision and the pool for the request and settles what is sent.
func (q *request) rule() bool {
	rules := q.snap.rules
	q.decide(rules, &q.intake, rules.asker(&q.ctx.Request.Header))
	q.capture()
	if refused := q.choose(rules, &q.intake); refused != nil {
		return q.passed(refused)
	}
	q.enter()
	q.noteIntent()
	q.series.requests.Inc()
	refused := q.edit(&q.intake)
	q.router.metrics.contract(&q.contract)
	counts := q.snap.counts[q.route.index]
	counts.requests.Inc()
	counts.of(&q.ruling).params(&q.params)
	q.noteRollouts()
	q.noteObserved()
	q.router.metrics.work.policy.observe(time.Since(q.ready))
	return q.passed(refused)
}

// enter makes the destination of the ruling the pool of the request.
func (q *request) enter() {
	q.pool = q.snap.pools[q.dest.index]
	q.series = q.pool.series[q.endpoint.surface]
}

// passed answers with refused, if there is one.
func (q *request) passed(refused *refusal) bool {
	return refused == nil || q.refuse(refused.status, refused.code, refused.msg, refused.param)
}

// refuse answers with an error of the router's own and ends the request. It
// returns false, for the steps of serve.
func (q *request) refuse(status int, code errorCode, msg, param string) bool {
	sh := shapeOpenAI
	switch {
	case q.endpoint != nil:
		sh = shapeOf(q.endpoint.surface)
	case bytes.HasPrefix(q.path, []byte("/v1/messages/")):
		sh = shapeAnthropic
	}
	if n := q.ctx.Request.Header.ContentLength(); !q.bodyRead && (n > drained || n == -1) {
		closeAfter(q.ctx)
	}
	writeError(q.ctx, sh, status, code, msg, param)
	q.ctx.Response.Header.SetBytesKV(nameRequestID, q.id)
	q.bytesOut = int64(len(q.ctx.Response.Body()))
	if q.outcome == "" {
		q.outcome = outcomeRefused
	}
	q.finish(status, code)
	return false
}

// finish ends the request, once: it frees what is held at the worker, counts,
// logs and gives the request's memory back.
func (q *request) finish(status int, code errorCode) {
	if q.armed {
		q.client.Disarm()
	}
	if q.worker != nil {
		if !q.reported {
			q.report(upstream.Neutral)
		}
		q.exchange.Close()
		q.abandon()
	}
	q.forget()
	q.record(status, code)
	if q.worker != nil {
		q.worker.Release()
	}
	q.account(status, code)
	q.snap.release()
	q.recycle()
}

// panicked ends a request whose handling panicked.
func (q *request) panicked(p any) {
	q.router.metrics.panics.Inc()
	q.router.log.Error("panic while serving a request", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if q.ctx == nil { // it was finished already
		return
	}
	q.ctx.Response.Reset()
	q.snap.cors.mark(q.ctx)
	q.ctx.SetConnectionClose()
	q.outcome = outcomePanic
	q.refuse(fasthttp.StatusInternalServerError, codeInternal, "internal error", "")
}

// keepScan is the most memory of a scan that a pooled request keeps.
const keepScan = 4096

// recycle clears the request and puts it back into the pool.
func (q *request) recycle() {
	q.releaseBody()
	clear(q.fields[:cap(q.fields)])
	r := q.router
	*q = request{
		router:     r,
		id:         q.id[:0],
		connection: q.connection[:0],
		intake:     q.intake.recycled(),
		ruling:     q.ruling.recycled(),
		forwarded:  q.forwarded[:0],
		fields:     q.fields[:0],
		rid:        q.rid[:0],
		ledger:     q.ledger.recycled(),
		cached:     q.cached,
		key:        upstream.Key{Blocks: q.key.Blocks[:0]},
		ticket:     q.ticket,
		answer:     q.answer.recycled(),
	}
	r.requests.Put(q)
}
