package policy

import (
	"strings"
	"testing"

	"sluice/probe"
)

// The rows of the list of cases from the field that concern the contract.

func TestB03_LastDuplicateIsJudged(t *testing.T) {
	c := contract(t, "reject", map[string]any{"temperature": 1})
	for _, s := range generative {
		got := judge(t, c, s.surface, strings.Replace(s.format, "%s", `"temperature":1,"temperature":0.5`, 1))
		wantRefusal(t, got.verdict, "temperature", "got 0.5, expected 1 (or omit the field)")
		got = judge(t, c, s.surface, strings.Replace(s.format, "%s", `"temperature":0.5, "a":2, "temperature":1.0`, 1))
		wantBody(t, got, strings.Replace(s.format, "%s", `"a":2, "temperature":1.0`, 1))
		wantSets(t, got.verdict, 0, 0, 0)
	}
}

// TestDuplicates: wherever a repeated field is judged, one copy is left.
func TestDuplicates(t *testing.T) {
	f := func(onConflict string, param any, body, want string) {
		t.Helper()
		c := contract(t, onConflict, map[string]any{"temperature": param})
		got := judge(t, c, probe.SurfaceChat, body)
		wantBody(t, got, want)
	}
	f("allow", 1, `{"temperature":1,"temperature":"hot"}`, `{"temperature":"hot"}`)
	f("allow", 1, `{"temperature":9,"temperature":null}`, `{"temperature":1}`)
	f("replace", 1, `{"temperature":9,"x":1,"temperature":8,"temperature":7}`, `{"x":1,"temperature":1}`)
	f("reject", band(0, 2), `{"temperature":9,"temperature":null}`, `{"temperature":null}`)
	f("reject", band(0, 2), `{"temperature":9,"temperature":1}`, `{"temperature":1}`)
	f("replace", band(0, 2), `{"temperature":1,"temperature":9}`, `{"temperature":2}`)
	f("observe", 1, `{"temperature":9,"temperature":1}`, `{"temperature":9,"temperature":1}`)
	f("observe", 1, `{"temperature":1,"temperature":9}`, `{"temperature":1,"temperature":9}`)
	// A field that is not judged is the client's own matter.
	f("reject", 1, `{"top_p":1,"top_p":2}`, `{"temperature":1,"top_p":1,"top_p":2}`)
}

func TestB04_EscapedKeys(t *testing.T) {
	f := func(members, detail, want string) {
		t.Helper()
		c := contract(t, "reject", map[string]any{"temperature": 1})
		for _, s := range generative {
			got := judge(t, c, s.surface, strings.Replace(s.format, "%s", members, 1))
			if detail != "" {
				wantRefusal(t, got.verdict, "temperature", detail)
				continue
			}
			wantBody(t, got, strings.Replace(s.format, "%s", want, 1))
		}
	}
	f(`"temperature":9,"temper\u0061ture":1`, ``, `"temper\u0061ture":1`)
	f(`"temper\u0061ture":9`, `got 9, expected 1 (or omit the field)`, ``)
	f(`"\u0074emperature":null`, ``, `"\u0074emperature":1`)
	f(`"Temperature":9`, ``, `"temperature":1,"Temperature":9`)
	f(`"temperature\u0000":9`, ``, `"temperature":1,"temperature\u0000":9`)
}

func TestB07_NumberOutsideFloat64(t *testing.T) {
	const nonNumeric = "expected 1 (or omit the field), got a non-numeric value"
	f := func(value, detail string) {
		t.Helper()
		body := `{"model":"x","temperature":` + value + `,"stream":true}`
		got := judge(t, contract(t, "reject", map[string]any{"temperature": 1}), probe.SurfaceChat, body)
		wantRefusal(t, got.verdict, "temperature", detail)
		got = judge(t, contract(t, "allow", map[string]any{"temperature": 1}), probe.SurfaceChat, body)
		wantBody(t, got, body)
		// The other fields are read all the same.
		got = judge(t, contract(t, "reject", map[string]any{"top_p": 1}), probe.SurfaceChat, body)
		wantBody(t, got, `{"top_p":1,`+body[1:])
	}
	f(`1e400`, nonNumeric)
	f(`-1e309`, nonNumeric)
	f(`1E1000`, nonNumeric)
	f(`"1e400"`, "got Infinity, expected 1 (or omit the field)")
}

func TestB08_NonFiniteNumbersAreInNoBand(t *testing.T) {
	for value, prints := range map[string]string{
		`NaN`: "NaN", `Infinity`: "Infinity", `-Infinity`: "-Infinity", `"NaN"`: "NaN", `"inf"`: "Infinity", `"-Infinity"`: "-Infinity", `"nan"`: "NaN",
	} {
		for _, param := range []string{"temperature", "repetition_penalty", "frequency_penalty", "presence_penalty"} {
			lo := 0.0
			if param == "repetition_penalty" {
				lo = 0.5
			}
			c := contract(t, "reject", map[string]any{param: band(lo, 2)})
			got := judge(t, c, probe.SurfaceChat, `{"`+param+`":`+value+`}`)
			wantRefusal(t, got.verdict, param, "must be between "+string(appendNumber(nil, lo))+" and 2, got "+prints)
		}
	}
}

func TestB09_UntouchedMembersKeepTheirBytes(t *testing.T) {
	c := contract(t, "replace", map[string]any{"temperature": 1, "top_p": band(0.9, 1), "n": 1})
	const kept = `"seed":9007199254740993, "a":1.0,"b" : 1E2 ,"c":-0,"d":0.1000,"é\u00e9":"\ud800"`
	got := judge(t, c, probe.SurfaceChat, `{"top_p":2,`+kept+` , "temperature":5}`)
	wantBody(t, got, `{"n":1,"top_p":1,`+kept+` , "temperature":1}`)
	wantSets(t, got.verdict, 0,
		probe.FieldSet(0).With(probe.FieldN),
		probe.FieldSet(0).With(probe.FieldTemperature).With(probe.FieldTopP))
}

func TestB14_ConformingBodyPassesIdentical(t *testing.T) {
	c := contract(t, "reject", map[string]any{"temperature": 1, "top_p": band(0.9, 1)})
	const body = " {\n\t\"temperature\" : 1.0 , \"a\":\"}\" } \n"
	got := judge(t, c, probe.SurfaceChat, body)
	wantBody(t, got, body)
	if got.edits != 0 {
		t.Fatalf("a conforming body got %d edits", got.edits)
	}
	got = judge(t, c, probe.SurfaceChat, "{ }")
	wantBody(t, got, `{"temperature":1 }`)
}

// TestB16_LargeValuesAreNotEchoed: what is not a number is skipped; refused
// without a word of it, or forwarded as it is.
func TestB16_LargeValuesAreNotEchoed(t *testing.T) {
	for name, value := range map[string]string{
		"string":         `"` + strings.Repeat("x", 200_000) + `"`,
		"array":          `[` + strings.Repeat("1,", 50_000) + `1]`,
		"object":         strings.Repeat(`{"a":`, 400) + `1` + strings.Repeat(`}`, 400),
		"numeric string": `"` + strings.Repeat("1", 70) + `"`,
	} {
		body := `{"temperature":` + value + `}`
		reject := contract(t, "reject", map[string]any{"temperature": 1})
		got := judge(t, reject, probe.SurfaceChat, body)
		wantRefusal(t, got.verdict, "temperature", "expected 1 (or omit the field), got a non-numeric value")
		allow := contract(t, "allow", map[string]any{"temperature": 1})
		if got := judge(t, allow, probe.SurfaceChat, body); got.verdict.Refused || got.body != body {
			t.Fatalf("a large %s is not forwarded as it came", name)
		}
	}
}

func TestB19_UnknownMembersPass(t *testing.T) {
	c := contract(t, "reject", map[string]any{"temperature": 1})
	const members = `"model":"m","messages":[{"content":[{"type":"new"}]}],"return_routed_experts":true,"chat_template_kwargs":{"enable_thinking":false},"rid":"7","tools":[{"function":{"name":"f"}}]}`
	got := judge(t, c, probe.SurfaceChat, `{`+members)
	wantBody(t, got, `{"temperature":1,`+members)
}
