package policy

import (
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

// scan returns the scan of body and a plan over it.
func scan(t testing.TB, surface probe.Surface, body string) (*probe.Body, *Plan) {
	t.Helper()
	b, p := new(probe.Body), new(Plan)
	if fault := probe.Scan([]byte(body), surface, 0, b); fault != probe.FaultNone {
		t.Fatalf("cannot scan %q: %v", body, fault)
	}
	p.Reset(b)
	return b, p
}

func literal(t testing.TB, key, value string) *Literal {
	t.Helper()
	l, err := NewLiteral(key, []byte(value))
	if err != nil {
		t.Fatalf("cannot make the literal: %v", err)
	}
	return l
}

func wantPlan(t *testing.T, p *Plan, body, want string) {
	t.Helper()
	if got := string(p.AppendTo(nil, []byte(body))); got != want {
		t.Fatalf("unexpected body; got %q; want %q", got, want)
	}
	if got := p.Len([]byte(body)); got != len(want) {
		t.Fatalf("unexpected length; got %d; want %d", got, len(want))
	}
}

func TestPlanRemove(t *testing.T) {
	f := func(body, keys, want string) {
		t.Helper()
		b, p := scan(t, probe.SurfaceChat, body)
		for i := range b.Members {
			m := &b.Members[i]
			key := strings.Trim(string(m.Key.Of([]byte(body))), `"`)
			if slices.Contains(strings.Fields(keys), key) {
				p.Remove(m)
				if !p.Removed(m) || p.Replacement(m) != nil {
					t.Fatalf("%s is not known to be removed", key)
				}
			}
		}
		wantPlan(t, p, body, want)
	}
	f(`{"a":1,"b":2,"c":3}`, ``, `{"a":1,"b":2,"c":3}`)
	f(`{"a":1,"b":2,"c":3}`, `a`, `{"b":2,"c":3}`)
	f(`{"a":1,"b":2,"c":3}`, `b`, `{"a":1,"c":3}`)
	f(`{"a":1,"b":2,"c":3}`, `c`, `{"a":1,"b":2}`)
	f(`{"a":1,"b":2,"c":3}`, `a b`, `{"c":3}`)
	f(`{"a":1,"b":2,"c":3}`, `b c`, `{"a":1}`)
	f(`{"a":1,"b":2,"c":3}`, `a c`, `{"b":2}`)
	f(`{"a":1,"b":2,"c":3}`, `a b c`, `{}`)
	f(`{"a":1}`, `a`, `{}`)
	f(" { \"a\" : 1 , \"b\"\t:\t2 ,\n\"c\":3 } ", `a`, " { \"b\"\t:\t2 ,\n\"c\":3 } ")
	f(" { \"a\" : 1 , \"b\"\t:\t2 ,\n\"c\":3 } ", `b`, " { \"a\" : 1 , \"c\":3 } ")
	f(" { \"a\" : 1 , \"b\"\t:\t2 ,\n\"c\":3 } ", `c`, " { \"a\" : 1 , \"b\"\t:\t2 } ")
	f(" { \"a\" : 1 , \"b\"\t:\t2 ,\n\"c\":3 } ", `a b c`, " {  } ")
	f(`{"a":{"b":[1,{}]},"b":"}","b":3}`, `b`, `{"a":{"b":[1,{}]}}`)
}

// TestB14_InjectIntoAnyBody: one comma where needed, other bytes unchanged.
func TestB14_InjectIntoAnyBody(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, p := scan(t, probe.SurfaceChat, body)
		p.Inject(Top, literal(t, "x", `1`))
		p.Inject(Top, literal(t, "y", ` [2, 3] `))
		wantPlan(t, p, body, want)
	}
	f(`{}`, `{"x":1,"y":[2, 3]}`)
	f(`{ }`, `{"x":1,"y":[2, 3] }`)
	f("\n\t {\"a\":1}", "\n\t {\"x\":1,\"y\":[2, 3],\"a\":1}")
	f(`{"a":"}"}`, `{"x":1,"y":[2, 3],"a":"}"}`)
	f("{\"a\":1} \n", "{\"x\":1,\"y\":[2, 3],\"a\":1} \n")
	f("{\n  \"a\": 1\n}", "{\"x\":1,\"y\":[2, 3],\n  \"a\": 1\n}")

	// All members go, one comes: no comma is left.
	const body = `{ "a":1, "b":2 }`
	b, p := scan(t, probe.SurfaceChat, body)
	p.Remove(&b.Members[0])
	p.Remove(&b.Members[1])
	p.Inject(Top, literal(t, "x", `1`))
	wantPlan(t, p, body, `{"x":1  }`)
}

func TestPlanReplaceModel(t *testing.T) {
	const body = `{ "mod\u0065l" : "llama-70b", "seed":9007199254740993 }`
	b, p := scan(t, probe.SurfaceChat, body)
	m := b.Last(probe.FieldModel)
	model := literal(t, "model", `"meta/Llama"`)
	p.Replace(m, model)
	if p.Replacement(m) != model || p.Removed(m) || p.Empty() {
		t.Fatal("the plan does not know the replacement")
	}
	wantPlan(t, p, body, `{ "mod\u0065l" : "meta/Llama", "seed":9007199254740993 }`)
}

func TestPlanLastOperationWins(t *testing.T) {
	const body = `{"a":1,"b":2}`
	b, p := scan(t, probe.SurfaceChat, body)
	a := &b.Members[0]
	p.Replace(a, literal(t, "a", `5`))
	p.Remove(a)
	p.Inject(Top, literal(t, "x", `1`))
	p.Inject(Top, literal(t, "y", `1`))
	p.Inject(Top, literal(t, "max_tokens", `1`))
	wantPlan(t, p, body, `{"x":1,"y":1,"max_tokens":1,"b":2}`)
	p.Replace(a, literal(t, "a", `6`))
	p.Inject(Top, literal(t, "x", `2`))
	p.Inject(Top, literal(t, "max_tokens", `2`))
	wantPlan(t, p, body, `{"x":2,"y":1,"max_tokens":2,"a":6,"b":2}`)
	if got := p.Injected(Top, "x"); got == nil || string(got.Value()) != "2" {
		t.Fatalf("unexpected injection: %v", got)
	}
	if p.Injected(Top, "z") != nil || p.Injected(Made, "x") != nil || p.Injected(Top, "top_p") != nil {
		t.Fatal("the plan knows an injection that was not made")
	}
}

func TestPlanInnerObjects(t *testing.T) {
	const body = `{"text":"a","sampling_params":[ {"n":1,"seed":2} , {} ,{"seed":3}],"x":1}`
	b, p := scan(t, probe.SurfaceGenerate, body)
	for i := range b.Objects {
		p.Inject(i, literal(t, "top_p", `1`))
	}
	p.Remove(&b.Inner[1])
	p.Replace(&b.Inner[2], literal(t, "seed", `4`))
	wantPlan(t, p, body, `{"text":"a","sampling_params":[ {"top_p":1,"n":1} , {"top_p":1} ,{"top_p":1,"seed":4}],"x":1}`)

	// What is in a member goes with it.
	p.Remove(b.Last(probe.FieldSamplingParams))
	wantPlan(t, p, body, `{"text":"a","x":1}`)
	p.Replace(b.Last(probe.FieldSamplingParams), literal(t, "sampling_params", `{}`))
	wantPlan(t, p, body, `{"text":"a","sampling_params":{},"x":1}`)
}

func TestPlanMadeObject(t *testing.T) {
	f := func(body string, top, remove bool, want string) {
		t.Helper()
		b, p := scan(t, probe.SurfaceGenerate, body)
		if top {
			p.Inject(Top, literal(t, "rid", `"7"`))
		}
		p.Inject(Made, literal(t, "n", `1`))
		p.Inject(Made, literal(t, "top_p", `0.5`))
		if remove {
			for i := range b.Members {
				p.Remove(&b.Members[i])
			}
		}
		wantPlan(t, p, body, want)
	}
	f(`{}`, false, false, `{"sampling_params":{"n":1,"top_p":0.5}}`)
	f(`{}`, true, false, `{"rid":"7","sampling_params":{"n":1,"top_p":0.5}}`)
	f(`{ "text":1}`, false, false, `{"sampling_params":{"n":1,"top_p":0.5}, "text":1}`)
	f(`{ "text":1}`, true, false, `{"rid":"7","sampling_params":{"n":1,"top_p":0.5}, "text":1}`)
	f(`{"text":1,"sampling_params": null }`, false, false, `{"text":1,"sampling_params": {"n":1,"top_p":0.5} }`)
	f(`{"text":1,"sampling_params": null }`, true, false, `{"rid":"7","text":1,"sampling_params": {"n":1,"top_p":0.5} }`)
	f(`{"text":1,"sampling_params":null}`, false, true, `{"sampling_params":{"n":1,"top_p":0.5}}`)
	f(`{"text":1,"sampling_params":null}`, true, true, `{"rid":"7","sampling_params":{"n":1,"top_p":0.5}}`)

	// A later stage that sets the member as a whole wins, either way.
	const body = `{"sampling_params":null}`
	b, p := scan(t, probe.SurfaceGenerate, body)
	p.Inject(Made, literal(t, "n", `1`))
	p.Replace(b.Last(probe.FieldSamplingParams), literal(t, "sampling_params", `{"n":2}`))
	wantPlan(t, p, body, `{"sampling_params":{"n":2}}`)
	_, p = scan(t, probe.SurfaceGenerate, `{}`)
	p.Inject(Made, literal(t, "n", `1`))
	p.Inject(Top, literal(t, "sampling_params", `{"n":2}`))
	wantPlan(t, p, `{}`, `{"sampling_params":{"n":2}}`)
}

// TestB23_InjectBehindBOM: nothing lands before a byte order mark.
func TestB23_InjectBehindBOM(t *testing.T) {
	const body = "\xEF\xBB\xBF {\"a\":1}"
	_, p := scan(t, probe.SurfaceChat, body)
	p.Inject(Top, literal(t, "x", `1`))
	wantPlan(t, p, body, "\xEF\xBB\xBF {\"x\":1,\"a\":1}")
}

func TestPlanSegments(t *testing.T) {
	const body = `{"a":1,"model":"m","b":2,"c":3}`
	src := []byte(body)
	b, p := scan(t, probe.SurfaceChat, body)
	if got := p.AppendSegments(nil, src); len(got) != 1 || &got[0][0] != &src[0] || len(got[0]) != len(src) || !p.Empty() {
		t.Fatalf("an empty plan does not pass the body itself: %q", got)
	}
	model := literal(t, "model", `"x"`)
	p.Replace(b.Last(probe.FieldModel), model)
	p.Remove(&b.Members[3])
	got := p.AppendSegments([][]byte{[]byte("head")}, src)
	want := []string{"head", `{"a":1,"model":`, `"x"`, `,"b":2`, `}`}
	if len(got) != len(want) {
		t.Fatalf("unexpected segments %q; want %q", got, want)
	}
	for i := range want {
		if string(got[i]) != want[i] {
			t.Fatalf("unexpected segments %q; want %q", got, want)
		}
	}
	if &got[1][0] != &src[0] || &got[2][0] != &model.Value()[0] {
		t.Fatal("segments are copies")
	}
}

func TestPlanCopyFrom(t *testing.T) {
	const body = `{"a":1,"b":2}`
	b, base := scan(t, probe.SurfaceChat, body)
	base.Remove(&b.Members[0])
	base.Inject(Top, literal(t, "x", `1`))
	var attempt Plan
	for _, value := range []string{`1`, `2`} {
		attempt.CopyFrom(base)
		attempt.Inject(Top, literal(t, "extra", value))
		wantPlan(t, &attempt, body, `{"x":1,"extra":`+value+`,"b":2}`)
		wantPlan(t, base, body, `{"x":1,"b":2}`)
	}
	_, empty := scan(t, probe.SurfaceChat, body)
	attempt.CopyFrom(empty)
	if !attempt.Empty() {
		t.Fatal("the copy of an empty plan is not empty")
	}
	wantPlan(t, &attempt, body, body)
}

func TestPlanReset(t *testing.T) {
	const long = `{"a":1,"b":2,"c":3,"sampling_params":{"n":2}}`
	b, p := scan(t, probe.SurfaceGenerate, long)
	for i := range b.Members {
		p.Remove(&b.Members[i])
	}
	p.Inject(Made, literal(t, "n", `1`))
	p.Inject(Top, literal(t, "x", `1`))
	p.Edits()
	const body = `{"b":2,"sampling_params":{}}`
	if fault := probe.Scan([]byte(body), probe.SurfaceGenerate, 0, b); fault != probe.FaultNone {
		t.Fatalf("cannot scan: %v", fault)
	}
	p.Reset(b)
	if !p.Empty() || p.Removed(&b.Members[0]) || p.Replacement(&b.Members[0]) != nil || p.Injected(Top, "x") != nil {
		t.Fatal("operations survive Reset")
	}
	p.Inject(0, literal(t, "n", `3`))
	wantPlan(t, p, body, `{"b":2,"sampling_params":{"n":3}}`)
}

func TestPlanRefusesForeignMember(t *testing.T) {
	_, p := scan(t, probe.SurfaceChat, `{"a":1}`)
	foreign := probe.Member{Key: probe.Span{Start: 2, End: 5}}
	defer func() {
		if recover() == nil {
			t.Fatal("a member of another body was taken")
		}
	}()
	p.Remove(&foreign)
}

func TestNewLiteral(t *testing.T) {
	f := func(key, value string, field probe.Field, state probe.State, num float64, member string) {
		t.Helper()
		l := literal(t, key, value)
		if l.Key != key || l.Field != field || l.State != state || l.Num != num || string(l.member) != member {
			t.Fatalf("unexpected literal; got %+v %s", *l, l.member)
		}
		if !strings.HasSuffix(member, string(l.Value())+",") {
			t.Fatalf("unexpected value %s", l.Value())
		}
	}
	f("temperature", "1.50", probe.FieldTemperature, probe.Number, 1.5, `"temperature":1.50,`)
	f("n", " true\n", probe.FieldN, probe.Number, 1, `"n":true,`)
	f("n", `"2"`, probe.FieldN, probe.Number, 2, `"n":"2",`)
	f("top_k", `null`, probe.FieldTopK, probe.Absent, 0, `"top_k":null,`)
	f("seed", `false`, probe.FieldNone, probe.Number, 0, `"seed":false,`)
	f("a\"\n", `{"b" : 9007199254740993}`, probe.FieldNone, probe.Unusable, 0, `"a\"\n":{"b" : 9007199254740993},`)
	f("list", `[1, 2]`, probe.FieldNone, probe.Unusable, 0, `"list":[1, 2],`)
	for _, value := range []string{``, ` `, `{`, `1,`, `1 "x"`, `NaN`, `'a'`} {
		if _, err := NewLiteral("k", []byte(value)); err == nil || !strings.Contains(err.Error(), `"k"`) {
			t.Fatalf("%q was taken as JSON (%v)", value, err)
		}
	}
}

// TestPlanGivesMemoryBack: one unusual body does not make a pooled plan large.
func TestPlanGivesMemoryBack(t *testing.T) {
	body := `{"sampling_params":[` + strings.Repeat(`{"n":1,"top_k":1,"min_p":1},`, 4000) + `{}]}`
	b, p := scan(t, probe.SurfaceGenerate, body)
	n := literal(t, "top_p", `1`)
	for i := range b.Objects {
		p.Inject(i, n)
	}
	if got := strings.Count(string(p.AppendTo(nil, []byte(body))), `"top_p":1`); got != 4001 {
		t.Fatalf("unexpected number of injections; got %d; want 4001", got)
	}
	p.Reset(b)
	if cap(p.marks) > maxKeptMarks || cap(p.chains) > maxKeptMarks || cap(p.inserts) > maxKeptInserts || cap(p.edits) > maxKeptInserts {
		t.Fatalf("memory is kept: %d, %d, %d, %d", cap(p.marks), cap(p.chains), cap(p.inserts), cap(p.edits))
	}
	if !p.Empty() {
		t.Fatal("operations survive Reset")
	}
}
