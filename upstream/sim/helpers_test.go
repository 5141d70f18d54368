package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience bounds what a test waits for; no test depends on its value.
const patience = 10 * time.Second

// start serves an engine with the options until the test ends.
func start(t *testing.T, o Options) *Engine {
	t.Helper()
	e := New(o)
	if _, err := e.Start("127.0.0.1:0"); err != nil {
		t.Fatalf("cannot start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	return e
}

// client returns a client that speaks only the protocol.
func client(t *testing.T, p Protocol) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: p.protocols(), DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// onBoth runs f as a subtest for each protocol.
func onBoth(t *testing.T, f func(t *testing.T, c *http.Client)) {
	t.Helper()
	for _, p := range []Protocol{HTTP1, H2C} {
		t.Run(string(p), func(t *testing.T) { f(t, client(t, p)) })
	}
}

// request makes a request with pairs of header names and values. It is cancelled
// when the test ends.
func request(t *testing.T, method, url, body string, header ...string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	proto  string
	body   []byte
}

// do sends a request and reads the whole answer.
func do(t *testing.T, c *http.Client, r *http.Request) answer {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatalf("cannot %s %s: %v", r.Method, r.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("cannot read the answer of %s %s: %v", r.Method, r.URL, err)
	}
	return answer{resp.StatusCode, resp.Header, resp.Proto, body}
}

// post200 sends a JSON body and reads the whole answer.
func post200(t *testing.T, c *http.Client, url, body string, header ...string) answer {
	t.Helper()
	a := do(t, c, request(t, "POST", url, body, header...))
	if a.status != http.StatusOK {
		t.Fatalf("unexpected status of %s; got %d; want 200; body %s", url, a.status, a.body)
	}
	return a
}

// read decodes a JSON answer into a tree.
func read(t *testing.T, body []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("cannot read %q: %v", body, err)
	}
	return v
}

// at returns the value at a path of member names and indexes.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no object at %v in %v", path, v)
			}
			if v, ok = m[step]; !ok {
				t.Fatalf("no member %q of %v in %v", step, path, m)
			}
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				t.Fatalf("no item %d of %v in %v", step, path, v)
			}
			v = l[step]
		}
	}
	return v
}

// sse is one event.
type sse struct{ name, data string }

// events takes a stream apart that is framed as the engine does it.
func events(t *testing.T, body []byte) []sse {
	t.Helper()
	if !bytes.HasSuffix(body, []byte("\n\n")) {
		t.Fatalf("the stream does not end with an event: %q", body)
	}
	var list []sse
	for block := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
		var e sse
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = v
			} else if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = v
			} else {
				t.Fatalf("unexpected line %q", line)
			}
		}
		list = append(list, e)
	}
	return list
}

// wantEqual compares two values of a decoded tree.
func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("unexpected %s; got %#v; want %#v", what, got, want)
	}
}
