package policy

import (
	"testing"

	"sluice/probe"
)

func matcher(tb testing.TB, specs []DecisionSpec) *Matcher {
	tb.Helper()
	m, err := NewMatcher(specs)
	if err != nil {
		tb.Fatalf("unexpected error: %v", err)
	}
	return m
}

func TestDecisionOrder(t *testing.T) {
	rules := func(r RuleSpec) *RuleSpec { return &r }
	chat := RuleSpec{Type: "surface", Name: "chat"}
	specs := []DecisionSpec{
		{Name: "rest", Priority: -10},
		{Name: "b", Priority: 5, Rules: rules(model("m"))},
		{Name: "a", Priority: 5, Rules: rules(model("m"))},
		{Name: "top", Priority: 9, Rules: rules(and(model("m"), RuleSpec{Type: "stream", Value: ptr(true)}))},
		{Name: "tenant", Priority: 7, Rules: rules(RuleSpec{Type: "tenant", Name: "t"})},
		{Name: "chat", Priority: 6, Rules: rules(and(chat, RuleSpec{Type: "path", Prefix: "/c"}))},
		{Name: "never", Priority: 99, Rules: rules(and(model("m"), model("n")))},
		{Name: "either", Priority: 4, Rules: rules(or(model("x"), model("y"), model("x")))},
	}
	m := matcher(t, specs)
	f := func(want string, f Facts) {
		t.Helper()
		got := "none"
		if i := m.Match(&f); i >= 0 {
			got = specs[i].Name
		}
		if got != want {
			t.Errorf("unexpected decision for %+v; got %s; want %s", f, got, want)
		}
	}
	f("rest", Facts{})
	f("a", Facts{Model: []byte("m")})
	f("top", Facts{Model: []byte("m"), Stream: true})
	f("top", Facts{Model: []byte("m"), Stream: true, Tenant: []byte("t")})
	f("tenant", Facts{Model: []byte("m"), Tenant: []byte("t")})
	f("tenant", Facts{Tenant: []byte("t"), Surface: probe.SurfaceChat, Path: []byte("/c")})
	f("chat", Facts{Model: []byte("m"), Surface: probe.SurfaceChat, Path: []byte("/c")})
	f("a", Facts{Model: []byte("m"), Surface: probe.SurfaceGenerate, Path: []byte("/c")})
	f("either", Facts{Model: []byte("y")})
	f("either", Facts{Model: []byte("x"), Surface: probe.NumSurfaces + 3})
	f("rest", Facts{Model: []byte("z")})

	if got := (*Matcher)(nil).Match(&Facts{}); got != -1 {
		t.Errorf("unexpected match without a matcher; got %d; want -1", got)
	}
	if got := matcher(t, nil).Match(&Facts{}); got != -1 {
		t.Errorf("unexpected match without decisions; got %d; want -1", got)
	}
}

// What stands under NOT does not bind the index.
func TestDecisionNotOfModel(t *testing.T) {
	rule := and(not(model("m")), not(RuleSpec{Type: "surface", Name: "chat"}), not(RuleSpec{Type: "tenant", Name: "t"}))
	m := matcher(t, []DecisionSpec{{Name: "d", Rules: &rule}})
	f := func(want int, f Facts) {
		t.Helper()
		if got := m.Match(&f); got != want {
			t.Errorf("unexpected match for %+v; got %d; want %d", f, got, want)
		}
	}
	f(0, Facts{})
	f(0, Facts{Model: []byte("n"), Surface: probe.SurfaceGenerate, Tenant: []byte("u")})
	f(-1, Facts{Model: []byte("m")})
	f(-1, Facts{Surface: probe.SurfaceChat})
	f(-1, Facts{Tenant: []byte("t")})
}
