package h2c

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestConn_SlowConsumer: who does not read holds a window of data and nobody up.
func TestConn_SlowConsumer(t *testing.T) {
	const size = 4 << 20 // more than all windows but the stream's
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat("x", size))
			return
		}
		echo(w, r)
	})
	c := dial(t, addr, Config{StreamWindow: 64 << 10})
	slow := []*Stream{reserve(t, c), reserve(t, c), reserve(t, c)}
	for _, s := range slow {
		if err := s.Do(get("/large")); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		mustDo(t, c, post(strings.Repeat("y", 100<<10)), strings.Repeat("y", 100<<10))
	}
	for _, s := range slow {
		eventually(t, "a full window", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return s.st.recvWindow == 0 && len(s.st.body) == 64<<10
		})
	}
	for _, s := range slow {
		if got, err := readAll(s); err != nil || len(got) != size {
			t.Errorf("unexpected body; got %d bytes, %v; want %d", len(got), err, size)
		}
		s.Close()
	}
}

// TestB58_PeerResetsOne of five streams: the four others do not notice.
func TestB58_PeerResetsOne(t *testing.T) {
	addr := play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		var ids []uint32
		for range 5 {
			id, ok := p.request()
			if !ok {
				return
			}
			ids = append(ids, id)
		}
		p.send(wire(nil).head(ids[1], "200").data(ids[1], "part").reset(ids[2], InternalError).reset(ids[1], InternalError))
		for _, i := range []int{0, 3, 4} {
			p.send(wire(nil).head(ids[i], "200").dataEnd(ids[i], "whole"))
		}
		p.drain()
	})
	c := dial(t, addr, Config{})
	var all sync.WaitGroup
	answers := make(chan string, 5)
	for range 5 {
		all.Go(func() {
			_, body, err := do(t, c, get("/"))
			answers <- fmt.Sprintf("%s %v", body, err)
		})
	}
	all.Wait()
	close(answers)
	count := map[string]int{}
	for a := range answers {
		count[a]++
	}
	if count["whole <nil>"] != 3 || count["part h2c: the answer ended too early (INTERNAL_ERROR)"] != 1 ||
		count[" h2c: stream reset before the answer (INTERNAL_ERROR)"] != 1 {
		t.Errorf("unexpected answers; got %v", count)
	}
	if c.Err() != nil || c.InFlight() != 0 {
		t.Errorf("unexpected connection; got %v, %d in flight", c.Err(), c.InFlight())
	}
}

// TestB58_ClientCancelsOne of five streams: the peer sees RST_STREAM(CANCEL)
// of that one, and the others are answered on the same connection.
func TestB58_ClientCancelsOne(t *testing.T) {
	addr := play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		var last uint32
		for range 5 {
			last, _ = p.request()
			p.send(wire(nil).head(last, "200").data(last, "first"))
		}
		h, code, ok := p.until(frameReset)
		if !ok || fmt.Sprintf("%x", code) != "00000008" {
			t.Errorf("unexpected frame instead of RST_STREAM; got %+v %x, %v", h, code, ok)
		}
		for id := uint32(1); id <= last; id += 2 {
			if id != h.id {
				p.send(wire(nil).dataEnd(id, " last"))
			}
		}
		p.drain()
	})
	c := dial(t, addr, Config{})
	streams := make([]*Stream, 5)
	for i := range streams {
		streams[i] = reserve(t, c)
		if err := streams[i].Do(get("/")); err != nil {
			t.Fatal(err)
		}
		if p, err := streams[i].Next(); err != nil || string(p) != "first" {
			t.Fatalf("unexpected piece; got %q, %v", p, err)
		}
	}
	canceled := make(chan error)
	go func() {
		_, err := streams[2].Next()
		canceled <- err
	}()
	streams[2].Cancel()
	e := wantError(t, <-canceled, FaultCanceled)
	if e.Unprocessed {
		t.Error("a request that was sent is said to be unprocessed")
	}
	for i, s := range streams {
		if i != 2 {
			if got, err := readAll(s); err != nil || got != " last" {
				t.Errorf("unexpected rest of %d; got %q, %v", i, got, err)
			}
		}
		s.Close()
	}
	eventually(t, "the answer to the PING behind the reset", func() bool { return c.InFlight() == 0 })
	if c.Err() != nil {
		t.Errorf("unexpected end of the connection: %v", c.Err())
	}
}

// TestB56_GoAwayAfterTheBody: the streams above the last one are told that they
// may go elsewhere, the one below finishes, and then the connection closes.
func TestB56_GoAwayAfterTheBody(t *testing.T) {
	gone := make(chan struct{})
	addr := play(t, func(p *peer) {
		defer close(gone)
		if !p.greet() {
			return
		}
		for range 3 {
			if _, ok := p.request(); !ok {
				return
			}
		}
		p.send(wire(nil).goAway(1, NoError).head(1, "200").data(1, "still "))
		p.send(wire(nil).dataEnd(1, "here"))
		p.drain()
	})
	c := dial(t, addr, Config{})
	first := reserve(t, c)
	done := make(chan error)
	go func() {
		err := first.Do(post("body"))
		done <- err
	}()
	eventually(t, "the first stream", func() bool { return c.InFlight() == 1 && opened(c) == 1 })
	for range 2 {
		go func() {
			_, _, err := do(t, c, post("body"))
			done <- err
		}()
	}
	var unprocessed int
	for range 3 {
		err := <-done
		var e *Error
		if errors.As(err, &e) && e.Fault == FaultGoAway && e.Unprocessed {
			unprocessed++
		} else if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
	}
	if unprocessed != 2 {
		t.Errorf("unexpected number of streams to be sent again; got %d; want 2", unprocessed)
	}
	if _, ok := c.Reserve(); ok || !c.GoingAway() {
		t.Error("a connection that goes away gave a stream")
	}
	if got, err := readAll(first); err != nil || got != "still here" {
		t.Errorf("unexpected answer; got %q, %v", got, err)
	}
	first.Close()
	<-gone // the client closes what it cannot use any more
	if c.Err() == nil {
		t.Error("the connection is not closed")
	}
}

func opened(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ss.table)
}

// TestConn_StaleKeepAlive: the peer closes as the request arrives.
func TestConn_StaleKeepAlive(t *testing.T) {
	for _, more := range []wire{nil, wire(nil).goAway(0, NoError)} {
		addr := play(t, func(p *peer) {
			if p.greet() {
				_, _ = p.request()
				p.send(more)
			}
		})
		c := dial(t, addr, Config{})
		<-c.ready
		_, _, err := do(t, c, post("x"))
		if more == nil {
			if e := wantError(t, err, FaultClosed); !e.Stale || e.Unprocessed {
				t.Errorf("unexpected error; got %+v", e)
			}
		} else if e := wantError(t, err, FaultGoAway); !e.Unprocessed {
			t.Errorf("unexpected error; got %+v", e)
		}
		eventually(t, "the end of the connection", func() bool { return c.Err() != nil })
		if _, ok := c.Reserve(); ok || c.Available() != 0 {
			t.Error("a dead connection gave a stream")
		}
	}
}

// TestConn_DeadBetweenReserveAndDo: nothing was sent, so all may be sent again.
func TestConn_DeadBetweenReserveAndDo(t *testing.T) {
	c := dial(t, serve(t, echo), Config{})
	s := reserve(t, c)
	c.Close()
	if e := wantError(t, s.Do(post("x")), FaultGoAway); !e.Unprocessed || !errors.Is(e, ErrClosed) {
		t.Errorf("unexpected error; got %+v", e)
	}
	s.Close()
}

func TestConn_Truncated(t *testing.T) {
	addr := play(t, func(p *peer) {
		if p.greet() {
			id, _ := p.request()
			p.send(wire(nil).head(id, "200", "content-length", "10").data(id, "part"))
		}
	})
	c := dial(t, addr, Config{})
	status, body, err := do(t, c, get("/"))
	wantError(t, err, FaultIncomplete)
	if status != 200 || body != "part" {
		t.Errorf("unexpected answer; got %d %q", status, body)
	}
}

func TestConn_ProtocolFault(t *testing.T) {
	told := make(chan Code, 1)
	addr := play(t, func(p *peer) {
		if !p.greet() {
			return
		}
		id, _ := p.request()
		p.send(wire(nil).window(0, 0).head(id, "200"))
		_, payload, _ := p.until(frameGoAway)
		told <- Code(payload[7])
	})
	c := dial(t, addr, Config{})
	_, _, err := do(t, c, get("/"))
	if e := wantError(t, err, FaultProtocol); e.Code != ProtocolError || e.Unprocessed {
		t.Errorf("unexpected error; got %+v", e)
	}
	if code := <-told; code != ProtocolError {
		t.Errorf("unexpected code in GOAWAY; got %v", code)
	}
}

// TestConn_Close: who waits is told, at once.
func TestConn_Close(t *testing.T) {
	received := make(chan uint32)
	addr := play(t, func(p *peer) {
		if p.greet() {
			id, _ := p.request()
			received <- id
			p.drain()
		}
	})
	c := dial(t, addr, Config{})
	s := reserve(t, c)
	done := make(chan error)
	go func() { done <- s.Do(get("/")) }()
	<-received
	c.Close()
	if e := wantError(t, <-done, FaultClosed); !errors.Is(e, ErrClosed) || e.Unprocessed {
		t.Errorf("unexpected error; got %+v", e)
	}
	s.Close()
	c.Close()
	if c.InFlight() != 0 || !errors.Is(c.Err(), ErrClosed) {
		t.Errorf("unexpected rest; got %d in flight, %v", c.InFlight(), c.Err())
	}
}

func TestConn_MaxStreams(t *testing.T) {
	f := func(own, peers, want int) {
		t.Helper()
		c := dial(t, serve(t, echo, func(srv *http.Server) {
			srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: peers}
		}), Config{MaxStreams: own})
		mustDo(t, c, post("x"), "x")
		if got := c.Available(); got != want {
			t.Errorf("unexpected streams available; got %d; want %d", got, want)
		}
		for range want {
			s := reserve(t, c)
			defer s.Close()
		}
		if _, ok := c.Reserve(); ok || c.InFlight() != want {
			t.Errorf("a stream too many, or %d in flight; want %d", c.InFlight(), want)
		}
	}
	f(10, 3, 3)
	f(4, 100, 4)
	f(0, 1000, 256)
}

// TestConn_EarlyAnswer: a peer that does not want the body says so before its
// end, and need not be sent the rest.
func TestConn_EarlyAnswer(t *testing.T) {
	for _, reset := range []bool{true, false} {
		addr := play(t, func(p *peer) {
			if !p.greet() {
				return
			}
			h, _, _ := p.until(frameHeaders)
			answer := wire(nil).head(h.id, "413").dataEnd(h.id, "too large")
			if reset {
				answer = answer.reset(h.id, NoError)
			}
			p.send(answer)
			p.drain()
		})
		c := dial(t, addr, Config{})
		status, body, err := do(t, c, post(strings.Repeat("x", 1<<20)))
		if err != nil || status != 413 || body != "too large" {
			t.Errorf("unexpected answer; got %d %q, %v", status, body, err)
		}
		eventually(t, "the slot", func() bool { return c.InFlight() == 0 })
		if c.Err() != nil {
			t.Errorf("unexpected end of the connection: %v", c.Err())
		}
	}
}

// TestConn_BothWays: a peer may answer while it reads.
func TestConn_BothWays(t *testing.T) {
	c := dial(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}), Config{StreamWindow: 1 << 20})
	body := strings.Repeat("0123456789", 90000)
	mustDo(t, c, post(body), body)
}

func TestConn_Head(t *testing.T) {
	f := func(answer func(id uint32) wire, length int64, names string) {
		t.Helper()
		c := dial(t, play(t, func(p *peer) {
			if p.greet() {
				id, _ := p.request()
				p.send(answer(id))
				p.drain()
			}
		}), Config{})
		s := reserve(t, c)
		defer s.Close()
		if err := s.Do(get("/")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range s.Fields() {
			got = append(got, string(f.Name)+"="+string(f.Value))
		}
		if s.Status() != 200 || s.Length() != length || strings.Join(got, " ") != names {
			t.Errorf("unexpected head; got %d, %d, %v; want %d, %s", s.Status(), s.Length(), got, length, names)
		}
	}
	w := func() wire { return wire(nil) }
	f(func(id uint32) wire { return w().head(id, "200", "content-length", "7", "x-a", "b", "x-a", "c") }, 7, "x-a=b x-a=c")
	f(func(id uint32) wire { return w().head(id, "200", "server", "s") }, -1, "server=s")
	f(func(id uint32) wire { return w().headEnd(id, "200", "retry-after", "7") }, 0, "retry-after=7")
}

// TestConn_Flood: as many frames that serve nothing as come in a second with
// honest peers are borne, and more are not.
func TestConn_Flood(t *testing.T) {
	f := func(n int, want error) {
		t.Helper()
		c := dial(t, play(t, func(p *peer) {
			if !p.greet() {
				return
			}
			id, _ := p.request()
			drained := make(chan struct{})
			go func() {
				p.drain()
				close(drained)
			}()
			var some wire
			for i := range 100 {
				some = some.ping(0, uint64(i))
			}
			for range n / 100 {
				p.send(some)
			}
			p.send(wire(nil).headEnd(id, "200"))
			<-drained
		}), Config{})
		_, _, err := do(t, c, get("/"))
		c.Close()
		if !errors.Is(err, want) {
			t.Errorf("unexpected error after %d frames; got %v; want %v", n, err, want)
		}
	}
	f(maxJunk-1000, nil)
	f(100*maxJunk, errFlood)
}

func TestConn_Reuse(t *testing.T) {
	c := dial(t, serve(t, echo), Config{})
	for i := range 300 {
		body := strings.Repeat("z", i)
		mustDo(t, c, post(body), body)
	}
	if n := len(c.free); n != 1 {
		t.Errorf("unexpected streams at rest; got %d; want 1", n)
	}
}

func TestConn_Nil(t *testing.T) {
	if _, err := NewConn(nil, Config{}); err == nil {
		t.Error("no error")
	}
}

func TestStream_WrongLength(t *testing.T) {
	c := dial(t, serve(t, echo), Config{})
	s := reserve(t, c)
	defer s.Close()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r := post("abc")
	r.Length = 4
	_ = s.Do(r)
}

func TestProbe(t *testing.T) {
	f := func(name, addr string, deadline time.Time, want error) {
		t.Helper()
		nc, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Probe(nc, Config{}, deadline)
		if want == nil {
			if err != nil {
				t.Errorf("%s: unexpected error: %v", name, err)
				return
			}
			mustDo(t, c, post("x"), "x")
			c.Close()
			return
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: unexpected error; got %v; want %v", name, err, want)
		}
		if _, err := nc.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the connection is not closed: %v", name, err)
		}
	}
	later := time.Now().Add(patience)
	f("h2c", serve(t, echo), later, nil)
	both := serve(t, echo, func(srv *http.Server) { srv.Protocols.SetHTTP1(true) })
	f("both", both, later, nil)
	f("closes", play(t, func(p *peer) {
		_ = p.nc.(*net.TCPConn).CloseWrite()
		p.drain()
	}), later, io.EOF)
	f("HTTP/1.1", play(t, func(p *peer) {
		_, _ = p.in.Peek(len(preface))
		p.send(wire("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
		p.drain()
	}), later, ErrNotH2C)
	f("net/http", serve(t, echo, func(srv *http.Server) {
		srv.Protocols.SetUnencryptedHTTP2(false)
		srv.Protocols.SetHTTP1(true)
	}), later, ErrNotH2C)
	f("silent", play(t, (*peer).drain), time.Now(), os.ErrDeadlineExceeded)
}
