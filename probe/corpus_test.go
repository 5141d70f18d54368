package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A document of testdata/corpus.txt.
type document struct {
	verdict byte
	text    string
}

func corpus(tb testing.TB) []document {
	tb.Helper()
	data, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var docs []document
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line[0] == '#' {
			continue
		}
		text, err := strconv.Unquote(line[2:])
		if err != nil {
			tb.Fatalf("bad line %q: %v", line, err)
		}
		docs = append(docs, document{line[0], text})
	}
	return docs
}

func TestCorpus(t *testing.T) {
	docs := 0
	f := func(src string, want bool) {
		t.Helper()
		docs++
		var b Body
		got := Scan([]byte(src), SurfaceChat, allNumbers, &b)
		if (got == FaultNone) != want {
			t.Errorf("unexpected verdict on %.100q at %d: %v", src, b.FaultAt, got)
		}
		// Whatever stands in front of a fault, the offsets are in range.
		if int(b.FaultAt) > len(src) {
			t.Errorf("unexpected offset of the fault in %.100q: %d", src, b.FaultAt)
		}
	}
	for _, d := range corpus(t) {
		member, element := `{"a":`+d.text+`,"n":1}`, `{"a":[`+d.text+`],"n":1}`
		switch d.verdict {
		case 'Y', 'N':
			f(d.text, d.verdict == 'Y')
			continue
		case 'y':
			if !json.Valid([]byte(d.text)) {
				t.Errorf("unexpected verdict of encoding/json on %.100q", d.text)
			}
			f(member, true)
			f(element, true)
		case 'i', 'l':
			f(member, true)
			f(element, true)
		case 't', 'e':
			f(member, false)
			f(element, true)
		case 'n':
			f(member, false)
			f(element, false)
		default:
			t.Fatalf("bad verdict %c", d.verdict)
		}
		whole := strings.HasPrefix(strings.TrimSpace(d.text), "{") && json.Valid([]byte(d.text)) && utf8.ValidString(d.text)
		switch d.verdict {
		case 'l', 'n', 't', 'i', 'e':
			if json.Valid([]byte(d.text)) && utf8.ValidString(d.text) && !strings.HasPrefix(d.text, "[[[[") && !strings.HasPrefix(d.text, `{"a":{"a"`) {
				t.Errorf("unexpected verdict of encoding/json on %.100q", d.text)
			}
			whole = false
			if strings.HasPrefix(d.text, "{") {
				continue // a fault at the top level or not: the bodies have these
			}
		}
		f(d.text, whole)
	}
	if docs < 900 {
		t.Errorf("unexpected number of documents: %d", docs)
	}
}

// TestCorpusEveryPlace puts the strings of the corpus at every offset of a block,
// in a member's value and further down, so that nothing depends on alignment.
func TestCorpusEveryPlace(t *testing.T) {
	onEachPath(func() { checkCorpusEveryPlace(t) })
}

func checkCorpusEveryPlace(t *testing.T) {
	t.Helper()
	var b Body
	for _, d := range corpus(t) {
		if d.verdict != 'y' && d.verdict != 'n' || len(d.text) > 200 {
			continue
		}
		for pad := range 130 {
			in := "{\"p\":\"" + strings.Repeat("x", pad) + "\",\"a\":[1," + d.text + "],\"n\":7}"
			out := strings.Repeat(" ", pad) + "{\"a\":[" + strings.Repeat(" ", pad%7) + d.text + ",1],\"p\":[],\"n\":7}"
			for _, src := range []string{in, out} {
				f := Scan([]byte(src), SurfaceChat, allNumbers, &b)
				if (f == FaultNone) != (d.verdict == 'y') {
					t.Fatalf("unexpected verdict on %q: %v", src, f)
				}
				if f == FaultNone && (b.Last(FieldN) == nil || b.Last(FieldN).Num != 7) {
					t.Fatalf("unexpected members of %q: %+v", src, b.Members)
				}
			}
		}
	}
}

// TestEveryByte tries every byte behind a backslash and every byte in a string and
// outside, at the top level and below.
func TestEveryByte(t *testing.T) {
	f := func(src []byte) {
		t.Helper()
		var b Body
		got := Scan(src, SurfaceChat, 0, &b) == FaultNone
		if want := json.Valid(src) && utf8.Valid(src); got != want {
			t.Errorf("unexpected verdict on %q; got %v; want %v", src, got, want)
		}
	}
	for c := range 256 {
		for _, form := range []string{
			`{"a":"\#"}`, `{"a":["\#"]}`, `{"\#":1}`, `{"a":"#"}`, `{"a":["#"]}`, `{"#":1}`, `{#"a":1}`, `{"a"#:1}`,
			`{"a":1#}`, `{"a":[]#}`, `#{}`, `{}#`, `{"a":"\u00#0"}`, `{"a":["\u000#"]}`, `{"a":["\u#000"]}`,
		} {
			if form == `{"a":1#}` && bytes.IndexByte([]byte("0123456789"), byte(c)) < 0 && c > ' ' {
				continue
			}
			f(bytes.ReplaceAll([]byte(form), []byte("#"), []byte{byte(c)}))
		}
		src := bytes.ReplaceAll([]byte(`{"a":[1# ]}`), []byte("#"), []byte{byte(c)})
		var b Body
		got := Scan(src, SurfaceChat, 0, &b) == FaultNone
		if want := class[c] == classPlain; got != want {
			t.Errorf("unexpected verdict on %q; got %v; want %v", src, got, want)
		}
	}
}
