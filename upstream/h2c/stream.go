package h2c

import (
	"io"
	"time"

	"sluice/upstream/h1"
)

// Stream is one exchange of request and answer. [Conn.Reserve] makes it, its
// owner calls Do once, Next until it has what it wants, and Close, after which
// it belongs to the connection again. One goroutine drives it; Cancel alone
// may be called from another.
type Stream struct {
	conn  *Conn
	wake  chan struct{} // of capacity 1; a token may be left over
	piece []byte        // what Next returned last
	block []byte        // header block of the request
	ended bool          // piece was the last one
	parts parts         // of a body that is written from where it is

	// The rest is guarded by conn.mu.

	st       state
	waiting  bool // somebody waits for wake
	blocked  bool // in conn.blocked
	granted  bool // it is to write next, see turnLocked
	canceled bool
	deadline time.Time
	expired  bool // the deadline passed
}

// SetDeadline bounds what Do and Next wait for, from now on: when t has passed
// they return FaultTimeout. The zero time is no deadline, and so it is after
// Reserve. What was received before the deadline is still returned.
func (s *Stream) SetDeadline(t time.Time) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.deadline, s.expired = t, false
	s.conn.armLocked(t)
}

// Do sends req and waits for the head of the answer; interim answers (1xx) are
// skipped. An answer that has ended, or has a status from 300 on, ends the
// sending of the body. The error is an *Error, and then only Close may follow.
// It keeps nothing of req.
func (s *Stream) Do(req *Request) error {
	if n := bodyLength(req.Body); n != max(0, req.Length) {
		panic("BUG: h2c: Request.Length is not that of Request.Body")
	}
	s.block = appendHead(s.block[:0], req)
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := s.beginLocked(req); e != nil {
		return e
	}
	s.sendLocked(req)
	c.writeLocked(s)
	for {
		if e := s.faultLocked(s.st.headDone); e != nil {
			return e
		}
		if s.st.headDone {
			return nil
		}
		s.waitLocked()
	}
}

func bodyLength(body [][]byte) (n int64) {
	for _, p := range body {
		n += int64(len(p))
	}
	return n
}

func (s *Stream) beginLocked(req *Request) *Error {
	c := s.conn
	if s.canceled {
		return &Error{Fault: FaultCanceled, Unprocessed: true}
	}
	s.st.isHead = string(req.Method) == "HEAD"
	if c.dead != nil || !c.ss.begin(&s.st, s.block, req.Length <= 0) {
		return &Error{Fault: FaultGoAway, Code: c.ss.code, Unprocessed: true, Err: c.dead}
	}
	c.watchLocked()
	c.armLocked(s.deadline)
	return nil
}

// sendLocked queues the body of req as the windows allow, or writes what is large
// of it.
func (s *Stream) sendLocked(req *Request) {
	c, body := s.conn, segments{list: req.Body}
	for left := req.Length; left > 0 && !s.stopLocked(); {
		n := c.ss.room(&s.st, left)
		switch {
		case !c.writableLocked():
			c.blockLocked(s) // until the reader has found out why
		case n == 0:
			if len(c.ss.out) > 0 && !c.writing {
				c.writeLocked(s)
			} else {
				c.blockLocked(s)
			}
		case left > maxCopied:
			if s.turnLocked() {
				left -= s.writeBodyLocked(&body, left)
			}
		case len(c.ss.out) >= maxQueued:
			if !c.writing {
				c.writeLocked(s)
			} else {
				c.blockLocked(s)
			}
		default:
			left -= int64(n)
			c.ss.sendData(&s.st, &body, n, left == 0)
		}
	}
}

// stopLocked tells whether the rest of the body is not wanted any more.
func (s *Stream) stopLocked() bool {
	return !s.st.open || s.st.recvDone || s.st.sendDone || s.giveUp() || s.st.headDone && s.st.status >= 300
}

// giveUp tells whether the owner of s must not be kept waiting any longer.
func (s *Stream) giveUp() bool { return s.canceled || s.expired }

// faultLocked returns why the caller must not wait. have is whether he has what
// he came for.
func (s *Stream) faultLocked(have bool) *Error {
	switch {
	case s.canceled:
		return &Error{Fault: FaultCanceled}
	case have:
		return nil
	case s.st.fault != nil:
		return s.st.fault
	case s.expired:
		return &Error{Fault: FaultTimeout}
	}
	return nil
}

// Status returns the status code of the answer. Valid after Do.
func (s *Stream) Status() int { return s.st.status }

// Fields returns the header fields of the answer as they came, names in lower
// case, without content-length, which Length tells. They are valid until Close.
func (s *Stream) Fields() []h1.Field { return s.st.fields }

// Length returns the content-length of the answer, −1 where its end shows
// itself, and 0 for one without a body.
func (s *Stream) Length() int64 {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.st.bodyless() || s.st.recvDone && s.st.got == 0 {
		return 0
	}
	return s.st.length
}

// Buffered reports whether the next call of Next returns without waiting.
func (s *Stream) Buffered() bool {
	if s.ended {
		return true
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return len(s.st.body) > 0 || s.st.recvDone || s.st.fault != nil || s.giveUp()
}

// Next returns the next piece of the body, valid until the next call, or
// io.EOF at its end. Another error is an *Error: the answer is broken, and
// what came before the fault has been returned. With the call the piece before
// counts as consumed, and the peer may send as much again.
func (s *Stream) Next() ([]byte, error) {
	if s.ended {
		return nil, io.EOF
	}
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ss.consumed(&s.st, len(s.piece))
	s.piece = s.piece[:0]
	c.kickLocked()
	for {
		have := len(s.st.body) > 0
		if e := s.faultLocked(have || s.st.recvDone && s.st.fault == nil); e != nil {
			return nil, e
		}
		if have {
			s.piece = s.st.take(s.piece)
			s.ended = s.st.recvDone && s.st.fault == nil
			return s.piece, nil
		}
		if s.st.recvDone {
			s.ended = true
			return nil, io.EOF
		}
		s.waitLocked()
	}
}

// Close ends the exchange and gives the stream back. Where it has not ended the
// peer is told with RST_STREAM(CANCEL); that does not wait. It must be called
// once after Reserve, and nothing may be called after it.
func (s *Stream) Close() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.st.open:
		c.ss.abandon(&s.st, Cancel)
		c.kickLocked()
	case s.st.id == 0:
		c.ss.slots--
	}
	c.leaveLocked()
	if c.dead == nil {
		s.resetLocked()
		c.free = append(c.free, s)
	}
}

// resetLocked makes s as new. Large buffers go back to the session.
func (s *Stream) resetLocked() {
	s.st.reset()
	if cap(s.st.body) > keptBody {
		s.conn.ss.giveBack(s.st.body)
		s.st.body = nil
	}
	if s.piece = s.piece[:0]; cap(s.piece) > keptBody {
		s.conn.ss.giveBack(s.piece)
		s.piece = nil
	}
	if cap(s.parts.kept) > keptParts {
		s.parts = parts{}
	}
	s.ended, s.canceled, s.expired, s.deadline = false, false, false, time.Time{}
}

// Cancel ends the exchange from outside: what waits in Do or Next returns
// FaultCanceled at once, and the peer is told with RST_STREAM(CANCEL). It does
// not wait. It may be called at any time, from any goroutine; the caller sees to
// it that none comes after Close.
func (s *Stream) Cancel() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.canceled = true
	if s.st.open {
		c.ss.abandon(&s.st, Cancel)
	}
	c.rushLocked(s)
	s.wakeLocked()
	c.kickLocked()
}

// waitLocked waits for wakeLocked, without the lock. It may return early.
func (s *Stream) waitLocked() {
	s.waiting = true
	s.conn.mu.Unlock()
	<-s.wake
	s.conn.mu.Lock()
	s.waiting = false
}

func (s *Stream) wakeLocked() {
	if !s.waiting {
		return
	}
	s.waiting = false
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
