package router

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/configs"
)

// generation are the surfaces that are governed, each with a body that the
// simulated engine answers.
var generation = []struct{ path, body string }{
	{"/v1/chat/completions", `{"model":"sim-8b","messages":[{"role":"user","content":"hi"}]}`},
	{"/v1/completions", `{"model":"sim-8b","prompt":"hi"}`},
	{"/v1/responses", `{"model":"sim-8b","input":"hi"}`},
	{"/v1/messages", `{"model":"sim-8b","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
	{"/generate", `{"model":"sim-8b","text":"hi"}`},
}

func TestSurfacesReachTheEngine(t *testing.T) {
	s := startStand(t, nil)
	f := func(method, path, body string) {
		t.Helper()
		if r := s.send(method, path, body); r.status != 200 {
			t.Errorf("%s %s: unexpected status %d: %s", method, path, r.status, r.body)
		}
		got := s.received()
		if len(got) != 1 || got[0].Target != path || got[0].Method != method || string(got[0].Body) != body {
			t.Errorf("%s %s: unexpected requests at the engine: %+v", method, path, got)
		}
	}
	for _, g := range generation {
		f("POST", g.path, g.body)
	}
	f("PUT", "/generate", `{"text":"hi"}`)
	f("POST", "/v1/embeddings", `{"model":"sim-8b","input":"hi"}`)
	f("POST", "/v1/rerank", `{"model":"sim-8b","query":"a","documents":["a","b"]}`)
	f("POST", "/v1/score", `{"model":"sim-8b","text_1":"a","text_2":"b"}`)
	f("POST", "/v1/classify", `{"model":"sim-8b","input":"hi"}`)
	f("POST", "/v1/moderations", `{"model":"sim-8b","input":"hi"}`)
	f("POST", "/v1/audio/speech", `{"model":"sim-8b","input":"hi","voice":"a"}`)
	f("POST", "/v1/images/generations", `{"model":"sim-8b","prompt":"hi"}`)
	f("POST", "/tokenize", `{"model":"sim-8b","prompt":"hi there"}`)
	f("POST", "/detokenize", `{"model":"sim-8b","tokens":[1]}`)
	f("POST", "/v1/tokenize", `{"model":"sim-8b","prompt":"hi there"}`)
	f("POST", "/v1/detokenize", `{"model":"sim-8b","tokens":[1]}`)
}

// The raw target goes to the worker; only the path decides.
func TestB63_RawTargetIsForwarded(t *testing.T) {
	s := startStand(t, nil)
	const target = "/v1/chat/completions?x=%2B&y=a%20b"
	if r := s.send("POST", target, generation[0].body); r.status != 200 {
		t.Fatalf("unexpected status %d: %s", r.status, r.body)
	}
	if got := s.received(); len(got) != 1 || got[0].Target != target {
		t.Fatalf("unexpected requests at the engine: %+v", got)
	}
}

func TestPathsNotServed(t *testing.T) {
	s := startStand(t, nil)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/chat/completions/", "/V1/chat/completions", "/v1/chat//completions",
		"/v1/./chat/completions", "/v1/x/../chat/completions", "/v1/chat%2Fcompletions", "/v1/%63hat/completions",
		"/v1/audio/", "/v1/audio/../chat/completions", "/v1/audio/%2e%2e/chat/completions", "/v1/audio/a/", "/v1/audio//a",
		"/v1/files/a%20b", "/metrics", "/workers", "/generate_from_file", "/v1//models",
	} {
		c := s.dial().write("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
		r := c.read()
		if r.status != 404 || r.header.Get(headerErrorCode) != "not_found" {
			t.Errorf("%s: unexpected answer %d %s", path, r.status, r.body)
		}
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}

func TestB65_MethodsNotAllowed(t *testing.T) {
	s := startStand(t, nil)
	f := func(method, path, allow string) {
		t.Helper()
		r := s.send(method, path, "")
		if r.status != 405 || r.header.Get("Allow") != allow || (method != "HEAD" && !strings.Contains(r.body, `"code":"method_not_allowed"`)) {
			t.Errorf("%s %s: unexpected answer %d, Allow %q: %s", method, path, r.status, r.header.Get("Allow"), r.body)
		}
	}
	f("GET", "/v1/chat/completions", "POST")
	f("HEAD", "/v1/chat/completions", "POST")
	f("OPTIONS", "/v1/chat/completions", "POST")
	f("DELETE", "/generate", "POST, PUT")
	f("PUT", "/v1/embeddings", "POST")
	f("POST", "/v1/models", "GET, HEAD")
	f("POST", "/v1/models/x", "GET, HEAD")
	f("POST", "/health", "GET, HEAD")
	f("DELETE", "/ready", "GET, HEAD")
}

func TestModels(t *testing.T) {
	s := startStand(t, func(c *configs.Config) {
		c.Pools[0].Models = append(c.Pools[0].Models, "org/big model")
		c.Pools[0].Aliases["org/big"] = "org/big model"
	})
	r := s.send("GET", "/v1/models", "")
	var list struct {
		Object string
		Data   []struct{ ID, Object, Root string }
	}
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != 200 || list.Object != "list" {
		t.Fatalf("unexpected list %d %s (%v)", r.status, r.body, err)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID+"→"+m.Root)
	}
	if got, want := strings.Join(ids, ","), "sim-8b→,org/big model→,org/big→org/big model,small→sim-8b"; got != want {
		t.Errorf("unexpected models %q; want %q", got, want)
	}
	if r := s.send("HEAD", "/v1/models", ""); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: unexpected answer %d %q", r.status, r.body)
	}
}

func TestB64_ModelWithSlash(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Pools[0].Models = []string{simModel, "mistralai/mistral 7b"} })
	for _, path := range []string{
		"/v1/models/mistralai/mistral%207b", "/v1/models/mistralai%2Fmistral%207b", "/v1/models/mistralai%2fmistral%207b", "/v1/models/small",
	} {
		if r := s.send("GET", path, ""); r.status != 200 || !strings.Contains(r.body, `"object":"model"`) {
			t.Errorf("%s: unexpected answer %d %s", path, r.status, r.body)
		}
	}
	for _, path := range []string{"/v1/models/none", "/v1/models/mistralai%252Fmistral%207b", "/v1/models/%zz"} {
		if r := s.dial().write("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n").read(); r.status != 404 || r.header.Get(headerErrorCode) != "model_not_found" {
			t.Errorf("%s: unexpected answer %d %s", path, r.status, r.body)
		}
	}
}

func TestProbes(t *testing.T) {
	s := startStand(t, nil)
	alive, ready := []string{"/health", "/healthz", "/liveness"}, []string{"/ready", "/readyz", "/readiness"}
	for _, path := range append(alive, ready...) {
		if r := s.send("GET", path, ""); r.status != 200 {
			t.Errorf("%s: unexpected status %d", path, r.status)
		}
	}
	s.router.BeginDrain()
	for _, path := range alive {
		if r := s.send("GET", path, ""); r.status != 200 {
			t.Errorf("%s while draining: unexpected status %d", path, r.status)
		}
	}
	for _, path := range ready {
		if r := s.send("GET", path, ""); r.status != 503 {
			t.Errorf("%s while draining: unexpected status %d", path, r.status)
		}
	}
}

func TestPassthroughPaths(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.PassthroughPaths = []string{"/get_model_info", "/abort_request"} })
	if r := s.send("GET", "/get_model_info", ""); r.status != 200 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if r := s.send("POST", "/abort_request", `{"rid":"7"}`); r.status != 200 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if r := s.send("POST", "/abort_request", `not json`); r.status != 400 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
}

func TestModelDecidesThePool(t *testing.T) {
	s := startStand(t, nil)
	if r := s.chat(`{"model":"none","messages":[]}`); r.status != 404 || r.header.Get(headerErrorCode) != "model_not_found" {
		t.Errorf("unknown model: unexpected answer %d %s", r.status, r.body)
	}
	// A request that names no model goes to the only pool.
	if r := s.send("POST", "/generate", `{"text":"hi"}`); r.status != 200 {
		t.Errorf("no model: unexpected answer %d %s", r.status, r.body)
	}
	s.received()
	// An alias, here with an escape, is replaced by the model's own name.
	body := `{ "messages":[{"role":"user","content":"x"}] , "model" : "sm\u0061ll" ,"seed":9007199254740993}`
	want := `{ "messages":[{"role":"user","content":"x"}] , "model" : "sim-8b" ,"seed":9007199254740993}`
	if r := s.chat(body); r.status != 200 {
		t.Fatalf("alias: unexpected answer %d %s", r.status, r.body)
	}
	if got := s.received(); len(got) != 1 || string(got[0].Body) != want {
		t.Errorf("alias: unexpected body at the engine: %s", got[0].Body)
	}
}

func TestModelIsRequiredWhereSeveralPoolsServe(t *testing.T) {
	s := startStand(t, func(c *configs.Config) {
		other := c.Pools[0]
		other.Name, other.Models, other.Aliases = "other", []string{"other"}, nil
		c.Pools = append(c.Pools, other)
	})
	if r := s.send("POST", "/generate", `{"text":"hi"}`); r.status != 400 || !strings.Contains(r.body, `\"model\" is required`) {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
}
