package policy

import "testing"

func TestNarrow(t *testing.T) {
	base := ContractSpec{OnConflict: "reject", Params: map[string]any{
		"temperature": map[string]any{"min": 0.5, "max": 1},
		"top_p":       1,
	}}
	ok := func(by ContractSpec, base ContractSpec, params int) {
		t.Helper()
		got, err := base.Narrow(by)
		if err != nil {
			t.Fatalf("Narrow(%v) failed: %v", by, err)
		}
		if len(got.Params) != params {
			t.Errorf("unexpected params of Narrow(%v); got %v; want %d of them", by, got.Params, params)
		}
		if _, err := NewContract(got); err != nil {
			t.Errorf("Narrow(%v) returned a spec that is none: %v", by, err)
		}
	}
	ok(ContractSpec{Params: map[string]any{"temperature": 0.7}}, base, 2)
	ok(ContractSpec{Params: map[string]any{"temperature": map[string]any{"min": 0.5, "max": 0.6}, "n": 1}}, base, 3)
	ok(ContractSpec{OnConflict: "replace", Params: map[string]any{"top_p": 1.0}}, base, 2)
	ok(ContractSpec{OnConflict: "observe", Params: map[string]any{"n": 1}}, ContractSpec{}, 1)
	ok(ContractSpec{OnConflict: "reject", Params: map[string]any{"n": 1}}, ContractSpec{OnConflict: "observe", Params: map[string]any{"n": 1}}, 1)
	if len(base.Params) != 2 {
		t.Errorf("Narrow has changed its receiver: %v", base.Params)
	}

	fails := func(by ContractSpec, want string) {
		t.Helper()
		_, err := base.Narrow(by)
		if err == nil || err.Error() != want {
			t.Errorf("unexpected error of Narrow(%v)\n got %v\nwant %s", by, err, want)
		}
	}
	fails(ContractSpec{Params: map[string]any{"temperature": 0.4}},
		"params.temperature: 0.4 is not within {max: 1, min: 0.5}, the rule that it narrows")
	fails(ContractSpec{Params: map[string]any{"temperature": map[string]any{"min": 0.5, "max": 1.5}}},
		"params.temperature: {max: 1.5, min: 0.5} is not within {max: 1, min: 0.5}, the rule that it narrows")
	fails(ContractSpec{Params: map[string]any{"top_p": 0.9}},
		"params.top_p: 0.9 is not within 1, the rule that it narrows")
	fails(ContractSpec{OnConflict: "observe", Params: map[string]any{"n": 1}},
		`on_conflict: "observe" would weaken the contract that this one narrows, which is held by reject`)
	fails(ContractSpec{Params: map[string]any{"tempreature": 1}},
		"params.tempreature: 1 is for an unknown parameter (did you mean \"temperature\"?); expected one of temperature, top_p, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, n")
}
