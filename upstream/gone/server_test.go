package gone

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// startServer runs fasthttp on a watched listener. Its handler answers with the
// length of the body, its error handler 400 for a bare LF and 500 for all else.
func startServer(t *testing.T, streamed bool) (b *testbed, addr string) {
	t.Helper()
	b = newTestbed(t, newNotifier)
	s := &fasthttp.Server{
		ConnState:         ConnState,
		StreamRequestBody: streamed,
		ReadTimeout:       patience,
		Handler: func(ctx *fasthttp.RequestCtx) {
			n := 0
			if !streamed {
				n = len(ctx.Request.Body())
			}
			if body := ctx.RequestBodyStream(); body != nil {
				read, err := io.Copy(io.Discard, body)
				if err != nil {
					t.Errorf("cannot read a body: %v", err)
				}
				n = int(read)
			}
			if Of(ctx.Conn()) == nil {
				t.Error("no Conn")
			}
			fmt.Fprintf(ctx, "%d", n)
		},
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			ctx.SetStatusCode(500)
			if errors.Is(err, ErrBareLF) {
				ctx.SetStatusCode(400)
			}
		},
		Logger: discard{},
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(keepOpen{b.ln}) }()
	t.Cleanup(func() {
		must(t, s.Shutdown())
		must(t, <-served)
		eventually(t, "connections closed", func() bool { return b.w.count() == 0 })
	})
	return b, b.ln.Addr().String()
}

type discard struct{}

func (discard) Printf(string, ...any) {}

// keepOpen leaves the second Close of the listener to the testbed.
type keepOpen struct{ net.Listener }

func (l keepOpen) Close() error {
	return l.Listener.(*listener).Listener.(*net.TCPListener).SetDeadline(time.Unix(1, 0))
}

func (l keepOpen) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, io.EOF
	}
	return c, nil
}

func post(body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// expect reads an answer.
func expect(t *testing.T, br *bufio.Reader, status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatalf("cannot read an answer: %v", err)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || string(got) != body {
		t.Fatalf("unexpected answer; got %d %q, %v; want %d %q", resp.StatusCode, got, err, status, body)
	}
}

func expectEnd(t *testing.T, br *bufio.Reader) {
	t.Helper()
	if n, err := io.Copy(io.Discard, br); n != 0 || err != nil {
		t.Fatalf("unexpected end; got %d bytes, %v", n, err)
	}
}

func TestConnState_BareLFIsRefused(t *testing.T) {
	pretty := "{\n  \"a\": 1\n}\n\n"
	const bad = "POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n"
	for _, streamed := range []bool{false, true} {
		t.Run(fmt.Sprintf("streamed=%v", streamed), func(t *testing.T) {
			b, addr := startServer(t, streamed)
			connect := func() (net.Conn, *bufio.Reader) {
				c, err := net.Dial("tcp", addr)
				must(t, err)
				t.Cleanup(func() { _ = c.Close() })
				must(t, c.SetDeadline(time.Now().Add(patience)))
				return c, bufio.NewReader(c)
			}

			// As the first request, and behind others on the same connection.
			for _, before := range []int{0, 1, 3} {
				c, br := connect()
				for range before {
					write(t, c, post(pretty))
					expect(t, br, 200, fmt.Sprint(len(pretty)))
				}
				write(t, c, bad)
				expect(t, br, 400, "")
				expectEnd(t, br)
			}

			// In the middle of a head that ends as it should.
			c, br := connect()
			write(t, c, "POST / HTTP/1.1\r\nHost: a\r\nX: y\nZ: w\r\nContent-Length: 0\r\n\r\n")
			expect(t, br, 400, "")
			expectEnd(t, br)

			// Pipelined requests keep their line feeds, wherever they are cut.
			both := post(pretty) + post(pretty+pretty) + post("")
			for cut := range len(both) {
				c, br := connect()
				write(t, c, both[:cut])
				eventually(t, "first part read", b.allRead)
				write(t, c, both[cut:])
				expect(t, br, 200, fmt.Sprint(len(pretty)))
				expect(t, br, 200, fmt.Sprint(2*len(pretty)))
				expect(t, br, 200, "0")
				// And the guard is back for the next head.
				if cut == 0 || cut == len(post(pretty)) {
					write(t, c, bad)
					expect(t, br, 400, "")
				}
				must(t, c.Close())
			}

			// Chunked, and larger than any buffer.
			c, br = connect()
			big := strings.Repeat("\n", 300<<10)
			write(t, c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+
				fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(big), big))
			expect(t, br, 200, fmt.Sprint(len(big)))
			write(t, c, bad)
			expect(t, br, 400, "")
		})
	}
}

func TestConnState_IgnoresOthers(t *testing.T) {
	_, client := newTestbed(t, newNotifier).pair()
	ConnState(client, fasthttp.StateActive)
	ConnState(client, fasthttp.StateIdle)
}
