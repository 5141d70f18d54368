package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"sluice/upstream/h1"
)

// Exchange is one request under way at one worker. The caller owns it and may
// use it again after Close; the zero value is ready. One goroutine drives it;
// Cancel alone may be called from another.
type Exchange struct {
	worker  *Worker
	conn    *conn
	pending []byte // read from the connection and not yet looked at
	done    bool   // the answer was read to its end
	broken  bool   // the request was not written to its end

	started time.Time
	armed   time.Time     // when the deadline of the socket was set last
	bound   time.Duration // and to how much later; −1 before the first
	total   bool          // that deadline is the one of the whole exchange

	mu       sync.Mutex
	canceled bool
	stopDial context.CancelFunc
}

// past is a deadline that wakes whoever waits.
var past = time.Unix(1, 0)

// Do sends req to w and reads the head of the answer. Where a connection that
// had rested turns out to be closed before a byte of the answer came, req is
// sent once more over a new connection: the worker closed it for its age and
// never read the request.
//
// The error is an *Error. After an error only Close may be called.
func (x *Exchange) Do(w *Worker, req *Request) error {
	x.worker = w
	x.started = time.Now()
	x.done = false
	c := w.take(x.started)
	reused := c != nil
	for {
		if c == nil {
			var err error
			if c, err = x.dial(); err != nil {
				return err
			}
		}
		if !x.own(c) {
			return x.fail(FaultCanceled, nil)
		}
		stale, err := x.send(req)
		if err == nil {
			return nil
		}
		if !stale || !reused {
			return err
		}
		x.discard()
		c, reused = nil, false
	}
}

// Status returns the status code of the answer. Valid after Do.
func (x *Exchange) Status() int { return x.conn.answer.Status }

// Fields returns the header fields of the answer, hop-by-hop ones included.
// They are valid until Close.
func (x *Exchange) Fields() []h1.Field { return x.conn.answer.Fields }

// Length returns the Content-Length of the answer, 0 where it has no body, −1
// where the end of the body shows itself.
func (x *Exchange) Length() int64 {
	if !x.conn.answer.HasBody() {
		return 0
	}
	return x.conn.answer.ContentLength
}

// Buffered reports whether the next call of Next returns without reading from
// the worker.
func (x *Exchange) Buffered() bool { return len(x.pending) > 0 || x.done }

// UntilEOF reports a body that ends with the connection, so that its end and
// a broken connection look the same.
func (x *Exchange) UntilEOF() bool { return x.conn.answer.UntilEOF() }

// Next returns the next piece of the body, valid until the next call, or
// io.EOF at its end. Another error is an *Error: the answer is broken.
func (x *Exchange) Next() ([]byte, error) {
	r := &x.conn.answer
	if !r.HasBody() {
		x.done = true
	}
	for !x.done {
		if len(x.pending) > 0 {
			p, n, done, err := r.FeedBody(x.pending)
			x.pending, x.done = x.pending[n:], done
			if err != nil {
				return nil, x.fail(FaultProtocol, err)
			}
			if len(p) > 0 {
				return p, nil
			}
			continue
		}
		if err := x.read(x.worker.timeouts.BetweenEvents); err != nil {
			if errors.Is(err, io.EOF) && r.EOF() == nil {
				x.done = true
				break
			}
			return nil, x.readFailed(err, FaultIncomplete, FaultBetween)
		}
	}
	return nil, io.EOF
}

// Close ends the exchange: the connection rests when the answer was read to
// its end and nothing came after it, and is closed otherwise, which tells the
// engine to stop. It must be called once after Do, whatever Do returned.
func (x *Exchange) Close() {
	x.mu.Lock()
	c := x.conn
	x.conn = nil
	canceled := x.canceled
	x.canceled = false
	x.mu.Unlock()
	if c == nil {
		return
	}
	clean := x.done && !x.broken && !canceled && len(x.pending) == 0 && c.answer.Reusable()
	x.pending = nil
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

func (x *Exchange) dial() (*conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x.mu.Lock()
	canceled := x.canceled
	x.stopDial = cancel
	x.mu.Unlock()
	if canceled {
		return nil, x.fail(FaultCanceled, nil)
	}
	c, err := x.worker.dial(ctx)
	x.mu.Lock()
	x.stopDial = nil
	canceled = x.canceled
	x.mu.Unlock()
	switch {
	case err == nil:
		return c, nil
	case canceled:
		return nil, x.fail(FaultCanceled, nil)
	}
	return nil, x.fail(FaultConnect, err)
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

// send writes req and reads the head of the answer. stale reports that the
// connection was closed before a byte of the answer came.
func (x *Exchange) send(req *Request) (stale bool, err error) {
	c := x.conn
	c.attach()
	c.answer.Reset(req.Method)
	c.buf.out = h1.AppendRequest(c.buf.out[:0], req.Method, req.Target, x.worker.host, req.Fields, req.Length)
	x.pending, x.bound, x.broken = nil, -1, false
	if err := x.arm(x.worker.timeouts.FirstByte); err != nil {
		return true, x.readFailed(err, FaultClosed, FaultFirstByte)
	}
	writeErr := c.write(req.Body)
	if writeErr != nil && isTimeout(writeErr) {
		return false, x.readFailed(writeErr, FaultClosed, FaultFirstByte)
	}
	// A worker that refuses a body answers and closes before it has read it,
	// so that the write fails while an answer waits to be read.
	heard := false
	for {
		err := x.read(x.worker.timeouts.FirstByte)
		if err != nil {
			if writeErr != nil {
				err = errors.Join(writeErr, err)
			}
			return !heard && isClosed(err), x.readFailed(err, FaultClosed, FaultFirstByte)
		}
		heard = true
		n, done, err := c.answer.FeedHead(x.pending)
		x.pending = x.pending[n:]
		if err != nil {
			return false, x.fail(FaultProtocol, err)
		}
		if done {
			x.broken = writeErr != nil
			return false, nil
		}
	}
}

// read reads once into the connection's buffer, within limit.
func (x *Exchange) read(limit time.Duration) error {
	if err := x.arm(limit); err != nil {
		return err
	}
	n, err := x.conn.nc.Read(x.conn.buf.in[:])
	x.pending = x.conn.buf.in[:n]
	if n > 0 {
		return nil
	}
	return err
}

// arm sets the deadline of the socket to limit from now, or to the end of the
// whole exchange where that is earlier. Setting one costs more than reading the
// clock, so it is set an eighth too late and then left alone for an eighth.
func (x *Exchange) arm(limit time.Duration) error {
	now := time.Now()
	if limit == x.bound && (x.total || now.Sub(x.armed) < limit/8) {
		return nil
	}
	var at time.Time
	if limit > 0 {
		at = now.Add(limit + limit/8)
	}
	x.total = false
	if total := x.worker.timeouts.Total; total > 0 {
		if end := x.started.Add(total); at.IsZero() || end.Before(at) {
			at, x.total = end, true
		}
	}
	x.armed, x.bound = now, limit
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.canceled {
		return os.ErrDeadlineExceeded
	}
	return x.conn.nc.SetDeadline(at)
}

// readFailed names the fault behind an error of the socket.
func (x *Exchange) readFailed(err error, closed, late Fault) error {
	switch {
	case x.isCanceled():
		return x.fail(FaultCanceled, nil)
	case isTimeout(err) && x.total:
		return x.fail(FaultTotal, nil)
	case isTimeout(err):
		return x.fail(late, nil)
	}
	return x.fail(closed, err)
}

func (x *Exchange) fail(f Fault, err error) error {
	if f != FaultCanceled {
		x.worker.fails.Add(1)
	}
	return &Error{Fault: f, Worker: x.worker.url, Err: err}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
