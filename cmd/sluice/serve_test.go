package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is a bytes.Buffer for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a verb that runs beside its test.
type running struct {
	stderr    lockedBuffer
	stop, now context.CancelFunc
	hup       chan os.Signal
	code      chan int
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{code: make(chan int, 1)}
	p := &process{args: args, stdout: io.Discard, stderr: &r.stderr}
	p.stop, r.stop = context.WithCancel(context.Background())
	p.now, r.now = context.WithCancel(context.Background())
	t.Cleanup(func() { r.stop(); r.now() })
	go func() { r.code <- run(p) }()
	return r
}

// serving waits for the log line that tells the addresses.
func (r *running) serving(t *testing.T) (listen, admin string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(r.stderr.String()) {
			var entry struct{ Msg, Listen, Admin string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				return entry.Listen, entry.Admin
			}
		}
	}
	t.Fatalf("the router does not serve: %s", r.stderr.String())
	return "", ""
}

func (r *running) exit(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.code:
		return code
	case <-time.After(10 * time.Second):
		t.Fatalf("still running: %s", r.stderr.String())
		return 0
	}
}

var anyPort = []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}

func TestServe(t *testing.T) {
	r := start(t, append(anyPort, "--override-sampling-params", `{"temperature":1}`, "--set", "sim.pace=1ms")...)
	listen, _ := r.serving(t)
	resp, err := http.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"sim","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), `"model":"sim-8b"`) {
		t.Fatalf("unexpected answer %d %s, %v", resp.StatusCode, b, err)
	}
	resp, err = http.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"sim","temperature":0,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 400 || resp.Header.Get("x-router-error-code") != "sampling_contract_violation" {
		t.Errorf("unexpected answer %d %v", resp.StatusCode, resp.Header)
	}
	http.DefaultClient.CloseIdleConnections()
	r.stop()
	if code := r.exit(t); code != exitOK {
		t.Errorf("unexpected exit code %d: %s", code, r.stderr.String())
	}
	if log := r.stderr.String(); strings.Count(log, `"msg":"request"`) != 2 || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log lacks lines: %s", log)
	}
}

// The second signal ends what the first one would wait for.
func TestServeSecondSignal(t *testing.T) {
	r := start(t, append(anyPort, "--set", "sim.words=5000", "--drain", "1h")...)
	listen, _ := r.serving(t)
	resp, err := http.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"sim","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r.stop()
	ended := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(resp.Body) // the end is looked at below
		ended <- string(b)
	}()
	select {
	case code := <-r.code:
		t.Fatalf("exit code %d while a stream runs", code)
	case <-time.After(200 * time.Millisecond):
	}
	r.now()
	if code := r.exit(t); code != exitOK {
		t.Errorf("unexpected exit code %d", code)
	}
	if b := <-ended; !strings.Contains(b, "the router is shutting down") {
		t.Errorf("unexpected end of the stream %q", b[max(0, len(b)-200):])
	}
}

func TestServeExitCodes(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("server:\n  lisen: x\nsampling_contract: {params: {temperature: 3}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = used.Close() }()
	f := func(code int, want string, args ...string) {
		t.Helper()
		r := start(t, args...)
		if got := r.exit(t); got != code || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("%q: unexpected exit code %d; want %d, and %q in %s", args, got, code, want, r.stderr.String())
		}
	}
	f(exitUsage, "bad.yaml:2:3", "serve", "--config", bad)
	f(exitUsage, "bad.yaml:3", "serve", "--config", bad)
	f(exitUsage, "no-such-file", "serve", "--config", "no-such-file.yaml")
	f(exitUsage, "--sampling-param-conflict", "serve", "--sampling-param-conflict", "allow")
	f(exitUsage, "temperature", "serve", "--override-sampling-params", `{"temperature":3}`)
	f(exitUsage, "is empty", "serve", "--override-sampling-params", "")
	f(exitUsage, "flag provided but not defined", "serve", "--nonsense")
	f(exitUsage, "unexpected argument", "serve", "nonsense")
	f(exitUsage, "unknown verb", "nonsense")
	f(exitUsage, "usage:")
	f(exitOK, "usage: sluice serve", "serve", "-h")
	f(exitOK, "", "version")
	f(exitFailed, "address already in use", "serve", "--listen", used.Addr().String(), "--admin-listen", "127.0.0.1:0")
}
