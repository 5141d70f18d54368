package policy

import (
	"errors"
	"slices"
	"strings"

	"sluice/probe"
)

// ThinkingAsk is what a client asks of a model that can think.
type ThinkingAsk uint8

// What a client may ask.
const (
	ThinkingUnasked ThinkingAsk = iota
	ThinkingOn
	ThinkingOff
)

// String returns on, off or nothing.
func (a ThinkingAsk) String() string {
	switch a {
	case ThinkingOn:
		return "on"
	case ThinkingOff:
		return "off"
	}
	return ""
}

// ParseThinking reads the header x-sluice-thinking: on or off, in any letter
// case. It reports false for anything else but nothing.
func ParseThinking(value []byte) (ThinkingAsk, bool) {
	switch {
	case len(value) == 0:
		return ThinkingUnasked, true
	case strings.EqualFold(string(value), "on"):
		return ThinkingOn, true
	case strings.EqualFold(string(value), "off"):
		return ThinkingOff, true
	}
	return ThinkingUnasked, false
}

// TakeThinking reads the top-level member enable_thinking of the request src,
// which is scanned in b, and removes it on p, all copies: it is for the router,
// and no engine reads it there. The last copy counts, null asks nothing. It
// reports false for a value that is no bool, which is answered with 400
// bad_request. On a surface that is not generative the member is none of ours.
func TakeThinking(src []byte, b *probe.Body, s probe.Surface, p *Plan) (ThinkingAsk, bool) {
	ask, ok := ThinkingUnasked, true
	if !s.Generative() {
		return ask, ok
	}
	for i := range b.Members {
		m := &b.Members[i]
		if m.Field != probe.FieldNone || m.Key.Len() < len(thinkingKey) || !equalKey(src, m, thinkingKey) {
			continue
		}
		ask, ok = ThinkingUnasked, true
		switch m.Kind {
		case probe.KindTrue:
			ask = ThinkingOn
		case probe.KindFalse:
			ask = ThinkingOff
		case probe.KindNull:
		default:
			ok = false
		}
		p.mark(i, removed)
	}
	return ask, ok
}

// ThinkingSpec is a pool's thinking profile as a config states it: a preset, or
// the members that turn thinking on and off.
type ThinkingSpec struct {
	Preset  string
	On, Off []Pair
}

// Thinking is a thinking profile, compiled. It is immutable and safe for
// concurrent use. A nil Thinking has no effect.
type Thinking struct{ on, off *Layer }

// Layer returns the layer for what the client asks, nil for nothing. One that is
// not Effective on the surface, or writes nothing, has no effect, and the client
// is told.
func (t *Thinking) Layer(a ThinkingAsk) *Layer {
	switch {
	case t == nil:
		return nil
	case a == ThinkingOn:
		return t.on
	case a == ThinkingOff:
		return t.off
	}
	return nil
}

// NewThinking compiles spec. It returns nil without an error for the zero spec.
// An error joins *SpecError values with paths from the section on: "preset",
// "on.model".
func NewThinking(spec ThinkingSpec) (*Thinking, error) {
	if spec.Preset == "" && spec.On == nil && spec.Off == nil {
		return nil, nil
	}
	if spec.Preset != "" {
		return newPreset(spec)
	}
	on, err := NewLayer(LayerSpec{LayerThinking, spec.On})
	off, err2 := NewLayer(LayerSpec{LayerThinking, spec.Off})
	if err := errors.Join(below("on", err), below("off", err2)); err != nil {
		return nil, err
	}
	return &Thinking{on, off}, nil
}

// below puts path before the paths of the faults in err.
func below(path string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, e := range joined.Unwrap() {
		var fault *SpecError
		if errors.As(e, &fault) {
			e = &SpecError{strings.TrimSuffix(path+"."+fault.Path, "."), fault.Value, fault.Problem}
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

func newPreset(spec ThinkingSpec) (*Thinking, error) {
	var faults faults
	names := ThinkingPresets()
	if !slices.Contains(names, spec.Preset) {
		faults.add("preset", spec.Preset, "is unknown%s; expected one of %s", suggestion(spec.Preset, names), strings.Join(names, ", "))
	}
	if spec.On != nil || spec.Off != nil {
		faults.add("preset", spec.Preset, "is set beside on and off; expected one of the two")
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	t := &Thinking{&Layer{kind: LayerThinking}, &Layer{kind: LayerThinking}}
	for _, row := range presets {
		if row.name != spec.Preset || row.key == "" {
			continue
		}
		for half, value := range map[*Layer]string{t.on: row.on, t.off: row.off} {
			item, err := newLayerItem(Pair{row.key, []byte(value)}, row.surfaces)
			if err != nil {
				return nil, err
			}
			half.items = append(half.items, item)
		}
	}
	return t, nil
}

// ThinkingPresets returns the names of the presets.
func ThinkingPresets() []string {
	var names []string
	for _, row := range presets {
		if !slices.Contains(names, row.name) {
			names = append(names, row.name)
		}
	}
	return names
}

// Sets of surfaces, a bit each.
const (
	onChat     = 1 << probe.SurfaceChat
	onResponse = 1 << probe.SurfaceResponses
	onMessages = 1 << probe.SurfaceMessages
	onTemplate = onChat | onResponse // with a chat template on SGLang, and on vLLM with messages
)

// preset is one member of a preset.
type preset struct {
	name     string
	surfaces uint32
	key      string // empty: nothing turns thinking on or off
	on, off  string
}

// presets are the known ways to turn thinking on and off. completions and
// generate take a prompt that no template shaped, so none has an effect there.
//
//	sglang    SGLang 0.5.23, srt/entrypoints/openai/protocol.py, normalize_reasoning_inputs: it sets both
//	          kwargs, "thinking" for deepseek-v3 and kimi_k2, "enable_thinking" for qwen3, glm45, nemotron_3
//	          and interns1; on messages srt/entrypoints/anthropic/protocol.py, thinking.type (enabled wants
//	          a budget, adaptive does not)
//	vllm      vLLM 0.33.0: chat_template_kwargs of the same models, on messages, too; what a template does
//	          not declare is filtered out
//	qwen      Qwen documentation, deployment/vllm, thinking modes: enable_thinking
//	deepseek  vLLM recipe for DeepSeek-V3.1: thinking
//	openai    OpenAI API reference, openai 3.57.0: reasoning_effort, on responses reasoning.effort; none
//	          turns it off (from gpt-5.1 on), medium is the default of the models before
//	minimax   MiniMax-M2 thinks always and has no switch
var presets = []preset{
	{"sglang", onTemplate, "chat_template_kwargs", `{"thinking":true,"enable_thinking":true}`, `{"thinking":false,"enable_thinking":false}`},
	{"sglang", onMessages, "thinking", `{"type":"adaptive"}`, `{"type":"disabled"}`},
	{"vllm", onTemplate | onMessages, "chat_template_kwargs", `{"thinking":true,"enable_thinking":true}`, `{"thinking":false,"enable_thinking":false}`},
	{"qwen", onTemplate | onMessages, "chat_template_kwargs", `{"enable_thinking":true}`, `{"enable_thinking":false}`},
	{"deepseek", onTemplate | onMessages, "chat_template_kwargs", `{"thinking":true}`, `{"thinking":false}`},
	{"openai", onChat, "reasoning_effort", `"medium"`, `"none"`},
	{"openai", onResponse, "reasoning", `{"effort":"medium"}`, `{"effort":"none"}`},
	{"minimax", 0, "", "", ""},
}
