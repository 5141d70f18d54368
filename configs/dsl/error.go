package dsl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one error of the syntax.
type Error struct {
	// File is the name that Parse was given.
	File string
	Pos  Pos
	// Msg says what is wrong and, where it can be guessed, what was meant.
	Msg string
	// Snippet is the line with a caret below the place (see Snippet).
	Snippet string
}

// Error returns file:line:column: message, and below it the line and a caret.
func (e *Error) Error() string {
	head := e.File + ":" + strconv.Itoa(e.Pos.Line) + ":" + strconv.Itoa(e.Pos.Column) + ": " + e.Msg
	if e.Snippet == "" {
		return head
	}
	return head + "\n" + e.Snippet
}

// snippetWidth is how much of a long line is shown.
const snippetWidth = 100

// Snippet returns the line of source that holds pos and, on a second line, a
// caret below pos; both are indented. Of a long line it is the part around pos.
// It is "" when there is no such line.
func Snippet(source []byte, pos Pos) string {
	text := string(source)
	for range pos.Line - 1 {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return ""
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSuffix(line, "\r")
	if pos.Line < 1 || pos.Column < 1 || !utf8.ValidString(line) {
		return ""
	}
	runes := []rune(line)
	at := min(pos.Column-1, len(runes))
	from := 0
	if at > snippetWidth*3/4 {
		from = at - snippetWidth/2
	}
	to := min(len(runes), from+snippetWidth)
	var b strings.Builder
	b.WriteString("    ")
	for _, r := range runes[from:to] {
		b.WriteRune(visible(r))
	}
	b.WriteString("\n    ")
	for _, r := range runes[from:at] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteByte('^')
	return b.String()
}

// visible returns r, or what stands for a character that a terminal would act
// on.
func visible(r rune) rune {
	if r != '\t' && isControl(r) {
		return utf8.RuneError
	}
	return r
}

func isControl(r rune) bool { return r < 0x20 || 0x7f <= r && r < 0xa0 }

// shown returns s in quotes for a message, cut when it is long.
func shown(s string) string {
	const limit = 64
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
