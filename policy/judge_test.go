package policy

import (
	"fmt"
	"testing"

	"sluice/probe"
)

// judged is what one body comes to under one contract.
type judged struct {
	verdict Verdict
	body    string // as the engine gets it. Valid iff the verdict is no refusal.
	edits   int
}

// judge runs the whole pipeline: scan, judge, plan, bytes.
func judge(t testing.TB, c *Contract, surface probe.Surface, body string) judged {
	t.Helper()
	var b probe.Body
	var p Plan
	src := []byte(body)
	if fault := probe.Scan(src, surface, c.Numbers(), &b); fault != probe.FaultNone {
		t.Fatalf("cannot scan %q: %v at %d", body, fault, b.FaultAt)
	}
	p.Reset(&b)
	v := c.Judge(&b, surface, &p)
	out := p.AppendTo(nil, src)
	if len(out) != p.Len(src) {
		t.Fatalf("unexpected Len for %q; got %d; want %d", body, p.Len(src), len(out))
	}
	if string(src) != body {
		t.Fatalf("the client's bytes were changed: %q became %q", body, src)
	}
	return judged{verdict: v, body: string(out), edits: len(p.Edits())}
}

func contract(t testing.TB, onConflict string, params map[string]any) *Contract {
	t.Helper()
	c, err := NewContract(ContractSpec{OnConflict: onConflict, Params: params})
	if err != nil {
		t.Fatalf("cannot make the contract: %v", err)
	}
	return c
}

func band(lo, hi any) map[string]any { return map[string]any{"min": lo, "max": hi} }

// generative are the surfaces with the form that a body with the given members
// has there; %s are the governed members.
var generative = []struct {
	surface      probe.Surface
	name, format string
}{
	{probe.SurfaceChat, "chat", `{%s}`},
	{probe.SurfaceCompletions, "completions", `{%s}`},
	{probe.SurfaceResponses, "responses", `{%s}`},
	{probe.SurfaceMessages, "messages", `{%s}`},
	{probe.SurfaceGenerate, "generate", `{"text":"a","sampling_params":{%s}}`},
	{probe.SurfaceGenerate, "generate list", `{"text":["a"],"sampling_params": [ {%s} ]}`},
}

// TestJudgeTable is the table of spec §3, cell by cell, on each surface.
func TestJudgeTable(t *testing.T) {
	const (
		pinNumber  = "got %s, expected 1 (or omit the field)"
		pinOther   = "expected 1 (or omit the field), got a non-numeric value"
		bandNumber = "must be between 0.5 and 1.5, got %s"
		bandOther  = "must be a number between 0.5 and 1.5, got a non-numeric value"
		same       = "same"
	)
	pin := map[string]any{"temperature": 1}
	within := map[string]any{"temperature": band(0.5, 1.5)}
	// Each cell is the members that the engine gets, or same, or the detail
	// of the refusal. %s in a detail is the number as it prints.
	rows := []struct {
		state, members, prints string
		pinReject, pinAllow    string
		bandReject             string
		pinReplace             string
		bandReplace            string
		refused                bool // under reject with the pin, which observe counts
		bandRefused            bool
	}{
		{
			state: "absent", members: ``,
			pinReject: `"temperature":1`, pinAllow: `"temperature":1`, bandReject: same, pinReplace: `"temperature":1`, bandReplace: same,
		},
		{
			state: "null", members: `"temperature": null`,
			pinReject: `"temperature": 1`, pinAllow: `"temperature": 1`, bandReject: same, pinReplace: `"temperature": 1`, bandReplace: same,
		},
		{
			state: "equal", members: `"temperature" : 1.0`,
			pinReject: same, pinAllow: same, bandReject: same, pinReplace: same, bandReplace: same,
		},
		{
			state: "true is 1", members: `"temperature":true`,
			pinReject: same, pinAllow: same, bandReject: same, pinReplace: same, bandReplace: same,
		},
		{
			state: "string of the number", members: `"temperature":" 1e0 "`,
			pinReject: same, pinAllow: same, bandReject: same, pinReplace: same, bandReplace: same,
		},
		{
			state: "below", members: `"temperature":0.25`, prints: "0.25", refused: true, bandRefused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: bandNumber, pinReplace: `"temperature":1`, bandReplace: `"temperature":0.5`,
		},
		{
			state: "above", members: `"temperature":2e0`, prints: "2", refused: true, bandRefused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: bandNumber, pinReplace: `"temperature":1`, bandReplace: `"temperature":1.5`,
		},
		{
			state: "other, inside the band", members: `"temperature":1.25`, prints: "1.25", refused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: same, pinReplace: `"temperature":1`, bandReplace: same,
		},
		{
			state: "on the bound", members: `"temperature":"1.5"`, prints: "1.5", refused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: same, pinReplace: `"temperature":1`, bandReplace: same,
		},
		{
			state: "NaN", members: `"temperature":NaN`, prints: "NaN", refused: true, bandRefused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: bandNumber, pinReplace: `"temperature":1`, bandReplace: bandNumber,
		},
		{
			state: "Infinity", members: `"temperature":Infinity`, prints: "Infinity", refused: true, bandRefused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: bandNumber, pinReplace: `"temperature":1`, bandReplace: `"temperature":1.5`,
		},
		{
			state: "-Infinity in a string", members: `"temperature":"-inf"`, prints: "-Infinity", refused: true, bandRefused: true,
			pinReject: pinNumber, pinAllow: same, bandReject: bandNumber, pinReplace: `"temperature":1`, bandReplace: `"temperature":0.5`,
		},
		{
			state: "string", members: `"temperature":"hot"`, refused: true, bandRefused: true,
			pinReject: pinOther, pinAllow: same, bandReject: bandOther, pinReplace: `"temperature":1`, bandReplace: bandOther,
		},
		{
			state: "object", members: `"temperature":{"a":[1]}`, refused: true, bandRefused: true,
			pinReject: pinOther, pinAllow: same, bandReject: bandOther, pinReplace: `"temperature":1`, bandReplace: bandOther,
		},
		{
			state: "outside float64", members: `"temperature":1e400`, refused: true, bandRefused: true,
			pinReject: pinOther, pinAllow: same, bandReject: bandOther, pinReplace: `"temperature":1`, bandReplace: bandOther,
		},
	}
	for _, s := range generative {
		for _, r := range rows {
			cell := func(onConflict string, params map[string]any, want string) {
				t.Helper()
				t.Run(fmt.Sprintf("%s/%s/%s/%v", s.name, r.state, onConflict, params), func(t *testing.T) {
					body := fmt.Sprintf(s.format, r.members)
					got := judge(t, contract(t, onConflict, params), s.surface, body)
					switch want {
					case pinNumber, bandNumber:
						wantRefusal(t, got.verdict, "temperature", fmt.Sprintf(want, r.prints))
					case pinOther, bandOther:
						wantRefusal(t, got.verdict, "temperature", want)
					case same:
						wantBody(t, got, body)
						wantSets(t, got.verdict, 0, 0, 0)
						if got.edits != 0 {
							t.Fatalf("unexpected edits; got %d; want none", got.edits)
						}
					default:
						wantBody(t, got, fmt.Sprintf(s.format, want))
						field := probe.FieldSet(0).With(probe.FieldTemperature)
						if r.state == "absent" || r.state == "null" {
							wantSets(t, got.verdict, 0, field, 0)
						} else {
							wantSets(t, got.verdict, 0, 0, field)
						}
					}
				})
			}
			cell("reject", pin, r.pinReject)
			cell("", pin, r.pinReject)
			cell("allow", pin, r.pinAllow)
			cell("reject", within, r.bandReject)
			cell("replace", pin, r.pinReplace)
			cell("replace", within, r.bandReplace)
			observed(t, s.surface, fmt.Sprintf(s.format, r.members), pin, r.refused)
			observed(t, s.surface, fmt.Sprintf(s.format, r.members), within, r.bandRefused)
		}
	}
}

// observed checks that observe changes nothing and counts what reject refuses.
func observed(t *testing.T, surface probe.Surface, body string, params map[string]any, refused bool) {
	t.Helper()
	got := judge(t, contract(t, "observe", params), surface, body)
	wantBody(t, got, body)
	var violated probe.FieldSet
	if refused {
		violated = violated.With(probe.FieldTemperature)
	}
	wantSets(t, got.verdict, violated, 0, 0)
	if got.edits != 0 {
		t.Fatalf("observe made %d edits in %s", got.edits, body)
	}
	reject := judge(t, contract(t, "reject", params), surface, body)
	if reject.verdict.Refused != refused || reject.verdict.Violated != violated {
		t.Fatalf("observe and reject disagree on %s: %b and %b", body, violated, reject.verdict.Violated)
	}
}

func wantRefusal(t *testing.T, v Verdict, param, detail string) {
	t.Helper()
	if !v.Refused {
		t.Fatalf("not refused; want %q", detail)
	}
	if v.Injected != 0 || v.Replaced != 0 {
		t.Fatalf("a refused request counts edits: %b, %b", v.Injected, v.Replaced)
	}
	want := param + " violates this deployment's sampling contract: " + detail
	if got := string(v.AppendMessage(nil)); got != want {
		t.Fatalf("unexpected message; got %q; want %q", got, want)
	}
}

func wantBody(t *testing.T, got judged, want string) {
	t.Helper()
	if got.verdict.Refused {
		t.Fatalf("unexpected refusal: %s", got.verdict.AppendMessage(nil))
	}
	if got.body != want {
		t.Fatalf("unexpected body; got %s; want %s", got.body, want)
	}
}

func wantSets(t *testing.T, v Verdict, violated, injected, replaced probe.FieldSet) {
	t.Helper()
	if v.Violated != violated || v.Injected != injected || v.Replaced != replaced {
		t.Fatalf("unexpected sets; got %b, %b, %b; want %b, %b, %b",
			v.Violated, v.Injected, v.Replaced, violated, injected, replaced)
	}
}
