package dsl

import (
	"strings"
	"testing"
)

// format parses and prints source, and checks what holds for all sources: the
// result means the same, has the same comments and is a fixed point.
func format(t *testing.T, source string) string {
	t.Helper()
	f := parse(t, source)
	out := Print(f)
	again, errs := Parse("b.sluice", out, testWords)
	if len(errs) > 0 {
		t.Fatalf("what is printed does not parse: %v\n%s", errs, out)
	}
	if got, want := dump(again), dump(f); got != want {
		t.Errorf("what is printed means something else\n%s\n got %s\nwant %s", out, got, want)
	}
	if got := Print(again); string(got) != string(out) {
		t.Errorf("printed again it is another text\n got %s\nwant %s", got, out)
	}
	if got, want := commentCount(string(out)), commentCount(source); got != want {
		t.Errorf("unexpected number of comments; got %d; want %d\n%s", got, want, out)
	}
	return string(out)
}

// commentCount counts # in texts whose strings have none.
func commentCount(s string) int { return strings.Count(s, "#") }

func TestPrint(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		want = strings.TrimPrefix(want, "\n")
		if got := format(t, source); got != want {
			t.Errorf("unexpected form of\n%s\n got\n%s\nwant\n%s", source, got, want)
		}
	}
	f("", "")
	f("\n\n# a\n\n\n#b   \n", "# a\n\n#b\n")
	f("LOG   info   SERVER[a b,c]", "LOG info\nSERVER [a, b, c]\n")
	f("LOG {}\n\n\n\nSERVER { }", "LOG {}\n\nSERVER {}\n")
	// what was on lines of its own stays so, what is in one line if it fits
	f("LOG {a:1 b:[x,y],c:{d:e}}", "LOG { a: 1, b: [x, y], c: { d: e } }\n")
	f("LOG {\na:1 b:[\nx,y],c:{d:e}}", `
LOG {
  a: 1
  b: [
    x
    y
  ]
  c: { d: e }
}
`)
	f("LOG {a: "+strings.Repeat("x", 60)+" b: {c: "+strings.Repeat("y", 60)+"}}", `
LOG {
  a: `+strings.Repeat("x", 60)+`
  b: { c: `+strings.Repeat("y", 60)+` }
}
`)
	f("LOG ["+strings.Repeat("abcdefghi ", 10)+"]", "LOG [\n"+strings.Repeat("  abcdefghi\n", 10)+"]\n")
	// quotes are kept, escapes are normal
	f(`LOG [a "a" "\u0041\/" "\u00e9\u001f\t\"" ]`, `LOG [a, "a", "A/", "é\u001f\t\""]`+"\n")
	f(`LOG {"a": 1 "b c": 2 "true": 3 "1": 4 "é": 5}`, `LOG { a: 1, "b c": 2, "true": 3, "1": 4, "é": 5 }`+"\n")
	// statements of several lines have an empty line around them
	f("LOG a\nROUTE r {}\nPOOL p {\na: b\n}\nLOG b\nLOG c", `
LOG a
ROUTE r {}

POOL p {
  a: b
}

LOG b
LOG c
`)
	f("ROUTE r(description=\"d\"){PRIORITY 1 STICKY,MODEL \"m\"\n\n\nPLUGIN p PLUGIN q{a:1}}", `
ROUTE r (description = "d") {
  PRIORITY 1
  STICKY
  MODEL "m"

  PLUGIN p
  PLUGIN q { a: 1 }
}
`)
	f("ROUTE r (a = 1, # x\n b = [1]) {}", `
ROUTE r (
  a = 1 # x
  b = [1]
) {}
`)
}

func TestPrintKeepsComments(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		want = strings.TrimPrefix(want, "\n")
		if got := format(t, source); got != want {
			t.Errorf("unexpected form of\n%s\n got\n%s\nwant\n%s", source, got, want)
		}
	}
	f("# 1\n\n# 2\nLOG {a:1 # 3\n,# 4\n\n b:2 # 5\n # 6\n}# 7\n# 8\n\n# 9", `
# 1

# 2
LOG {
  a: 1 # 3
  # 4

  b: 2 # 5
  # 6
} # 7
# 8

# 9
`)
	f("LOG # 1\n[ # 2\na # 3\n# 4\n]", `
LOG [
  # 1
  # 2
  a # 3
  # 4
]
`)
	f("LOG {a # 1\n: # 2\n1 # 3\n}", `
LOG {
  # 1
  # 2
  a: 1 # 3
}
`)
	f("POOL # 1\np # 2\n{}", "POOL p {\n  # 1\n  # 2\n}\n")
	f("ROUTE r { # 1\n# 2\nPRIORITY # 3\n1 # 4\n\n# 5\n}", `
ROUTE r {
  # 1
  # 2
  # 3
  PRIORITY 1 # 4

  # 5
}
`)
	f("ROUTE r {\nWHEN # 1\na() # 2\nAND # 3\nb() # 4\n# 5\nAND ( # 6\nc() OR d() # 7\n) # 8\nMODEL m # 9\n}", `
ROUTE r {
  # 1
  WHEN a() # 2
    # 3
    AND b() # 4
    # 5
    # 6
    # 7
    AND (c() OR d()) # 8
  MODEL m # 9
}
`)
	f("ROUTE r {\nWHEN a() AND b() # 1\nOR NOT # 2\nc(x # 3\n) }", `
ROUTE r {
  WHEN a()
      AND b() # 1
    # 2
    # 3
    OR NOT c(x)
}
`)
}

func TestPrintConditions(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		got := format(t, "ROUTE r {\n  WHEN "+source+"\n}")
		if got != "ROUTE r {\n  WHEN "+want+"\n}\n" {
			t.Errorf("unexpected form of %s\n got %s\nwant %s", source, got, want)
		}
	}
	f(`a("x",exact:"y")`, `a("x" exact "y")`)
	f(`((a()))`, `a()`)
	f(`NOT(a())AND(b()OR c())`, `NOT a() AND (b() OR c())`)
	f(`(a() AND b()) AND c()`, `(a() AND b()) AND c()`)
	f(`a() OR (b() AND c())`, `a() OR (b() AND c())`) // parentheses for people stay
	f(`a() OR b() AND c()`, `a() OR b() AND c()`)
	f(`NOT (NOT a())`, `NOT NOT a()`)
	f(`NOT (a() AND b())`, `NOT (a() AND b())`)
	x := strings.Repeat("x", 40)
	f(x+`() OR `+x+`() AND `+x+`()`, x+"()\n    OR "+x+"()\n      AND "+x+"()")
}

// A tree that was made by hand gets the parentheses that it needs.
func TestPrintTreeByHand(t *testing.T) {
	test := func(name string) *Cond { return &Cond{Name: name} }
	and := func(c ...*Cond) *Cond { return &Cond{Op: And, Conds: c} }
	or := func(c ...*Cond) *Cond { return &Cond{Op: Or, Conds: c} }
	long := test(strings.Repeat("x", 99))
	for _, c := range []*Cond{
		and(or(test("a"), test("b")), test("c")),
		and(and(test("a"), test("b")), test("c")),
		or(test("a"), or(test("b"), test("c"))),
		{Op: Not, Conds: []*Cond{and(test("a"), test("b"))}},
		and(and(long, test("b")), or(test("c"), test("d"))),
		or(or(long, test("b")), and(test("c"), test("d"))),
	} {
		f := &File{Statements: []*Statement{{
			Word: WordRoute, Args: []*Value{{Kind: String, Text: "r"}}, Clauses: []*Statement{{Word: WordWhen, When: c}},
		}}}
		again, errs := Parse("f", Print(f), testWords)
		if got, want := dump(again), dump(f); len(errs) > 0 || got != want {
			t.Errorf("unexpected tree of\n%s%v\n got %s\nwant %s", Print(f), errs, got, want)
		}
	}
}
