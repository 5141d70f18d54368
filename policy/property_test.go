package policy

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"sluice/probe"
)

// documents makes random bodies: odd spacing, escaped and repeated keys, values
// of every kind. It is deterministic.
type documents struct{ rand *rand.Rand }

func newDocuments(seed uint64) documents {
	return documents{rand.New(rand.NewPCG(seed, 1))}
}

func (d documents) pick(from []string) string { return from[d.rand.IntN(len(from))] }

func (d documents) space() string {
	return d.pick([]string{"", "", "", " ", "\n", "\t", "\r\n", "  \n\t "})
}

var (
	governedKeys = []string{
		`temperature`, `top_p`, `top_k`, `min_p`, `repetition_penalty`, `frequency_penalty`, `presence_penalty`, `n`,
		`temper\u0061ture`, `top\u005fp`, `\u006e`, `min_\u0070`,
	}
	freeKeys = []string{
		`model`, `messages`, `Temperature`, `seed`, `a"b`, `logit_bias`, `rid`, `}`, `{"temperature":1}`, `é`, `\ud800`, ``,
	}
	governedValues = []string{
		`1`, `1.0`, `0.5`, `2`, `-1`, `1e400`, `null`, `null`, `true`, `false`, `"1"`, `" 1 "`, `"nan"`, `"hot"`, `{"a":1}`, `[1,2]`, `-0`, `1E2`, `0.1000`, `"1_0"`,
	}
	freeValues = []string{
		`1`, `9007199254740993`, `-0`, `1E2`, `0.1000`, `"}"`, `"\"temperature\":9"`, `null`, `{"temperature":9,"a":[{}]}`, `[ ]`, `{ }`, `[{"top_p" : 3}]`, `"\ud800"`,
	}
)

func quote(key string) string {
	if strings.Contains(key, `"`) {
		key = strings.ReplaceAll(key, `"`, `\"`)
	}
	return `"` + key + `"`
}

// object returns an object of up to n members.
func (d documents) object(n int, extra func() (key, value string)) string {
	var sb strings.Builder
	sb.WriteString("{" + d.space())
	for i := range d.rand.IntN(n + 1) {
		if i > 0 {
			sb.WriteString(d.space() + "," + d.space())
		}
		key, value := d.pick(freeKeys), d.pick(freeValues)
		if extra != nil && d.rand.IntN(2) == 0 {
			key, value = extra()
		}
		sb.WriteString(quote(key) + d.space() + ":" + d.space() + value)
	}
	sb.WriteString(d.space() + "}")
	return sb.String()
}

func (d documents) governed() (key, value string) {
	return d.pick(governedKeys), d.pick(governedValues)
}

func (d documents) body(surface probe.Surface) string {
	if surface != probe.SurfaceGenerate {
		return d.space() + d.object(8, d.governed) + d.space()
	}
	return d.space() + d.object(4, func() (string, string) {
		switch d.rand.IntN(8) {
		case 0:
			return `sampling_params`, d.pick([]string{`null`, `[]`, `[ ]`, `{}`, `5`, `"x"`, `[null]`, `[{},1]`, `[[{}]]`, `true`})
		case 1, 2:
			list := make([]string, d.rand.IntN(4))
			for i := range list {
				list[i] = d.space() + d.object(5, d.governed) + d.space()
			}
			return `sampling_params`, "[" + strings.Join(list, ",") + "]"
		case 3:
			return d.governed()
		}
		return `s\u0061mpling_params`, d.object(6, d.governed)
	}) + d.space()
}

// testContracts are the contracts of the random tests, in the types that twin
// expects.
var testContracts = []map[string]any{
	{"temperature": 1.0},
	{"temperature": 1.0, "top_p": 1.0, "top_k": -1.0, "min_p": 0.0, "repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": -0.5, "n": 1.0},
	{"temperature": band(0.5, 1.5), "top_p": band(0.9, 1.0), "n": band(1.0, 4.0)},
	{"top_k": band(1.0, 50.0), "temperature": 0.7, "n": 2.0},
}

var testModes = []string{"reject", "allow", "observe", "replace"}

// checkJudge compares Judge and the splice with the twin on one body, and
// reports whether there was anything to compare.
func checkJudge(t testing.TB, mode string, params map[string]any, surface probe.Surface, body string) bool {
	t.Helper()
	c, err := NewContract(ContractSpec{OnConflict: mode, Params: params})
	if err != nil {
		return false // a band under allow
	}
	var b probe.Body
	if !json.Valid([]byte(body)) || probe.Scan([]byte(body), surface, c.Numbers(), &b) != probe.FaultNone {
		return false
	}
	got := judge(t, c, surface, body)
	tw := twin{mode: mode, params: params}
	refusal, sent := tw.judge(t, surface, body)
	if got.verdict.Refused != (refusal != "") {
		t.Fatalf("%s %v: %s\nunexpected refusal %v; want %q", mode, params, body, got.verdict.Refused, refusal)
	}
	if refusal != "" {
		if message := string(got.verdict.AppendMessage(nil)); message != refusal {
			t.Fatalf("%s %v: %s\nunexpected message %q; want %q", mode, params, body, message, refusal)
		}
		return true
	}
	if !json.Valid([]byte(got.body)) {
		t.Fatalf("%s %v: %s\nbecame invalid: %s", mode, params, body, got.body)
	}
	if out := canonical(t, got.body); out != sent {
		t.Fatalf("%s %v: %s\nbecame %s\nthat is %s\nwant    %s", mode, params, body, got.body, out, sent)
	}
	if canonical(t, body) == sent && got.body != body {
		t.Fatalf("%s %v: %s\nneeds no change and became %s", mode, params, body, got.body)
	}
	return true
}

func TestJudgeEqualsTwin(t *testing.T) {
	d := newDocuments(3)
	compared := 0
	for range 1500 {
		for _, surface := range []probe.Surface{probe.SurfaceChat, probe.SurfaceGenerate} {
			body := d.body(surface)
			for _, params := range testContracts {
				for _, mode := range testModes {
					if checkJudge(t, mode, params, surface, body) {
						compared++
					}
				}
			}
		}
	}
	if compared < 20_000 {
		t.Fatalf("only %d bodies could be compared", compared)
	}
}

// TestB19_UntouchedBodiesPassIdentical: what no policy names arrives as it was.
func TestB19_UntouchedBodiesPassIdentical(t *testing.T) {
	d := newDocuments(19)
	c := contract(t, "reject", map[string]any{"temperature": band(0, 2), "top_p": band(0.5, 1)})
	passed := 0
	for passed < 1000 {
		body := d.space() + d.object(12, func() (string, string) {
			return d.pick([]string{"temperature", `top\u005fp`, "return_routed_experts", "tools"}), d.pick([]string{"1", "1.0", "1e0", "null", `"1"`, "true"})
		}) + d.space()
		var b probe.Body
		if probe.Scan([]byte(body), probe.SurfaceChat, c.Numbers(), &b) != probe.FaultNone || b.Repeated != 0 {
			continue
		}
		passed++
		var p Plan
		p.Reset(&b)
		v := c.Judge(&b, probe.SurfaceChat, &p)
		segments := p.AppendSegments(nil, []byte(body))
		if v.Refused || !p.Empty() || len(segments) != 1 || string(segments[0]) != body {
			t.Fatalf("%s\ndoes not pass as it came: %q", body, segments)
		}
	}
}

// TestPlanEqualsTwin runs random operations on random bodies.
func TestPlanEqualsTwin(t *testing.T) {
	d := newDocuments(14)
	compared := 0
	for compared < 3000 {
		surface := []probe.Surface{probe.SurfaceChat, probe.SurfaceGenerate}[d.rand.IntN(2)]
		body := d.body(surface)
		if d.rand.IntN(4) == 0 {
			body = strings.Replace(body, "{", `{"stream_options": {"a":1 , "include_usage":false}`+d.pick([]string{"", ","}), 1)
		}
		var b probe.Body
		if !json.Valid([]byte(body)) || probe.Scan([]byte(body), surface, 0, &b) != probe.FaultNone {
			continue
		}
		compared++
		checkPlan(t, d, body, &b)
	}
}

// checkPlan draws operations for each object of the body and compares.
func checkPlan(t *testing.T, d documents, body string, b *probe.Body) {
	t.Helper()
	src := []byte(body)
	var p Plan
	p.Reset(b)
	texts := make(map[uint32]string) // canonical forms of values with objects, by offset
	for i := range b.Objects {
		o := &b.Objects[i]
		texts[o.Span.Start] = drawObject(d, src, &p, i, b.Inner[o.First:o.Last], nil)
	}
	top := drawObject(d, src, &p, Top, b.Members, func(m *probe.Member) string {
		return innerText(t, src, b, m, texts)
	})
	out := string(p.AppendTo(nil, src))
	if !json.Valid([]byte(out)) {
		t.Fatalf("%s\nbecame invalid: %s", body, out)
	}
	if got := canonical(t, out); got != top {
		t.Fatalf("%s\nbecame %s\nthat is %s\nwant    %s", body, out, got, top)
	}
	if joined := string(bytes.Join(p.AppendSegments(nil, src), nil)); joined != out {
		t.Fatalf("unexpected segments; got %s; want %s", joined, out)
	}
	if p.Len(src) != len(out) {
		t.Fatalf("unexpected Len; got %d; want %d", p.Len(src), len(out))
	}
	checkEdits(t, p.Edits(), len(src))
	checkKept(t, src, out, b, &p)
}

// drawObject draws operations on one object and returns its canonical form
// after them. value gives that of a kept value, nil: its bytes.
func drawObject(d documents, src []byte, p *Plan, obj int, ms []probe.Member, value func(*probe.Member) string) string {
	lit := func(key string) *Literal {
		l, err := NewLiteral(key, []byte(d.pick([]string{`1`, `"x"`, `{"a": 1}`})))
		if err != nil {
			panic(err)
		}
		return l
	}
	var out []twinMember
	if d.rand.IntN(3) == 0 {
		for _, key := range []string{"new", "new_2", "max_tokens"}[:d.rand.IntN(4)] {
			l := lit(key)
			p.Inject(obj, lit(key)) // the second one wins
			p.Inject(obj, l)
			out = append(out, twinMember{key, string(l.Value())})
		}
	}
	rate := d.rand.IntN(5)
	for i := range ms {
		m := &ms[i]
		key := string(probe.AppendUnquoted(nil, m.Key.Of(src)))
		switch {
		case d.rand.IntN(4) < rate:
			if d.rand.IntN(2) == 0 {
				p.Replace(m, lit(key))
			}
			p.Remove(m)
		case d.rand.IntN(4) == 0:
			l := lit("other")
			p.Remove(m)
			p.Replace(m, l)
			out = append(out, twinMember{key, string(l.Value())})
			if key == "sampling_params" || key == "stream_options" {
				if l.Value()[0] == '{' {
					out[len(out)-1].raw = `<"a"=1;>`
				}
			}
		case value != nil:
			out = append(out, twinMember{key, value(m)})
		default:
			out = append(out, twinMember{key, string(m.Val.Of(src))})
		}
	}
	return render(out)
}

// innerText returns the canonical form of the value of a top-level member.
func innerText(t *testing.T, src []byte, b *probe.Body, m *probe.Member, texts map[uint32]string) string {
	t.Helper()
	if m.Field != probe.FieldSamplingParams && m.Field != probe.FieldStreamOptions {
		return string(m.Val.Of(src))
	}
	if text, ok := texts[m.Val.Start]; ok {
		return text
	}
	if m.Kind != probe.KindArray {
		return canonicalInner(t, string(m.Val.Of(src)))
	}
	var sb strings.Builder
	at := 0
	for _, e := range elements(t, string(m.Val.Of(src))) {
		raw := string(bytes.TrimSpace(e))
		if raw[0] != '{' {
			sb.WriteString(canonicalInner(t, raw) + "|")
			continue
		}
		for b.Objects[at].Span.Start < m.Val.Start {
			at++
		}
		sb.WriteString(texts[b.Objects[at].Span.Start] + "|")
		at++
	}
	return sb.String()
}

func checkEdits(t *testing.T, edits []Edit, size int) {
	t.Helper()
	at := uint32(0)
	for _, e := range edits {
		if e.Start < at || e.End < e.Start || int(e.End) > size {
			t.Fatalf("edits overlap or are out of order: %v", edits)
		}
		at = e.End
	}
}

// checkKept checks that each kept member stands in out as the client wrote it,
// with its spacing, and in its order.
func checkKept(t *testing.T, src []byte, out string, b *probe.Body, p *Plan) {
	t.Helper()
	rest := out
	for i := range b.Members {
		m := &b.Members[i]
		if m.Field == probe.FieldSamplingParams || m.Field == probe.FieldStreamOptions || p.Removed(m) {
			continue
		}
		text := string(src[m.Key.Start:m.Val.Start])
		if p.Replacement(m) == nil {
			text = string(src[m.Key.Start:m.Val.End])
		}
		at := strings.Index(rest, text)
		if at < 0 {
			t.Fatalf("%q of %s is not in %s", text, src, out)
		}
		rest = rest[at+len(text):]
	}
}
