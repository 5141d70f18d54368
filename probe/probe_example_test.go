package probe_test

import (
	"fmt"

	"sluice/probe"
)

func ExampleScan() {
	src := []byte(`{"model":"llama","temper\u0061ture":"0.50","messages":[{"role":"user","content":"hi"}]}`)
	var body probe.Body
	wanted := probe.FieldSet(0).With(probe.FieldTemperature)
	if fault := probe.Scan(src, probe.SurfaceChat, wanted, &body); fault != probe.FaultNone {
		fmt.Println(fault)
		return
	}
	m := body.Last(probe.FieldTemperature)
	fmt.Printf("%s: %s is %v at %d\n", m.Field, m.Val.Of(src), m.Num, m.Val.Start)
	// Output: temperature: "0.50" is 0.5 at 36
}

func ExampleStream() {
	var s probe.Stream
	s.Reset(probe.SurfaceChat)
	s.Feed([]byte(`data: {"choices":[],"usage":{"prompt_tokens":7,`))
	s.Feed([]byte(`"completion_tokens":3}}` + "\n\ndata: [DONE]\n\n"))
	s.End()
	fmt.Println(s.Events, s.Done, s.Usage.PromptTokens, s.Usage.CompletionTokens)
	// Output: 2 true 7 3
}

func ExampleReadWhole() {
	for _, text := range []string{"500.0", "5e2", "1e30", "0.5"} {
		n, ok, huge := probe.ReadWhole([]byte(text), probe.KindNumber)
		fmt.Println(n, ok, huge)
	}
	// Output:
	// 500 true false
	// 500 true false
	// 9223372036854775807 true true
	// 0 false false
}
