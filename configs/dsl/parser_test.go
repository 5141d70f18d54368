package dsl

import (
	"fmt"
	"strings"
	"testing"
)

var testWords = &Vocabulary{
	Sections: []string{"SERVER", "POOLS", "LOG", "CONTRACT"},
	Named:    []string{"POOL"},
	Clauses:  []string{"PRIORITY", "MODEL", "POOL", "STICKY", "FORCE", "CONTRACT"},
	Flags:    []string{"STICKY"},
	Suggest: func(word string, candidates []string) string {
		for _, c := range candidates {
			if strings.EqualFold(word, c) || len(word) == len(c) && word[:3] == c[:3] {
				return c
			}
		}
		return ""
	},
}

// dump returns a tree without places and comments.
func dump(f *File) string {
	var b strings.Builder
	for _, s := range f.Statements {
		dumpStatement(&b, s)
	}
	return b.String()
}

func dumpStatement(b *strings.Builder, s *Statement) {
	b.WriteString(s.Word)
	for _, a := range s.Args {
		b.WriteString(" ")
		dumpValue(b, a)
	}
	for _, f := range s.Props {
		fmt.Fprintf(b, " (%s=", f.Key)
		dumpValue(b, f.Value)
		b.WriteString(")")
	}
	if s.When != nil {
		b.WriteString(" ")
		dumpCond(b, s.When)
	}
	if s.Value != nil {
		b.WriteString(" ")
		dumpValue(b, s.Value)
	}
	for _, c := range s.Clauses {
		b.WriteString("\n  ")
		dumpStatement(b, c)
	}
	if s.Word == WordRoute || s.When == nil {
		b.WriteString(";")
	}
}

func dumpValue(b *strings.Builder, v *Value) {
	switch v.Kind {
	case List:
		b.WriteString("[")
		for _, item := range v.Items {
			dumpValue(b, item.Value)
			b.WriteString(",")
		}
		b.WriteString("]")
	case Map:
		b.WriteString("{")
		for _, f := range v.Fields {
			fmt.Fprintf(b, "%q:", f.Key)
			dumpValue(b, f.Value)
			b.WriteString(",")
		}
		b.WriteString("}")
	default:
		fmt.Fprintf(b, "%s%q", [...]string{"null", "bool", "int", "float", "str"}[v.Kind], v.Text)
	}
}

func dumpCond(b *strings.Builder, c *Cond) {
	switch c.Op {
	case Test:
		b.WriteString(c.Name + "(")
		for _, a := range c.Args {
			dumpValue(b, a)
			b.WriteString(",")
		}
	default:
		b.WriteString(opWords[c.Op] + "(")
		for _, inner := range c.Conds {
			dumpCond(b, inner)
			b.WriteString(" ")
		}
	}
	b.WriteString(")")
}

func parse(t *testing.T, source string) *File {
	t.Helper()
	f, errs := Parse("a.sluice", []byte(source), testWords)
	for _, err := range errs {
		t.Errorf("unexpected error: %v", err)
	}
	return f
}

func TestParse(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		if got := dump(parse(t, source)); got != want {
			t.Errorf("unexpected tree of\n%s\n got %s\nwant %s", source, got, want)
		}
	}
	f("", "")
	f("\ufeff# nothing\r\n", "")
	// values
	f(`SERVER {}`, `SERVER {};`)
	f(`LOG [a "a" 1 -1 1.5 1e5 -0.5E-3 true false null]`,
		`LOG [str"a",str"a",int"1",int"-1",float"1.5",float"1e5",float"-0.5E-3",bool"true",bool"false",null"null",];`)
	f(`LOG [30s 32MiB 1h30m 1.5s 5% 127.0.0.1 32K 010 +5 1. 1e 2026-01-02 -5s]`,
		`LOG [str"30s",str"32MiB",str"1h30m",str"1.5s",str"5%",str"127.0.0.1",str"32K",str"010",str"+5",str"1.",str"1e",str"2026-01-02",str"-5s",];`)
	f(`LOG [/v1/x ./a .5]`, `LOG [str"/v1/x",str"./a",str".5",];`)
	f(`LOG [meta-llama/Llama-3.1-70B a.b _x "true" "1" ""]`,
		`LOG [str"meta-llama/Llama-3.1-70B",str"a.b",str"_x",str"true",str"1",str"",];`)
	f(`LOG ["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"]`, `LOG [str"\"\\/\b\f\n\r\té😀",];`)
	f("LOG {a:1,b : 2 \"c d\":[x,[y]] e:{f:g}}", `LOG {"a":int"1","b":int"2","c d":[str"x",[str"y",],],"e":{"f":str"g",},};`)
	f("LOG info # c\nSERVER [\n a # x\n , b\n]", `LOG str"info";SERVER [str"a",str"b",];`)
	f("LOG {PLUGIN: ROUTE AND: WHEN}", `LOG {"PLUGIN":str"ROUTE","AND":str"WHEN",};`)
	// statements
	f(`POOL a {b: c}`, `POOL str"a" {"b":str"c",};`)
	f(`POOL "ROUTE" {}`, `POOL str"ROUTE" {};`)
	f(`PLUGIN p request_params {max_n: 1} PLUGIN q request-params {}`,
		`PLUGIN str"p" str"request_params" {"max_n":int"1",};PLUGIN str"q" str"request-params" {};`)
	f(`ROUTE r (description = "d", priority: 1) {}`, `ROUTE str"r" (description=str"d") (priority=int"1");`)
	f(`ROUTE r { PRIORITY 1, MODEL LLAMA STICKY POOL a STICKY false PLUGIN p PLUGIN q {a: 1} STICKY }`,
		"ROUTE str\"r\"\n  PRIORITY int\"1\";\n  MODEL str\"LLAMA\";\n  STICKY;\n  POOL str\"a\";\n  STICKY bool\"false\";\n  PLUGIN str\"p\";\n  PLUGIN str\"q\" {\"a\":int\"1\",};\n  STICKY;;")
	f("ROUTE r {\nPOOL a\nPLUGIN b\n}\nSERVER {}", "ROUTE str\"r\"\n  POOL str\"a\";\n  PLUGIN str\"b\";;SERVER {};")
}

func TestParseConditions(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		file := parse(t, "ROUTE r { WHEN "+source+" }")
		if len(file.Statements) == 0 || len(file.Statements[0].Clauses) == 0 {
			return
		}
		var b strings.Builder
		dumpCond(&b, file.Statements[0].Clauses[0].When)
		if got := b.String(); got != want {
			t.Errorf("unexpected condition of %s\n got %s\nwant %s", source, got, want)
		}
	}
	f(`a()`, `a()`)
	f(`a("x" exact "y")`, `a(str"x",str"exact",str"y",)`)
	f(`a("x", exact: "y")`, `a(str"x",str"exact",str"y",)`)
	f(`a(min 32K max 1)`, `a(str"min",str"32K",str"max",int"1",)`)
	f(`(a())`, `a()`)
	f(`NOT a()`, `NOT(a() )`)
	f(`NOT NOT a()`, `NOT(NOT(a() ) )`)
	f(`a() AND b() AND c()`, `AND(a() b() c() )`)
	f(`a() OR b() AND c() OR d()`, `OR(a() AND(b() c() ) d() )`)
	f(`NOT a() AND b() OR c()`, `OR(AND(NOT(a() ) b() ) c() )`)
	f(`(a() OR b()) AND NOT (c() OR d())`, `AND(OR(a() b() ) NOT(OR(c() d() ) ) )`)
	f(`(a() AND b()) AND c()`, `AND(AND(a() b() ) c() )`)
	f(`((a() OR b()))`, `OR(a() b() )`)
}

// Every error has its place; one statement at fault does not hide another's.
func TestParseErrors(t *testing.T) {
	f := func(source string, want ...string) {
		t.Helper()
		_, errs := Parse("f", []byte(source), testWords)
		var got []string
		for _, err := range errs {
			got = append(got, fmt.Sprintf("%d:%d: %s", err.Pos.Line, err.Pos.Column, err.Msg))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("unexpected errors of\n%s\n got %s\nwant %s", source, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	// words
	f("SERVR {}", `1:1: unknown word "SERVR"; expected ROUTE, PLUGIN, POOL, SERVER, POOLS, LOG, CONTRACT`)
	f("server {}", `1:1: unknown word "server"; did you mean SERVER?`)
	f("{}", `1:1: expected a word such as ROUTE, got "{"`)
	f("ROUTE r { PRIORITI 1 }", `1:11: unknown word in a ROUTE "PRIORITI"; did you mean PRIORITY?`)
	f("ROUTE r { priority: 1 }", `1:11: unknown word in a ROUTE "priority"; did you mean PRIORITY?`)
	f("ROUTE r { PRIORITY: 1 }", `1:19: the value of PRIORITY follows without :`)
	f("ROUTE r { 1 }", `1:11: expected a word such as WHEN, got "1"`)
	// names and values
	f("ROUTE {}", `1:7: expected the name of the route, got "{"`)
	f("ROUTE 7 {}", `1:7: a name must be a string: put 7 in quotes`)
	f("ROUTE r\nSERVER {}", `2:1: expected "{", got "SERVER"`)
	f("PLUGIN p {}", `1:10: expected the type of the template, got "{"`)
	f("POOL p", `1:7: expected "{", got the end of the file`)
	f("SERVER", `1:7: expected a value of SERVER, got the end of the file`)
	f("SERVER :", `1:8: the value of SERVER follows without :`)
	f("ROUTE r { MODEL PRIORITY 1 }", `1:17: expected a value of MODEL, got "PRIORITY"`)
	f("ROUTE r { MODEL }", `1:17: expected a value of MODEL, got "}"`)
	f("SERVER {a}", `1:10: expected a ":" behind the key "a", got "}"`)
	f("SERVER {a {b: 1}}", `1:11: put : between the key "a" and {`)
	f("SERVER {a = 1}", `1:11: a value follows its key "a" with : here, not with =`)
	f("SERVER {a: }", `1:12: expected a value, got "}"`)
	f("SERVER {1: a}", `1:9: put the key "1" in quotes: it is no word`)
	f("SERVER {true: a}", `1:9: put the key "true" in quotes: it is no word`)
	f("SERVER {,}", `1:9: expected a key, got ","`)
	f("SERVER {url: http://a:1}", `1:14: put the value of "url" in quotes: it holds a colon`)
	f("SERVER {a: é}", `1:12: unexpected 'é'; a string with other characters than letters, digits and _-./%+ stands in quotes`, `1:13: expected a value, got "}"`)
	// strings
	f("SERVER \"a\nLOG {}", `1:8: the string is not closed on its line; a line break is written \n`)
	f(`SERVER "a`, `1:8: the string is not closed`)
	f(`SERVER "a\`, `1:8: the string is not closed`)
	f(`SERVER "\d"`, `1:9: unknown escape \d; a backslash is written \\, and others are \" \/ \b \f \n \r \t \u0000`)
	f(`SERVER "é\u00"`, `1:10: unknown escape \u; a backslash is written \\, and others are \" \/ \b \f \n \r \t \u0000`)
	f(`SERVER "\ud800x"`, `1:9: the escape \ud800 is half of a character`)
	f(`SERVER "\udc00\ud800"`, `1:9: the escape \udc00 is half of a character`, `1:15: the escape \ud800 is half of a character`)
	f("SERVER \"a\tb\"", `1:10: a tab in a string is written \t`)
	f("SERVER \x00", `1:8: unexpected control character '\x00'`)
	f("SERVER é\xff", "1:9: the file is not UTF-8")
	f("SERVER a\rb", `1:9: unexpected control character '\r'`)
	// brackets
	f("SERVER {a: 1\nLOG {}", `1:8: the "{" is never closed`)
	f("SERVER [a", `1:8: the "[" is never closed`)
	f("ROUTE r (a = 1\nLOG {}", `1:9: the "(" is never closed`)
	f("ROUTE r {\n  PRIORITY 1\nROUTE s {}", `1:9: the "{" of this ROUTE is never closed`)
	f("SERVER {}}\nLOG {", `1:10: expected a word such as ROUTE, got "}"`, `2:5: the "{" is never closed`)
	f("SERVER (a)", `1:8: expected a value, got "("`)
	f("SERVER "+strings.Repeat("[", 70)+strings.Repeat("]", 70), `1:72: nested deeper than 64 levels`)
	f("ROUTE r { WHEN "+strings.Repeat("NOT ", 70)+"a() }", `1:272: nested deeper than 64 levels`)
	f("ROUTE r { WHEN "+strings.Repeat("(", 70)+"a() }", `1:80: nested deeper than 64 levels`)
	// conditions
	f("ROUTE r { WHEN }", `1:16: expected a condition such as model("…"), got "}"`)
	f("ROUTE r { WHEN a }", `1:18: expected "(" behind "a", got "}"`)
	f("ROUTE r { WHEN a() AND }", `1:24: expected a condition such as model("…"), got "}"`)
	f("ROUTE r { WHEN a() and b() }", `1:20: write AND in capitals`)
	f("ROUTE r { WHEN not a() }", `1:16: expected a condition such as model("…"), got "not"`)
	f("ROUTE r { WHEN (a() }", `1:16: the "(" is never closed`)
	f("ROUTE r { WHEN (a() b()) }", `1:21: expected AND, OR or ), got "b"`)
	f("ROUTE r { WHEN a([1]) }", `1:18: expected a value or ")", got "["`)
	f("ROUTE r { WHEN MODEL(\"a\") }", `1:16: expected a condition such as model("…"), got "MODEL"`)
	// all of a file at once
	f("SERVR {}\nROUTE a {\n  PRIORITI 1\n  MODEL\n  WHEN a\n  POOL x\n}\nLOG {a}\nROUTE b { POOL }",
		`1:1: unknown word "SERVR"; expected ROUTE, PLUGIN, POOL, SERVER, POOLS, LOG, CONTRACT`,
		`3:3: unknown word in a ROUTE "PRIORITI"; did you mean PRIORITY?`,
		`5:3: expected a value of MODEL, got "WHEN"`,
		`6:3: expected "(" behind "a", got "POOL"`,
		`8:7: expected a ":" behind the key "a", got "}"`,
		`9:16: expected a value of POOL, got "}"`)
}

// What has no error is there beside what has.
func TestParseKeepsTheRest(t *testing.T) {
	source := "LOG {a}\nSERVER {b: 1}\nROUTE r {\n  MODEL\n  PRIORITY 7\n  POOL \"x\n}\nPOOL p {}"
	f, errs := Parse("f", []byte(source), testWords)
	if got, want := dump(f), "SERVER {\"b\":int\"1\",};ROUTE str\"r\"\n  PRIORITY int\"7\";;POOL str\"p\" {};"; got != want || len(errs) != 3 {
		t.Errorf("unexpected tree beside %d errors %v\n got %s\nwant %s", len(errs), errs, got, want)
	}
}

func TestParseStopsAtManyErrors(t *testing.T) {
	_, errs := Parse("f", []byte(strings.Repeat("SERVER\n", 5000)), testWords)
	if len(errs) != maxErrors {
		t.Errorf("unexpected number of errors; got %d; want %d", len(errs), maxErrors)
	}
}

func TestErrorShowsTheLine(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		_, errs := Parse("dir/a.sluice", []byte(source), testWords)
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("unexpected errors\n got %v\nwant %s", errs, want)
		}
	}
	f("# é\r\n\tSERVER {a: é1}\r\n", "dir/a.sluice:2:13: unexpected 'é'; a string with other characters than letters, digits and _-./%+ stands in quotes\n"+
		"    \tSERVER {a: é1}\n    \t           ^")
	long := strings.Repeat("a", 300)
	f("LOG {k: "+long+" "+long+"}", "dir/a.sluice:1:610: expected a \":\" behind the key \""+long[:64]+"\"…, got \"}\"\n"+
		"    "+long[:50]+"}\n    "+strings.Repeat(" ", 50)+"^")
}

func TestSnippetOutside(t *testing.T) {
	for _, pos := range []Pos{{0, 0}, {0, 1}, {3, 1}, {1, 0}} {
		if got := Snippet([]byte("a\nb"), pos); got != "" {
			t.Errorf("unexpected snippet at %v: %q", pos, got)
		}
	}
	if got, want := Snippet([]byte("a\x1b[1mb"), Pos{1, 9}), "    a\ufffd[1mb\n          ^"; got != want {
		t.Errorf("unexpected snippet; got %q; want %q", got, want)
	}
}
