package router

import (
	"net/http"
	"strings"
	"testing"
)

const layered = `
sampling_contract: {params: {temperature: 1}}
pools:
  - name: a
    models: [m]
    engine: sglang
    workers: [{url: ENGINE0}]
    limits: {max_inflight: 1, max_queue: 0}
    extra_body: {top_k: 5, max_tokens: 9, chat_template_kwargs: {b: 1, a: [1.0, null]}}
    thinking: {on: {chat_template_kwargs: {enable_thinking: true}, reasoning_effort: high}, off: {}}
  - {name: b, models: [z], aliases: {m: z}, workers: [{url: ENGINE1}], extra_body: {top_k: 7}}
  - {name: c, models: [plain], workers: [{url: ENGINE1}]}
routing:
  decisions:
    - name: json
      priority: 1
      rules: {type: header, name: x-json, present: true}
      force: {response_format: {type: json_object}, seed: 1}
    - {name: d, rules: {type: model, name: m}, pool: a, fallback: [b]}
`

// For one key the winner is force, then the contract and plugins, then the
// client, then the pool's extra_body, then its thinking profile.
func TestLayers(t *testing.T) {
	s, e := startPools(t, 2, layered)
	const extra = `"top_k":5,"max_tokens":9,"chat_template_kwargs":{"b":1,"a":[1.0,null]}`
	f := func(path, body, want string, fields ...string) reply {
		t.Helper()
		r := s.send("POST", path, body, fields...)
		if r.status != http.StatusOK {
			t.Fatalf("unexpected answer to %s; got %d %s", body, r.status, r.body)
		}
		if got := last(t, e[0]); got != want {
			t.Errorf("unexpected body for %s\n got %s\nwant %s", body, got, want)
		}
		return r
	}
	const chat = "/v1/chat/completions"
	f(chat, `{"model":"m","messages":[]}`, `{"temperature":1,`+extra+`,"model":"m","messages":[]}`)
	f(chat, `{"model":"m","messages":[],"top_k":null,"max_completion_tokens":3,"chat_template_kwargs":{}}`,
		`{"temperature":1,"model":"m","messages":[],"top_k":5,"max_completion_tokens":3,"chat_template_kwargs":{}}`)
	f(chat, `{"model":"m","messages":[],"response_format":{"type":"text"},"seed":7}`,
		`{"temperature":1,`+extra+`,"model":"m","messages":[],"response_format":{"type":"json_object"},"seed":1}`, "x-json: 1")
	f("/generate", `{"text":"p","model":"m","sampling_params":{"top_k":1}}`,
		`{"chat_template_kwargs":{"b":1,"a":[1.0,null]},"text":"p","model":"m","sampling_params":{"temperature":1,"max_new_tokens":9,"top_k":1}}`)

	// thinking: what extra_body has set stays; the rest is added; both asks are
	// consumed.
	r := f(chat, `{"model":"m","messages":[],"enable_thinking":true}`, `{"temperature":1,`+extra+`,"reasoning_effort":"high","model":"m","messages":[]}`)
	if got := r.header.Get(headerWarning); got != "" {
		t.Errorf("unexpected warning %q", got)
	}
	r = f(chat, `{"model":"m","messages":[],"enable_thinking":true}`, `{"temperature":1,`+extra+`,"model":"m","messages":[]}`, "x-sluice-thinking: off")
	if got, want := r.header.Get(headerWarning), `thinking=off has no effect on pool "a"`; got != want {
		t.Errorf("unexpected warning; got %q; want %q", got, want)
	}
	if got := s.metric(`sluice_thinking_without_effect_total{pool="a"}`); got != "1" {
		t.Errorf("unexpected count of asks without effect %q", got)
	}
	for _, ask := range []string{"x-sluice-thinking: maybe", "x-json: 1"} {
		if r := s.chat(`{"model":"m","messages":[],"enable_thinking":"yes"}`, ask); r.status != 400 || r.header.Get(headerErrorCode) != "bad_request" {
			t.Errorf("unexpected answer to a wrong ask (%s): %d %s", ask, r.status, r.body)
		}
	}
	// A pool without a profile leaves the member alone.
	const plain = `{"temperature":1,"model":"plain","messages":[],"enable_thinking":true}`
	if s.chat(plain); last(t, e[1]) != plain {
		t.Errorf("a member that no policy names was changed")
	}
}

// Each pool that a request is sent to adds its own values to what the client
// sent.
func TestLayersOfAFallback(t *testing.T) {
	s, e := startPools(t, 2, layered)
	held := make(chan reply, 1)
	go func() { held <- s.chat(`{"model":"m","messages":[]}`, "x-sim-ttfb: 2s") }()
	eventually(t, "a request at the first pool", func() bool { return e[0].Stats().InFlight == 1 })
	if r := s.chat(`{"model":"m","messages":[]}`); r.status != http.StatusOK {
		t.Fatalf("unexpected answer %d %s", r.status, r.body)
	}
	if got, want := last(t, e[1]), `{"temperature":1,"top_k":7,"model":"z","messages":[]}`; got != want {
		t.Errorf("unexpected body at the fallback\n got %s\nwant %s", got, want)
	}
	if r := <-held; r.status != http.StatusOK || !strings.Contains(last(t, e[0]), `"top_k":5`) {
		t.Errorf("unexpected answer of the first pool: %d", r.status)
	}
}
