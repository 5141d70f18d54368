package router

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/configs"
)

const capturedConfig = `
server: {tenant_header: x-tenant}
capture: {file: %q, sample: 100%%%s}
sampling_contract: {on_conflict: replace, params: {temperature: 1, top_p: {min: 0.5, max: 1}}}
pools:
  - {name: a, models: [m, b], aliases: {alias: m}, workers: [{url: "ENGINE0"}], breaker: {failures: 0}}
  - {name: strict, models: [s], workers: [{url: "ENGINE1"}], sampling_contract: {params: {temperature: 0, n: 1}}}
  - {name: watched, models: [w], workers: [{url: "ENGINE2"}], sampling_contract: {on_conflict: observe, params: {temperature: 0}}}
routing:
  decisions:
    - name: vip
      priority: 5
      rules: {type: body, name: user, equals: vip}
      pool: a
    - name: free
      rules: {type: header, name: x-tier, exact: free}
      pool: a
      plugins: [{type: request_params, configuration: {blocked_params: [logprobs, user], max_tokens_limit: 50, default_max_tokens: 10, max_n: 2, strip_unknown: true}}]
    - name: trial
      rules: {operator: OR, conditions: [{type: tenant, name: t}, {type: header, name: authorization, exact: nobody}]}
      pool: a
      plugins: [{type: request_params, configuration: {blocked_params: [user], max_tokens_limit: 50, on_violation: observe}}]
`

// What capture writes, redacted, replay takes to the decisions, edits and refusals
// that the live metrics have counted.
func TestCapture_ReplayAgreesWithMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "captured.jsonl")
	s, _ := startPools(t, 3, fmt.Sprintf(capturedConfig, file, ""))
	n := uint64(0)
	for _, model := range []string{"m", "alias", "s", "w", "nobody"} {
		for _, header := range []string{"x-other: 1", "x-tier: free", "x-tenant: t"} {
			for _, rest := range []string{
				``, `,"temperature":1`, `,"temperature":"0.5"`, `,"temperature":"canary"`, `,"top_p":0.1,"max_tokens":"100","n":3`,
				`,"max_tokens":{}`, `,"user":"vip"`, `,"user":"canary","canary_key":"canary","logprobs":true`,
			} {
				body := fmt.Sprintf("{\"model\":%q%s,\r\n\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"can\\u0061ry \\\"canary\\\" é\"}]}]}", model, rest)
				s.chat(body, header, "authorization: Bearer canary", "cookie: canary", "x-session-id: canary")
				n++
			}
		}
	}
	s.wantMetrics(fmt.Sprintf("sluice_capture_written_total %d", n), "sluice_capture_dropped_total 0", "sluice_capture_errors_total 0", "sluice_capture_stopped 0")
	var text []byte
	eventually(t, "the file", func() bool {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		return uint64(strings.Count(string(text), "\n")) == n
	})
	if rest := strings.ReplaceAll(string(text), "canary_key", ""); strings.Contains(rest, "canary") || strings.Contains(rest, "u0061") || strings.Contains(rest, "é") {
		t.Errorf("the file has texts of clients:\n%s", text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("unexpected mode of the file: %v, %v", info.Mode(), err)
	}

	p, err := NewReplay(s.router.snap.Load().cfg, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	rep := replayText(t, p, string(text))
	if rep.Malformed != 0 || rep.Requests != n {
		t.Errorf("unexpected requests: %+v", rep)
	}
	total := map[string]uint64{}
	for _, d := range rep.Decisions {
		name := orNone(d.Name)
		routed := d.Requests
		for _, e := range d.Refusals {
			if e.Code == string(codeModelNotFound) {
				routed -= e.Count // which the metric leaves out
			}
		}
		total[fmt.Sprintf("sluice_decisions_total{decision=%q}", name)] = routed
		count := func(list []ReplayEffect, kind map[string]string, format string) {
			for _, e := range list {
				if what := kind[e.Effect]; what != "" && d.Name != "" {
					total[fmt.Sprintf(format, what, d.Name, e.Param)] += e.Count
				}
			}
		}
		names := map[string]string{"clamped": "capped", "defaulted": "defaulted", "blocked": "blocked"}
		count(d.Params, names, "sluice_params_%s_total{decision=%q,param=%q}")
		count(d.ObservedParams, names, "sluice_params_would_be_%s_total{decision=%q,param=%q}")
		for _, e := range d.Params {
			switch {
			case e.Effect == "injected", e.Effect == "replaced", e.Effect == "rejected" && e.Param != "max_tokens" && e.Param != "sampling_params":
				total[fmt.Sprintf("sluice_contract_%s_total{param=%q}", e.Effect, e.Param)] += e.Count
			case e.Effect == "rejected":
				total[fmt.Sprintf("sluice_params_refused_total{decision=%q,param=%q}", d.Name, e.Param)] += e.Count
			}
		}
	}
	if len(total) < 15 {
		t.Errorf("too few kinds of effects: %v", total)
	}
	for name, n := range total {
		if got := s.metric(name); got != fmt.Sprint(n) {
			t.Errorf("%s is %s, the replay has %d", name, got, n)
		}
	}
}

func TestRedactor(t *testing.T) {
	r := newRedactor(loadConfig(t, strings.NewReplacer("ENGINE", "http://127.0.0.1:1000", "equals: vip", "equals: 2").Replace(fmt.Sprintf(capturedConfig, "f", ""))))
	f := func(body, want string) {
		t.Helper()
		got := []byte(body)
		r.redact(got)
		if string(got) != want {
			t.Errorf("unexpected redaction of %s\n got %s\nwant %s", body, got, want)
		}
	}
	f(`{}`, `{}`)
	f(`{"model":"m","a":{"model":"m"}}`, `{"model":"m","a":{"model":"x"}}`)
	f(`{"mod\u0065l" : "m"}`, `{"mod\u0065l" : "m"}`)
	f(`{"temperature":"0.5","top_p":"a","n":"1e400"}`, `{"temperature":"0.5","top_p":"x","n":"1e400"}`)
	f(`{"sampling_params":[{"top_k":"5"},{"stop":["a","bc"]}]}`, `{"sampling_params":[{"top_k":"5"},{"stop":["x","xx"]}]}`)
	f(`{"messages":[{"role":"user","type":"other","content":"é\"\\"}]}`, `{"messages":[{"role":"user","type":"xxxxx","content":"xxxxxx"}]}`)
	f(`{"user":"2"}`, `{"user":"2"}`)
	f(`{"user":"TRUE","x":{"user":"2"}}`, `{"user":"TRUE","x":{"user":"x"}}`)
	f(`{"user":"me","user":["2"]}`, `{"user":"xx","user":["x"]}`)
	f(`{"tools":[{"function":{"description":"d","parameters":{"type":"object"}}}]}`, `{"tools":[{"function":{"description":"x","parameters":{"type":"object"}}}]}`)
	f(`{"a":["b" "c"],"stream":"true"}`, `{"a":["x" "x"],"stream":"xxxx"}`)
	f(`{"image":"data:image/png;base64,AAAA"}`, `{"image":"xxxxxxxxxxxxxxxxxxxxxxxxxx"}`)
}

// Credentials are never among the fields, though rules ask for them.
func TestCaptureFields(t *testing.T) {
	cfg := loadConfig(t, strings.ReplaceAll(fmt.Sprintf(capturedConfig, "f", ""), "ENGINE", "http://127.0.0.1:1000"))
	if got, want := strings.Join(captureFields(cfg), " "), "content-type user-agent x-sluice-thinking x-tenant x-tier"; got != want {
		t.Errorf("unexpected fields; got %s; want %s", got, want)
	}
}

// At max_bytes the capture stops and says so; the file has whole lines. Without
// redaction the very bytes are written, on one line.
func TestCapture_StopsAtMaxBytes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "captured.jsonl")
	if err := os.WriteFile(file, []byte(`{"path":"/half`), 0o644); err != nil {
		t.Fatal(err)
	}
	s, _ := startPools(t, 3, fmt.Sprintf(capturedConfig, file, ", max_bytes: 4KiB, redact: false"))
	for range 3 {
		s.chat("{\"model\":\"m\",\n\"messages\":[],\"user\":\"" + strings.Repeat("a", 1500) + "\"}")
	}
	s.wantMetrics("sluice_capture_written_total 2", "sluice_capture_dropped_total 1", "sluice_capture_stopped 1")
	if n := strings.Count(s.log.String(), "capture stopped"); n != 1 {
		t.Errorf("unexpected lines about the end: %d\n%s", n, s.log)
	}
	s.chat(`{"model":"m","messages":[]}`)
	cfg := *s.router.snap.Load().cfg
	cfg.Capture = configs.Capture{}
	before := s.router.snap.Load().capture
	if _, err := s.router.Reload(&cfg); err != nil { // which ends it
		t.Fatal(err)
	}
	<-before.done
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if len(lines) != 4 || lines[0] != "{\"path\":\"/half\n" || lines[3] != "" || len(text) > 4<<10 ||
		!strings.Contains(lines[2], `,"body":{"model":"m", "messages":[],"user":"aaa`) {
		t.Errorf("unexpected file: %q", lines)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("unexpected mode of the file: %v, %v", info.Mode(), err)
	}
}

// What the queue has no room for is dropped and counted, and a reload that leaves
// the capture as it is keeps it.
func TestCapture_DropsAndOutlivesReloads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "captured.jsonl")
	s, _ := startPools(t, 3, fmt.Sprintf(capturedConfig, file, ""))
	c := s.router.snap.Load().capture
	c.queued.Add(captureBytes)
	if got := s.chat(`{"model":"m","messages":[]}`); got.status != 200 {
		t.Errorf("unexpected status %d", got.status)
	}
	s.wantMetrics("sluice_capture_dropped_total 1")
	c.queued.Add(-captureBytes)
	cfg := *s.router.snap.Load().cfg
	if _, err := s.router.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	s.chat(`{"model":"m","messages":[]}`)
	s.wantMetrics("sluice_capture_dropped_total 1", "sluice_capture_written_total 1")
	if s.router.snap.Load().capture != c || c.queued.Load() != 0 {
		t.Errorf("unexpected capture after the reload: %v, %d", s.router.snap.Load().capture != c, c.queued.Load())
	}
	cfg.Capture.File = filepath.Join(file, "none")
	if _, err := s.router.Reload(&cfg); err == nil || !strings.Contains(err.Error(), "capture.file: ") {
		t.Errorf("unexpected error of a reload with a file that cannot be made: %v", err)
	}
	cfg.Capture.File = os.DevNull
	if _, err := s.router.Reload(&cfg); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("unexpected error of a reload with a device: %v", err)
	}
}

// A file that cannot be written to any more ends the capture, not the traffic.
func TestCapture_WriteError(t *testing.T) {
	log := &syncBuffer{}
	c := &capture{log: slog.New(slog.NewTextHandler(log, nil)), cfg: configs.Capture{MaxBytes: 1 << 20}}
	x := &captured{line: []byte(`{"body":{}`), bodyAt: 8}
	c.put(failingWriter{}, x, 0)
	c.put(failingWriter{}, x, 0)
	c.note(fs.ErrClosed)
	if c.failed.Load() != 1 || !c.full.Load() || c.dropped.Load() != 1 || strings.Count(log.String(), "capture stopped: cannot write") != 1 {
		t.Errorf("unexpected end: %d failed, %d dropped, full %v\n%s", c.failed.Load(), c.dropped.Load(), c.full.Load(), log)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, fs.ErrClosed }
