package policy

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/probe"
)

// paramsTwin does what request_params does the slow and obvious way, on lists of
// members, one rule after the other.
type paramsTwin struct {
	spec     ParamsSpec
	surface  probe.Surface
	engine   Engine
	refused  string // the member that the client is told
	rank     int
	ownLimit string
}

// blocks reports whether a key is blocked.
func (tw *paramsTwin) blocks(key string) bool {
	for _, blocked := range tw.spec.BlockedParams {
		if key == blocked {
			return true
		}
		for _, group := range [][]string{outputNames, {"n", "candidate_count"}, {"response_format", "output_format"}} {
			if slices.Contains(group, blocked) && slices.Contains(group, key) {
				return true
			}
		}
		if blocked == "stream" && key == "stream_options" || blocked == "tools" && (key == "tool_choice" || key == "parallel_tool_calls") {
			return true
		}
	}
	return false
}

func (tw *paramsTwin) knows(key string) bool {
	return key == thinkingKey || slices.Contains(tw.spec.KnownParams, key) || twinKnown()[tw.surface][tw.engine][key]
}

// twinKnown are the texts of known.go as maps.
var twinKnown = sync.OnceValue(func() map[probe.Surface][numEngines]map[string]bool {
	set := func(texts ...string) map[string]bool {
		m := map[string]bool{}
		for _, key := range strings.Fields(strings.Join(texts, " ")) {
			m[key] = true
		}
		return m
	}
	each := func(api, vllm, sglang string) [numEngines]map[string]bool {
		return [numEngines]map[string]bool{EngineOpenAI: set(api), EngineVLLM: set(api, vllm), EngineSGLang: set(api, sglang)}
	}
	return map[probe.Surface][numEngines]map[string]bool{
		probe.SurfaceChat:        each(openaiChat, vllmChat, sglangChat),
		probe.SurfaceCompletions: each(openaiCompletions, vllmCompletions, sglangCompletions),
		probe.SurfaceResponses:   each(openaiResponses, vllmResponses, sglangResponses),
		probe.SurfaceMessages:    each(anthropicMessages, vllmMessages, sglangMessages),
		probe.SurfaceGenerate:    each(sglangGenerate, "", ""),
	}
})

// capped returns the value under a cap, or false for one that is refused.
func capped(raw string, bound int) (string, bool) {
	text := raw
	switch raw[0] {
	case 'n':
		return raw, true
	case 't':
		text = "1"
	case 'f':
		text = "0"
	case '{', '[', 'N', 'I':
		return raw, false
	case '"':
		n, ok, huge := probe.ReadWhole([]byte(raw), probe.KindString)
		if !ok {
			return raw, false
		}
		text = strconv.FormatInt(n, 10)
		if huge && n > 0 {
			text = "1e30"
		}
	}
	x, ok := new(big.Rat).SetString(text)
	if !ok || !x.IsInt() || x.Sign() <= 0 {
		return raw, false
	}
	if x.Cmp(new(big.Rat).SetInt64(int64(bound))) > 0 {
		return strconv.Itoa(bound), true
	}
	return raw, true
}

// object returns the members that are left of one object.
func (tw *paramsTwin) object(ms []twinMember, top, limits bool) []twinMember {
	keep := func(ms []twinMember, ok func(i int, m twinMember) bool) (kept []twinMember) {
		for i, m := range ms {
			if ok(i, m) {
				kept = append(kept, m)
			}
		}
		return kept
	}
	ms = keep(ms, func(_ int, m twinMember) bool { return !tw.blocks(m.key) })
	counts := []string{"n", "candidate_count", "best_of"}
	if tw.spec.MaxN > 0 {
		all := ms
		ms = keep(ms, func(i int, m twinMember) bool {
			return !slices.Contains(counts, m.key) || !slices.ContainsFunc(all[i+1:], func(o twinMember) bool { return o.key == m.key })
		})
	}
	given := slices.ContainsFunc(ms, func(m twinMember) bool {
		return slices.Contains(outputNames, m.key) && m.raw != "null" && !(top && tw.spec.StripUnknown && !tw.knows(m.key))
	})
	var front []twinMember
	if limits && tw.spec.DefaultMaxTokens > 0 && !given {
		def := twinMember{tw.ownLimit, strconv.Itoa(tw.spec.DefaultMaxTokens)}
		i := slices.IndexFunc(ms, func(m twinMember) bool {
			return m.key == tw.ownLimit && (!top || !tw.spec.StripUnknown || tw.knows(m.key))
		})
		if i >= 0 {
			ms[i] = def
		} else {
			front = append(front, def)
		}
	}
	ms = append(front, ms...)
	for i, m := range ms {
		tw.hold(&ms[i], m.key, outputNames, tw.spec.MaxTokensLimit, 1)
		tw.hold(&ms[i], m.key, counts, tw.spec.MaxN, 2)
	}
	if top && tw.spec.StripUnknown {
		ms = keep(ms, func(_ int, m twinMember) bool { return tw.knows(m.key) })
	}
	return ms
}

func (tw *paramsTwin) hold(m *twinMember, key string, keys []string, bound, rank int) {
	if bound == 0 || !slices.Contains(keys, key) {
		return
	}
	var ok bool
	if m.raw, ok = capped(m.raw, bound); !ok && (tw.refused == "" || rank < tw.rank) {
		tw.refused, tw.rank = key, rank
	}
}

// body returns the body that is left, in a form that canonical gives any body.
func (tw *paramsTwin) body(t testing.TB, body string) string {
	t.Helper()
	ms := members(t, body)
	tw.ownLimit = outputField[tw.surface].String()
	if tw.surface != probe.SurfaceGenerate {
		return tw.flat(t, ms)
	}
	below := tw.spec.MaxN > 0 || tw.spec.MaxTokensLimit > 0 || tw.spec.DefaultMaxTokens > 0 || len(tw.spec.BlockedParams) > 0
	ms = tw.object(ms, true, false)
	i := slices.IndexFunc(ms, func(m twinMember) bool { return m.key == "sampling_params" })
	if i < 0 {
		if made := tw.object(nil, false, true); len(made) > 0 {
			ms = append([]twinMember{{"sampling_params", renderText(made)}}, ms...)
		}
		return canonicalMembers(t, ms)
	}
	switch raw := ms[i].raw; {
	case raw == "null":
		if made := tw.object(nil, false, true); len(made) > 0 {
			ms[i].raw = renderText(made)
		}
	case raw[0] == '{':
		ms[i].raw = renderText(tw.object(members(t, raw), false, true))
	case raw[0] == '[' && objectsOnly(elements(t, raw)):
		var list []string
		for _, e := range elements(t, raw) {
			list = append(list, renderText(tw.object(members(t, string(e)), false, true)))
		}
		ms[i].raw = "[" + strings.Join(list, ",") + "]"
	case below:
		tw.refused, tw.rank = "sampling_params", 0
	}
	return canonicalMembers(t, ms)
}

func (tw *paramsTwin) flat(t testing.TB, ms []twinMember) string {
	return canonicalMembers(t, tw.object(ms, true, true))
}

// renderText writes members as JSON.
func renderText(ms []twinMember) string {
	parts := make([]string, 0, len(ms))
	for _, m := range ms {
		key, err := json.Marshal(m.key)
		if err != nil {
			panic(err)
		}
		parts = append(parts, string(key)+":"+m.raw)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func canonicalMembers(t testing.TB, ms []twinMember) string { return canonical(t, renderText(ms)) }

var twinSpecs = []ParamsSpec{
	{},
	{BlockedParams: []string{"max_tokens", "seed", "stream", "temperature"}, DefaultMaxTokens: 100, MaxTokensLimit: 50},
	{MaxTokensLimit: 50, MaxN: 1},
	{StripUnknown: true, KnownParams: []string{"a\"b", "top_k"}, DefaultMaxTokens: 7, MaxN: 2},
	{BlockedParams: []string{"n", "tools", "response_format", "}", "sampling_params", "é"}, StripUnknown: true, MaxTokensLimit: 500},
	{DefaultMaxTokens: 3},
}

// paramsPair is a configuration by both values of on_violation.
type paramsPair struct {
	spec             ParamsSpec
	enforce, observe *Params
	contract         *Contract
}

func paramsPairs(t testing.TB) []paramsPair {
	var list []paramsPair
	c := contract(t, "replace", map[string]any{"temperature": 1.0, "n": band(1.0, 3.0)})
	for _, spec := range twinSpecs {
		enforce := params(t, spec)
		spec.OnViolation = "observe"
		list = append(list, paramsPair{spec, enforce, params(t, spec), c})
	}
	return list
}

// checkParams compares Judge with the twin on one body, and the contract after
// both, and reports whether there was anything to compare.
func checkParams(t testing.TB, pair paramsPair, s probe.Surface, e Engine, body string) bool {
	t.Helper()
	spec, c := pair.spec, pair.contract
	src := []byte(body)
	var b probe.Body
	if !json.Valid(src) || probe.Scan(src, s, c.Numbers(), &b) != probe.FaultNone {
		return false
	}
	var p Plan
	p.Reset(&b)
	v := pair.enforce.Judge(src, &b, s, e, &p)
	tw := paramsTwin{spec: spec, surface: s, engine: e}
	want := tw.body(t, body)
	if v.Refused != (tw.refused != "") || v.Param() != tw.refused {
		t.Fatalf("%+v %s: %s\nunexpected refusal %q; want %q", spec, s, body, v.Param(), tw.refused)
	}
	var q Plan
	q.Reset(&b)
	o := pair.observe.Judge(src, &b, s, e, &q)
	if o.Refused = v.Refused; fmt.Sprint(o) != fmt.Sprint(v) || !q.Empty() { // NaN equals nothing
		t.Fatalf("%+v %s: %s\nobserve says %+v; enforce %+v", spec, s, body, o, v)
	}
	if v.Refused {
		return true
	}
	out := string(p.AppendTo(nil, src))
	if !json.Valid([]byte(out)) {
		t.Fatalf("%+v %s: %s\nbecame invalid: %s", spec, s, body, out)
	}
	if got := canonical(t, out); got != want {
		t.Fatalf("%+v %s for %s: %s\nbecame %s\nthat is %s\nwant    %s", spec, s, e, body, out, got, want)
	}
	if v == (ParamsVerdict{}) && canonical(t, body) == want && out != body {
		t.Fatalf("%+v: %s\nneeds no change and became %s", spec, body, out)
	}
	// The contract judges what is left, as if it had come so.
	cv := c.Judge(&b, s, &p)
	var again probe.Body
	if fault := probe.Scan([]byte(out), s, c.Numbers(), &again); fault != probe.FaultNone {
		t.Fatalf("%s\nbecame %s: %v", body, out, fault)
	}
	var r Plan
	r.Reset(&again)
	if rv := c.Judge(&again, s, &r); string(rv.AppendMessage(nil)) != string(cv.AppendMessage(nil)) || rv.Injected != cv.Injected || rv.Replaced != cv.Replaced {
		t.Fatalf("%s\nunexpected verdict of the contract; got %+v; want %+v", body, cv, rv)
	}
	if !cv.Refused {
		got, want := sorted(t, string(p.AppendTo(nil, src))), sorted(t, string(r.AppendTo(nil, []byte(out))))
		if got != want {
			t.Fatalf("%s\nbecame %s; want %s", body, got, want)
		}
	}
	return true
}

// sorted is canonical without the order of injected members: a default stands
// before what the contract injects, or behind it where it came so.
func sorted(t testing.TB, body string) string {
	t.Helper()
	text := strings.NewReplacer("<", ";", ">", ";", "|", ";").Replace(canonical(t, body))
	parts := strings.Split(text, ";")
	slices.Sort(parts)
	return strings.Join(parts, ";")
}

var limitKeys = []string{
	`max_tokens`, `max_completion_tokens`, `max_output_tokens`, `max_new_tokens`, `max_new_token\u0073`, `n`, `candidate_count`, `best_of`, `best\u005fof`,
	`seed`, `s\u0065ed`, `stream`, `stream_options`, `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`, `output_format`, `top_k`, `temperature`,
	`enable_thinking`, `min_tokens`, `guided_json`, `regex`,
}

var limitValues = []string{
	`1`, `2`, `49`, `50`, `51`, `500.0`, `5e2`, `"500"`, `true`, `1e30`, `18446744073709551616`, `1e400`, `null`, `null`, `null`, `7`, `7`, `1`, `1`, `"1_0"`, `3`,
	`0`, `-1`, `0.5`, `"hot"`, `false`, `[1]`, `{"max_tokens":1}`, `"1e2"`, `-1e400`,
}

// limited returns a body with limits in it.
func (d documents) limited(s probe.Surface) string {
	limit := func() (string, string) {
		if d.rand.IntN(3) == 0 {
			return d.pick(limitKeys), d.pick(limitValues[:21])
		}
		return d.pick(limitKeys), d.pick(limitValues)
	}
	if s != probe.SurfaceGenerate {
		return d.space() + d.object(8, limit) + d.space()
	}
	return d.space() + d.object(5, func() (string, string) {
		switch d.rand.IntN(6) {
		case 0:
			return `sampling_params`, d.pick([]string{`null`, `[]`, `{}`, `5`, `[{},1]`, `"x"`})
		case 1:
			return `sampling_params`, "[" + d.object(3, limit) + d.space() + "," + d.space() + d.object(3, limit) + "]"
		case 2, 3:
			return `sampling_param\u0073`, d.object(5, limit)
		}
		return limit()
	}) + d.space()
}

var generativeSurfaces = []probe.Surface{probe.SurfaceChat, probe.SurfaceCompletions, probe.SurfaceResponses, probe.SurfaceMessages, probe.SurfaceGenerate}

func TestParamsEqualTwin(t *testing.T) {
	d, pairs := newDocuments(41), paramsPairs(t)
	compared, refused := 0, 0
	for range 600 {
		for _, s := range generativeSurfaces {
			body := d.limited(s)
			for _, pair := range pairs {
				if checkParams(t, pair, s, Engine(d.rand.IntN(int(numEngines))), body) {
					compared++
				}
			}
			if json.Valid([]byte(body)) && strings.Contains(body, `"hot"`) {
				refused++
			}
		}
	}
	if compared < 4_000 || refused < 100 {
		t.Fatalf("only %d bodies could be compared, %d of them odd", compared, refused)
	}
}

// FuzzParams compares request_params, and the contract after it, with the slow
// twin.
func FuzzParams(f *testing.F) {
	for i, s := range []string{
		`{"max_tokens":5e2,"n":"3"}`,
		`{"max_completion_tokens":1e30,"max_tokens":null}`,
		`{"best_of":9,"best_of":1,"zap":{}}`,
		`{"sampling_params":[{"max_new_tokens":99},{}],"seed":1}`,
		`{"sampling_params":{"n":true,"candidate_count":0}}`,
		` { "seed" : 1 , "stream":true, "stream_options": {} } `,
	} {
		for spec := range twinSpecs {
			f.Add(s, byte(spec), byte(i), byte(spec))
		}
	}
	pairs := paramsPairs(f)
	f.Fuzz(func(t *testing.T, body string, spec, surface, engine byte) {
		checkParams(t, pairs[int(spec)%len(pairs)], generativeSurfaces[int(surface)%len(generativeSurfaces)], Engine(engine)%numEngines, body)
	})
}
