package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

// asked is what one body comes to under request_params.
type asked struct {
	verdict ParamsVerdict
	message string
	body    string // as the engine gets it
}

func params(t testing.TB, spec ParamsSpec) *Params {
	t.Helper()
	ps, err := NewParams(spec)
	if err != nil {
		t.Fatalf("cannot make the params: %v", err)
	}
	return ps
}

// ask runs the whole pipeline: scan, judge, plan, bytes.
func ask(t testing.TB, ps *Params, s probe.Surface, e Engine, body string) asked {
	t.Helper()
	var b probe.Body
	var p Plan
	src := []byte(body)
	if fault := probe.Scan(src, s, 0, &b); fault != probe.FaultNone {
		t.Fatalf("cannot scan %q: %v at %d", body, fault, b.FaultAt)
	}
	p.Reset(&b)
	v := ps.Judge(src, &b, s, e, &p)
	out := string(p.AppendTo(nil, src))
	if !v.Refused && !json.Valid([]byte(out)) && json.Valid(src) {
		t.Fatalf("%s\nbecame invalid: %s", body, out)
	}
	if string(src) != body {
		t.Fatalf("the client's bytes were changed: %q became %q", body, src)
	}
	return asked{v, string(v.AppendMessage(nil)), out}
}

// wantParams asks on one surface for an engine that speaks the API alone.
func wantParams(t *testing.T, spec ParamsSpec, s probe.Surface, body, want string) {
	t.Helper()
	got := ask(t, params(t, spec), s, EngineOpenAI, body)
	if got.verdict.Refused {
		t.Fatalf("%s: unexpected refusal: %s", body, got.message)
	}
	if got.body != want {
		t.Fatalf("unexpected body; got %s; want %s", got.body, want)
	}
}

func wantParamsRefusal(t *testing.T, spec ParamsSpec, s probe.Surface, body, message string) {
	t.Helper()
	got := ask(t, params(t, spec), s, EngineOpenAI, body)
	if !got.verdict.Refused || got.message != message {
		t.Fatalf("%s: unexpected message; got %q; want %q", body, got.message, message)
	}
	if got.verdict.Param() == "" || got.verdict.Violated == 0 || got.verdict.Capped|got.verdict.Defaulted != 0 || got.verdict.Blocked != 0 {
		t.Fatalf("%s: unexpected verdict %+v", body, got.verdict)
	}
}

func TestParamsBlock(t *testing.T) {
	f := func(blocked, body, want string) {
		t.Helper()
		wantParams(t, ParamsSpec{BlockedParams: strings.Fields(blocked)}, probe.SurfaceChat, body, want)
	}
	f("seed", `{"a":1,"seed":5,"b":2}`, `{"a":1,"b":2}`)
	f("seed", `{"seed":5}`, `{}`)
	f("seed", `{"Seed":5,"seed2":1}`, `{"Seed":5,"seed2":1}`)
	f("seed", `{"\u0073eed":5,"seed":null,"a":{"seed":1},"se\u0065d":6}`, `{"a":{"seed":1}}`)
	f("temperature", `{"temperature":9,"temper\u0061ture":1,"a":1}`, `{"a":1}`)
	f("logprobs top_logprobs", `{ "logprobs" : true , "x":[1], "top_logprobs":5 }`, `{ "x":[1] }`)

	// One thing with many spellings.
	const four = `{"max_tokens":1,"max_completion_tokens":2,"max_output_tokens":3,"max_new_tokens":4,"n":5}`
	for _, key := range outputNames {
		f(key, four, `{"n":5}`)
	}
	f("n", `{"n":2,"candidate_count":2,"candidate_count":3,"best_of":4}`, `{"best_of":4}`)
	f("candidate_count", `{"n":2,"candidate_count":2,"best_of":4}`, `{"best_of":4}`)
	f("best_of", `{"n":2,"candidate_count":2,"best_of":4}`, `{"n":2,"candidate_count":2}`)
	f("response_format", `{"response_format":{},"output_format":{},"a":1}`, `{"a":1}`)
	f("output_format", `{"response_format":{},"output_format":{},"a":1}`, `{"a":1}`)

	// What goes with it.
	f("stream", `{"stream":true,"stream_options":{"include_usage":true},"a":1}`, `{"a":1}`)
	f("stream_options", `{"stream":true,"stream_options":{"include_usage":true}}`, `{"stream":true}`)
	f("tools", `{"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"a":1}`, `{"a":1}`)
	f("tool_choice", `{"tools":[],"tool_choice":"auto","parallel_tool_calls":true}`, `{"tools":[],"parallel_tool_calls":true}`)
}

func TestParamsBlockOnGenerate(t *testing.T) {
	f := func(blocked, body, want string) {
		t.Helper()
		wantParams(t, ParamsSpec{BlockedParams: strings.Fields(blocked)}, probe.SurfaceGenerate, body, want)
	}
	f("max_tokens", `{"max_tokens":1,"sampling_params":{"max_new_tokens":5,"n":1}}`, `{"sampling_params":{"n":1}}`)
	f("seed", `{"seed":1,"sampling_params":[{"s\u0065ed":5,"n":1},{"seed":2}]}`, `{"sampling_params":[{"n":1},{}]}`)
	f("sampling_params", `{"text":"a","sampling_params":[{"n":1}]}`, `{"text":"a"}`)
	wantParams(t, ParamsSpec{BlockedParams: []string{"sampling_params"}, DefaultMaxTokens: 7}, probe.SurfaceGenerate,
		`{"text":"a","sampling_params":{"max_new_tokens":9}}`, `{"sampling_params":{"max_new_tokens":7},"text":"a"}`)
	wantParamsRefusal(t, ParamsSpec{BlockedParams: []string{"seed"}}, probe.SurfaceGenerate, `{"sampling_params":[{},5]}`,
		"sampling_params violates this deployment's request limits: must be an object or a list of objects")
	wantParams(t, ParamsSpec{StripUnknown: true}, probe.SurfaceGenerate, `{"sampling_params":5,"zap":1}`, `{"sampling_params":5}`)
}

// TestParamsCap has the four spellings, and all that might get past a cap.
func TestParamsCap(t *testing.T) {
	spec := ParamsSpec{MaxTokensLimit: 50}
	f := func(s probe.Surface, body, want string) {
		t.Helper()
		wantParams(t, spec, s, body, want)
	}
	for _, s := range []probe.Surface{probe.SurfaceChat, probe.SurfaceCompletions, probe.SurfaceResponses, probe.SurfaceMessages, probe.SurfaceGenerate} {
		for _, key := range outputNames {
			f(s, `{"a":1,"`+key+`" : 51}`, `{"a":1,"`+key+`" : 50}`)
			f(s, `{"a":1,"`+key+`" : 50}`, `{"a":1,"`+key+`" : 50}`)
		}
		f(s, `{"a":1}`, `{"a":1}`) // a cap never invents a limit
	}
	chat := probe.SurfaceChat
	f(chat, `{"max_tokens":40,"max_completion_tokens":5000}`, `{"max_tokens":40,"max_completion_tokens":50}`)
	f(chat, `{"max_tokens":5000,"max_completion_tokens":40}`, `{"max_tokens":50,"max_completion_tokens":40}`)
	f(chat, `{"max\u005ftokens":5000}`, `{"max\u005ftokens":50}`)
	f(chat, `{"max_tokens":null}`, `{"max_tokens":null}`)
	for _, over := range []string{
		`51`, `51.0`, `5.1e1`, `"51"`, `"5_1"`, `" 51 "`, `"51.0"`, `500.0`, `5e2`, `5E+2`, `1e30`, `1e400`, `18446744073709551616`, `"18446744073709551616"`,
		strings.Repeat("9", 400), `"99999999999999999999"`, `51e0`, `510e-1`,
	} {
		f(chat, `{"max_tokens": `+over+` }`, `{"max_tokens": 50 }`)
	}
	for _, under := range []string{`50`, `50.0`, `5e1`, `"50"`, `true`, `1`, `0.1e1`, `"5_0"`} {
		f(chat, `{"max_tokens": `+under+` }`, `{"max_tokens": `+under+` }`)
	}
	// Other places are none of ours.
	f(chat, `{"messages":[{"max_tokens":99}],"a":{"max_tokens":99}}`, `{"messages":[{"max_tokens":99}],"a":{"max_tokens":99}}`)

	generate := probe.SurfaceGenerate
	f(generate, `{"sampling_params":{"max_new_tokens":99}}`, `{"sampling_params":{"max_new_tokens":50}}`)
	f(generate, `{"max_tokens":99,"sampling_params":[{"max_tokens":"99"},{"max_new_tokens":1e30},{}]}`,
		`{"max_tokens":50,"sampling_params":[{"max_tokens":50},{"max_new_tokens":50},{}]}`)
}

func TestParamsRefuse(t *testing.T) {
	f := func(value, got string) {
		t.Helper()
		for _, key := range outputNames {
			wantParamsRefusal(t, ParamsSpec{MaxTokensLimit: 50}, probe.SurfaceChat, `{"a":1,"`+key+`":`+value+`}`,
				key+" violates this deployment's request limits: must be a whole number >= 1 (above 50 it is lowered to that), got "+got)
		}
		wantParamsRefusal(t, ParamsSpec{MaxN: 1}, probe.SurfaceGenerate, `{"sampling_params":[{},{"n":`+value+`}]}`,
			"n violates this deployment's request limits: must be a whole number >= 1 (above 1 it is lowered to that), got "+got)
	}
	f(`0`, "0")
	f(`-1`, "-1")
	f(`-1e30`, "-1000000000000000000000000000000")
	f(`-1e400`, "a number out of range")
	f(`0.5`, "0.5")
	f(`1.5`, "1.5")
	f(`1e-3`, "0.001")
	f(`NaN`, "NaN")
	f(`Infinity`, "Infinity")
	f(`false`, "false")
	f(`"hot"`, "a string that is not a number")
	f(`""`, "a string that is not a number")
	f(`"1.5"`, "a string that reads as 1.5")
	f(`"1e2"`, "a string that reads as 100")
	f(`"nan"`, "a string that reads as NaN")
	f(`{"max_tokens":1}`, "an object")
	f(`[1]`, "a list")
	f(`"`+strings.Repeat("x", 200_000)+`"`, "a string that is not a number")

	// The output limit is told before the answers, whatever comes first.
	wantParamsRefusal(t, ParamsSpec{MaxTokensLimit: 9, MaxN: 1}, probe.SurfaceChat, `{"n":0,"max_new_tokens":0,"max_tokens":-1,"seed":1}`,
		"max_new_tokens violates this deployment's request limits: must be a whole number >= 1 (above 9 it is lowered to that), got 0")
	// Nothing is refused without a cap, nor what is blocked.
	wantParams(t, ParamsSpec{MaxN: 1, DefaultMaxTokens: 5}, probe.SurfaceChat, `{"max_tokens":"hot"}`, `{"max_tokens":"hot"}`)
	wantParams(t, ParamsSpec{MaxTokensLimit: 9, BlockedParams: []string{"max_tokens"}}, probe.SurfaceChat, `{"max_tokens":"hot","a":1}`, `{"a":1}`)
}

func TestParamsDefault(t *testing.T) {
	spec := ParamsSpec{DefaultMaxTokens: 100}
	f := func(s probe.Surface, body, want string) {
		t.Helper()
		wantParams(t, spec, s, body, want)
	}
	f(probe.SurfaceChat, `{"a":1}`, `{"max_tokens":100,"a":1}`)
	f(probe.SurfaceCompletions, `{"a":1}`, `{"max_tokens":100,"a":1}`)
	f(probe.SurfaceMessages, `{"a":1}`, `{"max_tokens":100,"a":1}`)
	f(probe.SurfaceResponses, `{"a":1}`, `{"max_output_tokens":100,"a":1}`)
	f(probe.SurfaceChat, `{ "max_tokens" : null }`, `{ "max_tokens" : 100 }`)
	f(probe.SurfaceChat, `{"max_completion_tokens":null}`, `{"max_tokens":100,"max_completion_tokens":null}`)
	for _, s := range []probe.Surface{probe.SurfaceChat, probe.SurfaceCompletions, probe.SurfaceResponses, probe.SurfaceMessages} {
		for _, key := range outputNames {
			f(s, `{"`+key+`":7}`, `{"`+key+`":7}`)
		}
	}
	g := probe.SurfaceGenerate
	f(g, `{"text":"a"}`, `{"sampling_params":{"max_new_tokens":100},"text":"a"}`)
	f(g, `{"sampling_params": null }`, `{"sampling_params": {"max_new_tokens":100} }`)
	f(g, `{"sampling_params":{}}`, `{"sampling_params":{"max_new_tokens":100}}`)
	f(g, `{"max_tokens":5,"sampling_params":{"n":1}}`, `{"max_tokens":5,"sampling_params":{"max_new_tokens":100,"n":1}}`)
	f(g, `{"sampling_params":[{"max_new_tokens":5},{},{"max_tokens":6},{"max_new_tokens":null}]}`,
		`{"sampling_params":[{"max_new_tokens":5},{"max_new_tokens":100},{"max_tokens":6},{"max_new_tokens":100}]}`)
	f(g, `{"sampling_params":[]}`, `{"sampling_params":[]}`)

	// The order: block, then default, then cap.
	spec = ParamsSpec{BlockedParams: []string{"max_new_tokens"}, DefaultMaxTokens: 100, MaxTokensLimit: 50}
	f(probe.SurfaceChat, `{"max_completion_tokens":7}`, `{"max_tokens":50}`)
	f(g, `{"sampling_params":{"max_new_tokens":7}}`, `{"sampling_params":{"max_new_tokens":50}}`)

	// A limit that is stripped is none.
	spec = ParamsSpec{StripUnknown: true, DefaultMaxTokens: 100}
	f(probe.SurfaceChat, `{"max_new_tokens":7}`, `{"max_tokens":100}`)
	f(probe.SurfaceMessages, `{"max_completion_tokens":7,"model":"m"}`, `{"max_tokens":100,"model":"m"}`)
	f(probe.SurfaceChat, `{"max_completion_tokens":7}`, `{"max_completion_tokens":7}`)
}

func TestParamsAnswers(t *testing.T) {
	f := func(s probe.Surface, body, want string) {
		t.Helper()
		wantParams(t, ParamsSpec{MaxN: 2}, s, body, want)
	}
	f(probe.SurfaceChat, `{"n":3}`, `{"n":2}`)
	f(probe.SurfaceChat, `{"n":2}`, `{"n":2}`)
	f(probe.SurfaceChat, `{"a":1}`, `{"a":1}`)
	f(probe.SurfaceChat, `{"n":"3","candidate_count":1e30,"best_of":99,"max_tokens":99}`, `{"n":2,"candidate_count":2,"best_of":2,"max_tokens":99}`)
	f(probe.SurfaceGenerate, `{"n":5,"sampling_params":{"n":9,"b\u0065st_of":3}}`, `{"n":2,"sampling_params":{"n":2,"b\u0065st_of":2}}`)
	// The last copy counts, and the others go.
	f(probe.SurfaceCompletions, `{"best_of":99,"a":1,"best_of":1}`, `{"a":1,"best_of":1}`)
	f(probe.SurfaceCompletions, `{"best_of":1,"a":1,"best_of":99}`, `{"a":1,"best_of":2}`)
	f(probe.SurfaceCompletions, `{"best_of":"hot","best_of":99,"b\u0065st_of":null}`, `{"b\u0065st_of":null}`)
	f(probe.SurfaceGenerate, `{"sampling_params":[{"candidate_count":9,"candidate_count":2}]}`, `{"sampling_params":[{"candidate_count":2}]}`)
}

func TestParamsStrip(t *testing.T) {
	f := func(s probe.Surface, e Engine, body, want string) {
		t.Helper()
		got := ask(t, params(t, ParamsSpec{StripUnknown: true, KnownParams: []string{"mine", "rid", "min_p"}}), s, e, body)
		if got.body != want {
			t.Fatalf("unexpected body; got %s; want %s", got.body, want)
		}
	}
	f(probe.SurfaceChat, EngineOpenAI, `{"model":"m","messages":[],"zap":1,"top_k":5,"min_tokens":1,"mine":2,"min_p":0}`, `{"model":"m","messages":[],"mine":2,"min_p":0}`)
	f(probe.SurfaceChat, EngineVLLM, `{"top_k":5,"min_tokens":1,"regex":"a","vllm_xargs":{}}`, `{"top_k":5,"min_tokens":1,"vllm_xargs":{}}`)
	f(probe.SurfaceChat, EngineSGLang, `{"top_k":5,"min_tokens":1,"regex":"a","vllm_xargs":{}}`, `{"top_k":5,"min_tokens":1,"regex":"a"}`)
	f(probe.SurfaceChat, EngineSGLang, `{"mod\u0065l":"m","z\u0061p":1,"\u0072egex":"a","Regex":1}`, `{"mod\u0065l":"m","\u0072egex":"a"}`)
	f(probe.SurfaceMessages, EngineOpenAI, `{"model":"m","system":"s","stop_sequences":[],"top_k":1,"n":1,"stop":"x"}`, `{"model":"m","system":"s","stop_sequences":[],"top_k":1}`)
	f(probe.SurfaceResponses, EngineVLLM, `{"input":"i","max_output_tokens":1,"max_tokens":2,"text":{}}`, `{"input":"i","max_output_tokens":1,"text":{}}`)
	f(probe.SurfaceCompletions, EngineOpenAI, `{"prompt":"p","suffix":"s","messages":[]}`, `{"prompt":"p","suffix":"s"}`)
	for e := range numEngines {
		f(probe.SurfaceGenerate, e, `{"text":"t","zap":1,"sampling_params":{"zap":1},"temperature":1}`, `{"text":"t","sampling_params":{"zap":1}}`)
		f(probe.SurfaceChat, e, `{"enable_thinking":true,"rid":"x"}`, `{"enable_thinking":true,"rid":"x"}`)
	}
	f(probe.SurfaceChat, EngineOpenAI, `{"a":1,"b":2}`, `{}`)
	f(probe.SurfaceChat, EngineOpenAI, `{"":1,"`+strings.Repeat(`\u0061`, 400)+`":1,"`+strings.Repeat("k", 500)+`":2}`, `{}`)
}

// TestParamsKeepsWhatTheRouterAdds: what an earlier stage put there is no
// client's member.
func TestParamsKeepsWhatTheRouterAdds(t *testing.T) {
	const body = `{"zap":1,"max_tokens":5}`
	b, p := scan(t, probe.SurfaceChat, body)
	p.Inject(Top, literal(t, "zip", `1`))
	p.Replace(b.Last(probe.FieldMaxTokens), literal(t, "max_tokens", `"9e2"`))
	ps := params(t, ParamsSpec{StripUnknown: true, MaxTokensLimit: 3, DefaultMaxTokens: 2})
	if v := ps.Judge([]byte(body), b, probe.SurfaceChat, EngineOpenAI, p); !v.Refused {
		t.Fatal("the value that an earlier stage wrote was not judged")
	}
	p.Replace(b.Last(probe.FieldMaxTokens), literal(t, "max_tokens", `900`))
	ps.Judge([]byte(body), b, probe.SurfaceChat, EngineOpenAI, p)
	wantPlan(t, p, body, `{"zip":1,"max_tokens":3}`)

	b, p = scan(t, probe.SurfaceChat, `{"max_tokens":5}`)
	p.Remove(&b.Members[0])
	p.Inject(Top, literal(t, "max_completion_tokens", `4`))
	ps.Judge([]byte(`{"max_tokens":5}`), b, probe.SurfaceChat, EngineOpenAI, p)
	wantPlan(t, p, `{"max_tokens":5}`, `{"max_completion_tokens":4}`)
}

func TestParamsVerdict(t *testing.T) {
	spec := ParamsSpec{BlockedParams: []string{"seed", "n", "max_tokens"}, MaxN: 1, DefaultMaxTokens: 5, MaxTokensLimit: 9, StripUnknown: true}
	for _, onViolation := range []string{"enforce", "observe"} {
		spec.OnViolation = onViolation
		ps := params(t, spec)
		const body = `{"seed":1,"candidate_count":9,"max_completion_tokens":1,"zip":1,"zap":2,"best_of":7}`
		got := ask(t, ps, probe.SurfaceCompletions, EngineOpenAI, body)
		v := got.verdict
		if v.Blocked != 0b111 || !v.HasBlocked(2) || v.HasBlocked(3) || v.Stripped != 2 || v.Defaulted != probe.FieldSet(0).With(probe.FieldMaxTokens) ||
			v.Capped != probe.FieldSet(0).With(probe.FieldBestOf) || v.Refused || v.Violated != 0 || v.Param() != "" || got.message != "" {
			t.Fatalf("%s: unexpected verdict %+v", onViolation, v)
		}
		want := body
		if onViolation == "enforce" {
			want = `{"max_tokens":5,"best_of":1}`
		}
		if got.body != want || ps.Observes() != (onViolation == "observe") || !slices.Equal(ps.BlockedParams(), spec.BlockedParams) {
			t.Fatalf("%s: unexpected body %s", onViolation, got.body)
		}
		v = ask(t, ps, probe.SurfaceCompletions, EngineOpenAI, `{"best_of":0,"seed":1}`).verdict
		if v.Refused != (onViolation == "enforce") || v.Violated != probe.FieldSet(0).With(probe.FieldBestOf) || v.Blocked != 0 {
			t.Fatalf("%s: unexpected verdict %+v", onViolation, v)
		}
	}
}

func TestParamsOff(t *testing.T) {
	var off *Params
	const body = `{"max_tokens":"hot"}`
	for _, ps := range []*Params{off, params(t, ParamsSpec{}), params(t, ParamsSpec{MaxTokensLimit: 5})} {
		s := probe.SurfaceEmbeddings
		if got := ask(t, ps, s, EngineOpenAI, body); got.body != body || got.verdict != (ParamsVerdict{}) {
			t.Fatalf("unexpected verdict %+v", got.verdict)
		}
	}
	if off.Observes() || off.BlockedParams() != nil {
		t.Fatal("a nil Params is not off")
	}
}

func TestParamsAuto(t *testing.T) {
	f := func(s probe.Surface, body string, tokens int, want string) {
		t.Helper()
		ps := params(t, ParamsSpec{AutoMaxTokens: true, MaxTokensLimit: 500, BlockedParams: []string{"max_new_tokens"}})
		if strings.Contains(body, "keep") {
			ps = params(t, ParamsSpec{AutoMaxTokens: true, MaxTokensLimit: 500})
		}
		b, p := scan(t, s, body)
		v := ps.Judge([]byte(body), b, s, EngineOpenAI, p)
		var room AutoLimit
		given := ps.GiveLimit(tokens, b, s, EngineOpenAI, p, &room)
		if v.WantsLimit != given && tokens > 0 {
			t.Fatalf("%s: wants a limit %v; given %v", body, v.WantsLimit, given)
		}
		wantPlan(t, p, body, want)
	}
	f(probe.SurfaceChat, `{"a":1}`, 123, `{"max_tokens":123,"a":1}`)
	f(probe.SurfaceChat, `{"a":1}`, 1234, `{"max_tokens":500,"a":1}`)
	f(probe.SurfaceChat, `{"a":1}`, 0, `{"a":1}`)
	f(probe.SurfaceChat, `{"max_completion_tokens":7}`, 9, `{"max_tokens":9}`)
	f(probe.SurfaceChat, `{"keep":1,"max_completion_tokens":7}`, 9, `{"keep":1,"max_completion_tokens":7}`)
	f(probe.SurfaceResponses, `{"max_output_tokens":null}`, 9, `{"max_output_tokens":9}`)
	f(probe.SurfaceGenerate, `{"keep":1,"sampling_params":[{"max_new_tokens":1},{}]}`, 9, `{"keep":1,"sampling_params":[{"max_new_tokens":1},{"max_new_tokens":9}]}`)
	f(probe.SurfaceGenerate, `{"keep":1}`, 9, `{"sampling_params":{"max_new_tokens":9},"keep":1}`)
}

func TestNewParamsErrors(t *testing.T) {
	f := func(spec ParamsSpec, want ...string) {
		t.Helper()
		_, err := NewParams(spec)
		if err == nil {
			t.Fatalf("%+v: no error; want %q", spec, want)
		}
		if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
			t.Fatalf("unexpected error; got %q; want %q", got, want)
		}
		var fault *SpecError
		if !errors.As(err, &fault) {
			t.Fatalf("%v is no SpecError", err)
		}
	}
	for _, key := range []string{"model", "messages", "prompt", "input"} {
		f(ParamsSpec{BlockedParams: []string{"seed", key}}, `blocked_params[1]: required field "`+key+`" cannot be blocked`)
	}
	f(ParamsSpec{BlockedParams: []string{"a", "", "a"}}, `blocked_params[1]: "" is empty; expected the name of a member`, `blocked_params[2]: "a" is given more than once`)
	f(ParamsSpec{KnownParams: []string{"a", "a"}}, `known_params[1]: "a" is given more than once`)
	f(ParamsSpec{MaxTokensLimit: -1, MaxN: -2, DefaultMaxTokens: -3},
		`max_tokens_limit: -1 is too small; expected a whole number >= 1`, `max_n: -2 is too small; expected a whole number >= 1`,
		`default_max_tokens: -3 is too small; expected a whole number >= 1`)
	f(ParamsSpec{MaxN: 1<<53 + 1}, `max_n: 9007199254740993 is too large; expected a whole number up to 9007199254740992`)
	f(ParamsSpec{AutoMaxTokens: true, DefaultMaxTokens: 5}, `default_max_tokens: 5 is set beside auto; expected one of them`)
	f(ParamsSpec{OnViolation: "obsrve"}, `on_violation: "obsrve" is unknown (did you mean "observe"?); expected enforce or observe`)
	many := make([]string, 65)
	for i := range many {
		many[i] = strings.Repeat("k", i+1)
	}
	f(ParamsSpec{BlockedParams: many}, `blocked_params: 65 are too many keys; expected at most 64`)
	many[0] = strings.Repeat("k", 200)
	if _, err := NewParams(ParamsSpec{KnownParams: many[:1]}); err == nil || !strings.Contains(err.Error(), "is too long; expected at most 128 bytes") {
		t.Fatalf("unexpected error %v", err)
	}
}
