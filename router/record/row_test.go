package record

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText_Set(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		var b, s Text
		b.Set([]byte(in))
		s.SetString(in)
		if string(b) != want || string(s) != want {
			t.Errorf("unexpected text; got %q and %q; want %q", b, s, want)
		}
	}
	long := strings.Repeat("x", MaxText)
	f("", "")
	f("abc", "abc")
	f(long, long)
	f(long+"y", long)
	f(long[1:]+"é", long[1:])
	f(long[1:]+"é tail", long[1:])
	f(long[2:]+"é", long[2:]+"é")
	f(long[2:]+"é tail", long[2:]+"é")
	f(long[3:]+"\U0001f600 tail", long[3:])
	f(long[4:]+"\U0001f600 tail", long[4:]+"\U0001f600")
	// What is no text at all is still cut.
	garbage := strings.Repeat("\x80", MaxText*2)
	f(garbage, garbage[:MaxText-3])
}

func TestText_SetAgain(t *testing.T) {
	var a Text
	a.SetString("a long value")
	p := &a[0]
	a.SetString("short")
	if string(a) != "short" || &a[0] != p {
		t.Errorf("unexpected text %q, or other memory", a)
	}
}

func TestRow_Bound(t *testing.T) {
	var w Row
	w.Sampling = []byte(strings.Repeat("x", MaxSampling))
	w.bound()
	if len(w.Sampling) != MaxSampling {
		t.Errorf("unexpected sampling of %d bytes", len(w.Sampling))
	}
	w.Sampling = append(w.Sampling, 'x')
	w.bound()
	if string(w.Sampling) != `{"omitted_bytes":4097}` {
		t.Errorf("unexpected sampling %q", w.Sampling)
	}
	w.reset()
	if w.Sampling != nil || w.PromptTokens != Unknown {
		t.Errorf("unexpected row %+v after a reset", w)
	}
}

func TestRow_Clean(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		var w Row
		w.Tenant.SetString(in)
		w.Pool = in
		w.Sampling = []byte(in)
		w.clean()
		if string(w.Tenant) != want || w.Pool != want || string(w.Sampling) != want || !utf8.ValidString(want) {
			t.Errorf("unexpected values of %q; got %q, %q, %q; want %q", in, w.Tenant, w.Pool, w.Sampling, want)
		}
	}
	f("", "")
	f(`a "b" \N ~`, `a "b" \N ~`)
	f("é 世界 \U0001f600", "é 世界 \U0001f600")
	f("a\x00b\tc\nd\x7fe\u0085f", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf")
	f("a\xffb\xc3", "a\ufffdb\ufffd")
	f("\xed\xa0\x80", "\ufffd\ufffd\ufffd")
}
