package policy

import (
	"math"
	"testing"

	"sluice/probe"
)

// set returns the set of the given fields.
func set(fields ...probe.Field) probe.FieldSet {
	var s probe.FieldSet
	for _, f := range fields {
		s = s.With(f)
	}
	return s
}

// all pins every governed field.
var all = map[string]any{
	"temperature": 1, "top_p": 0.9, "top_k": 5, "min_p": 0, "repetition_penalty": 1, "frequency_penalty": 0, "presence_penalty": 0, "n": 1,
}

// TestInjectionOrder: the fields are injected in their own order, on each surface.
func TestInjectionOrder(t *testing.T) {
	const pins = `"temperature":1,"top_p":0.9,"top_k":5,"min_p":0,"repetition_penalty":1,"frequency_penalty":0,"presence_penalty":0,"n":1`
	c := contract(t, "reject", all)
	for _, s := range generative {
		body := `{"text":"a","sampling_params":{}}`
		want := `{` + pins + `,"text":"a","sampling_params":{}}`
		if s.surface == probe.SurfaceGenerate {
			want = `{"text":"a","sampling_params":{` + pins + `}}`
		}
		got := judge(t, c, s.surface, body)
		wantBody(t, got, want)
		wantSets(t, got.verdict, 0, c.Numbers(), 0)
	}
}

// TestOtherSurfacesAreNotJudged: there is no sampling on them.
func TestOtherSurfacesAreNotJudged(t *testing.T) {
	const body = `{"temperature":9,"sampling_params":5}`
	c := contract(t, "reject", all)
	for s := probe.SurfaceNone; s < probe.NumSurfaces; s++ {
		if s.Generative() {
			continue
		}
		got := judge(t, c, s, body)
		wantBody(t, got, body)
		wantSets(t, got.verdict, 0, 0, 0)
	}
}

func TestFirstViolationIsReportedAllAreCounted(t *testing.T) {
	f := func(surface probe.Surface, body, param, detail string, violated probe.FieldSet) {
		t.Helper()
		got := judge(t, contract(t, "reject", all), surface, body)
		wantRefusal(t, got.verdict, param, detail)
		wantSets(t, got.verdict, violated, 0, 0)
		watched := judge(t, contract(t, "observe", all), surface, body)
		wantSets(t, watched.verdict, violated, 0, 0)
		if watched.verdict.First != got.verdict.First {
			t.Fatalf("observe and reject report different values: %v, %v", watched.verdict.First, got.verdict.First)
		}
	}
	f(probe.SurfaceChat, `{"n":2,"min_p":"x","top_p":0.5}`, "top_p", "got 0.5, expected 0.9 (or omit the field)",
		set(probe.FieldTopP, probe.FieldMinP, probe.FieldN))
	f(probe.SurfaceChat, `{"n":2,"min_p":"x"}`, "min_p", "expected 0 (or omit the field), got a non-numeric value",
		set(probe.FieldMinP, probe.FieldN))
	// In a batch the first field counts, then the first object with it.
	f(probe.SurfaceGenerate, `{"sampling_params":[{"n":2},{"top_k":7},{"top_k":8,"temperature":null}]}`,
		"top_k", "got 7, expected 5 (or omit the field)", set(probe.FieldTopK, probe.FieldN))
	f(probe.SurfaceGenerate, `{"sampling_params":[{"top_k":7},{"temperature":0.5},{"temperature":0.25}]}`,
		"temperature", "got 0.5, expected 1 (or omit the field)", set(probe.FieldTopK, probe.FieldTemperature))
}

// TestReplaceRefusesWhatItCannotReplace: one refusal is one for the request.
func TestReplaceRefusesWhatItCannotReplace(t *testing.T) {
	c := contract(t, "replace", map[string]any{"temperature": 1, "top_p": band(0.5, 1)})
	got := judge(t, c, probe.SurfaceGenerate, `{"sampling_params":[{"temperature":5},{"top_p":"x"},{"top_p":2}]}`)
	wantRefusal(t, got.verdict, "top_p", "must be a number between 0.5 and 1, got a non-numeric value")
	wantSets(t, got.verdict, set(probe.FieldTopP), 0, 0)
	got = judge(t, c, probe.SurfaceGenerate, `{"sampling_params":[{"temperature":5},{"temperature":1},{"top_p":2}]}`)
	wantBody(t, got, `{"sampling_params":[{"temperature":1},{"temperature":1},{"temperature":1,"top_p":1}]}`)
	wantSets(t, got.verdict, 0, set(probe.FieldTemperature), set(probe.FieldTemperature, probe.FieldTopP))
}

// TestSamplingParams: the places where the generate surface has them.
func TestSamplingParams(t *testing.T) {
	const odd = "must be an object or a list of objects"
	pins := map[string]any{"temperature": 1, "n": 1}
	f := func(body, want string) {
		t.Helper()
		for _, mode := range []string{"reject", "allow", "replace"} {
			got := judge(t, contract(t, mode, pins), probe.SurfaceGenerate, body)
			if want == odd {
				wantRefusal(t, got.verdict, "sampling_params", odd)
				wantSets(t, got.verdict, set(probe.FieldSamplingParams), 0, 0)
				continue
			}
			wantBody(t, got, want)
		}
		got := judge(t, contract(t, "observe", pins), probe.SurfaceGenerate, body)
		wantBody(t, got, body)
		if want == odd {
			wantSets(t, got.verdict, set(probe.FieldSamplingParams), 0, 0)
			within := judge(t, contract(t, "reject", map[string]any{"n": band(1, 2)}), probe.SurfaceGenerate, body)
			wantRefusal(t, within.verdict, "sampling_params", odd)
		} else {
			within := judge(t, contract(t, "reject", map[string]any{"n": band(1, 2)}), probe.SurfaceGenerate, body)
			wantBody(t, within, body)
		}
	}
	f(`{}`, `{"sampling_params":{"temperature":1,"n":1}}`)
	f(`{ "text" : "a" }`, `{"sampling_params":{"temperature":1,"n":1}, "text" : "a" }`)
	f(`{"text":"a","sampling_params": null}`, `{"text":"a","sampling_params": {"temperature":1,"n":1}}`)
	f(`{"sampling_params":{ }}`, `{"sampling_params":{"temperature":1,"n":1 }}`)
	f(`{"sampling_params":{ "a":1}}`, `{"sampling_params":{"temperature":1,"n":1, "a":1}}`)
	f(`{"sampling_params":[]}`, `{"sampling_params":[]}`)
	f(`{"sampling_params":[ {"a":1},{"n":null},{"n":1} ]}`,
		`{"sampling_params":[ {"temperature":1,"n":1,"a":1},{"temperature":1,"n":1},{"temperature":1,"n":1} ]}`)
	f(`{"temperature":9,"sampling_params":{"n":1}}`, `{"temperature":9,"sampling_params":{"temperature":1,"n":1}}`)
	f(`{"s\u0061mpling_params":{"n":1}}`, `{"s\u0061mpling_params":{"temperature":1,"n":1}}`)
	f(`{"sampling_params":5}`, odd)
	f(`{"sampling_params":"{}"}`, odd)
	f(`{"sampling_params":true}`, odd)
	f(`{"sampling_params":[{},null]}`, odd)
	f(`{"sampling_params":[1]}`, odd)
	f(`{"sampling_params":[[{}]]}`, odd)
}

// TestJudgeSeesEarlierStages: the request is judged as it would be sent.
func TestJudgeSeesEarlierStages(t *testing.T) {
	f := func(surface probe.Surface, body string, before func(*probe.Body, *Plan), refusal, want string) {
		t.Helper()
		c := contract(t, "reject", map[string]any{"temperature": 1, "n": band(1, 2)})
		var b probe.Body
		var p Plan
		if fault := probe.Scan([]byte(body), surface, c.Numbers(), &b); fault != probe.FaultNone {
			t.Fatalf("cannot scan %q: %v", body, fault)
		}
		p.Reset(&b)
		before(&b, &p)
		v := c.Judge(&b, surface, &p)
		if refusal != "" {
			wantRefusal(t, v, "n", refusal)
			return
		}
		if v.Refused {
			t.Fatalf("unexpected refusal: %s", v.AppendMessage(nil))
		}
		wantPlan(t, &p, body, want)
	}
	n := func(value string) *Literal { return literal(t, "n", value) }
	sampling := func(b *probe.Body) *probe.Member { return b.Last(probe.FieldSamplingParams) }

	// Blocked: the pin comes in its place.
	f(probe.SurfaceChat, `{"temperature":9,"a":1,"temperature":1}`, func(b *probe.Body, p *Plan) {
		p.Remove(&b.Members[0])
		p.Remove(&b.Members[2])
	}, "", `{"temperature":1,"a":1}`)
	// Capped: what was too much is not any more, or the other way round.
	f(probe.SurfaceChat, `{"n":9,"temperature":1}`, func(b *probe.Body, p *Plan) {
		p.Replace(b.Last(probe.FieldN), n(`2`))
	}, "", `{"n":2,"temperature":1}`)
	f(probe.SurfaceChat, `{"n":1,"temperature":1}`, func(b *probe.Body, p *Plan) {
		p.Replace(b.Last(probe.FieldN), n(`3`))
	}, "must be between 1 and 2, got 3", "")
	// Injected.
	f(probe.SurfaceChat, `{"temperature":1}`, func(_ *probe.Body, p *Plan) { p.Inject(Top, n(`2`)) }, "", `{"n":2,"temperature":1}`)
	f(probe.SurfaceChat, `{"temperature":1}`, func(_ *probe.Body, p *Plan) { p.Inject(Top, n(`"x"`)) },
		"must be a number between 1 and 2, got a non-numeric value", "")
	f(probe.SurfaceChat, `{}`, func(_ *probe.Body, p *Plan) { p.Inject(Top, literal(t, "temperature", `1.0`)) }, "", `{"temperature":1.0}`)
	f(probe.SurfaceChat, `{}`, func(_ *probe.Body, p *Plan) { p.Inject(Top, literal(t, "temperature", `null`)) }, "", `{"temperature":1}`)
	// The same below the top level.
	f(probe.SurfaceGenerate, `{"sampling_params":{"n":9}}`, func(b *probe.Body, p *Plan) {
		p.Replace(&b.Inner[0], n(`1`))
	}, "", `{"sampling_params":{"temperature":1,"n":1}}`)
	f(probe.SurfaceGenerate, `{"sampling_params":null}`, func(_ *probe.Body, p *Plan) {
		p.Inject(Made, literal(t, "max_new_tokens", `5`))
	}, "", `{"sampling_params":{"max_new_tokens":5,"temperature":1}}`)
	f(probe.SurfaceGenerate, `{"a":1,"sampling_params":7}`, func(b *probe.Body, p *Plan) { p.Remove(sampling(b)) },
		"", `{"sampling_params":{"temperature":1},"a":1}`)
	// A sampling_params of the operator's own is not judged again.
	own := literal(t, "sampling_params", `{"n":5}`)
	f(probe.SurfaceGenerate, `{"sampling_params":7}`, func(b *probe.Body, p *Plan) { p.Replace(sampling(b), own) }, "", `{"sampling_params":{"n":5}}`)
	f(probe.SurfaceGenerate, `{}`, func(_ *probe.Body, p *Plan) { p.Inject(Top, own) }, "", `{"sampling_params":{"n":5}}`)
}

func TestJudgeWantsThePlanOfTheBody(t *testing.T) {
	_, p := scan(t, probe.SurfaceChat, `{}`)
	defer func() {
		if recover() == nil {
			t.Fatal("a plan of another body was taken")
		}
	}()
	contract(t, "", all).Judge(new(probe.Body), probe.SurfaceChat, p)
}

// TestMessageNumbers: shortest round trip, never an exponent.
func TestMessageNumbers(t *testing.T) {
	f := func(value, prints string) {
		t.Helper()
		got := judge(t, contract(t, "", map[string]any{"top_k": -1}), probe.SurfaceChat, `{"top_k":`+value+`}`)
		wantRefusal(t, got.verdict, "top_k", "got "+prints+", expected -1 (or omit the field)")
	}
	f(`1e21`, "1000000000000000000000")
	f(`1e-7`, "0.0000001")
	f(`0.1`, "0.1")
	f(`0.30000000000000004`, "0.30000000000000004")
	f(`100000000`, "100000000")
	f(`1.50`, "1.5")
	f(`-0`, "-0")
	f(`true`, "1")
	f(`"1_000"`, "1000")
	if got := string(appendNumber([]byte("x"), math.SmallestNonzeroFloat64)); len(got) != 327 {
		t.Fatalf("unexpected form of the smallest number: %s", got)
	}
	var none Verdict
	if got := none.AppendMessage([]byte("x")); string(got) != "x" {
		t.Fatalf("a pass has the message %q", got)
	}
}
