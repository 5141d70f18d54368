package policy

import (
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

func TestDecisionTrace(t *testing.T) {
	long := strings.Repeat("é", 100)
	f := facts(t, `{"seed":7,"user":"`+long+`","nil":null,"prompt":"hello"}`)
	f.Header = fields{"x-tier": {"gold", "free"}, "x-many": {"1", "2", "3", "4", "5", "6"}, "x-long": {long}}
	rule := and(
		model("llama"),
		not(RuleSpec{Type: "surface", Name: "chat"}),
		RuleSpec{Type: "path", Prefix: "/v1/"},
		or(
			RuleSpec{Type: "header", Name: "x-tier", Exact: "free"},
			RuleSpec{Type: "header", Name: "x-many", Regex: "^6$"},
			RuleSpec{Type: "header", Name: "x-none", Present: ptr(true)},
			RuleSpec{Type: "header", Name: "x-long", Present: ptr(false)},
		),
		RuleSpec{Type: "tenant", Name: "other"},
		RuleSpec{Type: "stream", Value: ptr(true)},
		RuleSpec{Type: "context", MinTokens: 1},
		RuleSpec{Type: "context", MaxTokens: 1000},
		RuleSpec{Type: "body", Name: "seed", Equals: 7},
		RuleSpec{Type: "body", Name: "seed", Equals: true},
		RuleSpec{Type: "body", Name: "user", Equals: "x"},
		RuleSpec{Type: "body", Name: "nil", Present: ptr(false)},
	)
	m := matcher(t, []DecisionSpec{{Name: "all"}, {Name: "d", Rules: &rule}})
	cut := strings.Repeat("é", 40) + "…"
	want := []Step{
		{"rules", "AND", false, ""},
		{"rules.conditions[0]", `model is "llama"`, true, `"llama"`},
		{"rules.conditions[1]", `NOT`, false, ""},
		{"rules.conditions[1].conditions[0]", `surface is chat`, true, "chat"},
		{"rules.conditions[2]", `path begins with "/v1/"`, true, `"/v1/chat/completions"`},
		{"rules.conditions[3]", `OR`, true, ""},
		{"rules.conditions[3].conditions[0]", `header "x-tier" is "free"`, true, `"gold", "free"`},
		{"rules.conditions[3].conditions[1]", `header "x-many" matches "^6$"`, true, `"1", "2", "3", "4" and 2 more`},
		{"rules.conditions[3].conditions[2]", `header "x-none" is present`, false, "absent"},
		{"rules.conditions[3].conditions[3]", `header "x-long" is absent`, false, strings.ToValidUTF8((`"` + cut)[:80], "") + "…"},
		{"rules.conditions[4]", `tenant is "other"`, false, `"acme"`},
		{"rules.conditions[5]", `stream is true`, false, "false"},
		{"rules.conditions[6]", `context has 1 or more tokens`, true, "1 tokens"},
		{"rules.conditions[7]", `context has 0 to 1000 tokens`, true, "1 tokens"},
		{"rules.conditions[8]", `body "seed" is 7`, true, "7"},
		{"rules.conditions[9]", `body "seed" is true`, false, "7"},
		{"rules.conditions[10]", `body "user" is "x"`, false, strings.ToValidUTF8((`"` + long)[:80], "") + "…"},
		{"rules.conditions[11]", `body "nil" is absent`, true, "absent"},
	}
	if got := m.Trace(f, 1); !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i < min(len(got), len(want)) && got[i] != want[i] {
				t.Errorf("unexpected step %d;\ngot  %+v\nwant %+v", i, got[i], want[i])
			}
		}
		t.Fatalf("unexpected number of steps or step; got %d; want %d", len(got), len(want))
	}
	if got := m.Trace(f, 0); got != nil {
		t.Errorf("unexpected steps of a decision without rules; got %+v", got)
	}
	if got := m.Trace(f, -1); got != nil {
		t.Errorf("unexpected steps of no decision; got %+v", got)
	}
	if got := (*Matcher)(nil).Trace(f, -1); got != nil {
		t.Errorf("unexpected steps without a matcher; got %+v", got)
	}
	if got := m.Trace(&Facts{Surface: probe.SurfaceAudio}, 1)[1].Seen; got != "none" {
		t.Errorf("unexpected model of a request that has none; got %q; want none", got)
	}
}
