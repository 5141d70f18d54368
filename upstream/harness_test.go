package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/upstream/h1"
)

// patience bounds what a test waits for; no test depends on its value.
const patience = 20 * time.Second

// script plays a worker on one connection, which is closed when it returns.
type script func(p *peer)

// peer is the worker's end of a connection.
type peer struct {
	*net.TCPConn
	in   *bufio.Reader
	stop <-chan struct{} // closed at the end of the test
}

// request reads a request with its body. It returns false where the connection
// ended in its place.
func (p *peer) request() (head, body string, ok bool) {
	head, n, ok := p.head()
	if !ok {
		return "", "", false
	}
	b := make([]byte, n)
	_, err := io.ReadFull(p.in, b)
	return head, string(b), err == nil
}

// head reads the head of a request and the length of its body.
func (p *peer) head() (head string, length int, ok bool) {
	for !strings.HasSuffix(head, "\r\n\r\n") {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return "", 0, false
		}
		if name, value, _ := strings.Cut(line, ": "); name == "Content-Length" {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		head += line
	}
	return head, length, true
}

// send writes what the client may have stopped to listen to.
func (p *peer) send(s ...string) {
	for _, s := range s {
		_, _ = io.WriteString(p, s)
	}
}

// reset closes the connection with a RST.
func (p *peer) reset() {
	_ = p.SetLinger(0)
	_ = p.Close()
}

// wait waits for the end of the test or of the connection.
func (p *peer) wait() {
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, p.in)
		close(gone)
	}()
	select {
	case <-gone:
	case <-p.stop:
	}
	_ = p.Close()
	<-gone
}

// engine is a scripted worker.
type engine struct {
	url      string
	accepted atomic.Int64
	stop     chan struct{}
}

// play serves the first connection with the first script, the second with the
// second and so on, and all later ones with the last.
func play(t *testing.T, scripts ...script) *engine {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{url: "http://" + ln.Addr().String(), stop: make(chan struct{})}
	var all sync.WaitGroup
	var conns []net.Conn
	all.Go(func() {
		defer func() {
			for _, c := range conns {
				_ = c.Close()
			}
		}()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			n := int(e.accepted.Add(1))
			all.Go(func() {
				defer func() { _ = c.Close() }()
				scripts[min(n, len(scripts))-1](&peer{c.(*net.TCPConn), bufio.NewReader(c), e.stop})
			})
		}
	})
	t.Cleanup(func() {
		close(e.stop)
		_ = ln.Close()
		all.Wait()
	})
	return e
}

// always answers every request with the same bytes.
func always(answer string) script {
	return func(p *peer) {
		for {
			if _, _, ok := p.request(); !ok {
				return
			}
			p.send(answer)
		}
	}
}

// once answers one request and waits.
func once(answer ...string) script {
	return func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send(answer...)
			p.wait()
		}
	}
}

// last answers one request and closes.
func last(answer ...string) script {
	return func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send(answer...)
		}
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// newTestPool makes a pool whose loads and connections must be 0 at the end of
// the test, and leaves no goroutine.
func newTestPool(t *testing.T, spec PoolSpec) *Pool {
	t.Helper()
	if spec.Balance == "" {
		spec.Balance = RoundRobin
	}
	p, err := NewPool(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		for _, w := range p.Workers() {
			open, idle := w.Connections()
			if w.Load() != 0 || open != 0 || idle != 0 {
				t.Errorf("unexpected rest of worker; got load %d, %d open, %d idle; want none", w.Load(), open, idle)
			}
		}
	})
	return p
}

func newTestWorker(t *testing.T, url string, limits Timeouts) *Worker {
	t.Helper()
	return newTestPool(t, PoolSpec{Name: "test", Workers: []WorkerSpec{{URL: url}}, Timeouts: limits}).Workers()[0]
}

func post(body ...string) *Request {
	r := &Request{
		Method: []byte("POST"),
		Target: []byte("/v1/chat/completions"),
		Fields: []h1.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}},
	}
	for _, b := range body {
		r.Body = append(r.Body, []byte(b))
		r.Length += int64(len(b))
	}
	return r
}

// readAll reads the body to its end.
func readAll(x *Exchange) (string, error) {
	var b strings.Builder
	for {
		p, err := x.Next()
		b.Write(p)
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
	}
}

// do runs a whole exchange.
func do(x *Exchange, w *Worker, r *Request) (status int, body string, err error) {
	defer x.Close()
	if err := x.Do(w, r); err != nil {
		return 0, "", err
	}
	status = x.Status()
	body, err = readAll(x)
	return status, body, err
}

// mustDo runs an exchange that must be answered with body.
func mustDo(t *testing.T, x *Exchange, w *Worker, want string) {
	t.Helper()
	status, body, err := do(x, w, post("{}"))
	if err != nil || status != 200 || body != want {
		t.Fatalf("unexpected answer; got %d %q, %v; want 200 %q", status, body, err, want)
	}
}

func wantFault(t *testing.T, err error, want Fault) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("unexpected error; got %v; want %q", err, want)
	}
	if e.Fault != want {
		t.Fatalf("unexpected fault; got %q (%v); want %q", e.Fault, err, want)
	}
}

func wantAccepted(t *testing.T, e *engine, want int64) {
	t.Helper()
	if got := e.accepted.Load(); got != want {
		t.Fatalf("unexpected connections; got %d; want %d", got, want)
	}
}

func wantIdle(t *testing.T, w *Worker, want int) {
	t.Helper()
	if _, got := w.Connections(); got != want {
		t.Fatalf("unexpected connections at rest; got %d; want %d", got, want)
	}
}

// eventually waits for what another goroutine or the kernel is about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withBalance is what a pool needs for any balance.
func withBalance(s PoolSpec) PoolSpec {
	if s.LoadFactor == 0 {
		s.LoadFactor = 1.25
	}
	if s.Prefix.Block == 0 {
		s.Prefix = Prefix{MaxBytes: 1 << 20, Block: 64}
	}
	return s
}

// Pick is Acquire for tests that expect a worker or nil.
func (p *Pool) Pick() *Worker {
	w, err := p.Acquire(nil)
	if err != nil {
		return nil
	}
	return w
}
