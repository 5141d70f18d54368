package sim

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

const streamBody = `{"prompt":"a","max_tokens":4,"stream":true}`

// partly sends a request that breaks off and returns what came before, and the
// error: of the request itself or of its body.
func partly(t *testing.T, c *http.Client, r *http.Request) (status int, body []byte, err error) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func TestFail_Status(t *testing.T) {
	e := start(t, Options{Fail: Failure{Kind: FailStatus, Status: 503, RetryAfter: "7", Body: "busy"}})
	onBoth(t, func(t *testing.T, c *http.Client) {
		a := do(t, c, request(t, "POST", e.URL()+"/v1/completions", streamBody))
		wantEqual(t, "status", a.status, 503)
		wantEqual(t, "Retry-After", a.header.Get("Retry-After"), "7")
		wantEqual(t, "body", string(a.body), "busy")
		a = do(t, c, request(t, "POST", e.URL()+"/v1/completions", streamBody, "x-sim-status", "429", "x-sim-retry-after", "1", "x-sim-body", "no"))
		wantEqual(t, "status by header", a.status, 429)
		wantEqual(t, "Retry-After by header", a.header.Get("Retry-After"), "1")
		wantEqual(t, "body by header", string(a.body), "no")
		post200(t, c, e.URL()+"/v1/completions", streamBody, "x-sim-fail", "none")
		wantEqual(t, "status of models", do(t, c, request(t, "GET", e.URL()+"/v1/models", "")).status, 200)
		wantEqual(t, "status of models by header", do(t, c, request(t, "GET", e.URL()+"/v1/models", "", "x-sim-status", "500")).status, 500)
	})
}

func TestFail_Reset(t *testing.T) {
	e := start(t, Options{Fail: Failure{Kind: FailReset}})
	onBoth(t, func(t *testing.T, c *http.Client) {
		status, _, err := partly(t, c, request(t, "POST", e.URL()+"/v1/completions", streamBody))
		if err == nil || status != 0 {
			t.Fatalf("unexpected answer; got %d, %v; want an error before the head", status, err)
		}
	})
	// The connection is gone before the count is there.
	waitFor(t, e, func(s Stats) bool { return s.Failed == 2 })
}

// TestFail_ResetIsRST looks at the socket: on HTTP/1.1 the engine sends RST.
func TestFail_ResetIsRST(t *testing.T) {
	e := start(t, Options{})
	conn := dial(t, e)
	send(t, conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Sim-Fail: reset\r\nContent-Length: 2\r\n\r\n{}")
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("unexpected end; got %v; want connection reset", err)
	}
}

func TestFail_Cut(t *testing.T) {
	e := start(t, Options{})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/completions"
		for _, fail := range []string{"cut=0", "cut=2"} {
			status, body, err := partly(t, c, request(t, "POST", url, streamBody, "x-sim-fail", fail))
			wantEqual(t, "status", status, 200)
			wantEqual(t, "events before "+fail, strings.Count(string(body), "\n\n"), int(fail[4]-'0'))
			if err == nil {
				t.Errorf("the stream of %s has ended in good order", fail)
			}
		}
		status, body, err := partly(t, c, request(t, "POST", url, `{"prompt":"a"}`, "x-sim-fail", "cut=10"))
		wantEqual(t, "status", status, 200)
		wantEqual(t, "bytes of a buffered answer", len(body), 10)
		if err == nil {
			t.Error("the buffered answer has ended in good order")
		}
	})
	wantEqual(t, "failed", e.Stats().Failed, 6)
}

func TestFail_Garbage(t *testing.T) {
	e := start(t, Options{Fail: Failure{Kind: FailGarbage}})
	onBoth(t, func(t *testing.T, c *http.Client) {
		status, _, err := partly(t, c, request(t, "POST", e.URL()+"/v1/completions", streamBody))
		if err == nil {
			t.Fatalf("unexpected answer; got %d; want an error", status)
		}
	})
	conn := dial(t, e)
	send(t, conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	b, err := io.ReadAll(conn)
	if err != nil || len(b) == 0 || strings.HasPrefix(string(b), "HTTP/") {
		t.Fatalf("unexpected bytes; got %q, %v; want garbage and EOF", b, err)
	}
}

func TestFail_SlowHead(t *testing.T) {
	e := start(t, Options{Fail: Failure{Kind: FailSlowHead, Pause: 1}, Words: 3})
	onBoth(t, func(t *testing.T, c *http.Client) {
		v := read(t, post200(t, c, e.URL()+"/v1/completions", `{"prompt":"a"}`).body)
		wantEqual(t, "text", at(t, v, "choices", 0, "text"), words(3, 0))
	})
}

func TestFail_ErrorEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, c *http.Client) {
		f := func(flavour Flavour, path, body, name string, last ...any) {
			t.Helper()
			e := start(t, Options{Flavour: flavour})
			list := events(t, post200(t, c, e.URL()+path, body, "x-sim-fail", "error=2").body)
			if list[len(list)-1].data == "[DONE]" {
				list = list[:len(list)-1]
			}
			wantEqual(t, "events of "+path, len(list), 3)
			wantEqual(t, "name of the error event of "+path, list[2].name, name)
			wantEqual(t, "message of "+path, at(t, read(t, []byte(list[2].data)), last...), simulatedFault)
			a := do(t, c, request(t, "POST", e.URL()+path, strings.Replace(body, "true", "false", 1), "x-sim-fail", "error=2"))
			wantEqual(t, "status of buffered "+path, a.status, 500)
			wantEqual(t, "completed", e.Stats().Completed, 2)
		}
		f(VLLM, "/v1/completions", streamBody, "", "error", "message")
		f(SGLang, "/v1/completions", streamBody, "", "error", "message")
		f(SGLang, "/generate", `{"text":"a","stream":true}`, "", "error", "message")
		f(VLLM, "/v1/responses", `{"input":"a","stream":true}`, "error", "message")
		f(VLLM, "/v1/messages", `{"model":"m","max_tokens":9,"messages":[],"stream":true}`, "error", "error", "message")
	})
}

func TestFail_EveryAndRate(t *testing.T) {
	count := func(o Options) (failed string) {
		e := New(o)
		for n := range uint64(12) {
			p, err := newPlan(e.opts.Load(), n+1, http.Header{})
			if err != nil {
				t.Fatal(err)
			}
			failed += map[bool]string{true: "x", false: "."}[p.Fail.Kind != FailNone]
		}
		return failed
	}
	fail := Failure{Kind: FailReset}
	wantEqual(t, "every", count(Options{Fail: fail}), "xxxxxxxxxxxx")
	wantEqual(t, "every third", count(Options{Fail: fail, FailEvery: 3}), "..x..x..x..x")
	half := count(Options{Fail: fail, FailRate: 0.5, Seed: 1})
	if n := strings.Count(half, "x"); n == 0 || n == 12 {
		t.Errorf("unexpected failures at half rate; got %s", half)
	}
	wantEqual(t, "half again", count(Options{Fail: fail, FailRate: 0.5, Seed: 1, Jitter: 0.5}), half)
	if other := count(Options{Fail: fail, FailRate: 0.5, Seed: 2}); other == half {
		t.Errorf("another seed lets the same requests fail: %s", other)
	}
}

func TestFail_Text(t *testing.T) {
	for _, s := range []string{"none", "status=503", "reset", "cut=3", "silence", "garbage", "slow-head=10ms", "error=0"} {
		var f Failure
		if err := f.UnmarshalText([]byte(s)); err != nil {
			t.Errorf("cannot read %q: %v", s, err)
			continue
		}
		text, err := f.MarshalText()
		if err != nil || string(text) != s {
			t.Errorf("unexpected text; got %q, %v; want %q", text, err, s)
		}
	}
	for _, s := range []string{"boom", "status", "status=99", "status=x", "cut", "cut=-1", "reset=1", "slow-head=3", "error=x"} {
		if err := new(Failure).UnmarshalText([]byte(s)); err == nil {
			t.Errorf("%q was read as a failure", s)
		}
	}
}

// dial opens a connection to the engine that is closed when the test ends.
func dial(t *testing.T, e *Engine) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(e.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(conn, s); err != nil {
		t.Fatal(err)
	}
}

// receive reads one answer from the connection.
func receive(t *testing.T, conn *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.Proto, body}
}
