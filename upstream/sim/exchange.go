package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// route is what the engine does at one path.
type route struct {
	methods []string
	// surface routes fail as the options say; the others only when a header asks.
	surface bool
	serve   func(*exchange)
}

// exchange is one request and its answer. It belongs to the goroutine of the
// handler.
//
// A surface writes its answer from top to bottom and does not look for errors:
// when the client has gone, or a failure was asked for, the methods of exchange
// unwind it with a panic that net/http (http.ErrAbortHandler) or Engine.serve
// (endOfAnswer) takes up.
type exchange struct {
	e    *Engine
	w    http.ResponseWriter
	r    *http.Request
	p    *plan
	rec  *Request
	body []byte
	obj  *object // the body, where it is a JSON object, else nil

	// ctx is done when the client has gone, the request was aborted (its cause
	// is errAborted) or the engine closes.
	ctx    context.Context
	cancel context.CancelCauseFunc

	begun  bool // the time to the first byte has passed
	gone   bool // a write failed
	failed bool // broken off on purpose
	whole  bool // the whole answer was written
}

// errAborted is the cause of a request that /abort_request ended.
var errAborted = errors.New("aborted by /abort_request")

// simulatedFault is the message of FailError, which is vLLM's for a dead engine.
const simulatedFault = "EngineCore encountered an issue. See stack trace (above) for the root cause."

// endOfAnswer unwinds a surface whose answer has ended in good order.
type endOfAnswer struct{}

// serve is the handler of everything.
func (e *Engine) serve(w http.ResponseWriter, r *http.Request) {
	head := takeHead(r) // NOTE: once for each request of a connection, in their order
	if strings.HasPrefix(r.URL.Path, "/sim/") {
		e.introspect(w, r)
		return
	}
	o := e.opts.Load()
	body, bodyErr := io.ReadAll(http.MaxBytesReader(w, r.Body, o.MaxBody))
	seq := e.seq.Add(1)
	x := &exchange{e: e, w: w, r: r, body: body, rec: newRequest(seq, r, head, body, o.KeepBody)}
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	defer x.cancel(nil)
	defer context.AfterFunc(e.stop, func() { x.cancel(http.ErrServerClosed) })()

	rt, name := e.route(r.URL.Path)
	var fault *apiError
	if rt != nil && rt.surface {
		if !isMultipart(r) {
			x.obj, fault = parseObject(body)
		}
		// NOTE: before it is shown, so that who sees it in flight can abort it.
		defer x.register()()
	}
	e.board.begin(x.rec, name)
	defer func() { e.board.end(x.rec, x.outcome()) }()
	defer func() {
		if v := recover(); v != nil && v != (endOfAnswer{}) {
			panic(v)
		}
	}()
	var err error
	x.p, err = newPlan(o, seq, r.Header)
	if err != nil {
		x.p = &plan{Options: *o}
		x.p.Fail = Failure{}
		x.refuse(badRequest("", "%v", err))
	}
	x.dispatch(rt, bodyErr, fault)
}

func takeHead(r *http.Request) []byte {
	if c := connOf(r.Context()); c != nil && r.ProtoMajor == 1 {
		return c.head()
	}
	return nil
}

// dispatch refuses what no surface is asked, fails where that is wanted, and
// leaves the rest to the surface. bodyErr is what went wrong while the body was
// read, fault what is wrong with it.
func (x *exchange) dispatch(rt *route, bodyErr error, fault *apiError) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(bodyErr, &tooLarge):
		x.p.Fail = Failure{}
		x.refuse(&apiError{status: http.StatusRequestEntityTooLarge, message: "Request Entity Too Large"})
	case bodyErr != nil:
		x.leave()
	case rt == nil:
		x.replyJSON(http.StatusNotFound, detail{"Not Found"})
	case !slices.Contains(rt.methods, x.r.Method):
		x.w.Header().Set("Allow", strings.Join(rt.methods, ", "))
		x.replyJSON(http.StatusMethodNotAllowed, detail{"Method Not Allowed"})
	default:
		if !rt.surface && x.r.Header.Get("X-Sim-Fail") == "" && x.r.Header.Get("X-Sim-Status") == "" {
			x.p.Fail = Failure{}
		}
		x.fail()
		if fault != nil {
			x.refuse(fault)
		}
		rt.serve(x)
	}
}

// detail is how FastAPI says that there is no such path or method.
type detail struct {
	Detail string `json:"detail"`
}

// outcome says how the exchange has ended.
func (x *exchange) outcome() Outcome {
	aborted := errors.Is(context.Cause(x.ctx), errAborted)
	switch {
	case aborted:
		return Aborted
	case x.whole:
		return Completed
	case x.failed || x.e.stop.Err() != nil:
		return Failed
	case x.gone || x.r.Context().Err() != nil:
		return Cancelled
	}
	return Failed
}

// breakOff ends the exchange without an end of the answer.
func (x *exchange) breakOff() {
	x.failed = true
	panic(http.ErrAbortHandler)
}

// leave ends the exchange because there is nobody to answer any more.
func (x *exchange) leave() {
	x.gone = true
	panic(http.ErrAbortHandler)
}

// sleep waits for d, jittered. It returns false if the request was aborted
// meanwhile, and does not return if the client has gone or the engine closes.
func (x *exchange) sleep(d time.Duration) bool {
	if d = x.p.jittered(d); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-x.ctx.Done():
		}
	}
	if x.ctx.Err() == nil {
		return true
	}
	if errors.Is(context.Cause(x.ctx), errAborted) {
		return false
	}
	x.leave()
	return false
}

// fail does what Options.Fail says has to happen before the head.
func (x *exchange) fail() {
	f := x.p.Fail
	c := connOf(x.r.Context())
	switch f.Kind {
	case FailStatus:
		x.failStatus(f)
	case FailReset:
		x.sleep(x.p.TTFB)
		x.failed = true
		if c != nil && x.r.ProtoMajor == 1 {
			c.reset()
		}
		x.breakOff()
	case FailGarbage:
		x.sleep(x.p.TTFB)
		x.failed = true
		if c != nil {
			c.garbage()
		}
		x.breakOff()
	case FailSilence:
		<-x.ctx.Done()
		x.leave()
	case FailSlowHead:
		if c != nil {
			c.dribble(64, f.Pause)
		}
	}
}

func (x *exchange) failStatus(f Failure) {
	if f.RetryAfter != "" {
		x.w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body != "" {
		x.reply(f.Status, "text/plain; charset=utf-8", []byte(f.Body))
	} else {
		x.replyError(&apiError{status: f.Status, message: "simulated failure: " + http.StatusText(f.Status)})
	}
	panic(endOfAnswer{})
}

// head sends the head of the answer, once the time to the first byte is over.
func (x *exchange) head(status int, contentType string) {
	if !x.begun {
		x.begun = true
		x.sleep(x.p.TTFB)
	}
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	for _, f := range x.p.headers {
		h[f[0]] = append(h[f[0]], f[1])
	}
	x.e.board.status(x.rec, status)
	x.w.WriteHeader(status)
}

// reply writes a buffered answer, framed as the plan says.
func (x *exchange) reply(status int, contentType string, body []byte) {
	if x.p.Fail.Kind == FailError && status < 400 {
		x.p.Fail = Failure{}
		x.refuse(&apiError{status: http.StatusInternalServerError, message: simulatedFault})
	}
	switch x.p.framing {
	case framingEOF:
		x.w.Header().Set("Transfer-Encoding", "identity")
	case framingChunked:
		// net/http chunks what has no length and is flushed or large.
	default:
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.head(status, contentType)
	cut := x.p.Fail.Kind == FailCut
	if cut {
		body = body[:min(x.p.Fail.After, len(body))]
	}
	if cut || x.p.framing == framingChunked {
		x.flush()
	}
	x.write(body)
	if cut {
		x.flush()
		x.breakOff()
	}
	x.whole = true
}

// replyJSON writes v as a buffered answer.
func (x *exchange) replyJSON(status int, v any) { x.reply(status, "application/json", marshal(v)) }

// replyPadded writes v, with white space up to the wanted padding behind it: for
// the surfaces whose answer has no text to pad.
func (x *exchange) replyPadded(v any) {
	x.reply(http.StatusOK, "application/json", append(marshal(v), bytes.Repeat([]byte(" "), x.p.pad)...))
}

func (x *exchange) write(b []byte) {
	if _, err := x.w.Write(b); err != nil {
		x.leave()
	}
}

func (x *exchange) flush() {
	if err := http.NewResponseController(x.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		x.leave()
	}
}

// inflight finds the requests under way by the ids that their client gave them.
type inflight struct {
	mu  sync.Mutex
	ids map[*exchange][]string
}

// register makes the request known under its "rid" (a string, or a list of them)
// until the function that it returns is called.
func (x *exchange) register() (unregister func()) {
	live := &x.e.live
	live.mu.Lock()
	defer live.mu.Unlock()
	if live.ids == nil {
		live.ids = map[*exchange][]string{}
	}
	live.ids[x] = x.rids()
	return func() {
		live.mu.Lock()
		defer live.mu.Unlock()
		delete(live.ids, x)
	}
}

// abort ends the requests with the id, or all of them.
func (l *inflight) abort(id string, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x, ids := range l.ids {
		if all || slices.Contains(ids, id) {
			x.cancel(errAborted)
		}
	}
}
