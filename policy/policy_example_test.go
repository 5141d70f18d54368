package policy_test

import (
	"fmt"

	"sluice/policy"
	"sluice/probe"
)

// A request walks from the scan to the segments that go to the engine.
func ExampleContract() {
	contract, err := policy.NewContract(policy.ContractSpec{
		OnConflict: "reject",
		Params: map[string]any{
			"temperature": 1,
			"top_p":       map[string]any{"min": 0.9, "max": 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var body probe.Body
	var plan policy.Plan
	for _, src := range []string{
		`{"model": "m", "top_p": 0.95}`,
		`{"model": "m", "top_p": 0.5}`,
	} {
		if fault := probe.Scan([]byte(src), probe.SurfaceChat, contract.Numbers(), &body); fault != probe.FaultNone {
			fmt.Println(fault)
			return
		}
		plan.Reset(&body)
		verdict := contract.Judge(&body, probe.SurfaceChat, &plan)
		if verdict.Refused {
			fmt.Printf("%s\n", verdict.AppendMessage(nil))
			continue
		}
		for _, segment := range plan.AppendSegments(nil, []byte(src)) {
			fmt.Printf("%s\n", segment)
		}
	}
	// Output:
	// {
	// "temperature":1,
	// "model": "m", "top_p": 0.95}
	// top_p violates this deployment's sampling contract: must be between 0.9 and 1, got 0.5
}

// A plan replaces the alias that the client named by the model behind it.
func ExamplePlan() {
	src := []byte(`{ "model" : "llama-70b", "seed" : 9007199254740993 }`)
	model, err := policy.NewLiteral("model", []byte(`"meta-llama/Llama-3.1-70B-Instruct"`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var body probe.Body
	if fault := probe.Scan(src, probe.SurfaceChat, 0, &body); fault != probe.FaultNone {
		fmt.Println(fault)
		return
	}
	var plan policy.Plan
	plan.Reset(&body)
	plan.Replace(body.Last(probe.FieldModel), model)
	fmt.Printf("%s\n", plan.AppendTo(nil, src))
	// Output:
	// { "model" : "meta-llama/Llama-3.1-70B-Instruct", "seed" : 9007199254740993 }
}
