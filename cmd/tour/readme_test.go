package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/configs"
	"sluice/router"
	"sluice/upstream/sim"
)

const (
	readmeChat    = `{"model":"llama-70b","messages":[{"role":"user","content":"Hi"}]}`
	readmeStream  = `{"model":"llama-70b","stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	readmeRefused = `{"model":"llama-70b","temperature":0.5,"messages":[{"role":"user","content":"Hi"}]}`
)

// TestReadme serves with the README's configuration and holds what it shows
// against what a router does.
func TestReadme(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	data, admin, access := serveReadme(t, block(t, readme, "yaml"))

	if !strings.Contains(readme, readmeChat) {
		t.Errorf("the README lacks the request %s", readmeChat)
	}
	if status, body := post(t, data, readmeChat); status != http.StatusOK {
		t.Errorf("unexpected answer to the README's request: %d %s", status, body)
	}
	status, body := post(t, data, readmeRefused)
	if want := block(t, readme, "json"); status != http.StatusBadRequest || body != want {
		t.Errorf("unexpected refusal; got %d %s; want 400 %s", status, body, want)
	}
	if status, body := post(t, data, readmeStream); status != http.StatusOK || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("unexpected answer to a stream: %d %q", status, body)
	}
	// The line of a stream is written after its last byte.
	for end := time.Now().Add(10 * time.Second); !strings.Contains(access.String(), "ttft_us"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no access log line with ttft_us: %s", access)
		}
	}
	listed := metricNames(readme)
	for _, name := range elsewhere {
		if !listed[name] {
			t.Errorf("the README lacks the metric %s", name)
		}
		delete(listed, name)
	}
	same(t, "metrics", listed, exported(t, admin))
	for line := range strings.Lines(access.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		for name := range fields {
			if !strings.Contains(readme, "`"+name+"`") {
				t.Errorf("the README lacks the access log field %s", name)
			}
		}
	}
}

// elsewhere are metrics of what the README's configuration does not have: TLS and
// discovery. The tests of the router look for them.
var elsewhere = []string{"sluice_tls_certificate_expiry_timestamp_seconds", "sluice_discovery_failures_total"}

// block returns the only fenced block of the README in the given language.
func block(t *testing.T, readme, language string) string {
	t.Helper()
	parts := strings.Split(readme, "```"+language+"\n")
	if len(parts) != 2 {
		t.Fatalf("the README has %d %s blocks; want 1", len(parts)-1, language)
	}
	text, _, ok := strings.Cut(parts[1], "\n```")
	if !ok {
		t.Fatalf("the %s block of the README has no end", language)
	}
	return text
}

// serveReadme serves text, with a simulated engine in the place of the workers.
func serveReadme(t *testing.T, text string) (data, admin string, access *safeBuffer) {
	t.Helper()
	e := sim.New(sim.Options{Models: []string{"meta-llama/Llama-3.1-70B-Instruct"}})
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := configs.Load(configs.Options{Files: []string{file}}); err != nil {
		t.Fatalf("the README's configuration is wrong:\n%v", err)
	}
	cfg, err := configs.Load(configs.Options{Files: []string{file}, Flags: []configs.Override{
		{Flag: "--set", Path: "pools.llama.workers", Value: `[{"url":"` + url + `"}]`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	access = &safeBuffer{}
	r, err := router.New(cfg, router.Options{Access: slog.NewJSONHandler(access, nil)})
	if err != nil {
		t.Fatal(err)
	}
	ld, la := listen(t), listen(t)
	served := make(chan error, 1)
	go func() { served <- r.Serve(ld, la) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("cannot shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("unexpected error of Serve: %v", err)
		}
		if err := e.Close(ctx); err != nil {
			t.Errorf("cannot close the engine: %v", err)
		}
	})
	return ld.Addr().String(), la.Addr().String(), access
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client keeps no connections, which a shutdown would wait for.
var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func post(t *testing.T, addr, body string) (status int, answer string) {
	t.Helper()
	resp, err := client.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, readAll(t, resp.Body)
}

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer func() { _ = r.Close() }() // it was read to its end
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var metricName = regexp.MustCompile(`sluice_[a-z0-9_]+`)

// metricNames returns the metrics that the README lists. A name that begins
// with an ellipsis continues the first one of its table row.
func metricNames(readme string) map[string]bool {
	names := map[string]bool{}
	more := regexp.MustCompile(`…(_[a-z0-9_]+)`)
	for line := range strings.Lines(readme) {
		full := metricName.FindAllString(line, -1)
		for _, name := range full {
			names[name] = true
		}
		for _, m := range more.FindAllStringSubmatch(line, -1) {
			prefix, _, _ := strings.Cut(strings.TrimPrefix(full[0], "sluice_"), "_")
			names["sluice_"+prefix+m[1]] = true
		}
	}
	return names
}

// exported returns the metrics of a router that has had a request of each kind.
func exported(t *testing.T, admin string) map[string]bool {
	t.Helper()
	resp, err := client.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(readAll(t, resp.Body)) {
		name := metricName.FindString(line)
		if name == "" || !strings.HasPrefix(line, name) {
			continue
		}
		if base, ok := strings.CutSuffix(name, "_bucket"); ok {
			names[base] = true
		} else if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			names[name] = true
		}
	}
	return names
}

func same(t *testing.T, what string, got, want map[string]bool) {
	t.Helper()
	g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))
	if !slices.Equal(g, w) {
		t.Errorf("the README lists other %s than there are; got\n%s\nwant\n%s", what, strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

// safeBuffer is a bytes.Buffer for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns what was written so far.
func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
