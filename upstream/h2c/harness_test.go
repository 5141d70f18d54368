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
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/upstream/h1"
)

// patience bounds what a test waits for; no test depends on its value.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if env := os.Getenv(answererEnv); env != "" {
		if err := serveAnswerer(env); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serve runs handler in net/http's server, with prior knowledge, and returns its address.
func serve(tb testing.TB, handler http.HandlerFunc, change ...func(*http.Server)) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	srv.Protocols.SetUnencryptedHTTP2(true)
	for _, f := range change {
		f(srv)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	tb.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return ln.Addr().String()
}

// dial connects to addr; the connection is closed with the test.
func dial(tb testing.TB, addr string, cfg Config) *Conn {
	tb.Helper()
	nc, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := NewConn(nc, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func reserve(tb testing.TB, c *Conn) *Stream {
	tb.Helper()
	s, ok := c.Reserve()
	if !ok {
		tb.Fatalf("unexpected refusal of a stream; %d are in flight, the connection says %v", c.InFlight(), c.Err())
	}
	s.SetDeadline(time.Now().Add(patience))
	return s
}

func get(path string) *Request {
	return &Request{
		Method: []byte("GET"), Scheme: []byte("http"), Authority: []byte("worker:80"), Path: []byte(path),
		Fields: []h1.Field{{Name: []byte("Accept"), Value: []byte("*/*")}}, Length: -1,
	}
}

func post(body ...string) *Request {
	r := get("/v1/chat/completions")
	r.Method, r.Length = []byte("POST"), 0
	r.Fields = append(r.Fields, h1.Field{Name: []byte("Content-Type"), Value: []byte("application/json")})
	for _, b := range body {
		r.Body = append(r.Body, []byte(b))
		r.Length += int64(len(b))
	}
	return r
}

// readAll reads the body to its end.
func readAll(s *Stream) (string, error) {
	var b strings.Builder
	for {
		p, err := s.Next()
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
func do(tb testing.TB, c *Conn, r *Request) (status int, body string, err error) {
	tb.Helper()
	s := reserve(tb, c)
	defer s.Close()
	if err := s.Do(r); err != nil {
		return 0, "", err
	}
	body, err = readAll(s)
	return s.Status(), body, err
}

// mustDo runs an exchange that must be answered with body.
func mustDo(tb testing.TB, c *Conn, r *Request, want string) {
	tb.Helper()
	status, body, err := do(tb, c, r)
	if err != nil || status != 200 || body != want {
		tb.Fatalf("unexpected answer; got %d, %d bytes %.80q, %v; want 200, %d bytes %.80q", status, len(body), body, err, len(want), want)
	}
}

func wantError(tb testing.TB, err error, fault Fault) *Error {
	tb.Helper()
	var e *Error
	if !errors.As(err, &e) {
		tb.Fatalf("unexpected error; got %v; want %q", err, fault)
	}
	if e.Fault != fault {
		tb.Fatalf("unexpected fault; got %q (%v); want %q", e.Fault, err, fault)
	}
	return e
}

// eventually waits for what another goroutine or the kernel is about to do.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("it never came: %s", what)
		}
	}
}
