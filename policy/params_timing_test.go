package policy

import (
	"encoding/json"
	"testing"

	"github.com/bytedance/sonic"

	"sluice/probe"
)

var paramsTimings = []struct {
	name    string
	spec    ParamsSpec
	params  map[string]any // of the contract, by replace
	members string
}{
	{"untouched", ParamsSpec{BlockedParams: []string{"logprobs", "top_logprobs"}, MaxTokensLimit: 500, MaxN: 1}, map[string]any{"temperature": 1, "top_p": band(0.9, 1)}, `"temperature":1,"top_p":0.95,`},
	{"untouched_strip", ParamsSpec{BlockedParams: []string{"logprobs", "top_logprobs"}, MaxTokensLimit: 500, MaxN: 1, StripUnknown: true}, map[string]any{"temperature": 1, "top_p": band(0.9, 1)}, `"temperature":1,"top_p":0.95,`},
	{
		"edit8",
		ParamsSpec{BlockedParams: []string{"logprobs", "top_logprobs"}, MaxTokensLimit: 100, MaxN: 1, StripUnknown: true},
		map[string]any{"temperature": 1, "top_p": band(0.9, 1), "min_p": 0},
		`"temperature":5,"top_p":0.5,"n":2,"logprobs":true,"top_logprobs":5,"zap":1,`,
	},
	{"default", ParamsSpec{BlockedParams: []string{"max_tokens"}, DefaultMaxTokens: 100}, nil, ``},
}

// BenchmarkParams measures what request_params and the contract together add to
// the scan: judge, plan, segments.
func BenchmarkParams(b *testing.B) {
	for _, tc := range paramsTimings {
		b.Run(tc.name, func(b *testing.B) { benchmarkParams(b, tc.spec, tc.params, tc.members, false) })
	}
}

// BenchmarkParamsPipeline measures scan, judge, plan and one edited body in a
// buffer, which is what BenchmarkParamsDecodeEncode does the usual way.
func BenchmarkParamsPipeline(b *testing.B) {
	for _, tc := range paramsTimings {
		b.Run(tc.name, func(b *testing.B) { benchmarkParams(b, tc.spec, tc.params, tc.members, true) })
	}
}

func benchmarkParams(b *testing.B, spec ParamsSpec, governed map[string]any, members string, whole bool) {
	ps := params(b, spec)
	var c *Contract
	if governed != nil {
		c = contract(b, "replace", governed)
	}
	src := kib(members)
	r := paramsRun{ps: ps, c: c, src: src}
	if fault := probe.Scan(src, probe.SurfaceChat, c.Numbers(), &r.body); fault != probe.FaultNone {
		b.Fatalf("cannot scan: %v", fault)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if whole {
			probe.Scan(src, probe.SurfaceChat, c.Numbers(), &r.body)
		}
		if !r.run(whole) {
			b.Fatal("refused")
		}
	}
}

// paramsRun is the state of one request, used again and again. (The loop of the
// benchmark calls a method: with these lines in it, the compiler of Go 1.26
// crashes.)
type paramsRun struct {
	ps       *Params
	c        *Contract
	src      []byte
	body     probe.Body
	plan     Plan
	segments [][]byte
	out      []byte
}

// run reports false for a request that is refused.
func (r *paramsRun) run(whole bool) bool {
	r.plan.Reset(&r.body)
	if v := r.ps.Judge(r.src, &r.body, probe.SurfaceChat, EngineVLLM, &r.plan); v.Refused {
		return false
	}
	if v := r.c.Judge(&r.body, probe.SurfaceChat, &r.plan); v.Refused {
		return false
	}
	switch {
	case whole:
		r.out = r.plan.AppendTo(r.out[:0], r.src)
	case r.plan.Empty():
		r.segments = append(r.segments[:0], r.src)
	default:
		r.segments = r.plan.AppendSegments(r.segments[:0], r.src)
	}
	return true
}

// BenchmarkParamsDecodeEncode is the baseline: decode into a map, delete and set
// members, encode the map.
func BenchmarkParamsDecodeEncode(b *testing.B) {
	codecs := []struct {
		name      string
		unmarshal func([]byte, any) error
		marshal   func(any) ([]byte, error)
	}{
		{"json", json.Unmarshal, json.Marshal},
		{"sonic", sonic.ConfigDefault.Unmarshal, sonic.ConfigDefault.Marshal},
	}
	for _, codec := range codecs {
		for _, tc := range paramsTimings {
			b.Run(codec.name+"/"+tc.name, func(b *testing.B) {
				src := kib(tc.members)
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					var m map[string]any
					if err := codec.unmarshal(src, &m); err != nil {
						b.Fatalf("cannot decode: %v", err)
					}
					editMap(m, tc.spec, tc.params)
					if _, err := codec.marshal(m); err != nil {
						b.Fatalf("cannot encode: %v", err)
					}
				}
			})
		}
	}
}

// editMap does the work of request_params and of a contract on a decoded body.
func editMap(m map[string]any, spec ParamsSpec, governed map[string]any) {
	for _, key := range spec.BlockedParams {
		delete(m, key)
	}
	if n, ok := m["max_tokens"].(float64); ok && spec.MaxTokensLimit > 0 {
		m["max_tokens"] = min(int(n), spec.MaxTokensLimit)
	}
	if n, ok := m["n"].(float64); ok && spec.MaxN > 0 {
		m["n"] = min(int(n), spec.MaxN)
	}
	for key, value := range governed {
		m[key] = value
	}
}
