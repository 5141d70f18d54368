package dsl

import (
	"bytes"
	"testing"
)

// FuzzParse feeds any bytes to the parser: no panic, no hang, errors with a
// place inside of the file, and a printed form that means the same, keeps every
// comment and is a fixed point.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "# a\n\nLOG {a: 1 # b\n}", "SERVER [a, \"b\\n\\ud83d\\ude00\" 1.5e3 30s] # x",
		"PLUGIN p request_params {a: {b: [c]}}\nROUTE r (d = \"e\") {\n  PRIORITY 1\n  WHEN a(\"x\" exact \"y\") AND NOT (b() OR c()) # z\n  PLUGIN p {}\n}",
		"ROUTE r { WHEN a( # 1\n) # 2\n AND # 3\n (b() # 4\n OR c()) OR d()\n# 5\nSTICKY, }", "ROUTE r {", "LOG }{", "LOG \"\\u12", "\xef\xbb\xbfLOG a\r\n", "POOL \"ROUTE\" {\"\": null}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 1<<16 {
			return
		}
		tree, errs := Parse("f", source, testWords)
		lines := bytes.Count(source, []byte("\n")) + 1
		for _, err := range errs {
			if err.Pos.Line < 1 || err.Pos.Line > lines || err.Pos.Column < 1 || err.Msg == "" {
				t.Fatalf("unexpected error %+v", err)
			}
		}
		out := Print(tree) // whatever was kept
		again, more := Parse("f", out, testWords)
		if len(more) > 0 {
			t.Fatalf("what is printed does not parse: %v\n%q\n%q", more[0], source, out)
		}
		if got, want := dump(again), dump(tree); got != want {
			t.Fatalf("what is printed means something else\n%q\n%q\n got %s\nwant %s", source, out, got, want)
		}
		if twice := Print(again); !bytes.Equal(twice, out) {
			t.Fatalf("printed again it is another text\n%q\n%q\n%q", source, out, twice)
		}
		if got, want := comments(out), comments(source); len(errs) == 0 && got != want {
			t.Fatalf("unexpected number of comments; got %d; want %d\n%q\n%q", got, want, source, out)
		}
	})
}

// comments counts the comments of a source.
func comments(source []byte) int {
	l := newLexer(string(source), func(Pos, string) bool { return false })
	n := 0
	for {
		t := l.next()
		n += len(t.comments)
		if t.kind == tokEnd {
			return n
		}
	}
}
