package router

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/upstream/sim"
)

// last returns the body that an engine was sent last, and forgets it.
func last(t *testing.T, e *sim.Engine) string {
	t.Helper()
	seen := e.Requests()
	e.Reset()
	if len(seen) == 0 {
		return ""
	}
	return string(seen[len(seen)-1].Body)
}

const decided = `
server: {tenant_header: x-tenant}
sampling_contract: {params: {temperature: 1}}
pools:
  - {name: a, models: [m, n], aliases: {alias: m}, engine: vllm, workers: [{url: ENGINE0}],
     sampling_contract: {params: {top_p: 1}}, model_contracts: {n: {params: {top_k: 5}}}}
  - {name: b, models: [o], aliases: {alias-b: o}, workers: [{url: ENGINE1}]}
routing:
  decisions:
    - {name: gold, priority: 10, rules: {type: header, name: x-tier, exact: gold}, pool: b}
    - {name: forced, priority: 20, rules: {type: tenant, name: acme}, model: alias-b}
    - name: own
      rules: {operator: AND, conditions: [{type: model, name: m}, {type: stream, value: true}]}
      sampling_contract: {params: {n: 1}}
    - name: narrow
      rules: {type: body, name: user, equals: u}
      sampling_contract: {narrow: true, params: {n: 1}}
`

// asked adds what a chat request must have.
func asked(body string) string { return strings.TrimSuffix(body, "}") + `,"messages":[]}` }

// A decision says where a request goes, as which model, and under which contract.
func TestDecisions(t *testing.T) {
	s, e := startPools(t, 2, decided)
	f := func(body string, fields []string, engine int, want string) {
		t.Helper()
		body, want = asked(body), asked(want)
		if r := s.chat(body, fields...); r.status != http.StatusOK {
			t.Fatalf("unexpected answer to %s; got %d %s", body, r.status, r.body)
		}
		if got := last(t, e[engine]); got != want {
			t.Errorf("unexpected body for %s at engine %d\n got %s\nwant %s", body, engine, got, want)
		}
	}
	// Without a decision: the model's pool, the most specific contract.
	f(`{"model":"alias"}`, nil, 0, `{"top_p":1,"model":"m"}`)
	f(`{"model":"n"}`, nil, 0, `{"top_k":5,"model":"n"}`)
	f(`{"model":"o"}`, nil, 1, `{"temperature":1,"model":"o"}`)
	// A decision names the pool; what the pool does not list goes as it came.
	f(`{"model":"alias"}`, []string{"x-tier: gold"}, 1, `{"temperature":1,"model":"alias"}`)
	f(`{"model":"alias-b"}`, []string{"X-Tier: gold"}, 1, `{"temperature":1,"model":"o"}`)
	// A decision names the model, which settles the pool.
	f(`{"model":"m"}`, []string{"x-tenant: acme"}, 1, `{"temperature":1,"model":"o"}`)
	f(`{"user":"v"}`, []string{"x-tenant: acme"}, 1, `{"temperature":1,"model":"o","user":"v"}`)
	// A contract of its own, and one that narrows.
	f(`{"model":"m","stream":true}`, nil, 0, `{"n":1,"model":"m","stream":true}`)
	f(`{"model":"n","user":"u"}`, nil, 0, `{"top_k":5,"n":1,"model":"n","user":"u"}`)
	f(`{"model":"o","user":"u"}`, nil, 1, `{"temperature":1,"n":1,"model":"o","user":"u"}`)

	if r := s.chat(asked(`{"model":"n","user":"u","n":2}`)); r.header.Get(headerErrorCode) != string(codeContractViolation) {
		t.Errorf("unexpected answer to a narrowed contract's violation; got %d %s", r.status, r.body)
	}
	if r := s.chat(asked(`{"model":"x"}`)); r.header.Get(headerErrorCode) != string(codeModelNotFound) {
		t.Errorf("unexpected answer for a model that nobody serves; got %d %s", r.status, r.body)
	}
	if got := s.metric(`sluice_decisions_total{decision="gold"}`); got != "2" {
		t.Errorf("unexpected count of the decision gold; got %q; want 2", got)
	}
	if !strings.Contains(s.access.String(), `"decision":"forced"`) {
		t.Errorf("the access log does not name the decision: %s", s.access.String())
	}
}

// Weighted pools share the requests; sticky ones keep a session.
func TestDecisionShares(t *testing.T) {
	s, e := startPools(t, 2, `
pools:
  - {name: a, models: [m], workers: [{url: ENGINE0}]}
  - {name: b, models: [n], workers: [{url: ENGINE1}]}
routing:
  decisions:
    - {name: shared, rules: {type: surface, name: chat}, pools: [{name: a, weight: 3}, {name: b, weight: 1}]}
    - {name: sticky, rules: {type: surface, name: completions}, sticky: true, pools: [{name: a, weight: 1}, {name: b, weight: 1}]}
`)
	const n = 400
	for range n {
		s.chat(asked(`{"model":"m"}`))
	}
	a := e[0].Stats().Requests
	if b := e[1].Stats().Requests; a+b != n || a < n*6/10 || a > n*9/10 {
		t.Errorf("unexpected shares of 3:1; got %d and %d of %d", a, b, n)
	}
	homes := map[int]int{}
	for _, session := range []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"} {
		e[0].Reset()
		e[1].Reset()
		for range 5 {
			s.send("POST", "/v1/completions", `{"model":"m","prompt":"p"}`, "x-session-id: "+session)
		}
		got := [2]int{len(e[0].Requests()), len(e[1].Requests())}
		switch got {
		case [2]int{5, 0}:
			homes[0]++
		case [2]int{0, 5}:
			homes[1]++
		default:
			t.Errorf("the session %s was sent to both pools: %v", session, got)
		}
	}
	if homes[0] == 0 || homes[1] == 0 {
		t.Errorf("all sessions were sent to one pool: %v", homes)
	}
}

// A request goes to the next pool where one has no worker or a full queue, with
// that pool's own edits over the same client bytes.
func TestDecisionFallback(t *testing.T) {
	s, e := startPools(t, 2, `
pools:
  - {name: full, models: [m], workers: [{url: ENGINE0}], limits: {max_inflight: 1, max_queue: 0}}
  - {name: strict, models: [z], workers: [{url: ENGINE0}], sampling_contract: {params: {top_p: 1}}}
  - {name: spare, models: [o], aliases: {alias: o}, workers: [{url: ENGINE1}], sampling_contract: {params: {top_k: 7}}}
routing:
  decisions:
    - {name: d, pool: full, fallback: [strict, spare]}
`)
	e[0].Update(func(o *sim.Options) { o.TTFB = 3e9 })
	held := make(chan reply, 1)
	go func() { held <- s.chat(asked(`{"model":"m"}`)) }()
	eventually(t, "a request at the first pool", func() bool { return e[0].Stats().InFlight == 1 })
	if r := s.chat(asked(`{"model":"alias","top_p":0.5}`)); r.status != http.StatusOK {
		t.Fatalf("unexpected answer of the fallback; got %d %s", r.status, r.body)
	}
	if got, want := last(t, e[1]), asked(`{"top_k":7,"model":"o","top_p":0.5}`); got != want {
		t.Errorf("unexpected body at the second fallback; got %s; want %s", got, want)
	}
	if got := s.metric(`sluice_fallbacks_total{pool="spare"}`); got != "1" {
		t.Errorf("unexpected count of fallbacks; got %q; want 1", got)
	}
	if r := s.chat(asked(`{"model":"alias","top_p":0.5,"top_k":1}`)); r.header.Get(headerErrorCode) != string(codeOverloaded) {
		t.Errorf("unexpected answer where no pool takes the request; got %d %s", r.status, r.body)
	}
	if r := <-held; r.status != http.StatusOK {
		t.Errorf("unexpected answer of the first pool; got %d %s", r.status, r.body)
	}
}

// explain says what the data path does, for bodies of all kinds.
func TestExplainIsTheDataPath(t *testing.T) {
	s, e := startPools(t, 2, decided)
	rules := s.router.snap.Load().rules
	pieces := []string{
		`"model":"m"`, `"model":"alias"`, `"model":"n"`, `"model":"o"`, `"model":"alias-b"`, `"model":"x"`, `"model":7`,
		`"temperature":1`, `"temperature":0.5`, `"temperature":null`, `"temper\u0061ture":2`, `"top_p":1`, `"top_p":"1"`, `"top_p":true`,
		`"top_k":5`, `"top_k":5.0`, `"n":1`, `"n":2`, `"n":1e400`, `"stream":true`, `"stream":"x"`, `"user":"u"`, `"user":"v"`,
		`"messages":[{"role":"user","content":"hi"}]`, `"x":{"a":[1,{"b":2}]}`, ` "y" : "z" `, `oops`,
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		var parts []string
		for range rnd.IntN(6) {
			parts = append(parts, pieces[rnd.IntN(len(pieces))])
		}
		body := "{" + strings.Join(parts, ",") + "}"
		var fields []string
		for _, f := range []string{"x-tier: gold", "x-tenant: acme", "x-tier: free"} {
			if rnd.IntN(3) == 0 {
				fields = append(fields, f)
			}
		}
		fields = lastOfEach(fields)
		x := rules.Explain(Question{Target: "/v1/chat/completions?x=1", Header: fields, Body: []byte(body)})
		r := s.send("POST", "/v1/chat/completions", body, fields...)
		if x.Refusal != nil {
			if r.status != x.Refusal.Status || r.header.Get(headerErrorCode) != x.Refusal.Code || !strings.Contains(r.body, strings.ReplaceAll(x.Refusal.Message, `"`, `\"`)) {
				t.Errorf("explain says %+v of %s; the router says %d %s", *x.Refusal, body, r.status, r.body)
			}
			continue
		}
		engine := map[string]int{"a": 0, "b": 1}[x.Pool]
		if got := last(t, e[engine]); got != string(x.Body) {
			t.Errorf("explain says that %s is sent for %s; the engine of %s got %s (answer %d)", x.Body, body, x.Pool, got, r.status)
		}
		if got := marked([]byte(body), x.Splices); got != string(x.Body) {
			t.Errorf("the splices of %s make %s; want %s", body, got, x.Body)
		}
	}
}

// lastOfEach drops all but the last field of a name: the test's client sets them.
func lastOfEach(fields []string) []string {
	var kept []string
	for i, f := range fields {
		name, _, _ := strings.Cut(f, ":")
		again := false
		for _, g := range fields[i+1:] {
			again = again || strings.HasPrefix(g, name+":")
		}
		if !again {
			kept = append(kept, f)
		}
	}
	return kept
}

func marked(body []byte, splices []Splice) string {
	var b strings.Builder
	at := 0
	for _, s := range splices {
		b.Write(body[at:s.Start])
		b.WriteString(s.Text)
		at = s.End
	}
	b.Write(body[at:])
	return b.String()
}

// A reload changes what begins after it, and nothing of what is under way.
func TestReload(t *testing.T) {
	s, e := startPools(t, 2, decided)
	url0, url1 := e[0].URL(), e[1].URL()
	one := `
pools:
  - {name: a, models: [m], workers: [{url: "` + url0 + `"}], sampling_contract: {params: {top_p: 1}}}
`
	two := `
server: {listen: "127.0.0.1:1", max_body: 100}
pools:
  - {name: c, models: [m], workers: [{url: "` + url1 + `"}]}
`
	e[0].Update(func(o *sim.Options) { o.Words, o.Pace = 50, 2e6 })
	load := loader{stand: s, stop: make(chan struct{})}
	load.start(4)
	for i := range 40 {
		text := one
		if i%2 == 0 {
			text = two
		}
		restart, err := s.router.Reload(loadConfig(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && (len(restart) == 0 || restart[0] != "server.listen") {
			t.Errorf("the new address is not told to need a restart: %v", restart)
		}
	}
	load.end(t)
	if r := s.chat(asked(`{"model":"m"}`)); r.status != http.StatusOK || last(t, e[0]) != asked(`{"top_p":1,"model":"m"}`) {
		t.Errorf("unexpected answer after the last reload; got %d %s", r.status, r.body)
	}
	eventually(t, "one snapshot alone", func() bool {
		s.router.live.mu.Lock()
		defer s.router.live.mu.Unlock()
		return len(s.router.live.list) == 1
	})
}

// A reload that fails leaves everything as it was.
func TestReloadFails(t *testing.T) {
	s, e := startPools(t, 2, decided)
	cfg := loadConfig(t, `pools: [{name: a, models: [new], workers: [{url: "`+e[1].URL()+`"}]}, {name: b, models: [o], workers: [{url: "`+e[1].URL()+`"}]}]`)
	cfg.Pools[1].Balance = "no such balance"
	if _, err := s.router.Reload(cfg); err == nil {
		t.Fatal("a faulty configuration was taken")
	}
	if r := s.chat(asked(`{"model":"alias"}`)); r.status != http.StatusOK || last(t, e[0]) != asked(`{"top_p":1,"model":"m"}`) {
		t.Errorf("unexpected answer after a failed reload; got %d %s", r.status, r.body)
	}
}

// loader sends streams until it is stopped, and counts those that do not end
// well.
type loader struct {
	*stand
	stop         chan struct{}
	sent, failed atomic.Int64
	done         sync.WaitGroup
}

func (l *loader) start(clients int) {
	for range clients {
		l.done.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				r := l.chat(asked(`{"model":"m","stream":true}`))
				l.sent.Add(1)
				if r.status != http.StatusOK || !strings.Contains(r.body, "[DONE]") {
					l.failed.Add(1)
				}
			}
		})
	}
	eventually(l.t, "the first streams", func() bool { return l.sent.Load() > 0 })
}

func (l *loader) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.done.Wait()
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d of %d streams failed", n, l.sent.Load())
	}
}

// The models surface shows aliases and context windows, each name once.
func TestModelsShowWindows(t *testing.T) {
	s, _ := startPools(t, 1, `
pools:
  - {name: a, models: [m], aliases: {al: m}, context_windows: {m: 32K}, workers: [{url: ENGINE0}]}
  - {name: b, models: [m, n], workers: [{url: ENGINE0}]}
routing: {decisions: [{name: d, pool: b, rules: {type: tenant, name: t}}]}
server: {tenant_header: x-tenant}
`)
	r := s.send("GET", "/v1/models", "")
	for _, want := range []string{`"id":"m","object":"model"`, `"id":"al","object":"model"`, `"root":"m","max_model_len":32000`, `"id":"n","object":"model"`} {
		if strings.Count(r.body, want) != 1 {
			t.Errorf("unexpected list of models %s; want %s once", r.body, want)
		}
	}
}
