package policy

import (
	"errors"
	"math"
	"strings"
	"testing"

	"sluice/probe"
)

// faultsOf returns the lines of the error that the spec comes to.
func faultsOf(t *testing.T, spec ContractSpec) []string {
	t.Helper()
	c, err := NewContract(spec)
	if err == nil {
		return nil
	}
	if c != nil {
		t.Fatal("a contract came with an error")
	}
	lines := strings.Split(err.Error(), "\n")
	joined := err.(interface{ Unwrap() []error }).Unwrap()
	if len(joined) != len(lines) {
		t.Fatalf("unexpected number of lines %d for %d faults: %v", len(lines), len(joined), err)
	}
	for i, fault := range joined {
		var spec *SpecError
		if !errors.As(fault, &spec) || !strings.HasPrefix(lines[i], spec.Path+": "+spec.Value+" ") {
			t.Fatalf("unexpected type of fault: %#v", fault)
		}
	}
	return lines
}

func TestNewContractFaults(t *testing.T) {
	f := func(onConflict string, params map[string]any, want ...string) {
		t.Helper()
		got := faultsOf(t, ContractSpec{OnConflict: onConflict, Params: params})
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("unexpected faults; got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	one := func(key string, value any) map[string]any { return map[string]any{key: value} }
	const known = "temperature, top_p, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, n"

	// The section as a whole.
	f("reject", nil, "params: null governs nothing; expected one or more of "+known)
	f("", map[string]any{}, "params: {} governs nothing; expected one or more of "+known)
	f("rejct", one("n", 1), `on_conflict: "rejct" is unknown (did you mean "reject"?); expected reject, allow, observe, replace`)
	f("Replace", one("n", 1), `on_conflict: "Replace" is unknown (did you mean "replace"?); expected reject, allow, observe, replace`)
	f("drop-it", one("n", 1), `on_conflict: "drop-it" is unknown; expected reject, allow, observe, replace`)

	// Unknown keys.
	f("", one("temprature", 1), `params.temprature: 1 is for an unknown parameter (did you mean "temperature"?); expected one of `+known)
	f("", one("Top_P", 1), `params.Top_P: 1 is for an unknown parameter (did you mean "top_p"?); expected one of `+known)
	f("", one("temp", 1), `params.temp: 1 is for an unknown parameter (did you mean "temperature"?); expected one of `+known)
	f("", one("max_tokens", 1), `params.max_tokens: 1 is for an unknown parameter; expected one of `+known)
	f("", one("", 1), `params.: 1 is for an unknown parameter; expected one of `+known)

	// Types.
	f("", one("top_p", "0.9"), `params.top_p: "0.9" is a string; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", true), `params.top_p: true is a bool; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", nil), `params.top_p: null is no value; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", []any{0.9, 1}), `params.top_p: [0.9, 1] is a list; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", []string{"a"}), `params.top_p: [a] is a list; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", map[any]any{}), `params.top_p: map[] is a map; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", struct{}{}), `params.top_p: {} is not a number; expected a number in (0, 1], or a band {min, max}`)
	f("", one("top_p", map[string]any{}), `params.top_p: {} is empty; expected a number in (0, 1], or a band {min, max}`)

	// Bands.
	f("", one("top_p", band(0.9, "1")), `params.top_p.max: "1" is a string; expected a number in (0, 1]`)
	f("", one("top_p", band(nil, true)), `params.top_p.min: null is no value; expected a number in (0, 1]`, `params.top_p.max: true is a bool; expected a number in (0, 1]`)
	f("", one("top_p", map[string]any{"min": 0.5}), `params.top_p: {min: 0.5} has no max; expected {min, max}, each a number in (0, 1]`)
	f("", one("top_p", map[string]any{"max": 0.5}), `params.top_p: {max: 0.5} has no min; expected {min, max}, each a number in (0, 1]`)
	f("", one("top_p", map[string]any{"min": 0.5, "max": 1, "step": 2}), `params.top_p.step: 2 is not part of a band; expected {min, max}, each a number in (0, 1]`)
	f("", one("top_p", map[string]any{"min": 0.5, "mx": 1}),
		`params.top_p.mx: 1 is not part of a band (did you mean "max"?); expected {min, max}, each a number in (0, 1]`,
		`params.top_p: {min: 0.5, mx: 1} has no max; expected {min, max}, each a number in (0, 1]`)
	f("", one("temperature", band(1.5, 0.5)), `params.temperature: {max: 0.5, min: 1.5} has min > max; expected min <= max, each a number in [0, 2]`)
	f("", one("temperature", band(0, math.NaN())), `params.temperature.max: NaN is outside the domain; expected a number in [0, 2]`)
	f("", one("temperature", band(-1, 3)), `params.temperature.min: -1 is outside the domain; expected a number in [0, 2]`, `params.temperature.max: 3 is outside the domain; expected a number in [0, 2]`)
	f("", one("n", band(1, 2.5)), `params.n.max: 2.5 is not an integer; expected an integer in [1, 128]`)
	f("", one("top_k", band(-1, 50)), `params.top_k.min: -1 is outside the domain; expected an integer >= 1`)
	f("", one("top_k", band(0, 50)), `params.top_k.min: 0 is outside the domain; expected an integer >= 1`)
	f("allow", one("top_p", band(0.5, 1)), `params.top_p: {max: 1, min: 0.5} is a band, which cannot be held under on_conflict allow; expected a pin: a number in (0, 1]`)

	// Everything at once, in field order, then the unknown keys.
	f("never", map[string]any{"n": 0, "zzz": 1, "temperature": 3, "aaa": nil},
		`on_conflict: "never" is unknown; expected reject, allow, observe, replace`,
		`params.temperature: 3 is outside the domain; expected a number in [0, 2]`,
		`params.n: 0 is outside the domain; expected an integer in [1, 128]`,
		`params.aaa: null is for an unknown parameter; expected one of `+known,
		`params.zzz: 1 is for an unknown parameter; expected one of `+known)

	// What is shown of a value is bounded.
	for _, line := range faultsOf(t, ContractSpec{Params: one("n", strings.Repeat("é", 5000))}) {
		if len(line) > 250 || !strings.Contains(line, "…") {
			t.Fatalf("a value is shown whole: %q", line)
		}
	}
}

// TestDomains walks along the bounds of each domain of spec §3.
func TestDomains(t *testing.T) {
	const (
		zeroTwo  = "a number in [0, 2]"
		openOne  = "a number in (0, 1]"
		zeroOne  = "a number in [0, 1]"
		openTwo  = "a number in (0, 2]"
		penalty  = "a number in [-2, 2]"
		topK     = "an integer >= 1 or exactly -1"
		nInteger = "an integer in [1, 128]"
	)
	good := func(key string, values ...any) {
		t.Helper()
		for _, v := range values {
			if faults := faultsOf(t, ContractSpec{Params: map[string]any{key: v}}); faults != nil {
				t.Fatalf("%s: %v is refused: %v", key, v, faults)
			}
		}
	}
	bad := func(key, expected string, values ...any) {
		t.Helper()
		for _, v := range values {
			faults := faultsOf(t, ContractSpec{Params: map[string]any{key: v}})
			want := "params." + key + ": " + printed(v) + " is outside the domain; expected " + expected
			if len(faults) != 1 || faults[0] != want {
				t.Fatalf("unexpected faults of %s %v; got %q; want %q", key, v, faults, want)
			}
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	good("temperature", 0, 0.0, int64(1), uint64(2), 2.0, 0.7, math.Copysign(0, -1))
	bad("temperature", zeroTwo, -0.1, 2.1, int64(-1), uint64(3), nan, inf, -inf)
	good("top_p", 1e-9, 1)
	bad("top_p", openOne, 0, 0.0, -1, 1.0000001, nan, inf)
	good("top_k", -1, -1.0, 1, 50.0, 1<<53)
	bad("top_k", topK, 0, -2, nan, inf, 1e300, uint64(math.MaxUint64))
	good("min_p", 0, 1, 0.5)
	bad("min_p", zeroOne, -0.1, 1.1, nan)
	good("repetition_penalty", 0.1, 2)
	bad("repetition_penalty", openTwo, 0, 2.5, -1, nan)
	good("frequency_penalty", -2, 0, 2)
	bad("frequency_penalty", penalty, -2.1, 3, nan)
	good("presence_penalty", -2, 0, 2)
	bad("presence_penalty", penalty, -2.1, 3, -inf)
	good("n", 1, 128, 4.0)
	bad("n", nInteger, 0, -1, 129, 1e19, nan)
	for key, expected := range map[string]string{"n": nInteger, "top_k": topK} {
		faults := faultsOf(t, ContractSpec{Params: map[string]any{key: 1.5}})
		want := "params." + key + ": 1.5 is not an integer; expected " + expected
		if len(faults) != 1 || faults[0] != want {
			t.Fatalf("unexpected faults; got %q; want %q", faults, want)
		}
	}
}

func TestContractOff(t *testing.T) {
	c, err := NewContract(ContractSpec{})
	if c != nil || err != nil {
		t.Fatalf("the zero spec is not off: %v, %v", c, err)
	}
	if c.Numbers() != 0 || c.String() != "off" {
		t.Fatalf("a contract that is off wants %b and is called %s", c.Numbers(), c)
	}
	for s := probe.SurfaceNone; s < probe.NumSurfaces; s++ {
		got := judge(t, c, s, `{"temperature":9,"temperature":"x","sampling_params":5}`)
		wantBody(t, got, `{"temperature":9,"temperature":"x","sampling_params":5}`)
	}
}

// TestContractLiterals: what is written is the number that the config means.
func TestContractLiterals(t *testing.T) {
	f := func(key string, value any, want string) {
		t.Helper()
		c := contract(t, "reject", map[string]any{key: value})
		wantBody(t, judge(t, c, probe.SurfaceChat, `{}`), `{"`+key+`":`+want+`}`)
	}
	f("temperature", 1, `1`)
	f("temperature", 1.0, `1`)
	f("temperature", math.Copysign(0, -1), `0`)
	f("temperature", 0.1, `0.1`)
	f("temperature", 1e-7, `0.0000001`)
	f("temperature", 2.0/3, `0.6666666666666666`)
	f("n", 4.0, `4`)
	f("top_k", -1.0, `-1`)
	f("top_k", int64(1<<53), `9007199254740992`)
	f("presence_penalty", -0.5, `-0.5`)
}

func TestContractNumbers(t *testing.T) {
	c := contract(t, "observe", map[string]any{"n": band(1, 2), "temperature": 1})
	want := probe.FieldSet(0).With(probe.FieldTemperature).With(probe.FieldN)
	if c.Numbers() != want || c.String() != "observe" {
		t.Fatalf("unexpected contract %s %b; want %b", c, c.Numbers(), want)
	}
}

// TestNewContractKeepsNothing: the maps of the config stay the caller's.
func TestNewContractKeepsNothing(t *testing.T) {
	params := map[string]any{"temperature": 1, "top_p": band(0.5, 1)}
	c := contract(t, "reject", params)
	params["temperature"] = 2
	params["top_p"].(map[string]any)["min"] = 0.9
	wantBody(t, judge(t, c, probe.SurfaceChat, `{"top_p":0.6}`), `{"temperature":1,"top_p":0.6}`)
}
