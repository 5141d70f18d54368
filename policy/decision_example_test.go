package policy_test

import (
	"fmt"

	"sluice/policy"
	"sluice/probe"
)

// The highest priority whose rules hold takes the request; a decision without
// rules takes the rest.
func ExampleMatcher() {
	specs := []policy.DecisionSpec{
		{Name: "rest"},
		{Name: "free-tier", Priority: 100, Rules: &policy.RuleSpec{
			Operator: "AND",
			Conditions: []policy.RuleSpec{
				{Type: "model", Name: "llama-70b"},
				{Type: "body", Name: "service_tier", Equals: "free"},
			},
		}},
	}
	matcher, err := policy.NewMatcher(specs)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := []byte(`{"model":"llama-70b","service_tier":"default"}`)
	var body probe.Body
	if fault := probe.Scan(src, probe.SurfaceChat, 0, &body); fault != probe.FaultNone {
		fmt.Println(fault)
		return
	}
	facts := policy.Facts{Surface: probe.SurfaceChat, Model: []byte("llama-70b"), Src: src, Body: &body}
	fmt.Println(specs[matcher.Match(&facts)].Name)
	for _, step := range matcher.Trace(&facts, 1) {
		fmt.Printf("%s: %s? %v, seen %q\n", step.Path, step.Condition, step.Holds, step.Seen)
	}
	// Output:
	// rest
	// rules: AND? false, seen ""
	// rules.conditions[0]: model is "llama-70b"? true, seen "\"llama-70b\""
	// rules.conditions[1]: body "service_tier" is "free"? false, seen "\"default\""
}

// A session stays with its pool, and with its side of a rollout.
func ExampleShares() {
	shares, err := policy.NewShares([]policy.ShareSpec{{Name: "stable", Weight: 3}, {Name: "next", Weight: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, session := range []string{"session-1", "session-2", "session-3", "session-1"} {
		hash := policy.RequestHash([]byte(session), nil)
		fmt.Println(session, shares.Pick(hash), policy.InShare(hash, 0.5))
	}
	// Output:
	// session-1 0 true
	// session-2 1 true
	// session-3 0 false
	// session-1 0 true
}

func ExampleParseTokens() {
	for _, s := range []string{"4096", "32K", "1.5M", "0.5"} {
		fmt.Println(policy.ParseTokens(s))
	}
	// Output:
	// 4096 <nil>
	// 32000 <nil>
	// 1500000 <nil>
	// 0 cannot read "0.5" as a number of tokens: not whole
}
