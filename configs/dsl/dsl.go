// Package dsl is the syntax of .sluice files: a lexer, a parser that finds all
// errors of a file at once, a tree that keeps comments and order, and a printer
// of the one canonical form. It knows words, values and conditions; what they
// mean, and which words there are, its caller says (see Vocabulary). The
// grammar is in configs/GRAMMAR.md.
package dsl

import "slices"

// The words that have a form of their own. All others set a value.
const (
	WordRoute  = "ROUTE"  // ROUTE name (props) { clauses }
	WordPlugin = "PLUGIN" // PLUGIN name type {…}, or in a ROUTE: PLUGIN name {…}
	WordWhen   = "WHEN"   // WHEN condition, in a ROUTE
)

// maxDepth bounds how deep values and conditions nest, maxErrors how many
// errors of one file are told.
const (
	maxDepth  = 64
	maxErrors = 100
)

// Vocabulary are the words of the language beside those with a form of their
// own. It is only read, and may serve several parsers at once.
type Vocabulary struct {
	// Sections are words of the top level that set a value: SERVER {…}.
	Sections []string
	// Named are words of the top level that name something: POOL name {…}.
	Named []string
	// Clauses are words of a ROUTE that set a value: PRIORITY 100.
	Clauses []string
	// Flags are those of Clauses that may stand without a value: STICKY.
	Flags []string
	// Suggest returns the candidate that word is probably a misspelling of,
	// or "". Nil suggests nothing.
	Suggest func(word string, candidates []string) string
}

// top returns all words of the top level.
func (v *Vocabulary) top() []string {
	return slices.Concat([]string{WordRoute, WordPlugin}, v.Named, v.Sections)
}

// clauses returns all words of a ROUTE.
func (v *Vocabulary) clauses() []string {
	return slices.Concat([]string{WordWhen, WordPlugin}, v.Clauses)
}

// unknown says what is wrong with a word that is none of the candidates.
func (v *Vocabulary) unknown(what, word string, candidates []string) string {
	msg := "unknown " + what + " " + shown(word)
	if v.Suggest != nil {
		if near := v.Suggest(word, candidates); near != "" {
			return msg + "; did you mean " + near + "?"
		}
	}
	msg += "; expected "
	for i, c := range candidates {
		if i > 0 {
			msg += ", "
		}
		msg += c
	}
	return msg
}
