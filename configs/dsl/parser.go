package dsl

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse reads a file. The tree is never nil: it holds the statements that have
// no error, and of a ROUTE the clauses that have none. Errors are in the order of their places and at most 100. name is for
// them alone; source may be reused when Parse has returned. Its time is linear
// in the size of source, which the caller bounds.
func Parse(name string, source []byte, v *Vocabulary) (*File, []*Error) {
	p := &parser{words: v, name: name, source: source}
	if at, msg := textFault(source); msg != "" {
		p.fail(at, msg)
		return &File{}, p.errors
	}
	p.lexer = newLexer(string(source), p.fail)
	p.ahead = p.lexer.next()
	p.advance()
	f := p.file()
	slices.SortStableFunc(p.errors, func(a, b *Error) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
	return f, p.errors
}

// textFault says why source is no text, or returns "".
func textFault(source []byte) (Pos, string) {
	at := Pos{1, 1}
	for i := 0; i < len(source); {
		r, size := utf8.DecodeRune(source[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "the file is not UTF-8"
		case r == '\n':
			at = Pos{at.Line + 1, 0}
		case r == '\r' && i+1 < len(source) && source[i+1] == '\n', r == '\t':
		case isControl(r):
			return at, "unexpected control character " + strconv.QuoteRune(r)
		}
		at.Column++
		i += size
	}
	return at, ""
}

// parser is a recursive descent with one token of look-ahead. What its methods
// return is valid only when ok; the error is told then, and the caller returns
// to where reading can go on.
type parser struct {
	words  *Vocabulary
	name   string
	source []byte
	lexer  *lexer
	errors []*Error

	tok, ahead token
	seq        int // number of tok
	// pending are comments that no part of the tree has yet.
	pending []pendingComment
	// open is how many braces are open at tok, nested how deep values and
	// conditions are in the one being read, bad how many tokens before tok have
	// an error of their own.
	open, nested, bad int
}

type pendingComment struct {
	lexComment
	seq int // of the token behind it
}

func (p *parser) fail(at Pos, msg string) bool {
	if len(p.errors) < maxErrors {
		p.errors = append(p.errors, &Error{p.name, at, msg, Snippet(p.source, at)})
	}
	return false
}

// unexpected tells that something else than tok is wanted.
func (p *parser) unexpected(want string) bool {
	return p.fail(p.tok.pos, "expected "+want+", got "+p.tok.describe())
}

func (p *parser) advance() {
	switch {
	case p.tok.is("{"):
		p.open++
	case p.tok.is("}"):
		p.open--
	case p.tok.bad:
		p.bad++
	}
	p.tok, p.seq = p.ahead, p.seq+1
	for _, c := range p.tok.comments {
		p.pending = append(p.pending, pendingComment{c, p.seq})
	}
	if p.tok.kind != tokEnd {
		p.ahead = p.lexer.next()
	}
}

// take advances over a punctuation mark, if it is next.
func (p *parser) take(punct string) bool {
	if !p.tok.is(punct) {
		return false
	}
	p.advance()
	return true
}

// begin returns the notes of what begins with tok.
func (p *parser) begin() Notes {
	return Notes{Before: p.comments(), Blank: p.tok.blank}
}

// comments returns what is pending.
func (p *parser) comments() []Comment {
	var out []Comment
	for _, c := range p.pending {
		out = append(out, c.Comment)
	}
	p.pending = p.pending[:0]
	return out
}

// end completes the notes of what has ended before tok: comments that were
// found inside go before it, one on its last line behind it.
func (p *parser) end(n *Notes) {
	for len(p.pending) > 0 && p.pending[0].seq < p.seq {
		n.Before = append(n.Before, Comment{Text: p.pending[0].Text})
		p.pending = p.pending[1:]
	}
	if n.After == "" && len(p.pending) > 0 && p.pending[0].same {
		n.After = p.pending[0].Text
		p.pending = p.pending[1:]
	}
}

// separate completes the notes of an item and takes the comma behind it.
func (p *parser) separate(n *Notes) {
	p.end(n)
	if p.take(",") {
		p.end(n)
	}
}

func (p *parser) file() *File {
	f := &File{}
	for p.tok.kind != tokEnd && len(p.errors) < maxErrors {
		before := p.bad
		switch s, ok := p.statement(); {
		case !ok:
			p.recover()
		case s.Word == WordRoute, p.bad == before:
			f.Statements = append(f.Statements, s)
		}
	}
	f.End = p.comments()
	return f
}

// recover moves to the next statement of the top level.
func (p *parser) recover() {
	for !p.outside() && !(p.open <= 0 && p.tok.first && p.isWord(p.words.top())) {
		p.advance()
	}
	p.open, p.nested = 0, 0
}

// outside reports whether tok cannot be inside of brackets: it is the end, or a
// word of the top level that is not indented.
func (p *parser) outside() bool {
	return p.tok.kind == tokEnd || p.tok.first && p.tok.pos.Column == 1 && p.isWord(p.words.top())
}

// outsideRoute is outside for the body of a ROUTE, which may begin with a word
// that is one of the top level, too.
func (p *parser) outsideRoute() bool { return p.outside() && !p.isWord(p.words.clauses()) }

// isWord reports whether tok is one of words, and no key.
func (p *parser) isWord(words []string) bool {
	return p.tok.kind == tokWord && !p.ahead.is(":") && slices.Contains(words, p.tok.text)
}

func (p *parser) statement() (*Statement, bool) {
	s := &Statement{Notes: p.begin(), Pos: p.tok.pos, Word: p.tok.text}
	top := p.words.top()
	switch {
	case p.tok.kind != tokWord:
		return nil, p.unexpected("a word such as ROUTE")
	case !slices.Contains(top, s.Word):
		return nil, p.fail(s.Pos, p.words.unknown("word", s.Word, top))
	}
	p.advance()
	var ok bool
	switch {
	case s.Word == WordRoute:
		ok = p.arg(s, "the name of the route") && p.props(s) && p.route(s)
	case s.Word == WordPlugin:
		ok = p.arg(s, "the name of the template") && p.arg(s, "the type of the template") && p.block(s)
	case slices.Contains(p.words.Named, s.Word):
		ok = p.arg(s, "a name") && p.block(s)
	default:
		ok = p.operand(s)
	}
	p.separate(&s.Notes)
	return s, ok
}

// arg reads one name behind the word of s.
func (p *parser) arg(s *Statement, what string) bool {
	if p.tok.kind == tokEnd || p.tok.kind == tokPunct || p.meantAsWord() {
		return p.unexpected(what)
	}
	v := p.scalar()
	s.Args = append(s.Args, v)
	return v.Kind == String || p.fail(v.Pos, "a name must be a string: put "+v.Text+" in quotes")
}

// meantAsWord reports whether tok is a word of the language although a value
// is expected. Such a value would have to stand in quotes.
func (p *parser) meantAsWord() bool {
	return p.isWord(p.words.top()) || p.isWord(p.words.clauses())
}

// operand reads the value that the word of s sets.
func (p *parser) operand(s *Statement) (ok bool) {
	if p.meantAsWord() || p.tok.is("}") || p.tok.kind == tokEnd {
		return p.unexpected("a value of " + s.Word)
	}
	if p.tok.is(":") || p.tok.is("=") {
		return p.fail(p.tok.pos, "the value of "+s.Word+" follows without "+p.tok.text)
	}
	s.Value, ok = p.value()
	return ok
}

// block reads the fields in braces behind the names of s.
func (p *parser) block(s *Statement) (ok bool) {
	if !p.tok.is("{") {
		return p.unexpected(`"{"`)
	}
	s.Value, ok = p.value()
	return ok
}

// props reads what may stand in parentheses behind the name of a ROUTE.
func (p *parser) props(s *Statement) bool {
	open := p.tok.pos
	if !p.take("(") {
		return true
	}
	for !p.take(")") {
		if p.outside() {
			return p.fail(open, `the "(" is never closed`)
		}
		f, ok := p.field("=")
		if !ok {
			return false
		}
		s.Props = append(s.Props, f)
	}
	return true
}

// route reads the body of a ROUTE. After an error in a clause it goes on with
// the next one.
func (p *parser) route(s *Statement) bool {
	open := p.tok.pos
	if !p.take("{") {
		return p.unexpected(`"{"`)
	}
	depth := p.open
	for !p.tok.is("}") {
		if p.outsideRoute() {
			return p.fail(open, `the "{" of this ROUTE is never closed`)
		}
		if len(p.errors) >= maxErrors {
			return false
		}
		before := p.bad
		switch c, ok := p.clause(); {
		case !ok:
			p.nextClause(depth)
		case p.bad == before:
			s.Clauses = append(s.Clauses, c)
		}
	}
	s.End = p.comments()
	p.advance()
	return true
}

// nextClause moves to the next clause of the ROUTE whose body is at depth, or
// to its end.
func (p *parser) nextClause(depth int) {
	p.nested = 0
	for !p.outsideRoute() && !(p.open == depth && (p.tok.is("}") || p.tok.first && p.isWord(p.words.clauses()))) {
		p.advance()
	}
}

func (p *parser) clause() (*Statement, bool) {
	s := &Statement{Notes: p.begin(), Pos: p.tok.pos, Word: p.tok.text}
	clauses := p.words.clauses()
	switch {
	case p.tok.kind != tokWord:
		return nil, p.unexpected("a word such as " + WordWhen)
	case !slices.Contains(clauses, s.Word):
		return nil, p.fail(s.Pos, p.words.unknown("word in a "+WordRoute, s.Word, clauses))
	}
	p.advance()
	var ok bool
	switch {
	case s.Word == WordWhen:
		s.When, ok = p.cond(Or)
		if ok {
			s.Before = append(s.Before, s.When.takeBefore()...)
			s.After = s.When.takeAfter()
		}
	case s.Word == WordPlugin:
		ok = p.arg(s, "a template or a type of plugins")
		if ok && p.tok.is("{") {
			ok = p.block(s)
		}
	case slices.Contains(p.words.Flags, s.Word) && (p.meantAsWord() || p.tok.is("}") || p.tok.is(",")):
		ok = true
	default:
		ok = p.operand(s)
	}
	p.separate(&s.Notes)
	return s, ok
}

// deeper bounds nesting; shallower undoes it.
func (p *parser) deeper(at Pos) bool {
	if p.nested++; p.nested > maxDepth {
		return p.fail(at, "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
	}
	return true
}

func (p *parser) shallower() { p.nested-- }

// unclosed tells that a bracket is not closed, unless an error behind it is told
// already: a string that is not closed takes the bracket that is missed.
func (p *parser) unclosed(open Pos, bracket string, bad int) bool {
	return p.bad == bad && p.fail(open, "the "+strconv.Quote(bracket)+" is never closed")
}

func (p *parser) value() (*Value, bool) {
	switch {
	case p.tok.is("{"):
		return p.mapping()
	case p.tok.is("["):
		return p.list()
	case p.tok.kind == tokEnd, p.tok.kind == tokPunct:
		return nil, p.unexpected("a value")
	}
	return p.scalar(), true
}

// scalar returns tok, which is no punctuation mark, as a value.
func (p *parser) scalar() *Value {
	v := &Value{Pos: p.tok.pos, Kind: String, Text: p.tok.text}
	switch p.tok.kind {
	case tokString:
		v.Quoted = true
	case tokBare:
		v.Kind = number(v.Text)
	default:
		v.Kind = wordKind(v.Text)
	}
	p.advance()
	return v
}

func wordKind(s string) Kind {
	switch s {
	case "null":
		return Null
	case "true", "false":
		return Bool
	}
	return String
}

func (p *parser) list() (*Value, bool) {
	v := &Value{Pos: p.tok.pos, Kind: List}
	if !p.deeper(v.Pos) {
		return nil, false
	}
	defer p.shallower()
	bad := p.bad
	p.advance()
	v.Break = p.tok.first
	for !p.tok.is("]") {
		if p.outside() {
			return nil, p.unclosed(v.Pos, "[", bad)
		}
		item := &Item{Notes: p.begin()}
		var ok bool
		if item.Value, ok = p.value(); !ok {
			return nil, false
		}
		p.separate(&item.Notes)
		v.Items = append(v.Items, item)
	}
	v.End = p.comments()
	p.advance()
	return v, true
}

func (p *parser) mapping() (*Value, bool) {
	v := &Value{Pos: p.tok.pos, Kind: Map}
	if !p.deeper(v.Pos) {
		return nil, false
	}
	defer p.shallower()
	bad := p.bad
	p.advance()
	v.Break = p.tok.first
	for !p.tok.is("}") {
		if p.outside() {
			return nil, p.unclosed(v.Pos, "{", bad)
		}
		f, ok := p.field(":")
		if !ok {
			return nil, false
		}
		v.Fields = append(v.Fields, f)
	}
	v.End = p.comments()
	p.advance()
	return v, true
}

// field reads key: value, or with another mark key = value.
func (p *parser) field(mark string) (*Field, bool) {
	f := &Field{Notes: p.begin(), Pos: p.tok.pos, Key: p.tok.text}
	switch {
	case p.tok.kind == tokBare, p.tok.kind == tokWord && wordKind(p.tok.text) != String:
		return nil, p.fail(f.Pos, "put the key "+shown(f.Key)+" in quotes: it is no word")
	case p.tok.kind != tokWord && p.tok.kind != tokString:
		return nil, p.unexpected("a key")
	}
	p.advance()
	switch {
	case p.take(mark), mark == "=" && p.take(":"):
	case p.tok.is("="):
		return nil, p.fail(p.tok.pos, "a value follows its key "+shown(f.Key)+" with : here, not with =")
	case p.tok.is("{"):
		return nil, p.fail(p.tok.pos, "put : between the key "+shown(f.Key)+" and {")
	default:
		return nil, p.unexpected("a " + strconv.Quote(mark) + " behind the key " + shown(f.Key))
	}
	var ok bool
	if f.Value, ok = p.value(); !ok {
		return nil, false
	}
	if p.tok.is(":") && f.Value.Kind == String && !f.Value.Quoted {
		return nil, p.fail(f.Value.Pos, "put the value of "+shown(f.Key)+" in quotes: it holds a colon")
	}
	p.separate(&f.Notes)
	return f, true
}

// bare reports whether s needs no quotes as a string.
func bare(s string) bool {
	if s == "" || strings.Trim(s, bareBytes) != "" {
		return false
	}
	if isLetter(s[0]) {
		return wordKind(s) == String
	}
	return startsBare(s) && number(s) == String
}

const bareBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./%+"
