package policy_test

import (
	"fmt"

	"sluice/policy"
	"sluice/probe"
)

// Blocked members go, limits are lowered where the client wrote them, and what is
// no limit at all is refused.
func ExampleParams() {
	params, err := policy.NewParams(policy.ParamsSpec{
		BlockedParams:    []string{"logprobs"},
		MaxTokensLimit:   500,
		DefaultMaxTokens: 100,
		MaxN:             1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var body probe.Body
	var plan policy.Plan
	for _, src := range []string{
		`{"model": "m", "logpr\u006fbs": true, "max_completion_tokens": 1e30, "n": "3"}`,
		`{"model": "m"}`,
		`{"model": "m", "max_tokens": 0.5}`,
	} {
		if fault := probe.Scan([]byte(src), probe.SurfaceChat, 0, &body); fault != probe.FaultNone {
			fmt.Println(fault)
			return
		}
		plan.Reset(&body)
		verdict := params.Judge([]byte(src), &body, probe.SurfaceChat, policy.EngineVLLM, &plan)
		if verdict.Refused {
			fmt.Printf("%s\n", verdict.AppendMessage(nil))
			continue
		}
		fmt.Printf("%s\n", plan.AppendTo(nil, []byte(src)))
	}
	// Output:
	// {"model": "m", "max_completion_tokens": 500, "n": 1}
	// {"max_tokens":100,"model": "m"}
	// max_tokens violates this deployment's request limits: must be a whole number >= 1 (above 500 it is lowered to that), got 0.5
}

// The strongest layer is applied first; the others fill in what is not set.
func ExampleLayer() {
	force, err := policy.NewLayer(policy.LayerSpec{Kind: policy.LayerForce, Members: []policy.Pair{
		{Key: "response_format", Value: []byte(`{"type":"json_object"}`)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	extra, err := policy.NewLayer(policy.LayerSpec{Kind: policy.LayerExtraBody, Members: []policy.Pair{
		{Key: "temperature", Value: []byte(`0`)},
		{Key: "seed", Value: []byte(`7`)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	src := []byte(`{"model": "m", "response_format": {"type": "text"}, "temperature": 0.5}`)
	var body probe.Body
	if fault := probe.Scan(src, probe.SurfaceChat, 0, &body); fault != probe.FaultNone {
		fmt.Println(fault)
		return
	}
	var plan policy.Plan
	plan.Reset(&body)
	force.Apply(src, &body, probe.SurfaceChat, &plan)
	extra.Apply(src, &body, probe.SurfaceChat, &plan)
	fmt.Printf("%s\n", plan.AppendTo(nil, src))
	fmt.Printf("%s\n", policy.AppendSampling(nil, src, &body, probe.SurfaceChat, extra))
	// Output:
	// {"seed":7,"model": "m", "response_format": {"type":"json_object"}, "temperature": 0.5}
	// {"seed":7,"temperature":0.5}
}
