package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bytedance/sonic"

	"sluice/probe"
)

// kib is a chat body of 1 KiB that begins with the given members.
func kib(members string) []byte {
	head := `{` + members + `"model":"meta-llama/Llama-3.1-70B-Instruct","stream":true,"seed":7,"user":"u-1","max_tokens":256,"messages":[{"role":"user","content":"`
	const tail = `"}]}`
	return []byte(head + strings.Repeat("a", 1024-len(head)-len(tail)) + tail)
}

var timings = []struct {
	name, mode string
	params     map[string]any
	members    string
}{
	{"untouched", "reject", map[string]any{"temperature": 1, "top_p": band(0.9, 1)}, `"temperature":1,"top_p":0.95,`},
	{"inject2", "reject", map[string]any{"temperature": 1, "top_p": 1}, ``},
	{"edit8", "replace", all, `"temperature":5,"top_p":0.5,"top_k":9,"n":2,`},
	{"refused", "reject", map[string]any{"temperature": 1}, `"temperature":0.5,`},
}

// BenchmarkJudge measures what policy adds to the scan: judge, plan, segments.
func BenchmarkJudge(b *testing.B) {
	for _, tc := range timings {
		b.Run(tc.name, func(b *testing.B) { benchmark(b, tc.mode, tc.params, tc.members, false) })
	}
}

// BenchmarkPipeline measures scan, judge, plan and one edited body in a buffer,
// which is what BenchmarkDecodeEncode does the usual way.
func BenchmarkPipeline(b *testing.B) {
	for _, tc := range timings {
		b.Run(tc.name, func(b *testing.B) { benchmark(b, tc.mode, tc.params, tc.members, true) })
	}
}

func benchmark(b *testing.B, mode string, params map[string]any, members string, whole bool) {
	c := contract(b, mode, params)
	src := kib(members)
	var body probe.Body
	var plan Plan
	var segments [][]byte
	var out []byte
	if fault := probe.Scan(src, probe.SurfaceChat, c.Numbers(), &body); fault != probe.FaultNone {
		b.Fatalf("cannot scan: %v", fault)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if whole {
			probe.Scan(src, probe.SurfaceChat, c.Numbers(), &body)
		}
		plan.Reset(&body)
		v := c.Judge(&body, probe.SurfaceChat, &plan)
		switch {
		case v.Refused:
		case whole:
			out = plan.AppendTo(out[:0], src)
		default:
			segments = plan.AppendSegments(segments[:0], src)
		}
	}
}

// BenchmarkDecodeEncode is the baseline: decode into a map, set the parameters,
// encode the map.
func BenchmarkDecodeEncode(b *testing.B) {
	codecs := []struct {
		name      string
		unmarshal func([]byte, any) error
		marshal   func(any) ([]byte, error)
	}{
		{"json", json.Unmarshal, json.Marshal},
		{"sonic", sonic.ConfigDefault.Unmarshal, sonic.ConfigDefault.Marshal},
	}
	for _, codec := range codecs {
		for _, tc := range timings[:3] {
			b.Run(codec.name+"/"+tc.name, func(b *testing.B) {
				src := kib(tc.members)
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					var m map[string]any
					if err := codec.unmarshal(src, &m); err != nil {
						b.Fatalf("cannot decode: %v", err)
					}
					for key, value := range tc.params {
						m[key] = value
					}
					if _, err := codec.marshal(m); err != nil {
						b.Fatalf("cannot encode: %v", err)
					}
				}
			})
		}
	}
}

// BenchmarkJudgeBatch judges a batch of 64 objects on the generate surface.
func BenchmarkJudgeBatch(b *testing.B) {
	c := contract(b, "reject", map[string]any{"temperature": 1, "top_p": 1})
	src := []byte(`{"sampling_params":[` + strings.Repeat(`{"max_new_tokens":16,"temperature":1},`, 63) + `{}]}`)
	var body probe.Body
	var plan Plan
	var segments [][]byte
	if fault := probe.Scan(src, probe.SurfaceGenerate, c.Numbers(), &body); fault != probe.FaultNone {
		b.Fatalf("cannot scan: %v", fault)
	}
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		plan.Reset(&body)
		if v := c.Judge(&body, probe.SurfaceGenerate, &plan); v.Refused {
			b.Fatal("refused")
		}
		segments = plan.AppendSegments(segments[:0], src)
	}
}
