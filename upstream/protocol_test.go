package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/upstream/h1"
)

// h2Engine serves handler over HTTP/1.1 and h2c, as it is told.
type h2Engine struct {
	url    string
	server *http.Server
	conns  atomic.Int64
	served chan error
}

func startH2(t *testing.T, addr, protocols string, handler http.HandlerFunc) *h2Engine {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	e := &h2Engine{url: "http://" + ln.Addr().String(), served: make(chan error, 1)}
	var p http.Protocols
	p.SetHTTP1(strings.Contains(protocols, "http1"))
	p.SetUnencryptedHTTP2(strings.Contains(protocols, "h2c"))
	e.server = &http.Server{Handler: handler, Protocols: &p, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			e.conns.Add(1)
		}
	}}
	go func() { e.served <- e.server.Serve(ln) }()
	t.Cleanup(func() { e.close(t) })
	return e
}

func (e *h2Engine) close(t *testing.T) {
	if e.server == nil {
		return
	}
	_ = e.server.Close() // cuts what is open
	if err := <-e.served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("unexpected error of the engine: %v", err)
	}
	e.server = nil
}

func poolOver(t *testing.T, protocol string, urls ...string) *Pool {
	t.Helper()
	spec := PoolSpec{Name: "p", Balance: RoundRobin, Protocol: protocol, Timeouts: Timeouts{
		Connect: patience, FirstByte: patience, BetweenEvents: patience,
	}}
	for _, u := range urls {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: u})
	}
	p, err := NewPool(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// whole does one exchange and returns status and body.
func whole(x *Exchange, w *Worker, req *Request) (int, string, error) {
	defer x.Close()
	if err := x.Do(w, req); err != nil {
		return 0, "", err
	}
	var b strings.Builder
	for {
		p, err := x.Next()
		b.Write(p)
		if err == io.EOF {
			return x.Status(), b.String(), nil
		}
		if err != nil {
			return x.Status(), b.String(), err
		}
	}
}

func send(body ...string) *Request {
	r := &Request{Method: []byte("POST"), Target: []byte("/x?y=%2B")}
	for _, b := range body {
		r.Body = append(r.Body, []byte(b))
		r.Length += int64(len(b))
	}
	return r
}

func mirror(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Proto", r.Proto)
	_, _ = fmt.Fprintf(w, "%s %s %s %x", r.Proto, r.Host, r.RequestURI, sha256.Sum256(b))
}

func TestProtocol_AutoPerWorker(t *testing.T) {
	both := startH2(t, "127.0.0.1:0", "http1 h2c", mirror)
	old := startH2(t, "127.0.0.1:0", "http1", mirror)
	p := poolOver(t, Auto, both.url, old.url)
	a, b := p.Workers()[0], p.Workers()[1]
	waitFor(t, "h2c to be found", func() bool { return a.Protocol() == H2C })
	big := strings.Repeat("0123456789abcdef", 200_000)
	var x Exchange
	for _, body := range [][]string{{"hello"}, {"a", "", big, "z"}, {}} {
		sum := sha256.Sum256([]byte(strings.Join(body, "")))
		for w, proto := range map[*Worker]string{a: "HTTP/2.0", b: "HTTP/1.1"} {
			want := fmt.Sprintf("%s %s /x?y=%%2B %x", proto, strings.TrimPrefix(w.URL(), "http://"), sum)
			if status, got, err := whole(&x, w, send(body...)); err != nil || status != 200 || got != want {
				t.Fatalf("unexpected answer %d %q, %v; want %q", status, got, err, want)
			}
		}
	}
	if b.Protocol() != HTTP1 || a.Streams() != 1 {
		t.Errorf("unexpected protocol %s, %d h2c connections", b.Protocol(), a.Streams())
	}
}

// What a worker speaks is looked at again when it comes back, and a change in
// between costs no request.
func TestProtocol_ChangesWithTheWorker(t *testing.T) {
	e := startH2(t, "127.0.0.1:0", "http1 h2c", mirror)
	addr := strings.TrimPrefix(e.url, "http://")
	p := poolOver(t, Auto, e.url)
	w := p.Workers()[0]
	waitFor(t, "h2c to be found", func() bool { return w.Protocol() == H2C })
	e.close(t)
	startH2(t, addr, "http1", mirror)
	var x Exchange
	if _, got, err := whole(&x, w, send("a")); err != nil || !strings.HasPrefix(got, "HTTP/1.1") {
		t.Fatalf("unexpected answer %q, %v, of a worker that speaks h2c no more", got, err)
	}
	if w.Protocol() != HTTP1 {
		t.Errorf("unexpected protocol %s", w.Protocol())
	}
	p.setHealthy(t.Context(), w, false)
	p.setHealthy(t.Context(), w, true)
	waitFor(t, "the look to end", func() bool { return p.Breaker(w) == BreakerClosed && w.Protocol() == HTTP1 })
}

func TestProtocol_H2COnly(t *testing.T) {
	e := startH2(t, "127.0.0.1:0", "h2c", mirror)
	p := poolOver(t, H2C, e.url)
	w := p.Workers()[0]
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			var x Exchange
			for range 20 {
				if _, got, err := whole(&x, w, send("a")); err != nil || !strings.HasPrefix(got, "HTTP/2.0") {
					t.Errorf("unexpected answer %q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if n := e.conns.Load(); n > 2 {
		t.Errorf("%d connections for 64 requests at once", n)
	}
	old := startH2(t, "127.0.0.1:0", "http1", mirror)
	p = poolOver(t, H2C, old.url)
	var x Exchange
	_, _, err := whole(&x, p.Workers()[0], send("a"))
	var e2 *Error
	if !errors.As(err, &e2) || e2.Fault != FaultConnect {
		t.Errorf("unexpected error %v of a worker that does not speak h2c", err)
	}
}

// B58: one stream ends, the others of the connection go on; the engine sees it
// at once.
func TestB58_CancelOverH2C(t *testing.T) {
	gone := make(chan struct{}, 8)
	next := make(chan struct{})
	e := startH2(t, "127.0.0.1:0", "h2c", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			gone <- struct{}{}
		case <-next:
			_, _ = io.WriteString(w, "two")
		}
	})
	p := poolOver(t, H2C, e.url)
	w := p.Workers()[0]
	var xs [3]Exchange
	for i := range xs {
		if err := xs[i].Do(w, send("a")); err != nil {
			t.Fatal(err)
		}
		if b, err := xs[i].Next(); err != nil || string(b) != "one" {
			t.Fatalf("unexpected piece %q, %v", b, err)
		}
	}
	ended := make(chan error)
	go func() {
		_, err := xs[0].Next()
		ended <- err
	}()
	xs[0].Cancel()
	var f *Error
	if err := <-ended; !errors.As(err, &f) || f.Fault != FaultCanceled {
		t.Errorf("unexpected error %v", err)
	}
	xs[0].Close()
	xs[1].Close() // an answer that nobody wants to its end
	<-gone
	<-gone
	close(next)
	if b, err := xs[2].Next(); err != nil || !bytes.Equal(b, []byte("two")) {
		t.Errorf("unexpected piece %q, %v, of the stream that stays", b, err)
	}
	xs[2].Close()
	if e.conns.Load() != 1 {
		t.Errorf("unexpected number of connections %d", e.conns.Load())
	}
}

func TestProtocol_FaultsOverH2C(t *testing.T) {
	e := startH2(t, "127.0.0.1:0", "h2c", func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Do") {
		case "silence":
			<-r.Context().Done()
		case "pause":
			_, _ = io.WriteString(w, "one")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "break":
			_, _ = io.WriteString(w, "one")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "abort":
			panic(http.ErrAbortHandler)
		}
	})
	p := poolOver(t, H2C, e.url)
	w := p.Workers()[0]
	f := func(do string, limits Timeouts, want Fault) {
		t.Helper()
		w.timeouts = limits
		w.timeouts.Connect = patience
		req := send("a")
		req.Fields = append(req.Fields, h1.Field{Name: []byte("Do"), Value: []byte(do)})
		var x Exchange
		_, _, err := whole(&x, w, req)
		var e *Error
		if !errors.As(err, &e) || e.Fault != want {
			t.Errorf("%s: unexpected error %v; want %v", do, err, want)
		}
	}
	const short = 30 * time.Millisecond
	f("silence", Timeouts{FirstByte: short}, FaultFirstByte)
	f("silence", Timeouts{Total: short}, FaultTotal)
	f("pause", Timeouts{BetweenEvents: short}, FaultBetween)
	f("pause", Timeouts{BetweenEvents: patience, Total: 2 * short}, FaultTotal)
	f("break", Timeouts{}, FaultIncomplete)
	f("abort", Timeouts{}, FaultClosed)
	if w.Load() != 0 {
		t.Errorf("unexpected load %d", w.Load())
	}
}

// B56: a worker that leaves finishes what it has begun; the next request goes
// over a new connection.
func TestB56_GracefulRestartOverH2C(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Do") == "wait" {
			close(begun)
			<-finish
		}
		mirror(w, r)
	}
	e := startH2(t, "127.0.0.1:0", "h2c", handler)
	addr := strings.TrimPrefix(e.url, "http://")
	p := poolOver(t, H2C, e.url)
	w := p.Workers()[0]
	first := make(chan error, 1)
	go func() {
		req := send("a")
		req.Fields = append(req.Fields, h1.Field{Name: []byte("Do"), Value: []byte("wait")})
		var x Exchange
		_, got, err := whole(&x, w, req)
		if err == nil && !strings.HasPrefix(got, "HTTP/2.0") {
			err = errors.New(got)
		}
		first <- err
	}()
	<-begun
	shut := make(chan error, 1)
	go func() { shut <- e.server.Shutdown(context.Background()) }()
	waitFor(t, "GOAWAY to arrive", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.h2conns) == 0 || w.h2conns[0].GoingAway()
	})
	startH2(t, addr, "h2c", handler)
	var x Exchange
	if _, got, err := whole(&x, w, send("b")); err != nil || !strings.HasPrefix(got, "HTTP/2.0") {
		t.Errorf("unexpected answer %q, %v, while the worker restarts", got, err)
	}
	close(finish)
	if err := <-first; err != nil {
		t.Errorf("the request that had begun failed: %v", err)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
}

// A worker that allows no streams at all is one that cannot be reached, not one
// to make connections to for ever.
func TestProtocol_WorkerWithoutStreams(t *testing.T) {
	e := play(t, func(p *peer) {
		settings := []byte{0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0} // MAX_CONCURRENT_STREAMS 0
		p.send(string(settings), string([]byte{0, 0, 0, 4, 1, 0, 0, 0, 0}))
		p.wait()
	})
	w := poolOver(t, H2C, e.url).Workers()[0]
	w.timeouts.Total = time.Second // ends the test where it does not end by itself
	var x Exchange
	ended := make(chan error, 1)
	go func() {
		_, _, err := whole(&x, w, send("a"))
		ended <- err
	}()
	select {
	case err := <-ended:
		var f *Error
		if !errors.As(err, &f) || f.Fault != FaultConnect {
			t.Errorf("unexpected error %v", err)
		}
	case <-time.After(5 * time.Second):
		x.Cancel()
		t.Errorf("still making connections, %d so far: %v", e.accepted.Load(), <-ended)
	}
}

// Of the connections that a worker has no more use for one is kept.
func TestProtocol_KeepsOneSpareConnection(t *testing.T) {
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	e := startH2(t, "127.0.0.1:0", "h2c", func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-finish
		mirror(w, r)
	})
	e.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1}
	w := poolOver(t, H2C, e.url).Workers()[0]
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			var x Exchange
			_, _, err := whole(&x, w, send("a"))
			ended <- err
		}()
		<-begun
	}
	w.reapH2()
	if n := w.Streams(); n != 2 {
		t.Errorf("unexpected number of connections in use; got %d; want 2", n)
	}
	close(finish)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	w.reapH2()
	if n := w.Streams(); n != 1 {
		t.Errorf("unexpected number of idle connections; got %d; want 1", n)
	}
}
