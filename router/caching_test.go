package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/upstream/sim"
)

const cachedConfig = `
server: {tenant_header: x-tenant}
pools:
  - {name: a, models: [m], aliases: {alias: m}, workers: [{url: ENGINE0}]}
  - {name: b, models: [o], workers: [{url: ENGINE1}]}
routing:
  decisions:
    - {name: tenants, priority: 2, rules: {type: header, name: x-by-tenant, present: true}, plugins: [{type: response_cache, configuration: {namespace: tenant}}]}
    - {name: joined, priority: 1, rules: {type: header, name: x-join, present: true}, plugins: [{type: response_cache, configuration: {coalesce: true}}]}
    - {name: all, rules: {type: model, name: m}, plugins: [{type: response_cache, configuration: {ttl: 1h, max_entry: 64KiB}}]}
`

// An equal request gets the stored answer; one that differs in anything that
// changes the answer does not.
func TestCache(t *testing.T) {
	s, e := startPools(t, 2, cachedConfig)
	ask := func(body, state string, fields ...string) reply {
		t.Helper()
		r := s.chat(body, fields...)
		if r.status != http.StatusOK || r.header.Get(headerCache) != state {
			t.Errorf("unexpected answer to %s; got %d, cache %q; want %q", body, r.status, r.header.Get(headerCache), state)
		}
		return r
	}
	const one = `{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":1}`
	first := ask(one, "miss")
	again := ask(` {"seed" : 1, "messages":[{"role":"user","content":"hi"}],"model":"m","user":"x"}`, "hit")
	if first.body != again.body || again.header.Get("Age") == "" || again.header.Get("Content-Type") != first.header.Get("Content-Type") {
		t.Errorf("the stored answer is another one\n got %v %s\nwant %v %s", again.header, again.body, first.header, first.body)
	}
	ask(strings.Replace(one, `"seed":1`, `"seed":2`, 1), "miss")
	ask(one, "bypass", "Cache-Control: no-store")
	ask(one, "miss", "Cache-Control: no-cache")
	if n := len(e[0].Requests()); n != 4 {
		t.Errorf("unexpected number of requests at the engine; got %d; want 4", n)
	}
	if r := s.chat(`{"model":"o","messages":[]}`); r.header.Get(headerCache) != "" {
		t.Errorf("an answer without the plugin has the header %s: %q", headerCache, r.header.Get(headerCache))
	}
	// Errors are not stored.
	for range 2 {
		if r := s.chat(one[:len(one)-1]+`,"x":1}`, "x-sim-status: 503"); r.header.Get(headerCache) != "miss" {
			t.Errorf("an error was stored: %v", r.header)
		}
	}
	if got := s.metric("sluice_cache_hits_total"); got != "1" {
		t.Errorf("unexpected count of hits %q", got)
	}
	// Tenants do not share.
	ask(one, "miss", "x-by-tenant: 1", "x-tenant: t1")
	ask(one, "miss", "x-by-tenant: 1", "x-tenant: t2")
	ask(one, "hit", "x-by-tenant: 1", "x-tenant: t1")
}

// A stream is stored as it was sent, with its usage only for those who ask, and
// serves streams only.
func TestCacheStreams(t *testing.T) {
	s, _ := startPools(t, 2, cachedConfig)
	ask := func(body, state string) reply {
		t.Helper()
		r := s.chat(body)
		if r.status != http.StatusOK || r.header.Get(headerCache) != state {
			t.Errorf("unexpected answer to %s; got %d, cache %q; want %q", body, r.status, r.header.Get(headerCache), state)
		}
		return r
	}
	const stream, usage = `{"model":"m","messages":[],"stream":true}`, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`
	first := ask(usage, "miss")
	if got := ask(usage, "hit"); got.body != first.body || got.header.Get("Content-Type") != first.header.Get("Content-Type") || !strings.Contains(got.body, `"usage":{`) {
		t.Errorf("the stored stream is another one\n got %s\nwant %s", got.body, first.body)
	}
	if got := ask(stream, "hit"); !strings.HasSuffix(got.body, "data: [DONE]\n\n") || strings.Contains(got.body, `"usage":{`) {
		t.Errorf("unexpected stream for a client that did not ask for usage: %s", got.body)
	}
	ask(`{"model":"m","messages":[]}`, "miss")
	// A stream that breaks is not stored.
	broken := `{"model":"m","messages":[],"stream":true,"seed":9}`
	for range 2 {
		r := s.chat(broken, "x-sim-fail: cut=2")
		if r.header.Get(headerCache) != "miss" {
			t.Errorf("a broken stream was stored")
		}
	}
}

// Equal requests at the same time wait for the first one; when it fails they go
// on alone.
func TestCacheJoins(t *testing.T) {
	s, e := startPools(t, 2, cachedConfig)
	e[0].Update(func(o *sim.Options) { o.TTFB = 300 * time.Millisecond })
	run := func(body string, fields ...string) (states map[string]int) {
		replies := make(chan reply, 8)
		for range cap(replies) {
			go func() { replies <- s.chat(body, append(fields, "x-join: 1")...) }()
		}
		states = map[string]int{}
		for range cap(replies) {
			r := <-replies
			states[r.header.Get(headerCache)]++
			if r.status != http.StatusOK {
				states["failed"]++
			}
		}
		return states
	}
	if got := run(`{"model":"m","messages":[],"seed":1}`); got["hit"] != 7 || got["miss"] != 1 {
		t.Errorf("unexpected answers to equal requests: %v", got)
	}
	if n := len(e[0].Requests()); n != 1 {
		t.Errorf("unexpected number of requests at the engine; got %d; want 1", n)
	}
	e[0].Reset()
	if got := run(`{"model":"m","messages":[],"seed":2}`, "x-sim-status: 400"); got["failed"] != 8 || got["hit"] != 0 {
		t.Errorf("unexpected answers where the first one fails: %v", got)
	}
	if n := len(e[0].Requests()); n != 8 {
		t.Errorf("unexpected number of requests where the first one fails; got %d; want 8", n)
	}
	// A follower that leaves stops to wait, and the leader goes on.
	lead := make(chan reply, 1)
	go func() { lead <- s.chat(`{"model":"m","messages":[],"seed":3}`, "x-join: 1") }()
	eventually(t, "the leader at the engine", func() bool { return e[0].Stats().InFlight == 1 })
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-join: 1\r\nContent-Length: 36\r\n\r\n" + `{"model":"m","messages":[],"seed":3}`)
	eventually(t, "the follower", func() bool { return s.router.InFlight() == 2 })
	_ = c.Close()
	eventually(t, "the end of the follower", func() bool { return s.router.InFlight() == 1 })
	if r := <-lead; r.status != http.StatusOK {
		t.Errorf("unexpected answer of the leader: %d", r.status)
	}
}
