package router

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const capped = `
sampling_contract: {params: {temperature: 1}}
pools:
  - {name: v, models: [m], engine: vllm, workers: [{url: ENGINE0}], context_windows: {m: 1000}}
  - {name: s, models: [g], engine: sglang, workers: [{url: ENGINE1}], context_windows: {g: 1000}}
routing:
  decisions:
    - name: auto
      priority: 2
      rules: {type: header, name: x-auto, present: true}
      plugins: [{type: request_params, configuration: {default_max_tokens: auto, max_tokens_limit: 900}}]
    - name: exact
      priority: 2
      rules: {type: header, name: x-exact, present: true}
      plugins: [{type: request_params, configuration: {default_max_tokens: auto, auto_fallback: reject}}]
    - name: watch
      priority: 1
      rules: {type: header, name: x-watch, present: true}
      plugins: [{type: request_params, configuration: {max_tokens_limit: 50, blocked_params: [logprobs], on_violation: observe}}]
    - name: capped
      plugins:
        - type: request_params
          configuration: {blocked_params: [logprobs, stream], default_max_tokens: 100, max_tokens_limit: 50, max_n: 1, strip_unknown: true, known_params: [mine]}
`

// request_params and the contract edit a body in one splice, on every surface.
func TestB21_RequestParams(t *testing.T) {
	s, e := startPools(t, 2, capped)
	f := func(path, body string, engine int, want string) {
		t.Helper()
		if r := s.send("POST", path, body); r.status != http.StatusOK {
			t.Fatalf("unexpected answer to %s; got %d %s", body, r.status, r.body)
		}
		if got := last(t, e[engine]); got != want {
			t.Errorf("unexpected body for %s\n got %s\nwant %s", body, got, want)
		}
	}
	const chat, prompt = "/v1/chat/completions", `"prompt":"p"`
	f(chat, `{"model":"m","messages":[]}`, 0, `{"max_tokens":50,"temperature":1,"model":"m","messages":[]}`)
	f(chat, `{"model":"m","messages":[],"max_tokens":50,"max_completion_tokens":5000}`, 0,
		`{"temperature":1,"model":"m","messages":[],"max_tokens":50,"max_completion_tokens":50}`)
	f(chat, `{"model":"m","messages":[],"max_tokens":5000,"max_completion_tokens":5}`, 0,
		`{"temperature":1,"model":"m","messages":[],"max_tokens":50,"max_completion_tokens":5}`)
	f(chat, `{"model":"m","messages":[],"max_completion_tokens":"1000","temperature":1}`, 0,
		`{"model":"m","messages":[],"max_completion_tokens":50,"temperature":1}`)
	f(chat, `{"stream":true,"stream_options":{"include_usage":true},"model":"m","x":1,"mine":2,"log\u0070robs":true,"messages":[],"n":7,"max_tokens":1e30}`, 0,
		`{"temperature":1,"model":"m","mine":2,"messages":[],"n":1,"max_tokens":50}`)
	f("/v1/completions", `{"model":"m",`+prompt+`,"best_of":9}`, 0, `{"max_tokens":50,"temperature":1,"model":"m",`+prompt+`,"best_of":1}`)
	f("/generate", `{"text":"p","model":"g","sampling_params":{"max_new_tokens":60}}`, 1,
		`{"text":"p","model":"g","sampling_params":{"temperature":1,"max_new_tokens":50}}`)

	for _, value := range []string{`0`, `-1`, `1.5`, `"x"`, `[]`, `false`, `""`} {
		r := s.chat(`{"model":"m","messages":[],"max_tokens":` + value + `}`)
		if r.status != 400 || r.header.Get(headerErrorCode) != string(codeParamsViolation) || !strings.Contains(r.body, `"param":"max_tokens"`) {
			t.Errorf("unexpected answer to max_tokens %s; got %d %s", value, r.status, r.body)
		}
	}
	if got := last(t, e[0]); got != "" {
		t.Errorf("a refused request was forwarded: %s", got)
	}
	for name, want := range map[string]string{
		`sluice_params_blocked_total{decision="capped",param="logprobs"}`:             "1",
		`sluice_params_blocked_total{decision="capped",param="stream"}`:               "1",
		`sluice_params_stripped_total{decision="capped"}`:                             "1",
		`sluice_params_capped_total{decision="capped",param="n"}`:                     "1",
		`sluice_params_refused_total{decision="capped",param="max_tokens"}`:           "7",
		`sluice_params_defaulted_total{decision="capped",param="max_tokens"}`:         "2",
		`sluice_params_would_be_capped_total{decision="watch",param="max_tokens"}`:    "0",
		`sluice_params_capped_total{decision="capped",param="max_completion_tokens"}`: "2",
	} {
		if got := s.metric(name); got != want {
			t.Errorf("unexpected %s; got %q; want %s", name, got, want)
		}
	}
}

// on_violation observe changes nothing, and counts.
func TestRequestParamsObserve(t *testing.T) {
	s, e := startPools(t, 2, capped)
	const body = `{"temperature":1,"model":"m","messages":[],"max_tokens":60,"logprobs":true}`
	if r := s.chat(body, "x-watch: 1"); r.status != http.StatusOK || last(t, e[0]) != body {
		t.Errorf("an observed body was changed, or answered %d", r.status)
	}
	for _, name := range []string{
		`sluice_params_would_be_capped_total{decision="watch",param="max_tokens"}`,
		`sluice_params_would_be_blocked_total{decision="watch",param="logprobs"}`,
	} {
		if got := s.metric(name); got != "1" {
			t.Errorf("unexpected %s; got %q; want 1", name, got)
		}
	}
	x := s.router.snap.Load().rules.Explain(Question{Target: "/v1/chat/completions", Header: []string{"x-watch: 1"}, Body: []byte(body)})
	if len(x.Observed) != 2 || len(x.Edits) != 0 {
		t.Errorf("unexpected explanation of an observed request: %+v", x)
	}
}

// default_max_tokens auto leaves what the worker counts in the prompt.
func TestRequestParamsAuto(t *testing.T) {
	s, e := startPools(t, 2, capped)
	limit := func(path, body string, engine int, key string, fields ...string) int {
		t.Helper()
		if r := s.send("POST", path, body, fields...); r.status != http.StatusOK {
			t.Fatalf("unexpected answer to %s; got %d %s", body, r.status, r.body)
		}
		got := last(t, e[engine])
		_, rest, ok := strings.Cut(got, `"`+key+`":`)
		if !ok {
			t.Fatalf("no %s in %s", key, got)
		}
		n, err := strconv.Atoi(rest[:strings.IndexAny(rest, ",}")])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	long := strings.Repeat("word ", 500)
	chat := `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`
	if n := limit("/v1/chat/completions", chat, 0, "max_tokens", "x-auto: 1"); n < 400 || n > 500 {
		t.Errorf("unexpected limit beside 500 words in a window of 1000; got %d", n)
	}
	if n := limit("/v1/chat/completions", `{"model":"m","messages":[]}`, 0, "max_tokens", "x-auto: 1"); n != 900 {
		t.Errorf("unexpected limit under max_tokens_limit 900; got %d", n)
	}
	if n := limit("/generate", `{"model":"g","text":"`+long+`"}`, 1, "max_new_tokens", "x-exact: 1"); n < 400 || n > 500 {
		t.Errorf("unexpected limit on generate; got %d", n)
	}
	// Where the worker cannot count, the tokens are estimated, or not.
	const list = `{"model":"m","prompt":["a","b"]}`
	if n := limit("/v1/completions", list, 0, "max_tokens", "x-auto: 1"); n != 900 {
		t.Errorf("unexpected estimated limit; got %d", n)
	}
	if r := s.send("POST", "/v1/completions", list, "x-exact: 1"); r.status != http.StatusBadGateway || r.header.Get(headerErrorCode) != string(codeUnreachable) {
		t.Errorf("unexpected answer where nobody counts; got %d %s", r.status, r.body)
	}
	if got := s.router.InFlight(); got != 0 {
		t.Errorf("unexpected requests in flight: %d", got)
	}
}
