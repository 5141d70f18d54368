package upstream

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"sluice/upstream/h1"
	"sluice/upstream/h2c"
)

// Exchange is one request under way at one worker. The caller owns it and may
// use it again after Close; the zero value is ready. One goroutine drives it;
// Cancel alone may be called from another.
type Exchange struct {
	worker *Worker
	conn   *conn
	piece  []byte // of the body, read and not yet handed out
	extra  bool   // bytes came after the end of the answer
	done   bool   // the answer was read to its end
	fault  *Error // what Next returns after piece
	broken bool   // the request was not written to its end

	started time.Time
	sent    time.Time // when the request was, for the time to the head
	late    Fault     // what it means when the deadline of the socket passes
	rearm   time.Time // when the deadline must be moved, see armBody
	settled bool      // it need not be moved any more

	h2req h2c.Request

	mu       sync.Mutex
	stream   *h2c.Stream // in place of conn where the worker speaks h2c
	canceled bool
	stopDial context.CancelFunc
}

// past is a deadline that wakes whoever waits.
var past = time.Unix(1, 0)

// Do sends req to w and reads the head of the answer. Where a connection that
// had rested turns out to be closed before a byte of the answer came, req is
// sent once more over a new connection: the worker closed it for its age and
// never read the request (RFC 9112 section 9.3.1 allows it for that reason).
//
// A worker may refuse a body that it has not read: an answer with a status
// from 300 on ends the writing, and the connection with Close.
//
// The error is an *Error. After an error only Close may be called. Do keeps
// nothing of req.
func (x *Exchange) Do(w *Worker, req *Request) error {
	x.worker = w
	x.started = time.Now()
	x.piece, x.extra, x.done, x.fault, x.broken = nil, false, false, nil, false
	if x.isCanceled() {
		return x.newError(FaultCanceled, nil)
	}
	if w.h2.Load() {
		again, e := x.doStream(req)
		if e != nil {
			return x.count(e)
		}
		if !again {
			return nil
		}
	}
	for c := w.young(x.started); c != nil; c = w.young(x.started) {
		e := x.try(c, req, x.started, true)
		if e == nil {
			return nil
		}
		stale := e.Err == errStale
		if !stale && (e.Fault != FaultClosed || !isClosed(e.Err) || c.answer.Begun()) {
			return x.count(e)
		}
		x.discard()
		if !stale {
			w.observeResend()
			break // the others may be as old
		}
	}
	c, e := x.dial()
	if e == nil {
		e = x.try(c, req, time.Now(), false)
	}
	if e != nil {
		return x.count(e)
	}
	return nil
}

// Started returns when the last Do was called.
func (x *Exchange) Started() time.Time { return x.started }

// Status returns the status code of the answer. Valid after Do.
func (x *Exchange) Status() int {
	if x.stream != nil {
		return x.stream.Status()
	}
	return x.conn.answer.Status
}

// Fields returns the header fields of the answer, hop-by-hop ones included.
// They are valid until Close.
func (x *Exchange) Fields() []h1.Field {
	if x.stream != nil {
		return x.stream.Fields()
	}
	return x.conn.answer.Fields
}

// Length returns the Content-Length of the answer, 0 where it has no body, −1
// where the end of the body shows itself.
func (x *Exchange) Length() int64 {
	if x.stream != nil {
		return x.stream.Length()
	}
	if !x.conn.answer.HasBody() {
		return 0
	}
	return x.conn.answer.ContentLength
}

// Buffered reports whether the next call of Next returns without reading from
// the worker.
func (x *Exchange) Buffered() bool {
	if x.stream != nil {
		return x.stream.Buffered()
	}
	return len(x.piece) > 0 || x.done || x.fault != nil
}

// Complete reports whether the answer was read to its end. It stays so after
// Close, until Do.
func (x *Exchange) Complete() bool { return x.done }

// UntilEOF reports a body that ends with the connection, so that its end and
// a broken connection look the same.
func (x *Exchange) UntilEOF() bool { return x.stream == nil && x.conn.answer.UntilEOF() }

// Next returns the next piece of the body, valid until the next call, or
// io.EOF at its end. Another error is an *Error: the answer is broken, and
// what came before the fault has been returned.
func (x *Exchange) Next() ([]byte, error) {
	if x.stream != nil {
		p, err := x.nextStream()
		x.done = err == io.EOF
		return p, err
	}
	for len(x.piece) == 0 {
		if x.done {
			return nil, io.EOF
		}
		if x.fault != nil {
			return nil, x.fault
		}
		in, err := x.readBody()
		switch {
		case err == nil:
			x.feed(in)
		case errors.Is(err, io.EOF) && x.conn.answer.EOF() == nil:
			x.done = true
		default:
			x.fault = x.count(x.socketError(err, FaultIncomplete))
		}
	}
	p := x.piece
	x.piece = nil
	return p, nil
}

// feed takes in, the bytes that follow those of the answer so far.
func (x *Exchange) feed(in []byte) {
	p, n, done, err := x.conn.answer.FeedBody(in)
	x.piece, x.done, x.extra = p, done, n < len(in)
	if err != nil {
		x.fault = x.count(x.newError(FaultProtocol, err))
	}
}

// Close ends the exchange: the connection rests when the answer was read to
// its end and nothing came after it, and is closed otherwise, which tells the
// engine to stop. It must be called once after Do, whatever Do returned.
func (x *Exchange) Close() {
	x.mu.Lock()
	c, s := x.conn, x.stream
	x.conn, x.stream = nil, nil
	canceled := x.canceled
	x.canceled = false
	x.mu.Unlock()
	if s != nil {
		if x.done {
			x.worker.observeAnswer(s.Status())
		}
		s.Close()
		if x.worker.retired.Load() {
			x.worker.reapH2()
		}
	}
	if c == nil {
		return
	}
	if x.done {
		x.worker.observeAnswer(c.answer.Status)
	}
	clean := x.done && !x.extra && !x.broken && !canceled && c.answer.Reusable()
	x.piece = nil
	c.detach()
	if clean {
		x.worker.put(c, time.Now())
		return
	}
	x.worker.drop(c)
}

// Cancel ends the exchange from outside: what waits in Do or Next returns
// FaultCanceled at once. It may be called at any time, from any goroutine; the
// caller sees to it that none comes after Close.
func (x *Exchange) Cancel() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.canceled = true
	if x.stopDial != nil {
		x.stopDial()
	}
	if x.stream != nil {
		x.stream.Cancel()
	}
	if x.conn != nil {
		// The socket may have failed already; then nobody waits.
		_ = x.conn.nc.SetDeadline(past)
	}
}

func (x *Exchange) isCanceled() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.canceled
}

// dial makes a connection within the limits for that and for the exchange.
func (x *Exchange) dial() (*conn, *Error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x.mu.Lock()
	canceled := x.canceled
	x.stopDial = cancel
	x.mu.Unlock()
	if canceled {
		cancel()
	}
	end := x.end()
	c, err := x.worker.dial(ctx, end)
	x.mu.Lock()
	x.stopDial = nil
	canceled = x.canceled
	x.mu.Unlock()
	switch {
	case err == nil:
		return c, nil
	case canceled:
		return nil, x.newError(FaultCanceled, nil)
	case !end.IsZero() && !time.Now().Before(end):
		return nil, x.newError(FaultTotal, nil)
	}
	return nil, x.newError(FaultConnect, err)
}

// own makes c the connection of the exchange, unless that was canceled.
func (x *Exchange) own(c *conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = c
	return !x.canceled
}

// discard closes the connection that turned out to be stale.
func (x *Exchange) discard() {
	x.mu.Lock()
	c := x.conn
	x.conn = nil
	x.mu.Unlock()
	c.detach()
	x.worker.drop(c)
}

// try sends req over c, which reused says has rested, and reads the head of the
// answer. The error is errStale within where c was not fit for that.
func (x *Exchange) try(c *conn, req *Request, now time.Time, reused bool) *Error {
	if !x.own(c) {
		return x.newError(FaultCanceled, nil)
	}
	c.attach()
	c.answer.Reset(req.Method)
	c.out = h1.AppendRequest(c.out, req.Method, req.Target, x.worker.host, req.Fields, req.Length)
	x.sent, x.rearm, x.settled = now, time.Time{}, false
	if err := x.armHead(now); err != nil {
		return x.socketError(err, FaultClosed)
	}
	if c.session == nil && int64(len(c.out))+req.Length <= bufSize {
		return x.tryWhole(req.Body, reused)
	}
	if reused && !c.quiet() {
		return x.newError(FaultClosed, errStale)
	}
	// A worker that refuses a body answers before it has read it. Then the
	// write waits or fails while the answer waits to be read, so that what
	// may be too much for the buffers of the sockets is written meanwhile.
	var writeErr error
	beside := req.Length > inlineBody
	if beside {
		c.startWrite(req.Body)
	} else {
		writeErr = c.write(req.Body)
	}
	rest, e := x.readHead(nil)
	if beside {
		writeErr = c.endWrite(e == nil && c.answer.Status < 300)
	}
	if e != nil {
		if writeErr != nil && e.Err != nil {
			e.Err = errors.Join(writeErr, e.Err)
		}
		return e
	}
	x.broken = writeErr != nil
	x.feed(rest)
	return nil
}

// tryWhole is the rest of try for a request that leaves in one write.
func (x *Exchange) tryWhole(body [][]byte, reused bool) *Error {
	c := x.conn
	for _, p := range body {
		c.out = append(c.out, p...)
	}
	in, err := c.turn(reused)
	for err != nil && x.early(err) {
		in, err = c.run()
	}
	if err != nil && c.stage != stageRead && err != errStale {
		// It was not written, but there may be an answer that says why.
		x.broken = true
		if head, readErr := x.read(); readErr == nil {
			in, err = head, nil
		}
	}
	if err != nil {
		return x.socketError(err, FaultClosed)
	}
	rest, e := x.readHead(in)
	if e != nil {
		return e
	}
	x.feed(rest)
	return nil
}

// readHead reads the head of the answer, which begins with in, and returns what
// came after it. The deadline stays where it is, however slowly the head comes.
func (x *Exchange) readHead(in []byte) (rest []byte, e *Error) {
	for {
		if len(in) == 0 {
			var err error
			if in, err = x.read(); err != nil {
				return nil, x.socketError(err, FaultClosed)
			}
		}
		n, done, err := x.conn.answer.FeedHead(in)
		if err != nil {
			return nil, x.newError(FaultProtocol, err)
		}
		if in = in[n:]; done {
			x.worker.observeFirstByte(time.Since(x.sent))
			return in, nil
		}
	}
}

// read reads once.
func (x *Exchange) read() ([]byte, error) {
	for {
		in, err := x.conn.read()
		if err == nil || !x.early(err) {
			return in, err
		}
	}
}

// early reports that err came from a deadline that is not ours, as one from
// before that was moved only by a look at what it was set to. It is set right.
func (x *Exchange) early(err error) bool {
	if !isTimeout(err) {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at := x.conn.deadline
	if x.canceled || !at.IsZero() && !time.Now().Before(at) {
		return false
	}
	return x.conn.nc.SetDeadline(at) == nil
}

// readBody reads once, and waits no longer than a body may pause.
func (x *Exchange) readBody() ([]byte, error) {
	if err := x.armBody(); err != nil {
		return nil, err
	}
	return x.read()
}

// armBody sees to it that the deadline leaves the body its full pause. Setting
// one costs more than reading the clock, so it is set an eighth too late and
// then left alone for an eighth.
func (x *Exchange) armBody() error {
	if x.settled {
		return nil
	}
	now := time.Now()
	if now.Before(x.rearm) {
		return nil
	}
	limit := x.worker.timeouts.BetweenEvents
	x.rearm = now.Add(limit / 8)
	x.worker.observePiece(now)
	err := x.arm(now, limit+limit/8, FaultBetween)
	x.settled = limit == 0 || x.late == FaultTotal
	return err
}

// maxSlack bounds how much later than its limit a head may be noticed to be late.
const maxSlack = time.Second

// armHead sees to it that the deadline leaves the head of the answer its time. It
// is set a little late, and so serves the next exchanges over the connection as
// well.
func (x *Exchange) armHead(now time.Time) error {
	limit := x.worker.timeouts.FirstByte
	slack := min(limit/8, maxSlack)
	at, end := now.Add(limit), x.end()
	if limit == 0 || !end.IsZero() && end.Before(at.Add(slack)) {
		return x.arm(now, limit, FaultFirstByte)
	}
	// Fast path: it is set already.
	if d := x.conn.deadline; !d.Before(at) && !d.After(at.Add(slack)) {
		x.late = FaultFirstByte
		return nil
	}
	return x.arm(now, limit+slack, FaultFirstByte)
}

// arm sets the deadline of the socket to limit from now, which late names, or
// to the end of the whole exchange where that is earlier.
func (x *Exchange) arm(now time.Time, limit time.Duration, late Fault) error {
	var at time.Time
	if limit > 0 {
		at = now.Add(limit)
	}
	if end := x.end(); !end.IsZero() && (at.IsZero() || end.Before(at)) {
		at, late = end, FaultTotal
	}
	x.late = late
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.canceled {
		return os.ErrDeadlineExceeded
	}
	if x.stream != nil {
		x.stream.SetDeadline(at)
		return nil
	}
	x.conn.deadline = at
	return x.conn.nc.SetDeadline(at)
}

// end returns when the whole exchange is out of time, zero for never.
func (x *Exchange) end() time.Time {
	if total := x.worker.timeouts.Total; total > 0 {
		return x.started.Add(total)
	}
	return time.Time{}
}

// socketError names the fault behind an error of the socket.
func (x *Exchange) socketError(err error, closed Fault) *Error {
	switch {
	case x.isCanceled():
		return x.newError(FaultCanceled, nil)
	case isTimeout(err):
		return x.newError(x.late, nil)
	}
	return x.newError(closed, err)
}

func (x *Exchange) newError(f Fault, err error) *Error {
	return &Error{Fault: f, Worker: x.worker.url, Err: err}
}

// count counts e, which the caller is about to be told, as the worker's fault
// unless it is not.
func (x *Exchange) count(e *Error) *Error {
	x.worker.observeFault(e.Fault)
	if e.Fault != FaultCanceled {
		x.worker.fails.Add(1)
	}
	return e
}

// isTimeout reports a deadline of ours that passed. ETIMEDOUT is none: with it
// the kernel gives a connection up whose other end is gone.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isClosed reports that the worker closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
