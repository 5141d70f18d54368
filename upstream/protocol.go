package upstream

import (
	"context"
	"errors"
	"net"
	"time"

	"sluice/upstream/h2c"
)

// The protocols that PoolSpec.Protocol takes.
const (
	// Auto looks whether a worker speaks h2c when it joins and when it comes
	// back, and speaks HTTP/1.1 until it knows and where it does not. What one
	// worker speaks is nothing to another.
	Auto = "auto"
	// HTTP1 is HTTP/1.1.
	HTTP1 = "http1"
	// H2C is HTTP/2 over plain TCP with prior knowledge.
	H2C = "h2c"
)

// Protocols are the names that PoolSpec.Protocol takes.
var Protocols = []string{Auto, HTTP1, H2C}

// lookTimeout bounds a look at what a worker speaks where the connect timeout
// does not.
const lookTimeout = 5 * time.Second

// h2Dial is the making of one h2c connection, which several requests may wait
// for.
type h2Dial struct {
	done chan struct{} // closed at the end
	err  error         // valid then
}

// Protocol returns what the worker is spoken to in: HTTP1 or H2C.
func (w *Worker) Protocol() string {
	if w.h2.Load() {
		return H2C
	}
	return HTTP1
}

// Streams returns how many h2c connections are open.
func (w *Worker) Streams() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.h2conns)
}

// lookAgain finds out what w speaks, beside everything else, and keeps the
// connection where it is h2c.
func (p *Pool) lookAgain(w *Worker) {
	if w.protocol == Auto {
		w.dialH2()
	}
}

// reserve returns a stream on an open h2c connection, or nil.
func (w *Worker) reserve() *h2c.Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.h2conns {
		if s, ok := c.Reserve(); ok {
			return s
		}
	}
	return nil
}

// dialH2 begins to make an h2c connection, or returns the one that is being
// made. It ends by itself, within the connect timeout.
func (w *Worker) dialH2() *h2Dial {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.h2dial != nil {
		return w.h2dial
	}
	call := &h2Dial{done: make(chan struct{})}
	if w.closed {
		call.err = net.ErrClosed
		close(call.done)
		return call
	}
	w.h2dial = call
	w.dials.Go(func() {
		c, connected, err := w.openH2()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.h2dial = nil
		switch {
		case err == nil && !w.closed:
			w.h2conns = append(w.h2conns, c)
			w.h2.Store(true)
		case err == nil:
			c.Close()
			err = net.ErrClosed
		case connected && w.protocol == Auto:
			w.h2.Store(false)
		}
		call.err = err
		close(call.done)
	})
	return call
}

// openH2 makes an h2c connection that the worker has answered on. connected
// reports one that could be made, but on which no HTTP/2 was spoken.
func (w *Worker) openH2() (c *h2c.Conn, connected bool, err error) {
	limit := w.timeouts.Connect
	if limit == 0 {
		limit = lookTimeout
	}
	begun := time.Now()
	end := begun.Add(limit)
	d := net.Dialer{Deadline: end}
	nc, err := d.DialContext(w.life, "tcp", w.addr)
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(w.life, func() { _ = nc.Close() })
	defer stop()
	c, err = h2c.Probe(nc, h2c.Config{}, end)
	if err == nil && c.Available() == 0 { // nobody has the connection yet
		c.Close()
		return nil, true, errNoStreams
	}
	if err == nil {
		w.observeConnect(time.Since(begun))
	}
	return c, true, err
}

// errNoStreams: a new h2c connection takes no request. Another one would be no
// better.
var errNoStreams = errors.New("the worker allows no streams")

// reapH2 closes and forgets connections that are of no more use.
func (w *Worker) reapH2() {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.h2conns[:0]
	spare := false // an idle one is kept already
	for _, c := range w.h2conns {
		switch {
		case c.Err() != nil:
		case c.InFlight() == 0 && spare:
			c.Close()
		case c.InFlight() == 0 && (c.GoingAway() || w.closed || !w.h2.Load()):
			c.Close()
		default:
			spare = spare || c.InFlight() == 0
			kept = append(kept, c)
		}
	}
	clear(w.h2conns[len(kept):])
	w.h2conns = kept
}

// doStream is Do over h2c. again reports that the worker turned out to speak
// HTTP/1.1, and nothing was sent.
func (x *Exchange) doStream(req *Request) (again bool, err *Error) {
	x.h2req = h2c.Request{
		Method: req.Method, Scheme: schemeHTTP, Authority: x.worker.host, Path: req.Target,
		Fields: req.Fields, Body: req.Body, Length: req.Length,
	}
	defer func() { x.h2req = h2c.Request{} }()
	for fresh := false; ; fresh = true {
		s, again, err := x.reserve(fresh)
		if again || err != nil {
			return again, err
		}
		if !x.ownStream(s) {
			return false, x.newError(FaultCanceled, nil)
		}
		x.rearm, x.settled = time.Time{}, false
		x.sent = time.Now()
		if err := x.arm(x.sent, x.worker.timeouts.FirstByte, FaultFirstByte); err != nil {
			return false, x.socketError(err, FaultClosed)
		}
		doErr := s.Do(&x.h2req)
		if doErr == nil {
			x.worker.observeFirstByte(time.Since(x.sent))
			return false, nil
		}
		e := h2Error(doErr)
		if fresh || !(e.Unprocessed || e.Stale) {
			return false, x.streamError(e, FaultClosed)
		}
		// The worker was leaving, or has left: once more on a connection that
		// it has just answered on.
		x.worker.observeResend()
		x.closeStream()
	}
}

var schemeHTTP = []byte("http")

// reserve returns a stream, on a new connection where fresh or where none has
// room.
func (x *Exchange) reserve(fresh bool) (s *h2c.Stream, again bool, err *Error) {
	w := x.worker
	if !fresh {
		if s := w.reserve(); s != nil {
			return s, false, nil
		}
	}
	for {
		call := w.dialH2()
		if !x.wait(call.done) {
			return nil, false, x.newError(FaultCanceled, nil)
		}
		if !w.h2.Load() {
			return nil, true, nil
		}
		if call.err != nil {
			return nil, false, x.newError(FaultConnect, call.err)
		}
		// Others may have filled the connection already.
		if s := w.reserve(); s != nil {
			return s, false, nil
		}
	}
}

// wait waits for done, or returns false when the exchange is canceled.
func (x *Exchange) wait(done <-chan struct{}) bool {
	x.mu.Lock()
	if x.canceled {
		x.mu.Unlock()
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.stopDial = cancel
	x.mu.Unlock()
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopDial = nil
	return !x.canceled
}

// ownStream makes s the stream of the exchange, unless that was canceled.
func (x *Exchange) ownStream(s *h2c.Stream) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stream = s
	return !x.canceled
}

// closeStream gives the stream back; the worker is told where it has not ended.
func (x *Exchange) closeStream() {
	x.mu.Lock()
	s := x.stream
	x.stream = nil
	x.mu.Unlock()
	s.Close()
}

// nextStream is Next over h2c.
func (x *Exchange) nextStream() ([]byte, error) {
	if x.fault != nil {
		return nil, x.fault
	}
	if !x.stream.Buffered() {
		if err := x.armBody(); err != nil {
			x.fault = x.count(x.socketError(err, FaultIncomplete))
			return nil, x.fault
		}
	}
	p, err := x.stream.Next()
	var e *h2c.Error
	if errors.As(err, &e) {
		x.fault = x.count(x.streamError(e, FaultIncomplete))
		return nil, x.fault
	}
	return p, err
}

func h2Error(err error) *h2c.Error {
	var e *h2c.Error
	if !errors.As(err, &e) {
		panic("BUG: a stream failed without an h2c.Error: " + err.Error())
	}
	return e
}

// streamError names the fault behind an error of a stream.
func (x *Exchange) streamError(e *h2c.Error, closed Fault) *Error {
	switch e.Fault {
	case h2c.FaultCanceled:
		return x.newError(FaultCanceled, nil)
	case h2c.FaultTimeout:
		return x.newError(x.late, nil)
	case h2c.FaultProtocol:
		return x.newError(FaultProtocol, e)
	}
	return x.newError(closed, e)
}
