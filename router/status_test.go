package router

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

const statusConfig = `
sampling_contract: {params: {temperature: 1}}
pools:
  - {name: llama, models: [m], workers: [{url: ENGINE0}, {url: ENGINE1}]}
routing:
  decisions:
    - {name: free, rules: {type: header, name: x-tier, exact: free}, plugins: [{type: request_params, configuration: {max_tokens_limit: 5, default_max_tokens: 5}}]}
`

// busy gives a router something to show.
func (s *stand) busy() {
	s.t.Helper()
	for range 3 {
		s.chat(`{"model":"m","stream":true,"messages":[]}`)
	}
	s.chat(`{"model":"m","temperature":0.5,"messages":[]}`)
	s.chat(`{"model":"m","max_tokens":50,"messages":[]}`, "x-tier: free")
	s.chat(`{"model":"m","messages":[]}`, "x-sim-status: 500", "x-request-id: of-the-500")
	eventually(s.t, "the streams are counted", func() bool { return s.metric(`sluice_streams_total{surface="chat",pool="llama",outcome="ok"}`) == "3" })
}

// What the page shows is what the metrics and the pools say.
func TestStatus(t *testing.T) {
	s, _ := startPools(t, 2, statusConfig)
	s.busy()
	host := strings.TrimPrefix(s.router.snap.Load().pools[0].up.Workers()[1].URL(), "http://")
	if r := s.ask("POST", "/workers/llama@"+host+"/drain", ""); r.status != 200 {
		t.Fatalf("unexpected answer %d %s", r.status, r.body)
	}
	var got status
	if err := json.Unmarshal([]byte(s.ask("GET", "/status.json", "").body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "test" || got.Draining || got.InFlight != 0 || got.Config.Hash != s.router.snap.Load().cfg.Hash() || got.Time.Before(got.Started) {
		t.Errorf("unexpected status %+v", got)
	}
	p := got.Pools[0]
	if p.Name != "llama" || p.Usable != 1 || p.Workers != 2 || p.Requests != 6 || p.Answers["2xx"] != 4 || p.Answers["4xx"] != 1 || p.Answers["5xx"] != 1 ||
		len(p.TTFT) != len(p.Bounds)+1 || p.TTFT[len(p.Bounds)] != 3 {
		t.Errorf("unexpected pool %+v", p)
	}
	if len(got.Workers) != 2 || got.Workers[0].State != "draining" || got.Workers[1].State != "up" {
		t.Errorf("unexpected workers %+v", got.Workers)
	}
	rules := map[ruleCount]bool{}
	for _, r := range got.Rejections {
		rules[r] = true
	}
	for _, want := range []ruleCount{
		{"sampling_contract", "", "temperature", "rejected", 1},
		{"request_params", "free", "max_tokens", "capped", 1},
	} {
		if !rules[want] {
			t.Errorf("%+v is missing in %+v", want, got.Rejections)
		}
	}
	if len(got.Errors) != 1 || got.Errors[0].RequestID != "of-the-500" {
		t.Errorf("unexpected errors %+v", got.Errors)
	}
}

func TestParseSample(t *testing.T) {
	m, ok := parseSample(`a_total{x="1 \"{},=",le="+Inf"} 2.5e3` + "\n")
	if !ok || m.name != "a_total" || m.labels["x"] != `1 "{},=` || m.labels["le"] != "+Inf" || m.value != 2500 {
		t.Errorf("unexpected sample %+v", m)
	}
	if m, ok := parseSample("b 1\n"); !ok || m.name != "b" || m.value != 1 || len(m.labels) != 0 {
		t.Errorf("unexpected sample %+v", m)
	}
	for _, line := range []string{"", "\n", "# TYPE a counter\n", "a\n", "a x\n", `a{b} 1`, `a{b="} 1`} {
		if m, ok := parseSample(line); ok {
			t.Errorf("%q was read as %+v", line, m)
		}
	}
}

// The page asks for nothing from elsewhere, and its policy names all that is in
// it.
func TestStatusPage(t *testing.T) {
	s := startStand(t, nil)
	r := s.ask("GET", "/", "")
	policy := r.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("unexpected header %v", r.header)
	}
	for _, what := range []string{`<script `, `<style `, `style="`, ` on[a-z]+=`, `https?://`, `src="`, `innerHTML`, `@import`, `url\(`} {
		if found := regexp.MustCompile(what).FindString(r.body); found != "" {
			t.Errorf("the page has %q, which its policy or its purpose forbids", found)
		}
	}
	for _, what := range []string{`lang="en"`, `name="viewport"`, "prefers-color-scheme: dark", `role="status"`, "visibilitychange", "<label for="} {
		if !strings.Contains(r.body, what) {
			t.Errorf("the page lacks %q", what)
		}
	}
}

// A browser shows live values, on its own.
func TestStatusPageInBrowser(t *testing.T) {
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
		}
	}
	if chromium == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no browser: install Debian's chromium")
		}
		t.Skip("there is no browser: install Debian's chromium")
	}
	s, _ := startPools(t, 2, statusConfig)
	s.busy()
	show := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// As root there is no sandbox to be had. The page is ours.
		cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", "http://"+s.admin+"/")
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("the browser failed: %v", err)
		}
		// Without the script, whose text has the words as well.
		return regexp.MustCompile(`(?s)<script>.*</script>`).ReplaceAllString(string(out), "")
	}
	dom := show()
	for _, want := range []string{
		`class="state good" role="status" aria-live="polite">serving<`, "<title>Sluice – serving</title>",
		">llama</th>", ">2 of 2</td>", `data-label="What">rejected</td>`, `data-label="What">capped</td>`, ">of-the-500</td>",
		`data-label="Status">500</td>`, s.router.snap.Load().cfg.Hash()[:16], "<dt>First token, p50</dt>",
	} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(dom, "<dt>First token, p50</dt><dd>–</dd>") {
		t.Error("the page shows no time to the first token")
	}

	// With a token the page asks for it and shows nothing.
	cfg := *s.router.snap.Load().cfg
	cfg.Server.Admin.Token = "0123456789abcdef"
	if _, err := s.router.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	dom = show()
	if !strings.Contains(dom, ">locked<") || !strings.Contains(dom, `<div id="figures" hidden="">`) || strings.Contains(dom, "of-the-500") {
		t.Errorf("the page is not locked: %.2000s", dom)
	}
	if r := s.ask("GET", "/status.json", ""); r.status != http.StatusUnauthorized {
		t.Errorf("unexpected answer %d", r.status)
	}
}
