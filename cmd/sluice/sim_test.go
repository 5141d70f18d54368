package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestSim starts two engines, asks each and interrupts them.
func TestSim(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, in := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--count", "2", "--model", "a", "--model", "b", "--engine", "sglang", "--text", "hi"}
		code <- runSim(&process{args: args, stdout: in, stderr: &stderr, stop: ctx})
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	var urls []string
	for len(urls) < 2 && lines.Scan() {
		urls = append(urls, lines.Text())
	}
	if len(urls) != 2 || urls[0] == urls[1] {
		t.Fatalf("unexpected URLs %q; stderr %s", urls, stderr.String())
	}
	for _, url := range urls {
		resp, err := http.Post(url+"/generate", "application/json", strings.NewReader(`{"text":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(string(body), `{"text":"hi"`) {
			t.Errorf("unexpected answer of %s; got %d %s, %v", url, resp.StatusCode, body, err)
		}
	}
	cancel()
	if got := <-code; got != 0 || stderr.Len() > 0 {
		t.Errorf("unexpected end; got %d, %q; want 0", got, stderr.String())
	}
}

func TestSim_Errors(t *testing.T) {
	f := func(code int, message string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if got := runSim(&process{args: args, stdout: &stdout, stderr: &stderr, stop: ctx}); got != code || !strings.Contains(stderr.String(), message) {
			t.Errorf("unexpected end of %q; got %d, %q; want %d, %q", args, got, stderr.String(), code, message)
		}
	}
	f(0, "x-sim-ttfb", "-h")
	f(2, "not defined", "--bogus")
	f(2, `unexpected argument "x"`, "x")
	f(2, "--count must be", "--count", "0")
	f(2, "--jitter must be", "--jitter", "2")
	f(2, "--fail-rate must be", "--fail-rate", "NaN")
	f(2, "unknown engine", "--engine", "bogus")
	f(2, "unknown protocol", "--protocol", "h3")
	f(2, "unknown kind", "--fail", "boom")
	f(1, "cannot read --listen", "--listen", "nowhere")
	f(1, "cannot read --listen", "--listen", "127.0.0.1:http")
	f(1, "cannot listen", "--listen", "127.0.0.1:0", "--count", "1", "--listen", "256.0.0.1:1")
}

func TestNextAddr(t *testing.T) {
	f := func(listen string, i int, want string) {
		t.Helper()
		got, err := nextAddr(listen, i)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("unexpected address after %s; got %q, %v; want %q", listen, got, err, want)
		}
	}
	f("127.0.0.1:8000", 0, "127.0.0.1:8000")
	f("127.0.0.1:8000", 2, "127.0.0.1:8002")
	f("[::1]:0", 2, "[::1]:0")
	f("127.0.0.1:65535", 1, "")
}
