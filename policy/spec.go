package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/probe"
)

// SpecError is one fault of a ContractSpec, a ParamsSpec or a layer, for the
// operator who wrote it.
type SpecError struct {
	// Path is the key at fault, from the section of its own on: "on_conflict",
	// "params.top_p.min", "blocked_params[1]".
	Path string
	// Value is the value at fault as a config would show it, shortened.
	Value string
	// Problem says what is wrong with it and what is allowed.
	Problem string
}

// Error returns the path, the value and the problem in one line.
func (e *SpecError) Error() string {
	return e.Path + ": " + e.Value + " " + e.Problem
}

// domain is the set of values that an engine takes for one governed field.
type domain struct {
	min, max float64
	text     string // what a pin may be
	band     string // what the bounds of a band may be
	open     bool   // min is not part of it
	integer  bool
	minusOne bool // -1 is part of it, for a pin: it switches top_k off
}

// maxInteger is the largest number up to which each integer is a float64.
const maxInteger = 1 << 53

// domains are those of spec §3.
var domains = [probe.LastSampling + 1]domain{
	probe.FieldTemperature:       {min: 0, max: 2, text: "a number in [0, 2]"},
	probe.FieldTopP:              {min: 0, max: 1, open: true, text: "a number in (0, 1]"},
	probe.FieldTopK:              {min: 1, max: maxInteger, integer: true, minusOne: true, text: "an integer >= 1 or exactly -1", band: "an integer >= 1"},
	probe.FieldMinP:              {min: 0, max: 1, text: "a number in [0, 1]"},
	probe.FieldRepetitionPenalty: {min: 0, max: 2, open: true, text: "a number in (0, 2]"},
	probe.FieldFrequencyPenalty:  {min: -2, max: 2, text: "a number in [-2, 2]"},
	probe.FieldPresencePenalty:   {min: -2, max: 2, text: "a number in [-2, 2]"},
	probe.FieldN:                 {min: 1, max: 128, integer: true, text: "an integer in [1, 128]"},
}

// bounds returns what a bound of a band may be.
func (d *domain) bounds() string {
	if d.band != "" {
		return d.band
	}
	return d.text
}

// faults collects all that is wrong with one spec.
type faults []error

func (fs *faults) add(path string, value any, format string, args ...any) {
	*fs = append(*fs, &SpecError{Path: path, Value: printed(value), Problem: fmt.Sprintf(format, args...)})
}

// mode reads on_conflict.
func (fs *faults) mode(name string) mode {
	if name == "" {
		return modeReject
	}
	i := slices.Index(modeNames[:], name)
	if i < 0 {
		fs.add("on_conflict", name, "is unknown%s; expected %s", suggestion(name, modeNames[:]), strings.Join(modeNames[:], ", "))
		return modeReject
	}
	return mode(i)
}

// params checks that there are params and that all of them are governed fields.
func (fs *faults) params(params map[string]any) {
	names := make([]string, 0, probe.LastSampling)
	for f := probe.FirstSampling; f <= probe.LastSampling; f++ {
		names = append(names, f.String())
	}
	known := strings.Join(names, ", ")
	if len(params) == 0 {
		fs.add("params", params, "governs nothing; expected one or more of %s", known)
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(names, key) {
			fs.add("params."+key, params[key], "is for an unknown parameter%s; expected one of %s", suggestion(key, names), known)
		}
	}
}

// rule reads the pin or band of f.
func (fs *faults) rule(f probe.Field, value any, m mode) rule {
	path := "params." + f.String()
	if band, ok := value.(map[string]any); ok {
		return fs.band(path, f, band, m)
	}
	d := &domains[f]
	v, ok := number(value)
	if !ok {
		fs.add(path, value, "is %s; expected %s, or a band {min, max}", typeOf(value), d.text)
		return rule{}
	}
	if d.minusOne && v == -1 {
		return newRule(f, v, v, true)
	}
	fs.inDomain(path, value, v, d, d.text)
	return newRule(f, v, v, true)
}

// band reads the band of f.
func (fs *faults) band(path string, f probe.Field, band map[string]any, m mode) rule {
	d := &domains[f]
	if len(band) == 0 {
		fs.add(path, band, "is empty; expected %s, or a band {min, max}", d.text)
		return rule{}
	}
	if m == modeAllow {
		fs.add(path, band, "is a band, which cannot be held under on_conflict allow; expected a pin: %s", d.text)
	}
	for _, key := range slices.Sorted(maps.Keys(band)) {
		if key != "min" && key != "max" {
			fs.add(path+"."+key, band[key], "is not part of a band%s; expected {min, max}, each %s", suggestion(key, []string{"min", "max"}), d.bounds())
		}
	}
	lo, okLo := fs.bound(path, "min", band, d)
	hi, okHi := fs.bound(path, "max", band, d)
	if okLo && okHi && lo > hi {
		fs.add(path, band, "has min > max; expected min <= max, each %s", d.bounds())
	}
	return newRule(f, lo, hi, false)
}

// bound reads one bound of a band and reports whether it is a number.
func (fs *faults) bound(path, key string, band map[string]any, d *domain) (float64, bool) {
	value, ok := band[key]
	if !ok {
		fs.add(path, band, "has no %s; expected {min, max}, each %s", key, d.bounds())
		return 0, false
	}
	path += "." + key
	v, ok := number(value)
	if !ok {
		fs.add(path, value, "is %s; expected %s", typeOf(value), d.bounds())
		return 0, false
	}
	fs.inDomain(path, value, v, d, d.bounds())
	return v, true
}

func (fs *faults) inDomain(path string, value any, v float64, d *domain, expected string) {
	switch {
	case !(d.min <= v && v <= d.max) || d.open && v == d.min:
		fs.add(path, value, "is outside the domain; expected %s", expected)
	case d.integer && v != float64(int64(v)):
		fs.add(path, value, "is not an integer; expected %s", expected)
	}
}

func newRule(f probe.Field, lo, hi float64, pin bool) rule {
	lo, hi = lo+0, hi+0 // -0 is written as 0
	return rule{pin: pin, min: lo, max: hi, lo: numberLiteral(f, lo), hi: numberLiteral(f, hi)}
}

// number returns the number that value is, if it is one.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "no value"
	case bool:
		return "a bool"
	case string:
		return "a string"
	case map[string]any, map[any]any:
		return "a map"
	}
	if strings.HasPrefix(fmt.Sprintf("%T", value), "[]") {
		return "a list"
	}
	return "not a number"
}

// printed shows value as a config would, shortened to what fits in a line.
func printed(value any) string { return clipped(printedWhole(value)) }

func clipped(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

func printedWhole(value any) string {
	if v, ok := number(value); ok {
		if _, float := value.(float64); float {
			return string(appendNumber(nil, v))
		}
		return fmt.Sprint(value)
	}
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	case map[string]any:
		if v == nil {
			return "null"
		}
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+": "+printedWhole(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, printedWhole(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
