//go:build !race

package policy

import (
	"strings"
	"testing"

	"sluice/probe"
)

func TestParamsAllocations(t *testing.T) {
	f := func(name string, spec ParamsSpec, s probe.Surface, body string) {
		t.Helper()
		ps := params(t, spec)
		src := []byte(body)
		var b probe.Body
		var p Plan
		var room AutoLimit
		var out, message []byte
		if fault := probe.Scan(src, s, 0, &b); fault != probe.FaultNone {
			t.Fatalf("cannot scan %q: %v", body, fault)
		}
		run := func() {
			p.Reset(&b)
			v := ps.Judge(src, &b, s, EngineSGLang, &p)
			message = v.AppendMessage(message[:0])
			ps.GiveLimit(77, &b, s, EngineSGLang, &p, &room)
			out = p.AppendTo(out[:0], src)
		}
		run()
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Fatalf("%s: unexpected number of allocations; got %v; want 0", name, n)
		}
	}
	all := ParamsSpec{BlockedParams: []string{"seed", "logprobs", "tools"}, MaxTokensLimit: 50, MaxN: 1, DefaultMaxTokens: 10, StripUnknown: true, KnownParams: []string{"mine"}}
	f("untouched", all, probe.SurfaceChat, `{"model":"m","max_tokens":5,"n":1}`)
	f("edited", all, probe.SurfaceChat, `{"model":"m","seed":1,"logpr\u006fbs":5,"tools":[],"tool_choice":1,"max_tokens":"5_0_0","n":1e30,"zap":1,"\u007aip":2,"mine":3}`)
	f("default", all, probe.SurfaceResponses, `{"model":"m"}`)
	f("refused", all, probe.SurfaceChat, `{"n":0.1234567,"max_tokens":"hot"}`)
	f("long key", all, probe.SurfaceChat, `{"`+strings.Repeat(`\u0061`, 300)+`":1}`)
	f("batch", all, probe.SurfaceGenerate, `{"sampling_params":[`+strings.Repeat(`{"max_new_tokens":500,"best_of":1,"best_of":2},`, 100)+`{}]}`)
	all.OnViolation = "observe"
	f("observed", all, probe.SurfaceChat, `{"seed":1,"n":5}`)
	f("auto", ParamsSpec{AutoMaxTokens: true}, probe.SurfaceChat, `{"model":"m"}`)
}

func TestLayerAllocations(t *testing.T) {
	thinking, err := NewThinking(ThinkingSpec{Preset: "qwen"})
	if err != nil {
		t.Fatal(err)
	}
	force := layer(t, LayerForce, `{"response_format":{},"temperature":0,"max_completion_tokens":5,"seed":1}`)
	extra := layer(t, LayerExtraBody, `{"top_p":1,"seed":1,"chat_template_kwargs":{},"custom":[1]}`)
	for _, s := range []probe.Surface{probe.SurfaceChat, probe.SurfaceGenerate} {
		src := []byte(`{"s\u0065ed":5,"enable_thinking":true,"temperature":2,"max_tokens":9,"stop":["x"],"custom":null,"sampling_params":{"n":1,"top_p":null}}`)
		var b probe.Body
		var p, attempt Plan
		var out, intent []byte
		if fault := probe.Scan(src, s, 0, &b); fault != probe.FaultNone {
			t.Fatalf("cannot scan: %v", fault)
		}
		run := func() {
			p.Reset(&b)
			ask, _ := TakeThinking(src, &b, s, &p)
			force.Apply(src, &b, s, &p)
			attempt.CopyFrom(&p)
			extra.Apply(src, &b, s, &attempt)
			thinking.Layer(ask).Apply(src, &b, s, &attempt)
			out = attempt.AppendTo(out[:0], src)
			intent = AppendSampling(intent[:0], src, &b, s, extra)
		}
		run()
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Fatalf("%s: unexpected number of allocations; got %v; want 0", s, n)
		}
	}
}
