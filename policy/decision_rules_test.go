package policy

import (
	"strings"
	"testing"

	"sluice/probe"
)

// fields are header fields, for tests.
type fields map[string][]string

func (h fields) PeekAll(name string) [][]byte {
	var values [][]byte
	for _, value := range h[strings.ToLower(name)] {
		values = append(values, []byte(value))
	}
	return values
}

// facts returns those of a chat request with the given body.
func facts(tb testing.TB, body string) *Facts {
	tb.Helper()
	f := &Facts{
		Surface: probe.SurfaceChat,
		Path:    []byte("/v1/chat/completions"),
		Model:   []byte("llama"),
		Tenant:  []byte("acme"),
		Src:     []byte(body),
		Body:    new(probe.Body),
		Header: fields{
			"x-tier":  {"gold", "free"},
			"x-empty": {""},
		},
	}
	if fault := probe.Scan(f.Src, f.Surface, 0, f.Body); fault != probe.FaultNone {
		tb.Fatalf("cannot scan %q: %v", body, fault)
	}
	return f
}

func ptr(b bool) *bool { return &b }

func and(rules ...RuleSpec) RuleSpec { return RuleSpec{Operator: "AND", Conditions: rules} }
func or(rules ...RuleSpec) RuleSpec  { return RuleSpec{Operator: "OR", Conditions: rules} }
func not(rule RuleSpec) RuleSpec     { return RuleSpec{Operator: "NOT", Conditions: []RuleSpec{rule}} }

func model(name string) RuleSpec { return RuleSpec{Type: "model", Name: name} }

func TestDecisionRules(t *testing.T) {
	const body = `{"model":"llama","user":"a\u0062\"c","seed":7,"k\u0065y":"x","n":"2","on":true,"off":0,"yes":"Y\u0065s",` +
		`"no":"FALSE","big":1e400,"nan":NaN,"nil":null,"obj":{"a":1},"twice":1,"twice":2,"messages":[{"role":"user","content":"a b c d e f g h"}]}`
	f := func(want bool, rule RuleSpec) {
		t.Helper()
		m, err := NewMatcher([]DecisionSpec{{Name: "d", Rules: &rule}})
		if err != nil {
			t.Fatalf("unexpected error for %+v: %v", rule, err)
		}
		if got := m.Match(facts(t, body)) == 0; got != want {
			t.Errorf("unexpected match of %+v; got %v; want %v", rule, got, want)
		}
	}
	yes, no := model("llama"), model("other")

	f(true, yes)
	f(false, no)
	f(false, model("Llama"))
	f(true, RuleSpec{Type: "surface", Name: "chat"})
	f(false, RuleSpec{Type: "surface", Name: "completions"})
	f(true, RuleSpec{Type: "tenant", Name: "acme"})
	f(false, RuleSpec{Type: "tenant", Name: "acm"})
	f(true, RuleSpec{Type: "path", Exact: "/v1/chat/completions"})
	f(false, RuleSpec{Type: "path", Exact: "/v1/chat"})
	f(true, RuleSpec{Type: "path", Prefix: "/v1/chat"})
	f(false, RuleSpec{Type: "path", Prefix: "/v1/chat/completions/"})
	f(false, RuleSpec{Type: "stream", Value: ptr(true)})
	f(true, RuleSpec{Type: "stream", Value: ptr(false)})

	f(true, and(yes, yes))
	f(false, and(yes, no))
	f(true, or(no, yes))
	f(false, or(no, no))
	f(true, not(no))
	f(false, not(yes))
	f(true, and(or(no, not(no)), not(and(yes, no))))

	header := func(name string) RuleSpec { return RuleSpec{Type: "header", Name: name} }
	with := func(r RuleSpec, set func(*RuleSpec)) RuleSpec { set(&r); return r }
	f(true, with(header("x-tier"), func(r *RuleSpec) { r.Exact = "gold" }))
	f(true, with(header("X-Tier"), func(r *RuleSpec) { r.Exact = "free" }))
	f(false, with(header("x-tier"), func(r *RuleSpec) { r.Exact = "Gold" }))
	f(false, with(header("x-none"), func(r *RuleSpec) { r.Exact = "gold" }))
	f(true, with(header("x-tier"), func(r *RuleSpec) { r.Prefix = "fr" }))
	f(false, with(header("x-tier"), func(r *RuleSpec) { r.Prefix = "goldfish" }))
	f(true, with(header("x-tier"), func(r *RuleSpec) { r.Regex = "ol" }))
	f(true, with(header("x-tier"), func(r *RuleSpec) { r.Regex = "^(gold|silver)$" }))
	f(false, with(header("x-tier"), func(r *RuleSpec) { r.Regex = "^ol" }))
	f(true, with(header("x-empty"), func(r *RuleSpec) { r.Regex = "^$" }))
	f(true, with(header("x-empty"), func(r *RuleSpec) { r.Present = ptr(true) }))
	f(false, with(header("x-none"), func(r *RuleSpec) { r.Present = ptr(true) }))
	f(true, with(header("x-none"), func(r *RuleSpec) { r.Present = ptr(false) }))
	f(false, with(header("x-tier"), func(r *RuleSpec) { r.Present = ptr(false) }))

	equals := func(name string, value any) RuleSpec { return RuleSpec{Type: "body", Name: name, Equals: value} }
	f(true, equals("user", `ab"c`))
	f(false, equals("user", `ab"`))
	f(true, equals("user", `ab"c`))
	f(true, equals("key", "x"))
	f(false, equals("k\\u0065y", "x"))
	f(true, equals("seed", 7))
	f(true, equals("seed", int64(7)))
	f(true, equals("seed", 7.0))
	f(false, equals("seed", 7.5))
	f(false, equals("seed", "7"))
	f(true, equals("n", 2))
	f(true, equals("n", "2"))
	f(true, equals("on", 1))
	f(true, equals("on", true))
	f(false, equals("on", false))
	f(true, equals("off", false))
	f(false, equals("seed", true))
	f(false, equals("seed", false))
	f(true, equals("yes", true))
	f(true, equals("no", false))
	f(false, equals("user", true))
	f(false, equals("big", 1e308))
	f(false, equals("nan", 0))
	f(false, equals("nil", false))
	f(false, equals("nil", 0))
	f(false, equals("obj", 1))
	f(true, equals("twice", 2))
	f(false, equals("twice", 1))
	f(true, equals("model", "llama"))
	f(false, equals("Seed", 7))

	present := func(name string, want bool) RuleSpec { return RuleSpec{Type: "body", Name: name, Present: &want} }
	f(true, present("obj", true))
	f(false, present("obj", false))
	f(false, present("nil", true))
	f(true, present("nil", false))
	f(true, present("none", false))
	f(true, present("n", true))
	f(false, present("temperature", true))

	n := facts(t, body).Tokens()
	if n < 4 {
		t.Fatalf("unexpected number of tokens; got %d; want at least 4", n)
	}
	f(true, RuleSpec{Type: "context", MinTokens: n})
	f(true, RuleSpec{Type: "context", MaxTokens: n})
	f(true, RuleSpec{Type: "context", MinTokens: n, MaxTokens: n})
	f(false, RuleSpec{Type: "context", MinTokens: n + 1})
	f(false, RuleSpec{Type: "context", MaxTokens: n - 1})
}

// A request without a scanned body, a header and a model has none of them.
func TestDecisionNoBody(t *testing.T) {
	f := func(want bool, rule RuleSpec) {
		t.Helper()
		m, err := NewMatcher([]DecisionSpec{{Name: "d", Rules: &rule}})
		if err != nil {
			t.Fatalf("unexpected error for %+v: %v", rule, err)
		}
		if got := m.Match(&Facts{Surface: probe.SurfaceAudio}) == 0; got != want {
			t.Errorf("unexpected match of %+v; got %v; want %v", rule, got, want)
		}
	}
	f(false, model("m"))
	f(false, RuleSpec{Type: "tenant", Name: "t"})
	f(false, RuleSpec{Type: "path", Prefix: "/"})
	f(false, RuleSpec{Type: "header", Name: "a", Regex: ".*"})
	f(true, RuleSpec{Type: "header", Name: "a", Present: ptr(false)})
	f(false, RuleSpec{Type: "body", Name: "a", Equals: "x"})
	f(false, RuleSpec{Type: "body", Name: "n", Equals: 1})
	f(true, RuleSpec{Type: "body", Name: "a", Present: ptr(false)})
	f(false, RuleSpec{Type: "context", MinTokens: 1})
	f(true, RuleSpec{Type: "context", MaxTokens: 1})
}

// Values that pydantic-core reads as a bool in its lax mode, and neighbours.
func TestDecisionBool(t *testing.T) {
	f := func(value string, want, ok bool) {
		t.Helper()
		facts := facts(t, `{"a":`+value+`}`)
		m := facts.member("a", probe.FieldNone)
		got, gotOK := readBool(m.Val.Of(facts.Src), m.Kind)
		if got != want || gotOK != ok {
			t.Errorf("unexpected bool in %s; got %v, %v; want %v, %v", value, got, gotOK, want, ok)
		}
	}
	for _, value := range []string{`true`, `1`, `1.0`, `1e0`, `"1"`, `"on"`, `"ON"`, `"t"`, `"True"`, `"y"`, `"yes"`, `"\u0079es"`} {
		f(value, true, true)
	}
	for _, value := range []string{`false`, `0`, `-0`, `0.0`, `"0"`, `"off"`, `"f"`, `"FALSE"`, `"n"`, `"No"`, `"\u0066\u0061\u006c\u0073\u0065"`} {
		f(value, false, true)
	}
	for _, value := range []string{`2`, `0.5`, `NaN`, `1e400`, `""`, `" true"`, `"truee"`, `"1.0"`, `"2"`, `{}`, `[]`, `"` + strings.Repeat("y", 100) + `"`} {
		f(value, false, false)
	}
}
