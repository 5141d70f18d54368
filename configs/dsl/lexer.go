package dsl

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // bare, begins with a letter or an underscore
	tokBare             // bare, begins otherwise: 1.5, -1, 30s, /health
	tokString           // in quotes
	tokPunct            // one of {}[]():,=
)

// token is a piece of a file with the comments before it.
type token struct {
	kind tokenKind
	// text is the text without quotes and escapes, or the punctuation mark.
	text string
	pos  Pos
	// first says that it is the first token of its line, blank that an empty
	// line stands before it.
	first, blank bool
	// bad says that an error in it, or before it, is told.
	bad      bool
	comments []lexComment
}

// lexComment is a comment; same says that a token stands before it on its line.
type lexComment struct {
	Comment
	same bool
}

func (t *token) is(punct string) bool { return t.kind == tokPunct && t.text == punct }

// describe names t in a message.
func (t *token) describe() string {
	if t.kind == tokEnd {
		return "the end of the file"
	}
	return shown(t.text)
}

// lexer cuts a source that is valid UTF-8 into tokens.
type lexer struct {
	src  string
	off  int
	line int
	// mark is an offset in the line and column the column of it.
	mark, column int
	lines        int  // line ends since the last token or comment
	any          bool // a token stands before, on this line
	bad          bool // there is an error in the token
	report       func(pos Pos, msg string) bool
}

func newLexer(src string, report func(Pos, string) bool) *lexer {
	l := &lexer{src: src, line: 1, column: 1, lines: 1, report: report}
	if strings.HasPrefix(src, "\ufeff") {
		l.off, l.mark = 3, 3
	}
	return l
}

func (l *lexer) fail(at Pos, msg string) {
	l.bad = true
	l.report(at, msg)
}

// pos returns the place of the byte at off, which is on the current line and
// not before the last one asked for.
func (l *lexer) pos(off int) Pos {
	l.column += utf8.RuneCountInString(l.src[l.mark:off])
	l.mark = off
	return Pos{l.line, l.column}
}

// next returns the next token; after the last one, tokEnd again and again.
func (l *lexer) next() token {
	var t token
	for l.bad = false; ; t.bad = true {
		l.space(&t)
		t.first, t.blank = !l.any, l.lines > 1
		t.pos = l.pos(l.off)
		if l.off == len(l.src) {
			return t
		}
		l.lines, l.any = 0, true
		switch c := l.src[l.off]; {
		case c == '"':
			t.kind = tokString
			t.text = l.quoted(t.pos)
			t.bad = l.bad
			return t
		case strings.IndexByte("{}[]():,=", c) >= 0:
			t.kind, t.text = tokPunct, l.src[l.off:l.off+1]
			l.off++
			return t
		case isLetter(c):
			t.kind, t.text = tokWord, l.bare()
			return t
		case startsBare(l.src[l.off:]):
			t.kind, t.text = tokBare, l.bare()
			return t
		}
		r, size := utf8.DecodeRuneInString(l.src[l.off:])
		l.fail(t.pos, "unexpected "+strconv.QuoteRune(r)+"; a string with other characters than letters, digits and _-./%+ stands in quotes")
		l.off += size
	}
}

// space passes white space and collects comments into t.
func (l *lexer) space(t *token) {
	for l.off < len(l.src) {
		switch l.src[l.off] {
		case '\n':
			l.off++
			l.line, l.column, l.mark = l.line+1, 1, l.off
			l.lines++
			l.any = false
		case ' ', '\t', '\r':
			l.off++
		case '#':
			end := strings.IndexByte(l.src[l.off:], '\n')
			if end < 0 {
				end = len(l.src) - l.off
			}
			text := strings.TrimRight(l.src[l.off:l.off+end], " \t\r")
			t.comments = append(t.comments, lexComment{Comment{Text: text, Blank: l.lines > 1}, l.any})
			l.off += end
			l.lines = 0
		default:
			return
		}
	}
}

// bare returns the bare text at the offset and moves behind it.
func (l *lexer) bare() string {
	start := l.off
	for l.off < len(l.src) && isBare(l.src[l.off]) {
		l.off++
	}
	return l.src[start:l.off]
}

// quoted returns the string that begins at the offset and moves behind it. A
// string that does not end on its line ends there for the parser.
func (l *lexer) quoted(open Pos) string {
	var b strings.Builder
	for l.off++; l.off < len(l.src); {
		switch c := l.src[l.off]; c {
		case '"':
			l.off++
			return b.String()
		case '\n':
			l.fail(open, "the string is not closed on its line; a line break is written \\n")
			return b.String()
		case '\\':
			l.escape(&b)
		case '\t':
			l.fail(l.pos(l.off), "a tab in a string is written \\t")
			l.off++
		default:
			b.WriteByte(c)
			l.off++
		}
	}
	l.fail(open, "the string is not closed")
	return b.String()
}

// escape reads an escape as JSON has it (RFC 8259 section 7). A surrogate
// without its other half stands for no character and is an error.
func (l *lexer) escape(b *strings.Builder) {
	at := l.off
	rest := l.src[at:]
	if len(rest) < 2 || rest[1] == '\n' {
		l.off++ // the string is not closed
		return
	}
	if i := strings.IndexByte(`"\/bfnrt`, rest[1]); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		l.off += 2
		return
	}
	r, ok := hex4(rest)
	size := len(`\u0000`)
	if low, second := hex4(rest[min(size, len(rest)):]); ok && second && utf16.IsSurrogate(r) {
		r = utf16.DecodeRune(r, low)
		size *= 2
	}
	switch {
	case !ok:
		_, n := utf8.DecodeRuneInString(rest[1:])
		l.fail(l.pos(at), "unknown escape "+rest[:1+n]+`; a backslash is written \\, and others are \" \/ \b \f \n \r \t \u0000`)
		l.off += 1 + n
	case utf16.IsSurrogate(r) || r == utf8.RuneError && size > len(`\u0000`):
		l.fail(l.pos(at), "the escape "+rest[:len(`\u0000`)]+" is half of a character")
		l.off += len(`\u0000`)
	default:
		b.WriteRune(r)
		l.off += size
	}
}

// hex4 returns the number in an escape \u0000 that s begins with.
func hex4(s string) (rune, bool) {
	if len(s) < len(`\u0000`) || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n := rune(0)
	for i := 2; i < len(`\u0000`); i++ {
		c := s[i]
		switch {
		case isDigit(c):
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// startsBare reports whether s, which is not empty, begins like a bare text that
// is no word.
func startsBare(s string) bool {
	switch s[0] {
	case '/', '.':
		return true
	case '-', '+':
		return len(s) > 1 && isDigit(s[1])
	}
	return isDigit(s[0])
}

// isBare reports whether c may stand in a bare text.
func isBare(c byte) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte("-./%+", c) >= 0
}

// number returns the kind of a bare text that begins like a number: what JSON
// has as a number, else a string, such as 30s, 32MiB or 127.0.0.1.
func number(s string) Kind {
	digits := func(s string) string { return strings.TrimLeft(s, "0123456789") }
	rest := digits(strings.TrimPrefix(s, "-"))
	whole := strings.TrimPrefix(s[:len(s)-len(rest)], "-")
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return String
	}
	if rest == "" {
		return Int
	}
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		if rest = digits(fraction); rest == fraction {
			return String
		}
	}
	if rest != "" && rest[0]|0x20 == 'e' {
		exponent := rest[1:]
		if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
		if rest = digits(exponent); rest == exponent {
			return String
		}
	}
	if rest != "" {
		return String
	}
	return Float
}
