package router

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/probe"
	"sluice/upstream"
)

const (
	// maxWhole is how much of an answer is read before any of it is sent on, so
	// that a broken one can still become a clear error.
	maxWhole = 64 << 10
	// maxHeld bounds what is held back of an unfinished event.
	maxHeld = 64 << 10
)

// outcome is how a request ended, as metrics and log name it.
type outcome string

const (
	outcomeOK              outcome = "ok"
	outcomeRefused         outcome = "refused"
	outcomeClientGone      outcome = "client_gone"
	outcomeUpstreamError   outcome = "upstream_error"   // no answer, or one that says it failed
	outcomeUpstreamBroken  outcome = "upstream_broken"  // an answer that ended too early
	outcomeUpstreamTimeout outcome = "upstream_timeout" // no answer, or one that paused, for too long
	outcomeCut             outcome = "cut"              // cut by the end of a drain
	outcomeOverloaded      outcome = "overloaded"       // no worker had a place for it
	outcomePanic           outcome = "panic"            // a fault of the router
)

// answer is the part of a request that belongs to the worker's answer.
type answer struct {
	status  int
	outcome outcome
	fault   *upstream.Error

	streamed bool
	sse      bool
	events   probe.Stream
	held     []byte // the beginning of an event whose end has not come
	sent     int    // how much of held is with the client
	torn     bool   // the client holds part of an event

	bytesOut   int64
	firstByte  time.Duration // from start, 0: none yet
	firstToken time.Duration
	lastPiece  time.Time // of an event stream, when it came
	writeArmed time.Time // when the write deadline was set last
}

func (a *answer) recycled() answer {
	if cap(a.held) > maxHeld {
		a.held = nil
	}
	return answer{held: a.held[:0], events: a.events}
}

// relay turns the head of the worker's answer into the client's and either
// reads the body whole or hands the request to fasthttp as a body stream.
func (q *request) relay() {
	x := &q.exchange
	q.status = x.Status()
	q.firstByte = time.Since(q.start)
	fields := x.Fields()
	length := x.Length()
	if q.sse = eventStream(fields); q.sse {
		// Events are flushed one read at a time, which only a chunked body is.
		length = -1
		q.events.Reset(q.endpoint.surface)
	} else if whole, err := q.readWhole(length); err != nil {
		q.ctx.Response.ResetBody()
		q.report(err.Outcome())
		q.fail(err)
		return
	} else if whole {
		q.report(upstream.StatusOutcome(q.status))
		q.ctx.Response.Header.SetStatusCode(q.status)
		q.clientFields(fields)
		body := q.ctx.Response.Body()
		q.readUsage(body)
		q.beginGather(fields)
		q.gather(body)
		q.keep()
		q.outcome = outcomeOK
		q.finish(q.status, "")
		return
	}
	q.ctx.Response.Header.SetStatusCode(q.status)
	q.clientFields(fields)
	q.beginGather(fields)
	q.startStream(length)
}

// readWhole reads the body into the response: to its end, if it is known to be
// small or is here already. Otherwise what is here, and of a body of known
// length as much as a small one has, is held for the stream; one that breaks
// within that can still become a clear error.
func (q *request) readWhole(length int64) (whole bool, failed *upstream.Error) {
	resp := &q.ctx.Response
	for (length >= 0 && len(resp.Body()) < maxWhole) || q.exchange.Buffered() {
		p, err := q.exchange.Next()
		if err == io.EOF {
			q.bytesOut = int64(len(resp.Body()))
			return true, nil
		}
		if err != nil {
			return false, upstreamError(err)
		}
		resp.AppendBody(p)
	}
	q.held = append(q.held[:0], resp.Body()...)
	resp.ResetBody()
	return false, nil
}

// startStream hands the body to fasthttp, which calls WriteTo and then Close
// after the handler has returned.
func (q *request) startStream(length int64) {
	q.streamed = true
	q.outcome = outcomeClientGone // until the last byte is written
	if o := upstream.StatusOutcome(q.status); o == upstream.Success {
		q.report(upstream.Began)
	} else {
		q.report(o)
	}
	resp := &q.ctx.Response
	if length < 0 && !q.ctx.Request.Header.IsHTTP11() {
		q.streamUntilClose()
		return
	}
	resp.ImmediateHeaderFlush = !q.exchange.Buffered() && len(q.held) == 0
	resp.SetBodyStream(q, int(length))
}

// streamUntilClose serves an HTTP/1.0 client, such as nginx with its default
// settings, for which fasthttp has no body without a length: the end of the
// connection ends the body (RFC 9112 section 6.3).
func (q *request) streamUntilClose() {
	ctx := q.ctx
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		defer func() { _ = q.Close() }()
		ctx.Response.Header.SetConnectionClose()
		ctx.Response.Header.SetContentLength(-2)
		if _, err := c.Write(ctx.Response.Header.Header()); err != nil {
			return
		}
		// The outcome says how it ended.
		_, _ = q.WriteTo(c)
	})
}

// WriteTo relays the body: one write, and one flush, for each read from the
// worker. It implements fasthttp.BodyWriterTo.
func (q *request) WriteTo(w io.Writer) (int64, error) {
	if len(q.held) > 0 {
		q.pass(q.held)
		if err := q.write(w, q.held, time.Now()); err != nil {
			return 0, err
		}
		q.held = q.held[:0]
	}
	// Where an event may have to be left out they are read one by one, when they
	// are whole; otherwise as they come.
	byEvent := q.sse && (q.hideUsage || q.storing)
	for {
		p, err := q.exchange.Next()
		if err == io.EOF && q.endedEarly() {
			err = &upstream.Error{Fault: upstream.FaultIncomplete, Worker: q.worker.URL()}
		}
		if err != nil && err != io.EOF {
			return q.bytesOut, q.broken(w, err)
		}
		now := time.Now()
		switch {
		case err == io.EOF && byEvent:
			p = q.lastEvent(q.rest())
		case err == io.EOF:
			p = q.rest()
		case byEvent:
			p = q.eachEvent(q.wholeEvents(p))
		case q.sse:
			q.events.Feed(p)
			p = q.wholeEvents(p)
		default:
			q.pass(p)
		}
		q.tick(now, p)
		if len(p) > 0 {
			if werr := q.write(w, p, now); werr != nil {
				return q.bytesOut, werr
			}
		}
		if err == io.EOF {
			q.outcome = outcomeOK
			if q.sse && q.events.Failed {
				q.outcome = outcomeUpstreamError
			}
			if !q.sse {
				q.readUsage(nil)
			}
			if !q.sse || q.events.Done && !q.events.Failed {
				q.keep()
			}
			if !q.reported {
				q.report(upstream.Success)
			}
			return q.bytesOut, nil
		}
	}
}

// tick takes note of the time at which a piece of an event stream came: of its
// first token, or of the ones that follow. p is what the client gets of it.
func (q *request) tick(now time.Time, p []byte) {
	switch {
	case !q.sse || q.events.Events == 0:
		return
	case q.firstToken == 0:
		q.firstToken = now.Sub(q.start)
		q.readModel(p)
	case len(p) > 0:
		q.router.metrics.work.gaps.observe(now.Sub(q.lastPiece))
	}
	q.lastPiece = now
}

// pass takes note of a piece of an answer that is no event stream.
func (q *request) pass(p []byte) {
	q.tell(p)
	q.gather(p)
}

// eachEvent reads whole events, or pieces of a large one, and returns those that
// the client gets: all, but for the usage that it has not asked for. They are
// moved together in place.
func (q *request) eachEvent(p []byte) []byte {
	kept := p[:0]
	for len(p) > 0 {
		n, event := q.events.Next(p)
		e := p[:n]
		p = p[n:]
		if q.takeEvent(e, event && q.events.UsageOnly) {
			kept = append(kept, e...)
		}
	}
	return kept
}

// lastEvent is eachEvent for what is there at the end of the stream, which may
// lack its last line end.
func (q *request) lastEvent(p []byte) []byte {
	before := q.events.Events
	q.events.Feed(p)
	q.events.End()
	if q.takeEvent(p, q.events.Events > before && q.events.UsageOnly) {
		return p
	}
	return nil
}

// takeEvent gathers an event for the cache and reports whether the client gets
// it. usage says that it holds nothing but the usage.
func (q *request) takeEvent(e []byte, usage bool) bool {
	switch {
	case !usage:
		q.gather(e)
	case q.storing && !q.cached.capture.WriteUsage(e):
		q.forget()
	}
	return !usage || !q.hideUsage
}

// SupportsBodyWriteTo implements fasthttp.BodyWriterTo.
func (q *request) SupportsBodyWriteTo() bool { return true }

// Read implements io.Reader for fasthttp, which never calls it on a body that
// supports WriteTo.
func (q *request) Read([]byte) (int, error) { panic("BUG: Read of a stream that is written") }

// Close ends the request. fasthttp calls it once, after WriteTo or in its
// place.
func (q *request) Close() error {
	q.finish(q.status, "")
	return nil
}

// write sends p to the client, under a deadline that moves with the stream. It
// is set an eighth too late and then left alone for an eighth.
func (q *request) write(w io.Writer, p []byte, now time.Time) error {
	if limit := q.snap.writeTimeout; limit > 0 && now.Sub(q.writeArmed) >= limit/8 {
		q.writeArmed = now
		if err := q.ctx.SetWriteDeadline(now.Add(limit + limit/8)); err != nil {
			return err
		}
	}
	_, err := w.Write(p)
	if err != nil {
		q.outcome = outcomeClientGone
		return err
	}
	q.bytesOut += int64(len(p))
	return nil
}

// endedEarly reports a stream whose framing cannot tell a broken end from a
// good one and which did not say that it is done.
func (q *request) endedEarly() bool {
	return q.sse && q.endpoint.surface.Generative() && q.exchange.UntilEOF() && !q.events.Done && q.status == fasthttp.StatusOK
}

// broken ends a stream that cannot go on. An event stream ends with one error
// event in the shape of its surface; where the client already holds a part of
// an event, and for any other body, the connection is closed short of the
// body's end, which tells the client as clearly.
func (q *request) broken(w io.Writer, err error) error {
	e := upstreamError(err)
	if q.sse && q.events.Done && !q.torn {
		// The stream has said that it is done: only its framing lacks an end.
		q.outcome = outcomeOK
		if !q.reported {
			q.report(upstream.Success)
		}
		return nil
	}
	q.fault = e
	if !q.reported {
		q.report(e.Outcome())
	}
	status, code, msg := fasthttp.StatusBadGateway, codeBodyIncomplete, "the model's answer ended too early"
	switch {
	case e.Fault == upstream.FaultCanceled && q.client != nil && q.client.Gone():
		q.outcome = outcomeClientGone
		return err
	case e.Fault == upstream.FaultCanceled:
		q.outcome = outcomeCut
		status, code, msg = fasthttp.StatusServiceUnavailable, codeNoWorkers, "the router is shutting down"
	case e.Fault.Timeout():
		q.outcome = outcomeUpstreamTimeout
		status, code, msg = fasthttp.StatusGatewayTimeout, codeTimeout, "the model's answer paused for too long"
	default:
		q.outcome = outcomeUpstreamBroken
	}
	if !q.sse || q.torn {
		return err
	}
	ended := q.outcome
	werr := q.write(w, errorEvent(shapeOf(q.endpoint.surface), status, code, msg), time.Now())
	if werr == nil {
		q.outcome = ended
	}
	return werr
}

// wholeEvents returns what of the stream may be sent now that p has come: all
// of it up to the end of the last whole event. The beginning of the next event
// is held back, since a client cannot use it before its end comes, and could
// not be told of an error within it. An event that is larger than maxHeld
// passes in pieces. The result is valid until the next call.
func (q *request) wholeEvents(p []byte) []byte {
	q.held = q.held[:copy(q.held, q.held[q.sent:])]
	q.sent = 0
	if len(q.held) > 0 {
		q.held = append(q.held, p...)
		p = q.held
	}
	end := eventsEnd(p)
	switch {
	case end > 0:
		q.torn = false
	case q.torn || len(p) > maxHeld:
		q.torn = true
		end = len(p)
	}
	if len(p)-end > maxHeld {
		q.torn = true
		end = len(p)
	}
	if len(q.held) == 0 {
		q.held = append(q.held, p[end:]...)
		return p[:end]
	}
	q.sent = end
	return p[:end]
}

// rest returns what was held back when the stream ended.
func (q *request) rest() []byte { return q.held[q.sent:] }

// eventsEnd returns the end of the last blank line in p, which is where the
// last whole event ends, or 0.
func eventsEnd(p []byte) int {
	end := 0
	for _, blank := range [...]string{"\n\n", "\n\r\n", "\r\r"} {
		if i := bytes.LastIndex(p[end:], []byte(blank)); i >= 0 {
			end += i + len(blank)
		}
	}
	return end
}
