package policy

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestDecisionFaults(t *testing.T) {
	// f wants the faults of a decision with the given rules, each "path: text".
	f := func(rule RuleSpec, want ...string) {
		t.Helper()
		checkFaults(t, []DecisionSpec{{Name: "ok"}, {Name: "d", Rules: &rule}}, want...)
	}
	f(RuleSpec{}, `decisions[1].rules: null is no rule; expected an operator (AND, OR, NOT) or a type (model, surface, path, header, tenant, stream, context, body)`)
	f(RuleSpec{Operator: "and", Conditions: []RuleSpec{model("m")}}, `decisions[1].rules.operator: "and" is unknown; expected AND, OR, NOT`)
	f(RuleSpec{Operator: "AND"}, `decisions[1].rules.conditions: null is no list of conditions; expected one or more`)
	f(RuleSpec{Operator: "NOT", Conditions: []RuleSpec{model("a"), model("b")}}, `decisions[1].rules.conditions: 2 conditions stand under NOT; expected exactly one`)
	f(RuleSpec{Operator: "OR", Type: "model", Name: "m", Conditions: []RuleSpec{model("a")}},
		`decisions[1].rules.type: "model" stands beside an operator; expected one of the two`,
		`decisions[1].rules.name: "m" stands beside an operator; expected it in one of the conditions`)
	f(RuleSpec{Type: "model", Name: "m", Conditions: []RuleSpec{model("a")}},
		`decisions[1].rules.conditions: 1 conditions stand beside a type; expected an operator over them`)
	f(RuleSpec{Type: "modle", Name: "m"}, `decisions[1].rules.type: "modle" is unknown (did you mean "model"?); expected model, surface, path, header, tenant, stream, context, body`)
	f(and(model("a"), or(model("b"), RuleSpec{Type: "tenant"})), `decisions[1].rules.conditions[1].conditions[1]: "tenant" has no name, which it needs`)
	f(RuleSpec{Type: "model"}, `decisions[1].rules: "model" has no name, which it needs`)
	f(RuleSpec{Type: "model", Name: "m", Exact: "m"}, `decisions[1].rules.exact: "m" does not belong to a condition of type model; expected name`)
	f(RuleSpec{Type: "surface", Name: "chats"},
		`decisions[1].rules.name: "chats" is no surface (did you mean "chat"?); expected chat, completions, responses, messages, generate, embeddings, rerank, score, classify, moderations, audio, images, ocr, tokenize, detokenize`)
	f(RuleSpec{Type: "surface", Name: "none"}, `decisions[1].rules.name: "none" is no surface`)
	f(RuleSpec{Type: "path"}, `decisions[1].rules: "path" has 0 of exact, prefix; expected exactly one`)
	f(RuleSpec{Type: "path", Exact: "/a", Prefix: "/b"}, `decisions[1].rules: "path" has 2 of exact, prefix; expected exactly one`)
	f(RuleSpec{Type: "path", Regex: "/a"},
		`decisions[1].rules.regex: "/a" does not belong to a condition of type path; expected exact, prefix`,
		`decisions[1].rules: "path" has 0 of exact, prefix; expected exactly one`)
	f(RuleSpec{Type: "header", Exact: "x"}, `decisions[1].rules: "header" has no name, which it needs`)
	f(RuleSpec{Type: "header", Name: "a b", Exact: "x"}, `decisions[1].rules.name: "a b" is no name of a header field; expected letters, digits and -`)
	f(RuleSpec{Type: "header", Name: "a"}, `decisions[1].rules: "header" has 0 of exact, prefix, regex, present; expected exactly one`)
	f(RuleSpec{Type: "header", Name: "a", Regex: "x", Present: ptr(false)}, `decisions[1].rules: "header" has 2 of exact, prefix, regex, present; expected exactly one`)
	f(RuleSpec{Type: "header", Name: "a", Regex: "a("}, `decisions[1].rules.regex: "a(" cannot be compiled: error parsing regexp: missing closing )`)
	f(RuleSpec{Type: "header", Name: "a", Regex: `(?=a)`}, `decisions[1].rules.regex: "(?=a)" cannot be compiled: error parsing regexp: invalid or unsupported Perl syntax`)
	f(RuleSpec{Type: "header", Name: "a", Regex: strings.Repeat("a", MaxRegex+1)}, `decisions[1].rules.regex: "aaaa`)
	f(RuleSpec{Type: "stream"}, `decisions[1].rules: "stream" has no value, which it needs`)
	f(RuleSpec{Type: "stream", Value: ptr(true), Present: ptr(true)}, `decisions[1].rules.present: true does not belong to a condition of type stream; expected value`)
	f(RuleSpec{Type: "context"}, `decisions[1].rules: "context" has none of min_tokens, max_tokens; expected one or more`)
	f(RuleSpec{Type: "context", MinTokens: -1}, `decisions[1].rules.min_tokens: -1 is negative; expected a number of tokens`)
	f(RuleSpec{Type: "context", MaxTokens: -1}, `decisions[1].rules.max_tokens: -1 is negative; expected a number of tokens`)
	f(RuleSpec{Type: "context", MinTokens: 2, MaxTokens: 1}, `decisions[1].rules: "context" has min_tokens 2 > max_tokens 1; expected min_tokens <= max_tokens`)
	f(RuleSpec{Type: "body", Equals: 1}, `decisions[1].rules: "body" has no name, which it needs`)
	f(RuleSpec{Type: "body", Name: "a"}, `decisions[1].rules: "body" has 0 of equals, present; expected exactly one`)
	f(RuleSpec{Type: "body", Name: "a", Equals: 1, Present: ptr(true)}, `decisions[1].rules: "body" has 2 of equals, present; expected exactly one`)
	f(RuleSpec{Type: "body", Name: "a", Equals: []any{1}}, `decisions[1].rules.equals: [1] is a list; expected a string, a number or a bool`)
	f(RuleSpec{Type: "body", Name: "a", Equals: math.NaN()}, `decisions[1].rules.equals: NaN is not finite; expected a string, a number or a bool`)

	deep := model("m")
	for range MaxRuleDepth {
		deep = not(deep)
	}
	f(deep, `decisions[1].rules`+strings.Repeat(".conditions[0]", MaxRuleDepth)+`: "model" is nested too deep; expected at most 32 levels`)

	checkFaults(t, []DecisionSpec{{Name: "a"}, {}, {Name: "a"}, {Name: "b", Rules: &RuleSpec{Type: "model"}}},
		`decisions[1].name: "" is empty; expected a name`,
		`decisions[2].name: "a" is the name of decisions[0], too; expected one of its own`,
		`decisions[3].rules: "model" has no name, which it needs`)
}

// checkFaults wants that the faults of specs begin with the given texts.
func checkFaults(t *testing.T, specs []DecisionSpec, want ...string) {
	t.Helper()
	_, err := NewMatcher(specs)
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Errorf("unexpected error; got %v; want %q", err, want)
		return
	}
	var got []string
	for _, err := range joined.Unwrap() {
		var spec *SpecError
		if !errors.As(err, &spec) {
			t.Errorf("unexpected type of an error; got %T; want *SpecError", err)
		}
		got = append(got, err.Error())
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("unexpected faults;\ngot  %q\nwant %q", got, want)
	}
}
