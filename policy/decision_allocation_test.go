//go:build !race

package policy

import (
	"strings"
	"testing"
)

func TestDecisionAllocations(t *testing.T) {
	header := tier{[]byte("gold"), []byte("free")}
	f := func(want int, rule RuleSpec) {
		t.Helper()
		m := matcher(t, append(tiers(500), DecisionSpec{Name: "x", Priority: -1, Rules: &rule}))
		facts := facts(t, `{"k\u0065y":"a\u0062c","t":"\u0074RUE","seed":"7","messages":[{"content":"`+strings.Repeat("word \\n", 100)+`"}]}`)
		facts.Header = &header
		got := 0
		if n := testing.AllocsPerRun(200, func() {
			facts.tokens = 0
			got = m.Match(facts)
		}); n != 0 {
			t.Errorf("unexpected number of allocations of %+v; got %v; want 0", rule, n)
		}
		if got != want {
			t.Errorf("unexpected match of %+v; got %d; want %d", rule, got, want)
		}
	}
	f(500, model("llama"))
	f(-1, model("other"))
	f(500, and(RuleSpec{Type: "surface", Name: "chat"}, not(RuleSpec{Type: "tenant", Name: "t"}), RuleSpec{Type: "path", Prefix: "/v1"}))
	f(500, RuleSpec{Type: "header", Name: "x-tier", Exact: "free"})
	f(500, RuleSpec{Type: "header", Name: "x-tier", Regex: "^(silver|free)$"})
	f(500, RuleSpec{Type: "body", Name: "key", Equals: "abc"})
	f(500, RuleSpec{Type: "body", Name: "t", Equals: true})
	f(500, RuleSpec{Type: "body", Name: "seed", Equals: 7})
	f(500, RuleSpec{Type: "context", MinTokens: 50})

	s := shares(t, 1, 2, 3)
	session, body := []byte("session"), []byte(strings.Repeat("body", 1000))
	if n := testing.AllocsPerRun(200, func() {
		if s.Pick(RequestHash(session, nil)) > 2 || InShare(RequestHash(nil, body), 0) {
			t.Error("unexpected share")
		}
	}); n != 0 {
		t.Errorf("unexpected number of allocations of the hashes; got %v; want 0", n)
	}
}
