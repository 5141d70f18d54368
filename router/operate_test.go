package router

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// B84: labels come from the configuration, whatever clients send.
func TestB84_LabelsAreBounded(t *testing.T) {
	s := startStand(t, nil)
	s.chat(chatBody)
	series := func() int {
		resp, err := s.client.Get("http://" + s.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "sluice_") {
				n++
			}
		}
		return n
	}
	round := func(i int) {
		s.chat(fmt.Sprintf(`{"model":"m%d","messages":[]}`, i), fmt.Sprintf("Authorization: Bearer k%d", i))
		s.send("POST", fmt.Sprintf("/p%d", i), "{}")
		s.send(fmt.Sprintf("M%d", i), "/v1/chat/completions", "{}")
		s.chat(chatBody, "x-sim-status: 429")
	}
	round(0)
	before := series()
	for i := 1; i < 2500; i++ {
		round(i)
	}
	if after := series(); after != before {
		t.Errorf("unexpected growth of the metrics from %d series to %d", before, after)
	}
}

// Every violated parameter is counted, the client is told the first.
func TestContractCounters(t *testing.T) {
	params := map[string]any{"temperature": 1, "top_p": map[string]any{"min": 0.9, "max": 1.0}, "n": 1}
	const body = `{"model":"sim-8b","n":2,"top_p":0.1,"temperature":0.5,"messages":[]}`
	f := func(mode, kind string, params map[string]any, status int) {
		t.Helper()
		s := startStand(t, contract(mode, params))
		r := s.chat(body)
		if r.status != status {
			t.Fatalf("%s: unexpected answer %d %s", mode, r.status, r.body)
		}
		if status == 400 && (r.header.Get(headerErrorCode) != "sampling_contract_violation" || !strings.Contains(r.body, `"param":"temperature"`) ||
			!strings.Contains(r.body, "temperature violates this deployment's sampling contract: got 0.5, expected 1 (or omit the field)")) {
			t.Errorf("%s: unexpected answer %s", mode, r.body)
		}
		if got := len(s.received()); (got == 1) != (status == 200) {
			t.Errorf("%s: %d requests reached the engine", mode, got)
		}
		for p := range params {
			if got := s.metric(`sluice_contract_` + kind + `_total{param="` + p + `"}`); got != "1" {
				t.Errorf("%s: %s is counted %q times as %s", mode, p, got, kind)
			}
		}
	}
	f("reject", "rejected", params, 400)
	f("observe", "observed", params, 200)
	f("replace", "replaced", params, 200)
	s := startStand(t, contract("allow", map[string]any{"temperature": 1}))
	if r := s.chat(body); r.status != 200 || string(s.received()[0].Body) != body {
		t.Errorf("allow: unexpected answer %d %s", r.status, r.body)
	}
	s.chat(chatBody)
	if got := s.metric(`sluice_contract_injected_total{param="temperature"}`); got != "1" {
		t.Errorf("allow: unexpected count of injections %q", got)
	}
}

// The contract holds on every generation surface and on no other.
func TestContractOnEverySurface(t *testing.T) {
	s := startStand(t, contract("reject", map[string]any{"temperature": 1}))
	for _, g := range generation {
		pin, bad := `{"temperature":1,`, `{"temperature":"0.5",`
		if g.path == "/generate" {
			pin, bad = `{"sampling_params":{"temperature":1},`, `{"sampling_params":{"temperature":0.5},`
		}
		if r := s.send("POST", g.path, g.body); r.status != 200 {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		if got := string(s.received()[0].Body); got != pin+g.body[1:] {
			t.Errorf("%s: unexpected body at the engine %s", g.path, got)
		}
		r := s.send("POST", g.path, bad+g.body[1:])
		if r.status != 400 || r.header.Get(headerErrorCode) != "sampling_contract_violation" {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		if anthropic := strings.HasPrefix(r.body, `{"type":"error","error":{"type":"invalid_request_error"`); anthropic != (g.path == "/v1/messages") {
			t.Errorf("%s: unexpected shape %s", g.path, r.body)
		}
	}
	const other = `{"model":"sim-8b","input":"hi","temperature":0.5}`
	if r := s.send("POST", "/v1/embeddings", other); r.status != 200 || string(s.received()[0].Body) != other {
		t.Errorf("embeddings: unexpected answer %d %s", r.status, r.body)
	}
}

// B70: nothing of one client's request shows up in another's, in the answers,
// at the engine or in the log.
func TestB70_RequestsStayApart(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 3, History: 4096}, contract("reject", map[string]any{"temperature": 1}))
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 100 {
				name := fmt.Sprintf("c%d-%d", c, i)
				path, body := "/v1/chat/completions", fmt.Sprintf(`{"model":"small","stream":%v,"user":"%s","messages":[]}`, i%3 == 0, name)
				req, err := http.NewRequest("POST", "http://"+s.addr+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Request-Id", name)
				req.Header.Set("Authorization", "Bearer "+name)
				resp, err := s.client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				_ = resp.Body.Close()
				if got := resp.Header.Get("X-Request-Id"); resp.StatusCode != 200 || got != name {
					t.Errorf("%s: unexpected answer %d for %q", name, resp.StatusCode, got)
				}
			}
		})
	}
	wg.Wait()
	got := s.received()
	if len(got) != 800 {
		t.Fatalf("unexpected number of requests at the engine: %d", len(got))
	}
	for _, r := range got {
		id := field(r, "X-Request-Id")
		if field(r, "Authorization") != "Bearer "+id || !strings.Contains(string(r.Body), `"user":"`+id+`"`) {
			t.Errorf("requests are mixed: id %s, key %s, body %s", id, field(r, "Authorization"), r.Body)
		}
	}
	log := s.access.String()
	if n := strings.Count(log, "\n"); n != 800 {
		t.Errorf("unexpected number of lines in the access log: %d", n)
	}
	if strings.Contains(log, "Bearer") || strings.Contains(log, `"user"`) {
		t.Errorf("the access log holds credentials or bodies")
	}
	for line := range strings.Lines(log) {
		var entry struct {
			RequestID string `json:"request_id"`
			Status    int
			Path      string
			Model     string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Status != 200 || entry.Path != "/v1/chat/completions" || entry.Model != simModel || !strings.HasPrefix(entry.RequestID, "c") {
			t.Fatalf("unexpected line %q (%v)", line, err)
		}
	}
}

func TestAdminListener(t *testing.T) {
	s := startStand(t, nil)
	s.chat(chatBody)
	get := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+s.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	status, body := get("GET", "/workers")
	var view struct{ Workers []workerView }
	if err := json.Unmarshal([]byte(body), &view); err != nil || status != 200 || len(view.Workers) != 1 {
		t.Fatalf("unexpected workers %d %s (%v)", status, body, err)
	}
	if w := view.Workers[0]; w.Pool != "sim" || w.URL != s.engine.URL() || w.Load != 0 || w.Picks != 1 || w.Failures != 0 || w.Connections != 1 || w.Idle != 1 {
		t.Errorf("unexpected worker %+v", w)
	}
	if status, body := get("GET", "/version"); status != 200 || body != `{"version":"test"}`+"\n" {
		t.Errorf("unexpected version %d %s", status, body)
	}
	if status, _ := get("GET", "/nothing"); status != 404 {
		t.Errorf("unexpected status %d", status)
	}
	if status, _ := get("POST", "/metrics"); status != 405 {
		t.Errorf("unexpected status %d", status)
	}
	if status, body := get("GET", "/metrics"); status != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("unexpected metrics %d", status)
	}
}

// Configuration and router agree on which paths are governed: none of those
// may be passed through.
func TestGovernedPathsCannotBePassedThrough(t *testing.T) {
	for _, path := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/generate", "/v1/embeddings", "/v1/rerank", "/v1/score",
		"/v1/classify", "/v1/moderations", "/v1/audio/speech", "/v1/images/edits", "/v1/ocr", "/tokenize", "/detokenize", "/v1/tokenize",
		"/v1/detokenize", "/v1/models", "/v1/models/x", "/health", "/healthz", "/liveness", "/ready", "/readyz", "/readiness",
	} {
		if lookup([]byte(path)) == nil {
			t.Errorf("%s is not served", path)
		}
		cfg := configs.Default()
		cfg.Server.PassthroughPaths = []string{path}
		if err := cfg.Validate(); err == nil {
			t.Errorf("%s may be passed through", path)
		}
	}
}

// A panic in a request is one 500 and the end of one connection.
func TestPanicIsContained(t *testing.T) {
	s := startStand(t, nil)
	sound := s.router.snap.Load()
	rules := *sound.rules
	rules.models = map[string]*destination{simModel: {index: 99, unlisted: &target{}}} // a pool that is none
	s.router.snap.Store(&snapshot{cfg: sound.cfg, rules: &rules, maxBody: sound.maxBody, drained: make(chan struct{})})
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	if r := c.read(); r.status != 500 || r.header.Get(headerErrorCode) != "internal_error" {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	c.closed()
	s.router.snap.Store(sound)
	if r := s.chat(chatBody); r.status != 200 {
		t.Errorf("unexpected answer %d after the panic", r.status)
	}
	if got := s.metric("sluice_panics_total"); got != "1" {
		t.Errorf("unexpected count of panics %q", got)
	}
}

// A router whose listener is lost ends as a whole.
func TestServeEndsWithItsListener(t *testing.T) {
	cfg := configs.Default()
	cfg.Pools = []configs.Pool{configs.DefaultPool()}
	cfg.Pools[0].Name = "p"
	cfg.Pools[0].Workers = []configs.Worker{{URL: "http://127.0.0.1:1"}}
	r, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, admin := listen(t), listen(t)
	_ = data.Close()
	served := make(chan error, 1)
	go func() { served <- r.Serve(data, admin) }()
	select {
	case <-served:
	case <-time.After(10 * time.Second):
		t.Fatal("Serve goes on without its listener")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Errorf("cannot shut down: %v", err)
	}
}
