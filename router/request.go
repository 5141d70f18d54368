package router

import (
	"bytes"
	"fmt"
	"mime"
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

	start    time.Time
	endpoint *endpoint
	path     []byte
	id       []byte

	connection []byte // the client's Connection options
	bodyBuffer *[]byte
	body       []byte
	bodyRead   bool // to its end
	bytesIn    int
	decoded    bool // the body is no longer under its Content-Encoding
	hasBody    bool
	form       bool       // the body is multipart/form-data
	formModel  probe.Span // and this the value of its model field

	scan probe.Body
	plan policy.Plan

	target *target
	pool   *pool
	series *series
	worker *upstream.Worker

	forwarded []byte
	model     []byte
	fields    []h1.Field
	segments  [][]byte
	up        upstream.Request
	exchange  upstream.Exchange
	rid       []byte // the engine's id of the request, a JSON string; may be empty
	tries     int
	reported  bool // the pool knows how q.worker did
	armed     bool // the client's connection holds something to cancel
	key       upstream.Key
	ticket    upstream.Ticket
	queued    time.Duration // the time in the pool's queue

	answer
}

func newRequest(r *Router) *request {
	return &request{
		router:   r,
		id:       make([]byte, 0, maxRequestID),
		fields:   make([]h1.Field, 0, 32),
		segments: make([][]byte, 0, 16),
	}
}

// begin takes ctx's request on. The clock is read once.
func (q *request) begin(ctx *fasthttp.RequestCtx) {
	q.ctx = ctx
	q.start = time.Now()
	q.snap = q.router.snap.Load()
	q.client = gone.Of(ctx.Conn())
	q.series = q.router.metrics.none[probe.SurfaceNone]
	q.router.metrics.inFlight.Add(1)
	if q.router.draining.Load() {
		ctx.SetConnectionClose()
	}
}

// serve is the request's way from top to bottom. Each step that returns false
// has answered the request.
func (q *request) serve() {
	q.identify()
	if fault := q.framingFault(); fault != "" {
		closeAfter(q.ctx)
		q.refuse(fasthttp.StatusBadRequest, codeBadRequest, fault, "")
		return
	}
	if !q.route() {
		return
	}
	if q.endpoint.kind > kindPass {
		q.answerLocally()
		return
	}
	if q.read() && q.judge() && q.place() {
		q.forward()
	}
}

// route finds the endpoint and checks the method.
func (q *request) route() bool {
	q.path = q.ctx.Request.Header.RequestURI()
	if i := bytes.IndexByte(q.path, '?'); i >= 0 {
		q.path = q.path[:i]
	}
	q.endpoint = lookup(q.path)
	if q.endpoint == nil && q.snap.passes[string(q.path)] {
		q.endpoint = &epPass
	}
	if q.endpoint == nil {
		return q.refuse(fasthttp.StatusNotFound, codeNotFound, "this path is not served here", "")
	}
	q.series = q.router.metrics.none[q.endpoint.surface]
	if !q.endpoint.allows(q.ctx.Method()) {
		q.ctx.Response.Header.Set(fasthttp.HeaderAllow, q.endpoint.methods)
		return q.refuse(fasthttp.StatusMethodNotAllowed, codeMethodNotAllowed, "method not allowed; use "+q.endpoint.methods, "")
	}
	return true
}

// read reads the body and finds its members.
func (q *request) read() bool {
	h := &q.ctx.Request.Header
	contentType := h.ContentType()
	boundary, multipart := multipartBoundary(contentType)
	switch {
	case multipart && q.endpoint.multipart:
	case multipart, q.endpoint.surface.Generative() && !jsonType(contentType):
		return q.refuse(fasthttp.StatusUnsupportedMediaType, codeUnsupportedMedia, "content type is not supported; use application/json", "")
	}
	if !q.readBody(q.snap.maxBody) {
		return false
	}
	q.hasBody = true
	switch {
	case multipart:
		q.form = true
		return q.readForm(boundary)
	case q.endpoint.kind == kindPass && len(q.body) == 0:
		q.hasBody = false
		return true
	}
	q.body = probe.TrimBOM(q.body)
	if len(probe.TrimBOM(q.body)) < len(q.body) {
		// Scan passes over a mark, too, and a second one must not be forwarded.
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, notObjectText, "")
	}
	fault := probe.Scan(q.body, q.endpoint.surface, q.snap.numbers, &q.scan)
	if fault == probe.FaultNone {
		q.plan.Reset(&q.scan)
		return q.readRouting()
	}
	if fault == probe.FaultDuplicate {
		key := q.scan.FaultField.String()
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: \""+key+"\" is given more than once", key)
	}
	return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, notObjectText, "")
}

// readRouting checks and takes what the router itself needs from the scanned
// body.
func (q *request) readRouting() bool {
	if m := q.scan.Last(probe.FieldStream); m != nil && q.endpoint.surface.Generative() &&
		m.Kind != probe.KindTrue && m.Kind != probe.KindFalse && m.Kind != probe.KindNull {
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: \"stream\" must be true or false", "stream")
	}
	m := q.scan.Last(probe.FieldModel)
	switch {
	case m == nil || m.Kind == probe.KindNull:
		q.model = q.model[:0]
	case m.Kind != probe.KindString || m.Val.Len() > 6*maxModelName:
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: \"model\" must be a string", "model")
	default:
		q.model = probe.AppendUnquoted(q.model[:0], m.Val.Of(q.body))
	}
	return true
}

// readForm finds the model in a multipart body, whose other parts are not
// looked at.
func (q *request) readForm(boundary []byte) bool {
	span, fault := probe.MultipartField(q.body, boundary, "model")
	switch {
	case fault == probe.FaultDuplicate:
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: \"model\" is given more than once", "model")
	case fault != probe.FaultNone:
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: body must be multipart/form-data", "")
	}
	q.formModel = span
	q.model = append(q.model[:0], span.Of(q.body)...)
	return true
}

// judge holds the request against the sampling contract.
func (q *request) judge() bool {
	c := q.snap.contract
	if c == nil || !q.endpoint.surface.Generative() {
		return true
	}
	v := c.Judge(&q.scan, q.endpoint.surface, &q.plan)
	q.router.metrics.contract(&v)
	if !v.Refused {
		return true
	}
	msg := string(v.AppendMessage(nil))
	return q.refuse(fasthttp.StatusBadRequest, codeContractViolation, msg, v.First.Field.String())
}

// place finds the pool for the request and settles what is sent.
func (q *request) place() bool {
	if len(q.model) == 0 {
		q.pool = q.snap.anyModel
		if q.pool == nil {
			return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: \"model\" is required", "model")
		}
	} else if q.target = q.snap.models[string(q.model)]; q.target != nil {
		q.pool = q.target.pool
	} else if q.pool = q.snap.catchAll; q.pool == nil {
		return q.refuse(fasthttp.StatusNotFound, codeModelNotFound, "the model is not served here", "model")
	}
	q.series = q.pool.series[q.endpoint.surface]
	q.series.requests.Inc()
	q.splice()
	return true
}

// splice settles the body that is sent, in segments: the client's bytes and
// what takes the place of some of them.
func (q *request) splice() {
	alias := q.target != nil && q.target.literal != nil
	switch {
	case q.form && alias:
		q.segments = append(q.segments, q.body[:q.formModel.Start], q.target.name, q.body[q.formModel.End:])
		return
	case q.form, len(q.body) == 0:
		q.segments = append(q.segments, q.body)
		return
	case alias:
		q.plan.Replace(q.scan.Last(probe.FieldModel), q.target.literal)
	}
	if q.plan.Empty() {
		q.segments = append(q.segments, q.body)
		return
	}
	q.segments = q.plan.AppendSegments(q.segments, q.body)
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
		q.worker.Release()
	}
	q.account(status, code)
	q.router.metrics.inFlight.Add(-1)
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
	q.ctx.SetConnectionClose()
	q.outcome = outcomePanic
	q.refuse(fasthttp.StatusInternalServerError, codeInternal, "internal error", "")
}

// keepScan is the most memory of a scan that a pooled request keeps.
const keepScan = 4096

// recycle clears the request and puts it back into the pool.
func (q *request) recycle() {
	q.releaseBody()
	if cap(q.scan.Inner) > keepScan {
		q.scan = probe.Body{}
		q.plan = policy.Plan{}
	}
	clear(q.segments[:cap(q.segments)])
	clear(q.fields[:cap(q.fields)])
	r := q.router
	*q = request{
		router:     r,
		id:         q.id[:0],
		connection: q.connection[:0],
		scan:       q.scan,
		plan:       q.plan,
		forwarded:  q.forwarded[:0],
		model:      q.model[:0],
		fields:     q.fields[:0],
		rid:        q.rid[:0],
		segments:   q.segments[:0],
		key:        upstream.Key{Blocks: q.key.Blocks[:0]},
		ticket:     q.ticket,
		answer:     q.answer.recycled(),
	}
	r.requests.Put(q)
}

// multipartBoundary returns the boundary of a multipart/form-data type, or
// nothing where there is none. multi reports any multipart type.
func multipartBoundary(contentType []byte) (boundary []byte, multi bool) {
	const prefix = "multipart/"
	if len(contentType) < len(prefix) || !bytes.EqualFold(contentType[:len(prefix)], []byte(prefix)) {
		return nil, false
	}
	kind, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || kind != "multipart/form-data" {
		return nil, true
	}
	return []byte(params["boundary"]), true
}
