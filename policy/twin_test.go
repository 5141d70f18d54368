package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"sluice/probe"
)

// The twin does what a contract does the slow and obvious way: it decodes the
// body into lists of members, edits the lists, and writes them down in a form
// that canonical gives any body. Only the reading of numbers is probe's.

type twinMember struct{ key, raw string }

// members decodes the JSON object raw, duplicates included.
func members(t testing.TB, raw string) []twinMember {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("cannot decode %q: not an object (%v)", raw, err)
	}
	var out []twinMember
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("cannot decode a key of %q: %v", raw, err)
		}
		var val json.RawMessage
		if err := d.Decode(&val); err != nil {
			t.Fatalf("cannot decode a value of %q: %v", raw, err)
		}
		out = append(out, twinMember{key.(string), string(val)})
	}
	if tok, err := d.Token(); err != nil || tok != json.Delim('}') {
		t.Fatalf("cannot decode the end of %q: %v", raw, err)
	}
	return out
}

// elements decodes the JSON array raw.
func elements(t testing.TB, raw string) []json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatalf("cannot decode %q: %v", raw, err)
	}
	return out
}

func render(ms []twinMember) string {
	var sb strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&sb, "%q=%s;", m.key, m.raw)
	}
	return "<" + sb.String() + ">"
}

// canonical returns the members of a body, with those of the objects in
// sampling_params and stream_options, in a form that spacing between members
// does not change. Values are kept byte for byte.
func canonical(t testing.TB, body string) string {
	t.Helper()
	ms := members(t, body)
	for i, m := range ms {
		if m.key == "sampling_params" || m.key == "stream_options" {
			ms[i].raw = canonicalInner(t, m.raw)
		}
	}
	return render(ms)
}

func canonicalInner(t testing.TB, raw string) string {
	t.Helper()
	switch raw[0] {
	case '{':
		return render(members(t, raw))
	case '[':
		var sb strings.Builder
		for _, e := range elements(t, raw) {
			sb.WriteString(canonicalInner(t, string(bytes.TrimSpace(e))) + "|")
		}
		return sb.String()
	}
	return raw
}

type twin struct {
	mode       string
	params     map[string]any
	violations []twinViolation
}

type twinViolation struct {
	order  int
	param  string
	detail string
}

// judge returns what the contract makes of the body: the message of a refusal,
// or the canonical form of the body that is sent.
func (tw *twin) judge(t testing.TB, surface probe.Surface, body string) (refusal, sent string) {
	t.Helper()
	ms := members(t, body)
	if surface != probe.SurfaceGenerate {
		ms = tw.object(ms)
	} else {
		ms = tw.generate(t, ms)
	}
	for i, m := range ms {
		if (m.key == "sampling_params" || m.key == "stream_options") && m.raw[0] != '<' {
			ms[i].raw = canonicalInner(t, m.raw)
		}
	}
	if tw.mode == "observe" || len(tw.violations) == 0 {
		return "", render(ms)
	}
	first := tw.violations[0]
	for _, v := range tw.violations {
		if v.order < first.order {
			first = v
		}
	}
	return first.param + " violates this deployment's sampling contract: " + first.detail, ""
}

func (tw *twin) generate(t testing.TB, ms []twinMember) []twinMember {
	t.Helper()
	for i, m := range ms {
		if m.key != "sampling_params" {
			continue
		}
		switch {
		case m.raw == "null":
			if made := tw.object(nil); len(made) > 0 {
				ms[i].raw = render(made)
			}
		case m.raw[0] == '{':
			ms[i].raw = render(tw.object(members(t, m.raw)))
		case m.raw[0] == '[' && objectsOnly(elements(t, m.raw)):
			var sb strings.Builder
			for _, e := range elements(t, m.raw) {
				sb.WriteString(render(tw.object(members(t, string(e)))) + "|")
			}
			ms[i].raw = sb.String()
			if ms[i].raw == "" {
				ms[i].raw = "<empty>"
			}
		default:
			tw.violations = append(tw.violations, twinViolation{99, "sampling_params", "must be an object or a list of objects"})
		}
		if ms[i].raw == "<empty>" {
			ms[i].raw = "[]"
		}
		return ms
	}
	if made := tw.object(nil); len(made) > 0 {
		ms = append([]twinMember{{"sampling_params", render(made)}}, ms...)
	}
	return ms
}

func objectsOnly(list []json.RawMessage) bool {
	for _, e := range list {
		if bytes.TrimSpace(e)[0] != '{' {
			return false
		}
	}
	return true
}

var twinFields = []string{
	"temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "n",
}

// object returns the members that the contract leaves of one object.
func (tw *twin) object(ms []twinMember) []twinMember {
	var injected []twinMember
	for order, field := range twinFields {
		param, ok := tw.params[field]
		if !ok {
			continue
		}
		last := -1
		for i, m := range ms {
			if m.key == field {
				last = i
			}
		}
		old := "null"
		if last >= 0 {
			old = ms[last].raw
		}
		write := tw.value(order, field, param, old)
		switch {
		case write == "":
		case last >= 0:
			ms[last].raw = write
		default:
			injected = append(injected, twinMember{field, write})
		}
		if tw.mode != "observe" {
			var kept []twinMember
			for i, m := range ms {
				if m.key != field || i == last {
					kept = append(kept, m)
				}
			}
			ms = kept
		}
	}
	return append(injected, ms...)
}

// value returns the number to write in the place of old, or "".
func (tw *twin) value(order int, field string, param any, old string) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	lo, hi, isPin := twinBounds(param)
	num, state := probe.ReadNumber([]byte(old), twinKind(old))
	if state == probe.Absent {
		if isPin && tw.mode != "observe" {
			return f(lo)
		}
		return ""
	}
	if state == probe.Number && lo <= num && num <= hi || tw.mode == "allow" {
		return ""
	}
	if tw.mode == "replace" {
		if isPin {
			return f(lo)
		}
		if state == probe.Number && !math.IsNaN(num) {
			return f(min(max(num, lo), hi))
		}
	}
	got := strings.Replace(f(num), "+Inf", "Infinity", 1)
	got = strings.Replace(got, "-Inf", "-Infinity", 1)
	var detail string
	switch {
	case isPin && state == probe.Number:
		detail = fmt.Sprintf("got %s, expected %s (or omit the field)", got, f(lo))
	case isPin:
		detail = fmt.Sprintf("expected %s (or omit the field), got a non-numeric value", f(lo))
	case state == probe.Number:
		detail = fmt.Sprintf("must be between %s and %s, got %s", f(lo), f(hi), got)
	default:
		detail = fmt.Sprintf("must be a number between %s and %s, got a non-numeric value", f(lo), f(hi))
	}
	tw.violations = append(tw.violations, twinViolation{order, field, detail})
	return ""
}

func twinBounds(param any) (lo, hi float64, pin bool) {
	if b, ok := param.(map[string]any); ok {
		return b["min"].(float64), b["max"].(float64), false
	}
	return param.(float64), param.(float64), true
}

func twinKind(raw string) probe.Kind {
	switch raw[0] {
	case 'n':
		return probe.KindNull
	case 't':
		return probe.KindTrue
	case 'f':
		return probe.KindFalse
	case '"':
		return probe.KindString
	case '{':
		return probe.KindObject
	case '[':
		return probe.KindArray
	}
	return probe.KindNumber
}
