package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

// pairs reads the members of a JSON object, in order.
func pairs(t testing.TB, object string) []Pair {
	t.Helper()
	var list []Pair
	for _, m := range members(t, object) {
		list = append(list, Pair{m.key, []byte(m.raw)})
	}
	return list
}

func layer(t testing.TB, kind LayerKind, object string) *Layer {
	t.Helper()
	l, err := NewLayer(LayerSpec{kind, pairs(t, object)})
	if err != nil {
		t.Fatalf("cannot make the layer: %v", err)
	}
	return l
}

// applied runs stages on a body and returns what is sent.
func applied(t testing.TB, s probe.Surface, body string, stages ...func(src []byte, b *probe.Body, p *Plan)) string {
	t.Helper()
	src := []byte(body)
	var b probe.Body
	var p Plan
	if fault := probe.Scan(src, s, ^probe.FieldSet(0), &b); fault != probe.FaultNone {
		t.Fatalf("cannot scan %q: %v", body, fault)
	}
	p.Reset(&b)
	for _, stage := range stages {
		stage(src, &b, &p)
	}
	out := string(p.AppendTo(nil, src))
	if !json.Valid([]byte(out)) {
		t.Fatalf("%s\nbecame invalid: %s", body, out)
	}
	return out
}

// stage is the application of a layer.
func stage(t testing.TB, kind LayerKind, s probe.Surface, object string) func([]byte, *probe.Body, *Plan) {
	l := layer(t, kind, object)
	return func(src []byte, b *probe.Body, p *Plan) { l.Apply(src, b, s, p) }
}

func wantApplied(t *testing.T, kind LayerKind, s probe.Surface, object, body, want string) {
	t.Helper()
	if got := applied(t, s, body, stage(t, kind, s, object)); got != want {
		t.Fatalf("%s over %s: unexpected body; got %s; want %s", object, body, got, want)
	}
}

func TestForce(t *testing.T) {
	f := func(s probe.Surface, object, body, want string) {
		t.Helper()
		wantApplied(t, LayerForce, s, object, body, want)
	}
	chat := probe.SurfaceChat
	const schema = `{"type":"json_schema","json_schema":{"b": 1,"a":[2.0]}}`
	f(chat, `{"response_format":`+schema+`}`, `{"a":1}`, `{"response_format":`+schema+`,"a":1}`)
	f(chat, `{"response_format":`+schema+`}`, `{"a":1, "response_format" : null }`, `{"a":1, "response_format" : `+schema+` }`)
	f(chat, `{"response_format":{}}`, `{"response_format":1,"a":1,"response\u005fformat":2,"output_format":3}`, `{"a":1,"response\u005fformat":{}}`)
	f(chat, `{"temperature":0,"seed":1}`, `{"temperature":2,"seed":2,"temper\u0061ture":3}`, `{"seed":1,"temper\u0061ture":0}`)
	f(chat, `{"max_tokens":9}`, `{"max_completion_tokens":5000}`, `{"max_tokens":9}`)
	f(chat, `{"max_completion_tokens":9}`, `{"max_tokens":1,"max_completion_tokens":5000}`, `{"max_completion_tokens":9}`)
	f(chat, `{"max_new_tokens":9}`, `{"a":1}`, `{"max_tokens":9,"a":1}`)
	f(probe.SurfaceResponses, `{"max_tokens":9}`, `{"max_output_tokens":1}`, `{"max_output_tokens":9}`)
	f(chat, `{"n":1}`, `{"candidate_count":5}`, `{"n":1}`)
	f(probe.SurfaceEmbeddings, `{"dimensions":256}`, `{"input":"x","dimensions":1}`, `{"input":"x","dimensions":256}`)
	f(chat, `{}`, `{"a":1}`, `{"a":1}`)

	g := probe.SurfaceGenerate
	f(g, `{"temperature":0,"stop":["x"],"rid":"r","max_tokens":9}`, `{"text":"t","temperature":5,"sampling_params":{"temperature":1,"max_new_tokens":3,"n":1}}`,
		`{"rid":"r","text":"t","temperature":5,"sampling_params":{"stop":["x"],"temperature":0,"max_new_tokens":9,"n":1}}`)
	f(g, `{"temperature":0}`, `{"text":"t"}`, `{"sampling_params":{"temperature":0},"text":"t"}`)
	f(g, `{"temperature":0}`, `{"sampling_params":[{},{"temperature":1,"temperature":2}]}`, `{"sampling_params":[{"temperature":0},{"temperature":0}]}`)
	f(g, `{"temperature":0,"rid":1}`, `{"sampling_params":5}`, `{"rid":1,"sampling_params":5}`)
}

// TestForceBeatsEarlierEdits: whatever request_params and the contract wrote or
// removed.
func TestForceBeatsEarlierEdits(t *testing.T) {
	s := probe.SurfaceChat
	ps := params(t, ParamsSpec{BlockedParams: []string{"max_tokens", "seed"}, DefaultMaxTokens: 100})
	c := contract(t, "replace", map[string]any{"temperature": 1, "top_p": 1})
	edits := func(src []byte, b *probe.Body, p *Plan) {
		if ps.Judge(src, b, s, EngineOpenAI, p).Refused || c.Judge(b, s, p).Refused {
			t.Fatal("refused")
		}
	}
	f := func(object, body, want string) {
		t.Helper()
		if got := applied(t, s, body, edits, stage(t, LayerForce, s, object)); got != want {
			t.Fatalf("unexpected body; got %s; want %s", got, want)
		}
	}
	f(`{"temperature":0}`, `{"temperature":2,"top_p":2}`, `{"max_tokens":100,"temperature":0,"top_p":1}`)
	f(`{"temperature":0}`, `{}`, `{"max_tokens":100,"temperature":0,"top_p":1}`)
	f(`{"seed":7}`, `{"seed":1,"a":1}`, `{"max_tokens":100,"temperature":1,"top_p":1,"seed":7,"a":1}`)
	f(`{"max_tokens":7}`, `{"max_tokens":50}`, `{"max_tokens":7,"temperature":1,"top_p":1}`)
	f(`{"max_completion_tokens":7}`, `{"max_tokens":50}`, `{"temperature":1,"top_p":1,"max_completion_tokens":7}`)
	f(`{"max_completion_tokens":7}`, `{"max_completion_tokens":50}`, `{"temperature":1,"top_p":1,"max_completion_tokens":7}`)
}

func TestPlanDrop(t *testing.T) {
	for drops, want := range map[string]string{
		"a": `{"b":1,"c":1}`, "b": `{"a":1,"c":1}`, "c": `{"a":1,"b":1}`, "a b c": `{}`, "c a": `{"b":1}`, "x": `{"a":1,"b":1,"c":1}`,
	} {
		_, p := scan(t, probe.SurfaceChat, `{}`)
		p.drop(Top, probe.FieldNone, "a")
		for _, key := range []string{"a", "b", "c"} {
			p.Inject(Top, literal(t, key, `1`))
		}
		p.Len([]byte(`{}`))
		for _, key := range strings.Fields(drops) {
			p.drop(Top, probe.FieldNone, key)
		}
		wantPlan(t, p, `{}`, want)
		p.Inject(Top, literal(t, "z", `1`))
		wantPlan(t, p, `{}`, strings.Replace(want[:len(want)-1]+`,"z":1}`, "{,", "{", 1))
	}
}

func TestExtraBody(t *testing.T) {
	f := func(s probe.Surface, object, body, want string) {
		t.Helper()
		wantApplied(t, LayerExtraBody, s, object, body, want)
	}
	chat := probe.SurfaceChat
	const kwargs = `{"chat_template_kwargs":{"enable_thinking":false,"x": [1.0]}}`
	f(chat, kwargs, `{"a":1}`, kwargs[:len(kwargs)-1]+`,"a":1}`)
	f(chat, kwargs, `{"chat_template_kwargs":{}}`, `{"chat_template_kwargs":{}}`) // sent whole
	f(chat, kwargs, `{"chat_template_kwargs" : null}`, `{"chat_template_kwargs" : {"enable_thinking":false,"x": [1.0]}}`)
	f(chat, `{"temperature":0,"seed":1}`, `{"temperature":2,"seed":null}`, `{"temperature":2,"seed":1}`)
	f(chat, `{"seed":1}`, `{"\u0073eed":5}`, `{"\u0073eed":5}`)
	f(chat, `{"seed":1}`, `{"seed":null,"seed":5}`, `{"seed":null,"seed":5}`)
	f(chat, `{"seed":1}`, `{"seed":5,"seed":null}`, `{"seed":1}`)
	f(chat, `{"max_tokens":9}`, `{"max_completion_tokens":5}`, `{"max_completion_tokens":5}`)
	f(chat, `{"max_tokens":9}`, `{"max_completion_tokens":null}`, `{"max_tokens":9,"max_completion_tokens":null}`)
	f(chat, `{"max_new_tokens":9}`, `{"max_tokens":null}`, `{"max_tokens":9}`)
	f(chat, `{"response_format":{}}`, `{"output_format":{}}`, `{"output_format":{}}`)
	f(probe.SurfaceEmbeddings, `{"dimensions":9}`, `{"input":"x"}`, `{"input":"x"}`)
	g := probe.SurfaceGenerate
	f(g, `{"temperature":0,"max_tokens":9,"rid":"x"}`, `{"sampling_params":[{"temperature":1},{"max_new_tokens":1}]}`,
		`{"rid":"x","sampling_params":[{"max_new_tokens":9,"temperature":1},{"temperature":0,"max_new_tokens":1}]}`)
	f(g, `{"temperature":0}`, `{"sampling_params":null}`, `{"sampling_params":{"temperature":0}}`)
}

// TestLayersOrderOfWinners: force > contract and plugin > client > extra_body >
// thinking.
func TestLayersOrderOfWinners(t *testing.T) {
	s := probe.SurfaceChat
	ps := params(t, ParamsSpec{BlockedParams: []string{"seed"}, DefaultMaxTokens: 100})
	c := contract(t, "replace", map[string]any{"temperature": 1})
	thinking, err := NewThinking(ThinkingSpec{On: pairs(t, `{"chat_template_kwargs":{"t":1},"x":"thinking","y":"thinking"}`), Off: []Pair{}})
	if err != nil {
		t.Fatal(err)
	}
	got := applied(t, s, `{"temperature":2,"top_p":0.5,"seed":5,"x":"client"}`,
		func(src []byte, b *probe.Body, p *Plan) {
			ps.Judge(src, b, s, EngineOpenAI, p)
			c.Judge(b, s, p)
		},
		stage(t, LayerForce, s, `{"response_format":{},"z":"force"}`),
		stage(t, LayerExtraBody, s, `{"temperature":0,"top_p":1,"seed":9,"max_completion_tokens":7,"response_format":1,"y":"extra","z":"extra"}`),
		func(src []byte, b *probe.Body, p *Plan) {
			if n := thinking.Layer(ThinkingOn).Apply(src, b, s, p); n != 1 {
				t.Fatalf("unexpected number of members; got %d; want 1", n)
			}
			if n := thinking.Layer(ThinkingOff).Apply(src, b, s, p); n != 0 {
				t.Fatalf("an empty profile wrote %d members", n)
			}
		})
	const want = `{"max_tokens":100,"response_format":{},"z":"force","y":"extra","chat_template_kwargs":{"t":1},"temperature":1,"top_p":0.5,"x":"client"}`
	if got != want {
		t.Fatalf("unexpected body; got %s; want %s", got, want)
	}
}

func TestNewLayerErrors(t *testing.T) {
	f := func(kind LayerKind, object, want string) {
		t.Helper()
		_, err := NewLayer(LayerSpec{kind, pairs(t, object)})
		if err == nil || err.Error() != want {
			t.Fatalf("unexpected error; got %v; want %s", err, want)
		}
	}
	for _, key := range []string{"model", "messages", "prompt", "input", "stream", "stream_options", "sampling_params"} {
		f(LayerForce, `{"a":1,"`+key+`":1}`, key+`: "`+key+`" cannot be in force: `+protected[key])
		f(LayerExtraBody, `{"`+key+`":null}`, key+`: "`+key+`" cannot be in extra_body: `+protected[key])
	}
	f(LayerForce, `{"a":1,"a":2}`, `a: "a" is given more than once`)
	f(LayerForce, `{"":1}`, `: "" is empty; expected the name of a member`)
	f(LayerForce, `{"a":[{"b":1e400}]}`, `a: [{"b":1e400}] holds a number that is not finite: 1e400`)
	if _, err := NewLayer(LayerSpec{LayerForce, []Pair{{"a", []byte(`NaN`)}}}); err == nil || err.Error() != "a: NaN is not JSON" {
		t.Fatalf("unexpected error %v", err)
	}
	if _, err := NewLayer(LayerSpec{LayerForce, make([]Pair, 33)}); err == nil || !strings.Contains(err.Error(), "33 are too many members; expected at most 32") {
		t.Fatalf("unexpected error %v", err)
	}
	if _, err := NewThinking(ThinkingSpec{On: pairs(t, `{"model":1}`), Off: pairs(t, `{"":1}`)}); err == nil ||
		err.Error() != "on.model: \"model\" cannot be in thinking: "+protected["model"]+"\noff: \"\" is empty; expected the name of a member" {
		t.Fatalf("unexpected error %v", err)
	}
}

func TestCheckLayer(t *testing.T) {
	c := contract(t, "reject", map[string]any{"temperature": 1, "top_p": band(0.5, 1)})
	f := func(c *Contract, object, want string) {
		t.Helper()
		got := ""
		if err := c.CheckLayer(layer(t, LayerExtraBody, object)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Fatalf("unexpected error; got %q; want %q", got, want)
		}
	}
	f(c, `{"temperature":1.0,"top_p":"0.7","seed":9}`, "")
	f(c, `{"temperature":0,"top_p":2}`, "temperature: 0 violates the sampling contract: got 0, expected 1 (or omit the field)\n"+
		"top_p: 2 violates the sampling contract: must be between 0.5 and 1, got 2")
	f(c, `{"temperature":null,"top_p":null}`, "temperature: null violates the sampling contract: expected 1 (or omit the field), got a non-numeric value")
	f(contract(t, "allow", map[string]any{"temperature": 1}), `{"temperature":0}`, "")
	f(nil, `{"temperature":0}`, "")
	if err := c.CheckLayer(nil); err != nil {
		t.Fatalf("unexpected error %v", err)
	}
}

func TestLayerEffective(t *testing.T) {
	var none *Layer
	if none.Effective(probe.SurfaceChat) || none.Apply(nil, nil, probe.SurfaceChat, nil) != 0 {
		t.Fatal("a nil layer has an effect")
	}
	if !layer(t, LayerForce, `{"a":1}`).Effective(probe.SurfaceEmbeddings) || layer(t, LayerExtraBody, `{"a":1}`).Effective(probe.SurfaceEmbeddings) {
		t.Fatal("unexpected effect on a surface that generates nothing")
	}
	if layer(t, LayerExtraBody, `{}`).Effective(probe.SurfaceChat) || !layer(t, LayerExtraBody, `{"a":1}`).Effective(probe.SurfaceGenerate) {
		t.Fatal("unexpected effect on a surface that generates")
	}
}

func TestTakeThinking(t *testing.T) {
	f := func(body, want string, ask ThinkingAsk, ok bool) {
		t.Helper()
		got := applied(t, probe.SurfaceChat, body, func(src []byte, b *probe.Body, p *Plan) {
			if a, valid := TakeThinking(src, b, probe.SurfaceChat, p); a != ask || valid != ok {
				t.Fatalf("%s: unexpected ask; got %q, %v; want %q, %v", body, a, valid, ask, ok)
			}
		})
		if got != want {
			t.Fatalf("unexpected body; got %s; want %s", got, want)
		}
	}
	f(`{"a":1}`, `{"a":1}`, ThinkingUnasked, true)
	f(`{"a":1,"enable_thinking":true}`, `{"a":1}`, ThinkingOn, true)
	f(`{"enable_thinking":true,"a":1,"en\u0061ble_thinking":false}`, `{"a":1}`, ThinkingOff, true)
	f(`{"enable_thinking":null}`, `{}`, ThinkingUnasked, true)
	f(`{"enable_thinking":"true"}`, `{}`, ThinkingUnasked, false)
	f(`{"enable_thinking":1}`, `{}`, ThinkingUnasked, false)
	f(`{"chat_template_kwargs":{"enable_thinking":true}}`, `{"chat_template_kwargs":{"enable_thinking":true}}`, ThinkingUnasked, true)
	const other = `{"enable_thinking":5}`
	applied(t, probe.SurfaceEmbeddings, other, func(src []byte, b *probe.Body, p *Plan) {
		if a, ok := TakeThinking(src, b, probe.SurfaceEmbeddings, p); a != ThinkingUnasked || !ok || !p.Empty() {
			t.Fatal("embeddings have no thinking")
		}
	})
	for value, want := range map[string]ThinkingAsk{"on": ThinkingOn, "OFF": ThinkingOff, "": ThinkingUnasked} {
		if a, ok := ParseThinking([]byte(value)); a != want || !ok || a.String() != strings.ToLower(value) {
			t.Fatalf("unexpected ask of %q: %q, %v", value, a, ok)
		}
	}
	if _, ok := ParseThinking([]byte("yes")); ok {
		t.Fatal("yes is taken")
	}
}

func TestThinkingPresets(t *testing.T) {
	f := func(preset string, s probe.Surface, on, off string) {
		t.Helper()
		th, err := NewThinking(ThinkingSpec{Preset: preset})
		if err != nil {
			t.Fatal(err)
		}
		for a, want := range map[ThinkingAsk]string{ThinkingOn: on, ThinkingOff: off, ThinkingUnasked: `{}`} {
			l := th.Layer(a)
			got := applied(t, s, `{}`, func(src []byte, b *probe.Body, p *Plan) { l.Apply(src, b, s, p) })
			if got != want || l.Effective(s) != (want != `{}`) {
				t.Fatalf("%s %s on %s: unexpected body %s; want %s", preset, a, s, got, want)
			}
		}
	}
	f("qwen", probe.SurfaceChat, `{"chat_template_kwargs":{"enable_thinking":true}}`, `{"chat_template_kwargs":{"enable_thinking":false}}`)
	f("deepseek", probe.SurfaceChat, `{"chat_template_kwargs":{"thinking":true}}`, `{"chat_template_kwargs":{"thinking":false}}`)
	f("openai", probe.SurfaceChat, `{"reasoning_effort":"medium"}`, `{"reasoning_effort":"none"}`)
	f("openai", probe.SurfaceResponses, `{"reasoning":{"effort":"medium"}}`, `{"reasoning":{"effort":"none"}}`)
	f("sglang", probe.SurfaceMessages, `{"thinking":{"type":"adaptive"}}`, `{"thinking":{"type":"disabled"}}`)
	f("minimax", probe.SurfaceChat, `{}`, `{}`)
	for _, name := range ThinkingPresets() {
		f(name, probe.SurfaceCompletions, `{}`, `{}`)
		f(name, probe.SurfaceGenerate, `{}`, `{}`)
		f(name, probe.SurfaceEmbeddings, `{}`, `{}`)
	}
	if want := []string{"sglang", "vllm", "qwen", "deepseek", "openai", "minimax"}; !slices.Equal(ThinkingPresets(), want) {
		t.Fatalf("unexpected presets %v", ThinkingPresets())
	}
	th, err := NewThinking(ThinkingSpec{})
	if th != nil || err != nil || th.Layer(ThinkingOn) != nil {
		t.Fatalf("unexpected profile of nothing: %v, %v", th, err)
	}
	const unknown = `preset: "qwn" is unknown (did you mean "qwen"?); expected one of sglang, vllm, qwen, deepseek, openai, minimax`
	if _, err := NewThinking(ThinkingSpec{Preset: "qwn"}); err == nil || err.Error() != unknown {
		t.Fatalf("unexpected error %v", err)
	}
	if _, err := NewThinking(ThinkingSpec{Preset: "qwen", On: []Pair{}}); err == nil {
		t.Fatal("a preset beside members is taken")
	}
}

func TestIntent(t *testing.T) {
	f := func(s probe.Surface, body, extra, want string) {
		t.Helper()
		var l *Layer
		if extra != "" {
			l = layer(t, LayerExtraBody, extra)
		}
		var b probe.Body
		if fault := probe.Scan([]byte(body), s, 0, &b); fault != probe.FaultNone {
			t.Fatalf("cannot scan %q: %v", body, fault)
		}
		got := string(AppendSampling([]byte("x"), []byte(body), &b, s, l))
		if got != "x"+want {
			t.Fatalf("%s over %s: unexpected intent; got %s; want x%s", body, extra, got, want)
		}
		if want != "" && !json.Valid([]byte(want)) {
			t.Fatalf("%s is not JSON", want)
		}
		if alone := string(AppendIntent(nil, []byte(body), &b, s)); extra == "" && alone != want {
			t.Fatalf("unexpected intent alone; got %s; want %s", alone, want)
		}
	}
	chat, g := probe.SurfaceChat, probe.SurfaceGenerate
	f(chat, `{"model":"m","messages":[],"response_format":{},"user":"u"}`, "", "")
	f(chat, `{"top_p":0.50,"model":"m","temper\u0061ture":1e0,"stop":[ "a b" , "\"" ],"seed":null}`, "", `{"stop":["a b","\""],"temperature":1e0,"top_p":0.50}`)
	f(chat, `{"seed":1,"seed":2,"top_k":1,"top_k":null}`, "", `{"seed":2}`)
	f(chat, `{"temperature":NaN,"top_p":-Infinity,"logit_bias":{"1": Infinity}}`, "", `{"logit_bias":{"1":"Infinity"},"temperature":"NaN","top_p":"-Infinity"}`)
	f(chat, `{"stop":"`+strings.Repeat("x", 2000)+`"}`, "", `{"stop":"2002 bytes"}`)
	f(chat, `{"temperature":2}`, `{"temperature":0,"top_p":1,"response_format":{},"odd":{"b": 1}}`, `{"odd":{"b":1},"temperature":2,"top_p":1}`)
	f(chat, `{"odd":2,"seed":null,"max_completion_tokens":5}`, `{"odd":1,"seed":7,"max_tokens":9}`, `{"max_completion_tokens":5,"seed":7}`)
	f(probe.SurfaceEmbeddings, `{"temperature":1}`, `{"dimensions":5}`, "")
	f(g, `{"temperature":5,"text":"t","sampling_params":{"top_k":3,"max_new_tokens":9}}`, "", `{"max_new_tokens":9,"top_k":3}`)
	f(g, `{"text":"t"}`, `{"max_tokens":5,"rid":"r"}`, `{"max_new_tokens":5,"rid":"r"}`)
	f(g, `{"sampling_params":[{"n":1},{},{"n":3}]}`, "", `[{"n":1},{},{"n":3}]`)
	f(g, `{"sampling_params":[{},{}]}`, "", "")
	f(g, `{"sampling_params":[{"n":1}]}`, "", `{"n":1}`)
	f(g, `{"sampling_params":[{"n":1},5]}`, "", "")
}
