package router

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// scripted is a worker that reads each request whole and answers the same raw
// bytes. It closes the connection when they say so or after it has called more.
func scripted(t *testing.T, answer string, more ...func(net.Conn)) (url string) {
	t.Helper()
	l := listen(t)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
					for _, f := range more {
						f(c)
					}
					if len(more) > 0 || strings.Contains(answer, "Connection: close") || strings.HasPrefix(answer, "HTTP/1.0") {
						return
					}
				}
			})
		}
	})
	return "http://" + l.Addr().String()
}

// B29: status, type and bytes of a worker's error pass through.
func TestB29_WorkerErrorsPass(t *testing.T) {
	for _, e := range []struct{ status, contentType, body string }{
		{"400", "text/plain", "bad"},
		{"502", "text/html; charset=utf-8", "<html>bad gateway</html>"},
		{"500", "application/json", ""},
		{"400", "application/json", `{"error":"str"}`},
		{"404", "application/json", `{"detail":"Not Found"}`},
		{"400", "application/json", `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`},
	} {
		answer := "HTTP/1.1 " + e.status + " X\r\nContent-Type: " + e.contentType + "\r\nX-A: 1\r\nConnection: X-A\r\nContent-Length: " + itoa(len(e.body)) + "\r\n\r\n" + e.body
		s := startRouter(t, scripted(t, answer), nil)
		for _, stream := range []string{"false", "true"} {
			r := s.chat(`{"model":"sim-8b","stream":` + stream + `}`)
			if itoa(r.status) != e.status || r.header.Get("Content-Type") != e.contentType || r.body != e.body {
				t.Errorf("stream %s: unexpected answer %d %q %q; want %+v", stream, r.status, r.header.Get("Content-Type"), r.body, e)
			}
			if r.header.Get("X-A") != "" || r.header.Get(headerErrorCode) != "" {
				t.Errorf("unexpected header %v", r.header)
			}
		}
	}
}

// Connection fields of the worker name what stays, each of them, and what the
// router says of itself is the router's alone.
func TestB60_WorkerFieldsThatStay(t *testing.T) {
	s := startRouter(t, scripted(t, "HTTP/1.1 200 OK\r\nConnection: X-S1\r\nConnection: keep-alive, X-S2\r\nX-S1: 1\r\nX-S2: 2\r\nX-S3: 3\r\n"+
		"Keep-Alive: timeout=5\r\nX-Router-Error-Code: bad_request\r\nX-Request-Id: other\r\nContent-Length: 2\r\n\r\n{}"), nil)
	r := s.chat(chatBody, "X-Request-Id: mine")
	for _, name := range []string{"X-S1", "X-S2", "Keep-Alive", headerErrorCode} {
		if v := r.header.Get(name); v != "" {
			t.Errorf("%s: %s reached the client", name, v)
		}
	}
	if r.header.Get("X-S3") != "3" || r.header.Get("X-Request-Id") != "mine" || len(r.header["X-Request-Id"]) != 1 {
		t.Errorf("unexpected header %v", r.header)
	}
}

// A worker that is none is a clear 502, whatever it does, and its address and
// words stay with the operator.
func TestWorkerFaults(t *testing.T) {
	for name, answer := range map[string]string{
		"closes":           "",
		"garbage":          "\x15\x03\x01\x00\x02\x02\x16",
		"other protocol":   "SSH-2.0-OpenSSH_9.2\r\n",
		"half a head":      "HTTP/1.1 200 OK\r\nContent-Ty",
		"no status":        "HTTP/1.1\r\n\r\n",
		"CL and TE":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{}",
		"two CL":           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n{}",
		"unknown coding":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n\r\n{}",
		"switches":         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: close\r\n\r\n",
		"endless head":     "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 100<<10) + "\r\nConnection: close\r\n\r\n",
		"large too short":  "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n{}",
		"body too short":   "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 20\r\n\r\n{}",
		"chunks too short": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			url := scripted(t, answer, func(net.Conn) {})
			s := startRouter(t, url, nil)
			if name == "chunks too short" {
				// The head was sent before the end could be known.
				c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
				b, err := io.ReadAll(c.r)
				if err != nil || strings.HasSuffix(string(b), "0\r\n\r\n") {
					t.Errorf("a broken body looks whole: %q (%v)", b, err)
				}
				return
			}
			r := s.chat(chatBody)
			code := r.header.Get(headerErrorCode)
			if r.status != 502 || (code != "upstream_unreachable" && code != "upstream_body_incomplete") {
				t.Errorf("unexpected answer %d %s", r.status, r.body)
			}
			if strings.Contains(r.body, strings.TrimPrefix(url, "http://")) || strings.Contains(r.body, "127.0.0.1") {
				t.Errorf("the worker's address reached the client: %s", r.body)
			}
			if w := s.router.snap.Load().pools[0].up.Workers()[0]; w.Load() != 0 || w.Failures() == 0 {
				t.Errorf("unexpected load %d, failures %d", w.Load(), w.Failures())
			}
			if !strings.Contains(s.access.String(), url) {
				t.Errorf("the access log does not name the worker: %s", s.access.String())
			}
		})
	}
}

func TestWorkerRefusesConnections(t *testing.T) {
	l := listen(t)
	url := "http://" + l.Addr().String()
	_ = l.Close()
	s := startRouter(t, url, nil)
	for _, g := range generation {
		r := s.send("POST", g.path, g.body)
		if r.status != 502 || r.header.Get(headerErrorCode) != "upstream_unreachable" {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		if anthropic := strings.HasPrefix(r.body, `{"type":"error"`); anthropic != (g.path == "/v1/messages") {
			t.Errorf("%s: unexpected shape %s", g.path, r.body)
		}
	}
}

// Answers of every framing and size arrive whole.
func TestAnswerFraming(t *testing.T) {
	for _, size := range []int{0, 1, 16 << 10, 64 << 10, 64<<10 + 1, 1 << 20} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		chunks := ""
		for rest := body; rest != ""; {
			n := min(len(rest), 30001)
			chunks += strconv.FormatInt(int64(n), 16) + "\r\n" + rest[:n] + "\r\n"
			rest = rest[n:]
		}
		for name, answer := range map[string]string{
			"length":  "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: " + itoa(size) + "\r\n\r\n" + body,
			"chunked": "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\nX-T: 1\r\n\r\n",
			"eof":     "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nConnection: close\r\n\r\n" + body,
			"old":     "HTTP/1.0 200 OK\r\nContent-Type: text/x\r\n\r\n" + body,
		} {
			s := startRouter(t, scripted(t, answer), nil)
			for range 2 {
				if r := s.chat(chatBody); r.status != 200 || r.body != body || r.header.Get("Content-Type") != "text/x" {
					t.Errorf("%s of %d: unexpected answer %d with %d bytes", name, size, r.status, len(r.body))
				}
			}
			// An HTTP/1.0 client gets the same, ended by the connection if need be.
			c := s.dial().write("POST /v1/chat/completions HTTP/1.0\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
			b, err := io.ReadAll(c.r)
			if head, got, _ := strings.Cut(string(b), "\r\n\r\n"); err != nil || got != body || strings.Contains(head, "chunked") {
				t.Errorf("%s of %d to HTTP/1.0: head %q, %d bytes, %v", name, size, head, len(got), err)
			}
		}
	}
}
