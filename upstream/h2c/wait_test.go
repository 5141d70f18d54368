package h2c

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// soon is a deadline that passes while the test waits for it.
func soon() time.Time { return time.Now().Add(10 * time.Millisecond) }

// quiet answers with a head and a piece, and then nothing, where talks, and
// with nothing at all otherwise. It tells the codes of the resets that it sees.
func quiet(talks bool, resets chan<- byte) func(*peer) {
	return func(p *peer) {
		if !p.greet() {
			return
		}
		id, ok := p.request()
		if !ok {
			return
		}
		if talks {
			p.send(wire(nil).head(id, "200").data(id, "piece"))
		}
		if _, payload, ok := p.until(frameReset); ok {
			resets <- payload[3]
		}
		p.drain()
	}
}

func TestDeadline_FirstByte(t *testing.T) {
	resets := make(chan byte, 1)
	c := dial(t, play(t, quiet(false, resets)), Config{})
	s := reserve(t, c)
	s.SetDeadline(soon())
	wantError(t, s.Do(post("x")), FaultTimeout)
	s.Close()
	if code := Code(<-resets); code != Cancel {
		t.Errorf("unexpected code; got %v; want %v", code, Cancel)
	}
	eventually(t, "the slot", func() bool { return c.InFlight() == 0 })
}

func TestDeadline_Between(t *testing.T) {
	resets := make(chan byte, 1)
	c := dial(t, play(t, quiet(true, resets)), Config{})
	s := reserve(t, c)
	if err := s.Do(post("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the piece", s.Buffered)
	// What came in time is handed out after the deadline, too.
	s.SetDeadline(time.Now().Add(-time.Hour))
	eventually(t, "the timer", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return s.expired
	})
	if p, err := s.Next(); err != nil || string(p) != "piece" {
		t.Fatalf("unexpected piece; got %q, %v", p, err)
	}
	_, err := s.Next()
	wantError(t, err, FaultTimeout)
	// A later deadline begins anew.
	s.SetDeadline(soon())
	if s.Buffered() {
		t.Error("a stream with nothing to hand out is said to be ready")
	}
	_, err = s.Next()
	wantError(t, err, FaultTimeout)
	s.Close()
	<-resets
}

// TestDeadline_Moves: a deadline that is moved on in time never passes, and an
// earlier one of a sibling is met.
func TestDeadline_Moves(t *testing.T) {
	c := dial(t, play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		first, _ := p.request()
		p.send(wire(nil).head(first, "200"))
		if _, ok := p.request(); !ok {
			return
		}
		if _, _, ok := p.until(frameReset); ok {
			p.send(wire(nil).dataEnd(first, "patience"))
		}
		p.drain()
	}), Config{})
	a := reserve(t, c)
	if err := a.Do(get("/")); err != nil {
		t.Fatal(err)
	}
	b := reserve(t, c)
	b.SetDeadline(soon())
	wantError(t, b.Do(get("/")), FaultTimeout)
	b.Close()
	a.SetDeadline(time.Now().Add(patience))
	if got, err := readAll(a); err != nil || got != "patience" {
		t.Errorf("unexpected answer; got %q, %v", got, err)
	}
	a.Close()
}

func TestDeadline_NoWindow(t *testing.T) {
	c := dial(t, play(t, func(p *peer) {
		if p.greet(wire(nil).settings(uint32(settingWindow), 10)...) {
			p.drain()
		}
	}), Config{})
	s := reserve(t, c)
	s.SetDeadline(soon())
	wantError(t, s.Do(post(strings.Repeat("x", 1<<20))), FaultTimeout)
	s.Close()
	mustEnd(t, c)
}

// mustEnd waits for the slots of c to come back.
func mustEnd(t *testing.T, c *Conn) {
	t.Helper()
	eventually(t, "the slots", func() bool { return c.InFlight() == 0 })
	if c.Err() != nil {
		t.Errorf("unexpected end of the connection: %v", c.Err())
	}
}

func TestCancel_Before(t *testing.T) {
	c := dial(t, play(t, quiet(false, nil)), Config{})
	s := reserve(t, c)
	s.Cancel()
	if e := wantError(t, s.Do(post("x")), FaultCanceled); !e.Unprocessed {
		t.Errorf("unexpected error; got %+v", e)
	}
	s.Close()
	mustEnd(t, c)
}

func TestCancel_Head(t *testing.T) {
	resets := make(chan byte, 1)
	c := dial(t, play(t, quiet(false, resets)), Config{})
	s := reserve(t, c)
	done := make(chan error)
	go func() { done <- s.Do(post("x")) }()
	eventually(t, "the request", func() bool { return opened(c) == 1 })
	s.Cancel()
	wantError(t, <-done, FaultCanceled)
	if code := Code(<-resets); code != Cancel {
		t.Errorf("unexpected code; got %v; want %v", code, Cancel)
	}
	s.Close()
	mustEnd(t, c)
}

func TestCancel_NoWindow(t *testing.T) {
	c := dial(t, play(t, func(p *peer) {
		if p.greet(wire(nil).settings(uint32(settingWindow), 10)...) {
			p.drain()
		}
	}), Config{})
	s := reserve(t, c)
	done := make(chan error)
	go func() { done <- s.Do(post(strings.Repeat("x", 1<<20))) }()
	eventually(t, "the wait for a window", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.blocked) == 1
	})
	s.Cancel()
	wantError(t, <-done, FaultCanceled)
	s.Close()
	mustEnd(t, c)
}

// TestCancel_Deaf: a peer that does not read keeps nobody, and when it reads on
// the connection is as good as before.
func TestCancel_Deaf(t *testing.T) {
	for _, timeout := range []bool{false, true} {
		near, far := net.Pipe() // a write waits until it is read
		c, err := NewConn(near, Config{})
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(far)
		if !p.greet() {
			t.Fatal("no preface")
		}
		// Read what is to come at first: SETTINGS, WINDOW_UPDATE and the acknowledgement.
		for range 3 {
			if _, _, ok := p.frame(); !ok {
				t.Fatal("no SETTINGS")
			}
		}
		eventually(t, "a writer at rest", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.ss.acked && !c.writing
		})
		s := reserve(t, c)
		done := make(chan error)
		go func() { done <- s.Do(post(strings.Repeat("x", 50000))) }()
		eventually(t, "the write", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.writer == s
		})
		if timeout {
			s.SetDeadline(soon())
			wantError(t, <-done, FaultTimeout)
		} else {
			s.Cancel()
			wantError(t, <-done, FaultCanceled)
		}
		s.Close()

		next := reserve(t, c)
		go func() { done <- next.Do(get("/")) }()
		var reset, asked bool
		for !reset || !asked {
			h, payload, ok := p.frame()
			if !ok {
				t.Fatal("the connection ended")
			}
			switch {
			case h.kind == frameReset && h.id == 1:
				reset = true
			case h.kind == frameHeaders && h.id == 3:
				asked = true
				p.send(wire(nil).head(3, "200").dataEnd(3, "well"))
			case h.kind == framePing:
				p.send(wire(nil).frame(framePing, flagAck, 0, string(payload)))
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(next); err != nil || got != "well" {
			t.Errorf("unexpected answer; got %q, %v", got, err)
		}
		next.Close()
		go p.drain()
		c.Close()
		_ = far.Close()
	}
}

// TestClose_Unwritten: what was never written was never processed.
func TestClose_Unwritten(t *testing.T) {
	near, far := net.Pipe()
	c, err := NewConn(near, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, len(preface))); err != nil {
		t.Fatal(err)
	}
	s := reserve(t, c)
	done := make(chan error)
	go func() { done <- s.Do(post("x")) }()
	eventually(t, "the request", func() bool { return opened(c) == 1 })
	_ = far.Close()
	if e := wantError(t, <-done, FaultClosed); !e.Unprocessed {
		t.Errorf("unexpected error; got %+v", e)
	}
	s.Close()
	c.Close()
}

func TestPing_NoAnswer(t *testing.T) {
	pinged := make(chan bool, 1)
	c := dial(t, play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		_, _ = p.request()
		for {
			h, _, ok := p.frame()
			if !ok {
				return
			}
			if h.kind == framePing {
				pinged <- true
			}
		}
	}), Config{PingAfter: 20 * time.Millisecond, PingTimeout: 5 * time.Millisecond})
	_, _, err := do(t, c, get("/"))
	if e := wantError(t, err, FaultClosed); !errors.Is(e, ErrNoAnswer) {
		t.Errorf("unexpected error; got %v; want %v", e, ErrNoAnswer)
	}
	<-pinged
}

// TestPing_Answered: a peer may be silent for as long as it answers PINGs, and
// without streams it is not asked.
func TestPing_Answered(t *testing.T) {
	c := dial(t, play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		id, _ := p.request()
		for range 3 {
			_, payload, ok := p.until(framePing)
			if !ok {
				return
			}
			p.send(wire(nil).frame(framePing, flagAck, 0, string(payload)))
		}
		p.send(wire(nil).headEnd(id, "200"))
		p.drain()
	}), Config{PingAfter: 20 * time.Millisecond, PingTimeout: patience})
	mustDo(t, c, get("/"), "")
	eventually(t, "the end of the watch", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.checkAt.IsZero() && c.armed.IsZero()
	})
	mustEnd(t, c)
}

// TestPing_Deaf: a peer that talks and does not read is of no use.
func TestPing_Deaf(t *testing.T) {
	near, far := net.Pipe()
	c, err := NewConn(near, Config{PingAfter: 5 * time.Millisecond, PingTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(far)
	if !p.greet() {
		t.Fatal("no preface")
	}
	talked := make(chan struct{})
	go func() {
		defer close(talked)
		for c.Err() == nil {
			p.send(wire(nil).window(0, 1))
			time.Sleep(time.Millisecond)
		}
	}()
	_, _, err = do(t, c, get("/"))
	if e := wantError(t, err, FaultClosed); !errors.Is(e, ErrDeaf) {
		t.Errorf("unexpected error; got %v; want %v", e, ErrDeaf)
	}
	<-talked
	c.Close()
	_ = far.Close()
}

// TestWrite_Rounds: who writes for others does not do so for ever.
func TestWrite_Rounds(t *testing.T) {
	near, far := net.Pipe()
	c, err := NewConn(near, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(far)
	if !p.greet() {
		t.Fatal("no preface")
	}
	stop := make(chan struct{})
	go func() { // each write finds more to write behind it
		for {
			if _, _, ok := p.frame(); !ok {
				close(stop)
				return
			}
			c.mu.Lock()
			if c.writing && c.dead == nil {
				c.ss.queue(appendPing(c.ss.out, flagAck, 0))
			}
			c.mu.Unlock()
		}
	}()
	s := reserve(t, c)
	done := make(chan error)
	go func() { done <- s.Do(get("/")) }()
	eventually(t, "somebody else writes", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return s.st.open && c.writing && c.writer == nil && s.waiting
	})
	s.Cancel()
	wantError(t, <-done, FaultCanceled)
	s.Close()
	c.Close()
	<-stop
	_ = far.Close()
}

// brittle is a connection that at some time cannot be written to any more.
type brittle struct {
	net.Conn
	broken atomic.Bool
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(p)
}

// TestB56_GoAwayBehindAFailedWrite: a peer that left said before which requests
// it has not processed, and that is read although writing fails.
func TestB56_GoAwayBehindAFailedWrite(t *testing.T) {
	near, far := net.Pipe()
	nc := &brittle{Conn: near}
	c, err := NewConn(nc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(far)
	if !p.greet() {
		t.Fatal("no preface")
	}
	first, second := reserve(t, c), reserve(t, c)
	done := make(chan error)
	go func() { done <- first.Do(get("/")) }()
	if _, ok := p.request(); !ok {
		t.Fatal("no request")
	}
	eventually(t, "a writer at rest", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.writing && len(c.ss.out) == 0
	})
	nc.broken.Store(true)
	go func() { done <- second.Do(get("/")) }()
	eventually(t, "the failed write", c.GoingAway)
	if _, ok := c.Reserve(); ok || c.Available() != 0 {
		t.Error("a broken connection gave a stream")
	}
	p.send(wire(nil).goAway(1, NoError).head(1, "200").dataEnd(1, "whole"))
	for range 2 {
		if err := <-done; err != nil {
			if e := wantError(t, err, FaultGoAway); !e.Unprocessed {
				t.Errorf("unexpected error; got %+v", e)
			}
		}
	}
	if got, err := readAll(first); err != nil || got != "whole" {
		t.Errorf("unexpected answer; got %q, %v", got, err)
	}
	first.Close()
	second.Close()
	c.Close()
	_ = far.Close()
}

// TestClose_FailedWrite: the connection ends also where the reader does not see
// that it should.
func TestClose_FailedWrite(t *testing.T) {
	near, far := net.Pipe()
	nc := &brittle{Conn: near}
	nc.broken.Store(true)
	c, err := NewConn(nc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = do(t, c, get("/"))
	if e := wantError(t, err, FaultClosed); !e.Unprocessed || !errors.Is(e, syscall.EPIPE) {
		t.Errorf("unexpected error; got %+v", e)
	}
	c.Close()
	_ = far.Close()
}
