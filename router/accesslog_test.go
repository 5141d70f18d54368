package router

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice/configs"
)

// lines returns the access log so far, an entry a line.
func (s *stand) lines() []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for line := range strings.Lines(s.access.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// Of good requests a share gets a line; what failed, was refused or was slow gets
// one always.
func TestAccessLogSample(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Log.Sample = 0 })
	s.chat(chatBody)
	s.send("GET", "/health", "")
	s.chat(`{"model":"none"}`)
	s.chat(chatBody, "x-sim-status: 429")
	s.chat(chatBody, "x-sim-fail: reset")
	eventually(t, "three lines", func() bool { return len(s.lines()) >= 3 })
	for i, want := range []float64{404, 429, 502} {
		if got := s.lines()[i]["status"]; got != want {
			t.Errorf("unexpected status of line %d: %v; want %v", i, got, want)
		}
	}
	set := func(l configs.Log) {
		t.Helper()
		cfg := *s.router.snap.Load().cfg
		cfg.Log = l
		if _, err := s.router.Reload(&cfg); err != nil {
			t.Fatal(err)
		}
	}
	n := len(s.lines())
	set(configs.Log{Access: true, Sample: 0, Slow: time.Nanosecond})
	s.chat(chatBody)
	eventually(t, "a slow line", func() bool { return len(s.lines()) == n+1 })
	if got := s.lines()[n]; got["slow"] != true || got["outcome"] != "ok" {
		t.Errorf("unexpected line %v", got)
	}
	set(configs.Log{Access: true, Sample: 0.5, Slow: time.Hour})
	const rounds = 400
	for range rounds {
		s.send("GET", "/health", "")
	}
	// 8 standard deviations on either side.
	if got := len(s.lines()) - n - 1; got < rounds/2-80 || got > rounds/2+80 {
		t.Errorf("unexpected number of lines for half of %d requests: %d", rounds, got)
	}
	n = len(s.lines())
	set(configs.Log{Access: false, Sample: 1, Slow: time.Nanosecond})
	s.chat(`{"model":"none"}`)
	if got := len(s.lines()); got != n {
		t.Errorf("unexpected lines without an access log: %d", got-n)
	}
}

// The latest failures are kept, those alone, and without what clients sent.
func TestFailures(t *testing.T) {
	s := startStand(t, nil)
	s.chat(chatBody, "x-request-id: good")
	s.chat(`{"model":"none"}`, "x-request-id: refused")
	s.chat(chatBody, "x-sim-status: 404", "x-request-id: not-found")
	if got := s.router.failures.latest(); len(got) != 0 {
		t.Fatalf("unexpected failures %+v", got)
	}
	s.chat(chatBody, "x-sim-status: 500", "x-request-id: worker-500")
	s.chat(chatBody, "x-sim-fail: reset", "x-request-id: reset", "Authorization: Bearer s3cret")
	s.chat(`{"model":"sim-8b","stream":true,"messages":[{"role":"user","content":"s3cret"}]}`, "x-sim-fail: cut=2", "x-request-id: cut")
	eventually(t, "three failures", func() bool { return len(s.router.failures.latest()) == 3 })
	text := s.ask("GET", "/status.json", "").body
	if strings.Contains(text, "s3cret") {
		t.Errorf("what a client sent is shown: %s", text)
	}
	var shown struct{ Errors []failure }
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	for i, want := range []failure{
		{RequestID: "cut", Status: 200, Outcome: outcomeUpstreamBroken},
		{RequestID: "reset", Status: 502, Outcome: outcomeUpstreamError, Code: codeUnreachable},
		{RequestID: "worker-500", Status: 500, Outcome: outcomeOK},
	} {
		got := shown.Errors[i]
		if got.RequestID != want.RequestID || got.Status != want.Status || got.Outcome != want.Outcome || got.Code != want.Code ||
			got.Pool != "sim" || !strings.HasPrefix(got.Worker, "http://127.0.0.1:") || got.Time.IsZero() || (got.Error == "") != (want.Outcome == outcomeOK) {
			t.Errorf("unexpected failure %+v; want %+v", got, want)
		}
	}
	for range 2 * keptFailures {
		s.router.failures.add(&failure{Time: time.Now(), RequestID: "later"})
	}
	if got := s.router.failures.latest(); len(got) != keptFailures || got[keptFailures-1].RequestID != "later" {
		t.Errorf("unexpected ring of %d failures", len(got))
	}
}
