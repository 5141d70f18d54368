package probe

import (
	"slices"
	"strings"
	"testing"
)

// allNumbers are the fields whose numbers the tests want.
const allNumbers = FieldSet(1<<NumFields-1) &^ 1

// scan is Scan into a fresh Body that must succeed.
func scan(t *testing.T, src string, surface Surface) *Body {
	t.Helper()
	var b Body
	if f := Scan([]byte(src), surface, allNumbers, &b); f != FaultNone {
		t.Fatalf("unexpected fault for %q at %d: %v", src, b.FaultAt, f)
	}
	return &b
}

func TestScanMembers(t *testing.T) {
	src := " \n{\"model\" : \"m\\/x\",\t\"n\":2 , \"messages\":[{\"a\":\"}]\"},[]], \"x\":{\"temperature\":9},\"temperature\":-0.5e1,\"stop\":null,\"stream\":true,\"y\":false}\r\n"
	b := scan(t, src, SurfaceChat)
	want := []struct {
		key, val string
		field    Field
		kind     Kind
	}{
		{`"model"`, `"m\/x"`, FieldModel, KindString},
		{`"n"`, `2`, FieldN, KindNumber},
		{`"messages"`, `[{"a":"}]"},[]]`, FieldNone, KindArray},
		{`"x"`, `{"temperature":9}`, FieldNone, KindObject},
		{`"temperature"`, `-0.5e1`, FieldTemperature, KindNumber},
		{`"stop"`, `null`, FieldNone, KindNull},
		{`"stream"`, `true`, FieldStream, KindTrue},
		{`"y"`, `false`, FieldNone, KindFalse},
	}
	if len(b.Members) != len(want) {
		t.Fatalf("unexpected number of members; got %d; want %d", len(b.Members), len(want))
	}
	for i, w := range want {
		m := b.Members[i]
		if got := string(m.Key.Of([]byte(src))); got != w.key {
			t.Errorf("unexpected key %d; got %s; want %s", i, got, w.key)
		}
		if got := string(m.Val.Of([]byte(src))); got != w.val {
			t.Errorf("unexpected value %d; got %s; want %s", i, got, w.val)
		}
		if m.Field != w.field || m.Kind != w.kind {
			t.Errorf("unexpected member %s; got field %v kind %d; want %v %d", w.key, m.Field, m.Kind, w.field, w.kind)
		}
	}
	if m := b.Last(FieldTemperature); m == nil || m.State != Number || m.Num != -5 {
		t.Errorf("unexpected temperature: %+v", m)
	}
	if m := b.Last(FieldTopP); m != nil {
		t.Errorf("unexpected top_p: %+v", m)
	}
	if got := string(b.Span.Of([]byte(src))); got != strings.TrimSpace(src) {
		t.Errorf("unexpected span %q", got)
	}
}

func TestB17_NotAnObject(t *testing.T) {
	f := func(src string, want Fault) {
		t.Helper()
		var b Body
		if got := Scan([]byte(src), SurfaceChat, allNumbers, &b); got != want {
			t.Errorf("unexpected fault for %.60q; got %v; want %v", src, got, want)
		}
	}
	f(`[]`, FaultNotObject)
	f(`null`, FaultNotObject)
	f(`"hi"`, FaultNotObject)
	f(`42`, FaultNotObject)
	f(``, FaultNotObject)
	f(" \n", FaultNotObject)
	f("\xef\xbb\xbf", FaultNotObject)
	f("\x00{}", FaultNotObject)
	f("\xff\xfe{\x00}\x00", FaultNotObject)  // UTF-16 with its mark
	f("{\x00\"\x00a\x00\"\x00", FaultSyntax) // UTF-16LE without
	f("\x00{\x00\"", FaultNotObject)         // UTF-16BE without
	f(`{oops`, FaultSyntax)
	f(`{"a":1}{"b":2}`, FaultTrailing)
	f(`{"a":1},`, FaultTrailing)
	f("{\"a\":1}\x00", FaultTrailing)
	f(`{`, FaultTruncated)
	f(`{"a`, FaultTruncated)
	f(`{"a"`, FaultTruncated)
	f(`{"a":`, FaultTruncated)
	f(`{"a":1`, FaultTruncated)
	f(`{"a":1,`, FaultTruncated)
	f(`{"a":[`, FaultTruncated)
	f(`{"a":"\`, FaultSyntax)
	f(`{,}`, FaultSyntax)
	f(`{"a":1,}`, FaultSyntax)
	f(`{"a" 1}`, FaultSyntax)
	f(`{"a":1 "b":2}`, FaultSyntax)
	f(`{a:1}`, FaultSyntax)
	f(`{'a':1}`, FaultSyntax)
	f(`{"a":01}`, FaultSyntax)
	f(`{"a":+1}`, FaultSyntax)
	f(`{"a":1.}`, FaultSyntax)
	f(`{"a":.5}`, FaultSyntax)
	f(`{"a":1e}`, FaultSyntax)
	f(`{"a":0x1}`, FaultSyntax)
	f(`{"a":-}`, FaultSyntax)
	f(`{"a":-NaN}`, FaultSyntax)
	f(`{"a":nan}`, FaultSyntax)
	f(`{"a":truex}`, FaultSyntax)
	f(`{"a":[}]}`, FaultSyntax)
	f(`{"a":[1 /* " */]}`, FaultSyntax)
	f(`{"a":['"']}`, FaultSyntax)
	f("{\"a\":\"\n\"}", FaultSyntax)
	f("{\"a\":\"\x00\"}", FaultSyntax)
	f(`{"a":"\x"}`, FaultSyntax)
	f(`{"a":"\u12"}`, FaultSyntax)
	f(`{"a":["\u123g"]}`, FaultSyntax)
	f("{\"a\":\"\xff\"}", FaultUTF8)
	f("{\"a\":\"\xc0\x80\"}", FaultUTF8)
	f("{\"a\":\"\xed\xa0\x80\"}", FaultUTF8)
	f("{\"a\":[\"\xf4\x90\x80\x80\"]}", FaultUTF8)
	f("{\"a\":\"\xe4\xb8\"}", FaultUTF8)
	f("{\"a\":[\xff]}", FaultUTF8)
	f("{\"a\":[\u00a0]}", FaultSyntax)
	f("\u00a0{}", FaultNotObject)
}

func TestB23_ByteOrderMark(t *testing.T) {
	src := "\xef\xbb\xbf{\"model\":\"x\"}"
	b := scan(t, src, SurfaceChat)
	if b.Span.Start != 3 || b.Last(FieldModel) == nil {
		t.Fatalf("unexpected body: %+v", b)
	}
	if got := string(TrimBOM([]byte(src))); got != src[3:] {
		t.Fatalf("unexpected trimmed body %q", got)
	}
	var two Body
	if f := Scan([]byte("\xef\xbb\xbf"+src), SurfaceChat, 0, &two); f != FaultNotObject {
		t.Fatalf("unexpected fault for two marks: %v", f)
	}
}

func TestB24_Depth(t *testing.T) {
	nest := func(n int) string {
		return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	scan(t, nest(MaxDepth-1), SurfaceChat)
	f := func(src string, surface Surface) {
		t.Helper()
		var b Body
		if f := Scan([]byte(src), surface, 0, &b); f != FaultDepth {
			t.Errorf("unexpected fault: %v", f)
		}
	}
	f(nest(MaxDepth), SurfaceChat)
	f(nest(3_000_000), SurfaceChat)
	f(`{"a":`+strings.Repeat(`{"a":`, 3_000_000), SurfaceChat)
	inner := func(n int) string {
		return `{"sampling_params":[{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}]}"
	}
	scan(t, inner(MaxDepth-3), SurfaceGenerate)
	f(inner(MaxDepth-2), SurfaceGenerate)
}

func TestB01_RepeatedRoutingKey(t *testing.T) {
	f := func(src string, surface Surface, want Fault, field Field) {
		t.Helper()
		var b Body
		if got := Scan([]byte(src), surface, 0, &b); got != want || b.FaultField != field {
			t.Errorf("unexpected fault for %.80s; got %v %v; want %v %v", src, got, b.FaultField, want, field)
		}
	}
	f(`{"model":"allowed","model":"blocked","stream":true}`, SurfaceChat, FaultDuplicate, FieldModel)
	f(`{"model":"a","messages":["`+strings.Repeat("x", 70_000)+`"],"mod\u0065l":null}`, SurfaceChat, FaultDuplicate, FieldModel)
	for _, key := range []Field{FieldModel, FieldStream, FieldMaxTokens, FieldMaxCompletionTokens, FieldMaxOutputTokens, FieldMaxNewTokens, FieldN} {
		f(`{"`+key.String()+`":null,"`+key.String()+`":1}`, SurfaceChat, FaultDuplicate, key)
		f(`{"sampling_params":{"`+key.String()+`":1,"`+key.String()+`":null}}`, SurfaceGenerate, FaultDuplicate, key)
		f(`{"sampling_params":[{"`+key.String()+`":1},{"`+key.String()+`":1}]}`, SurfaceGenerate, FaultNone, FieldNone)
		f(`{"stream_options":{"`+key.String()+`":1,"`+key.String()+`":null}}`, SurfaceChat, FaultNone, FieldNone)
		f(`{"x":{"`+key.String()+`":1,"`+key.String()+`":null}}`, SurfaceChat, FaultNone, FieldNone)
	}
	f(`{"sampling_params":{},"sampling_params":null}`, SurfaceGenerate, FaultDuplicate, FieldSamplingParams)
	f(`{"sampling_params":{},"sampling_params":null}`, SurfaceChat, FaultNone, FieldNone)
}

func TestB03_RepeatedSamplingKey(t *testing.T) {
	b := scan(t, `{"temperature":1,"temper\u0061ture":0.5,"top_p":1}`, SurfaceChat)
	if m := b.Last(FieldTemperature); m.Num != 0.5 || !m.Escaped {
		t.Errorf("unexpected last temperature: %+v", m)
	}
	if want := FieldSet(0).With(FieldTemperature); b.Repeated != want {
		t.Errorf("unexpected repeated fields; got %b; want %b", b.Repeated, want)
	}
	b = scan(t, `{"sampling_params":[{"top_k":1,"top_k":null},{"top_k":2}]}`, SurfaceGenerate)
	if len(b.Objects) != 2 || b.Objects[0].Repeated != FieldSet(0).With(FieldTopK) || b.Objects[1].Repeated != 0 {
		t.Fatalf("unexpected objects: %+v", b.Objects)
	}
	if m := b.LastInner(&b.Objects[0], FieldTopK); m.Kind != KindNull || m.State != Absent {
		t.Errorf("unexpected last top_k: %+v", m)
	}
	if m := b.LastInner(&b.Objects[1], FieldTopK); m.Num != 2 {
		t.Errorf("unexpected last top_k: %+v", m)
	}
	if m := b.LastInner(&b.Objects[1], FieldTopP); m != nil {
		t.Errorf("unexpected top_p: %+v", m)
	}
}

func TestScanObjects(t *testing.T) {
	f := func(src string, surface Surface, odd bool, want ...string) {
		t.Helper()
		b := scan(t, src, surface)
		if b.OddSampling != odd {
			t.Errorf("unexpected OddSampling of %s; got %v", src, b.OddSampling)
		}
		if len(b.Objects) != len(want) {
			t.Fatalf("unexpected number of objects in %s; got %d; want %d", src, len(b.Objects), len(want))
		}
		for i, o := range b.Objects {
			if got := string(o.Span.Of([]byte(src))); got != want[i] {
				t.Errorf("unexpected object; got %s; want %s", got, want[i])
			}
			if n := strings.Count(want[i], ":"); int(o.Last-o.First) != n {
				t.Errorf("unexpected members of %s; got %d; want %d", want[i], o.Last-o.First, n)
			}
		}
	}
	f(`{"sampling_params":{ "n":1 , "top_p":"2"}}`, SurfaceGenerate, false, `{ "n":1 , "top_p":"2"}`)
	f(`{"sampling_params":{}}`, SurfaceGenerate, false, `{}`)
	f(`{"sampling_params":[ { } , {"n":1},{}]}`, SurfaceGenerate, false, `{ }`, `{"n":1}`, `{}`)
	f(`{"sampling_params":[]}`, SurfaceGenerate, false)
	f(`{"sampling_params":null}`, SurfaceGenerate, false)
	f(`{"sampling_params":[{"n":1},null,{}]}`, SurfaceGenerate, true, `{"n":1}`, `{}`)
	f(`{"sampling_params":[[{"n":1}]]}`, SurfaceGenerate, true)
	f(`{"sampling_params":"x"}`, SurfaceGenerate, true)
	f(`{"sampling_params":1}`, SurfaceGenerate, true)
	f(`{"sampling_params":{"n":1}}`, SurfaceChat, false)
	f(`{"stream_options":{"include_usage":true}}`, SurfaceChat, false, `{"include_usage":true}`)
	f(`{"stream_options":[{"include_usage":true}]}`, SurfaceChat, false)
	f(`{"stream_options":{"include_usage":true}}`, SurfaceGenerate, false)
}

func TestScanBounds(t *testing.T) {
	f := func(src string, surface Surface, want Fault) {
		t.Helper()
		var b Body
		if got := Scan([]byte(src), surface, 0, &b); got != want {
			t.Errorf("unexpected fault for %.40s…; got %v; want %v", src, got, want)
		}
	}
	members := func(n int) string { return "{" + strings.Repeat(`"a":1,`, n-1) + `"a":1}` }
	f(members(MaxMembers), SurfaceChat, FaultNone)
	f(members(MaxMembers+1), SurfaceChat, FaultMembers)
	f(members(100_000), SurfaceChat, FaultMembers)
	f(`{"stream_options":`+members(MaxMembers)+`}`, SurfaceChat, FaultNone)
	f(`{"stream_options":`+members(MaxMembers+1)+`}`, SurfaceChat, FaultMembers)
	most := members(MaxMembers) + strings.Repeat(","+members(MaxMembers), MaxInner/MaxMembers-1)
	f(`{"sampling_params":[`+most+`,{}]}`, SurfaceGenerate, FaultNone)
	f(`{"sampling_params":[`+most+`,{"a":1}]}`, SurfaceGenerate, FaultMembers)
	f(`{"x":`+members(100_000)+`}`, SurfaceChat, FaultNone)
	objects := func(n int) string { return `{"sampling_params":[` + strings.Repeat("{},", n-1) + "{}]}" }
	f(objects(MaxObjects), SurfaceGenerate, FaultNone)
	f(objects(MaxObjects+1), SurfaceGenerate, FaultMembers)
}

func TestB04_EscapedKeys(t *testing.T) {
	f := func(raw string, want Field) {
		t.Helper()
		b := scan(t, `{`+raw+`:1}`, SurfaceChat)
		if got := b.Members[0].Field; got != want {
			t.Errorf("unexpected field of %s; got %v; want %v", raw, got, want)
		}
		if got := EqualKey([]byte(raw), want.String()); got != (want != FieldNone) {
			t.Errorf("unexpected EqualKey of %s: %v", raw, got)
		}
	}
	f(`"temper\u0061ture"`, FieldTemperature)
	f(`"\u0074\u0065\u006d\u0070\u0065\u0072\u0061\u0074\u0075\u0072\u0065"`, FieldTemperature)
	f(`"\u006D\u0061\u0078\u005f\u0063ompletion_tokens"`, FieldMaxCompletionTokens)
	f(`"\u006e"`, FieldN)
	f(`"Temperature"`, FieldNone)
	f(`"temperature\u0000"`, FieldNone)
	f(`"temperature\/"`, FieldNone)
	f(`"temperatur\u00e9"`, FieldNone)
	f(`"\ud800"`, FieldNone)
	f(`"temperature "`, FieldNone)
	f(`"max_completion_tokens\ud83d\ude00"`, FieldNone)
}

func TestB25_LoneSurrogates(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		scan(t, `{`+raw+`:`+raw+`,"a":[`+raw+`]}`, SurfaceChat)
		if got := string(AppendUnquoted([]byte("x"), []byte(raw))); got != "x"+want {
			t.Errorf("unexpected text of %s; got %q; want %q", raw, got, want)
		}
		if !EqualKey([]byte(raw), want) {
			t.Errorf("unexpected EqualKey(%s, %q): false", raw, want)
		}
		if EqualKey([]byte(raw), want+"x") || EqualKey([]byte(raw), "x"+want) {
			t.Errorf("unexpected EqualKey of %s and a longer name: true", raw)
		}
	}
	f(`""`, "")
	f(`"\ud800"`, "\uFFFD")
	f(`"\ud800\u0041"`, "\uFFFDA")
	f(`"\ud800\ud83d\ude00"`, "\uFFFD😀")
	f(`"\ud83d\ude00"`, "😀")
	f(`"\ude00\ud83d"`, "\uFFFD\uFFFD")
	f(`"\ud83d\n"`, "\uFFFD\n")
	f(`"\ud8000udC00"`, "\uFFFD0udC00")
	f(`"a\"b\\c\/d\b\f\n\r\t\u00e9é"`, "a\"b\\c/d\b\f\n\r\téé")
}

func TestUnquoteOfGarbage(t *testing.T) {
	for _, raw := range []string{``, `"`, `"\"`, `"\u"`, `"\u12"`, `"\ud800\u1"`, "\"\xff\"", `"\x"`} {
		got := AppendUnquoted(nil, []byte(raw))
		if len(got) > 8*len(raw) {
			t.Errorf("unexpected text of %q: %q", raw, got)
		}
		if EqualKey([]byte(raw), "\x00never") {
			t.Errorf("unexpected EqualKey of %q: true", raw)
		}
	}
}

func TestScanReusesBody(t *testing.T) {
	var b Body
	if f := Scan([]byte(`{"sampling_params":1,"top_p":1,"top_p":1,"n":1,"n":2}`), SurfaceGenerate, allNumbers, &b); f != FaultDuplicate {
		t.Fatalf("unexpected fault: %v", f)
	}
	if b.FaultAt == 0 || b.FaultField != FieldN || !b.OddSampling {
		t.Fatalf("unexpected body: %+v", b)
	}
	if f := Scan([]byte(`{}`), SurfaceChat, allNumbers, &b); f != FaultNone {
		t.Fatalf("unexpected fault: %v", f)
	}
	if len(b.Members) != 0 || b.Repeated != 0 || b.OddSampling || b.FaultAt != 0 || b.FaultField != FieldNone || b.Last(FieldN) != nil {
		t.Fatalf("unexpected body after reuse: %+v", b)
	}
}

func TestFieldNames(t *testing.T) {
	for f := FieldNone + 1; f < NumFields; f++ {
		if got := fieldByName([]byte(f.String())); got != f {
			t.Errorf("unexpected field of %q; got %v", f.String(), got)
		}
		if len(f.String()) > longestField {
			t.Errorf("unexpected length of %q; want at most %d", f.String(), longestField)
		}
	}
	if FieldNone.String() != "" || NumFields.String() != "" || fieldByName(nil) != FieldNone {
		t.Error("unexpected name of no field")
	}
	for s := SurfaceNone; s < NumSurfaces; s++ {
		if s.String() == "" {
			t.Errorf("unexpected empty name of surface %d", s)
		}
	}
	if NumSurfaces.String() != "none" {
		t.Error("unexpected name of no surface")
	}
	for f := FaultNone; f < numFaults; f++ {
		if f.Error() == "" {
			t.Errorf("unexpected empty text of fault %d", f)
		}
	}
}

// TestUsageOption compares the short way through the usual stream_options with the
// long one.
func TestUsageOption(t *testing.T) {
	f := func(object string, numbers FieldSet, inner, objects int, short bool) {
		t.Helper()
		src := []byte(`{"stream_options":` + object + `}`)
		const at = len(`{"stream_options":`)
		got := Body{Inner: make([]Member, inner), Objects: make([]Object, objects)}
		want := Body{Inner: make([]Member, inner), Objects: make([]Object, objects)}
		s := scanner{src: src, dst: &got, tmp: &got.tmp, numbers: numbers}
		end := s.usageOption(at, FieldStreamOptions)
		if short != (end != 0) {
			t.Fatalf("unexpected end of %s; got %d", object, end)
		}
		s.dst, s.tmp = &want, &want.tmp
		wantEnd, fault := s.innerObject(at, 2, FieldStreamOptions)
		if !short {
			return
		}
		if end != wantEnd || fault != FaultNone || !slices.Equal(got.Objects, want.Objects) || !slices.Equal(got.Inner, want.Inner) {
			t.Errorf("unexpected result of %s; got %d %+v; want %d %v %+v", object, end, got, wantEnd, fault, want)
		}
	}
	const option = `{"include_usage":true}`
	f(option, sampling, 0, 0, true)
	f(option, sampling, MaxInner-1, MaxObjects-1, true)
	f(option, allNumbers, 0, 0, false)
	f(option, sampling, MaxInner, 0, false)
	f(option, sampling, 0, MaxObjects, false)
	f(`{"include_usage":true ,"a":1}`, sampling, 0, 0, false)
	f(`{"include_usage":false}`, sampling, 0, 0, false)
	f(`{"include_usage":tru`, sampling, 0, 0, false)
}
