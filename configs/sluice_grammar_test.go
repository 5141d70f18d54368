package configs

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"sluice/configs/dsl"
)

// What GRAMMAR.md shows as .sluice is valid, but for a file that is not there.
func TestGrammarExamples(t *testing.T) {
	page, err := os.ReadFile("GRAMMAR.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sluice\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 5 {
		t.Fatalf("unexpected number of examples in GRAMMAR.md: %d", len(blocks))
	}
	words := map[string]bool{}
	for _, b := range blocks {
		text := string(b[1])
		if _, err := Format("GRAMMAR.md", b[1]); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		// The first one leaves the pool of its model to another file.
		text += "\nPOOL more { models: [m], aliases: { more-70b: m }, workers: [{ url: \"http://127.0.0.1:1\" }] }\n"
		if !strings.Contains(text, "POOL llama") && !strings.Contains(text, "POOL big") {
			text = strings.Replace(text, "more-70b", "llama-70b", 1)
		}
		inDir(t, "a.sluice", text)
		_, err := Load(Options{Files: []string{"a.sluice"}})
		var faults Faults
		if errors.As(err, &faults) && !(len(faults) == 1 && strings.Contains(faults[0].Msg, "secrets/llama")) {
			t.Errorf("%v\n%s", err, text)
		}
		tree, _ := dsl.Parse("", b[1], vocabulary())
		for _, s := range tree.Statements {
			words[s.Word] = true
			for _, c := range s.Clauses {
				words[c.Word] = true
			}
		}
	}
	for _, word := range []string{"WHEN", "PLUGIN", "ROUTE", "POOL", "POOLS", "PRIORITY", "STICKY", "FALLBACK", "FORCE", "CONTRACT", "SERVER", "LOG"} {
		if !words[word] {
			t.Errorf("GRAMMAR.md has no example of %s", word)
		}
	}
	for _, word := range append(vocabulary().Sections, vocabulary().Clauses...) {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("GRAMMAR.md does not name %s", word)
		}
	}
	for name := range tests {
		if !strings.Contains(string(page), "| `"+name+"(") {
			t.Errorf("GRAMMAR.md does not name the condition %s", name)
		}
	}
}
