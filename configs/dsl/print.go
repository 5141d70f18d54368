package dsl

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// width is the longest line that is not broken.
const width = 100

// Print returns f in the canonical form: two spaces a level, one clause, field
// or item a line or all in one line where they fit, were not on several before
// and have no comments; commas within a line only; at most one empty line, and
// one around statements of several lines. Comments, order and the quotes of
// strings are kept. What Print returns parses to the same tree, and prints the
// same again.
func Print(f *File) []byte {
	p := &printer{}
	broken := false // the statement before has several lines
	for i, s := range f.Statements {
		one := &printer{first: true}
		one.notes(&s.Notes, func() { one.statement(s) })
		text := one.b.Bytes()
		several := bytes.Count(text, []byte("\n")) > 1
		if i > 0 && (broken || several || leadsBlank(&s.Notes)) {
			p.b.WriteByte('\n')
		}
		p.b.Write(text)
		broken = several
	}
	p.first = len(f.Statements) == 0
	p.comments(f.End)
	return p.b.Bytes()
}

func leadsBlank(n *Notes) bool {
	if len(n.Before) > 0 {
		return n.Before[0].Blank
	}
	return n.Blank
}

type printer struct {
	b      bytes.Buffer
	indent int
	// first says that nothing stands before, in the block: no empty line does,
	// then.
	first bool
}

func (p *printer) line(indent int) {
	for range indent {
		p.b.WriteString("  ")
	}
}

func (p *printer) comments(list []Comment) {
	for _, c := range list {
		if c.Blank && !p.first {
			p.b.WriteByte('\n')
		}
		p.first = false
		p.line(p.indent)
		p.b.WriteString(c.Text)
		p.b.WriteByte('\n')
	}
}

// notes prints the comments before, then what body prints, then the comment
// behind and the line end.
func (p *printer) notes(n *Notes, body func()) {
	p.comments(n.Before)
	if n.Blank && !p.first {
		p.b.WriteByte('\n')
	}
	p.first = false
	p.line(p.indent)
	body()
	p.after(n)
}

func (p *printer) after(n *Notes) {
	if n.After != "" {
		p.b.WriteByte(' ')
		p.b.WriteString(n.After)
	}
	p.b.WriteByte('\n')
}

func (p *printer) statement(s *Statement) {
	p.b.WriteString(s.Word)
	for _, a := range s.Args {
		p.b.WriteByte(' ')
		p.b.Write(appendScalar(nil, a))
	}
	if len(s.Props) > 0 {
		p.props(s.Props)
	}
	switch {
	case s.Word == WordRoute:
		p.b.WriteByte(' ')
		p.body(len(s.Clauses), s.End, func(i int) {
			p.notes(&s.Clauses[i].Notes, func() { p.statement(s.Clauses[i]) })
		}, '{', '}')
	case s.When != nil:
		p.b.WriteByte(' ')
		p.when(s.When)
	case s.Value != nil:
		p.b.WriteByte(' ')
		p.value(s.Value)
	}
}

func (p *printer) props(props []*Field) {
	text, ok := []byte(" ("), true
	for i, f := range props {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(appendKey(text, f.Key), " = "...)
		text, ok = appendInline(text, f.Value)
		if !ok || f.commented() {
			ok = false
			break
		}
	}
	if ok && p.column()+len(text) < width {
		p.b.Write(append(text, ')'))
		return
	}
	p.b.WriteByte(' ')
	p.body(len(props), nil, func(i int) {
		f := props[i]
		p.notes(&f.Notes, func() {
			p.b.Write(append(appendKey(nil, f.Key), " = "...))
			p.value(f.Value)
		})
	}, '(', ')')
}

// body prints n things on lines of their own between open and end.
func (p *printer) body(n int, tail []Comment, thing func(i int), open, end byte) {
	p.b.WriteByte(open)
	if n > 0 || len(tail) > 0 {
		p.b.WriteByte('\n')
		p.indent++
		p.first = true
		for i := range n {
			thing(i)
		}
		p.comments(tail)
		p.first = false
		p.indent--
		p.line(p.indent)
	}
	p.b.WriteByte(end)
}

// column returns how long the current line is.
func (p *printer) column() int {
	text := p.b.Bytes()
	return utf8.RuneCount(text[bytes.LastIndexByte(text, '\n')+1:])
}

func (p *printer) value(v *Value) {
	text, ok := appendInline(nil, v)
	if ok && (v.Kind != List && v.Kind != Map || p.column()+utf8.RuneCount(text) <= width) {
		p.b.Write(text)
		return
	}
	if v.Kind == List {
		p.body(len(v.Items), v.End, func(i int) {
			p.notes(&v.Items[i].Notes, func() { p.value(v.Items[i].Value) })
		}, '[', ']')
		return
	}
	p.body(len(v.Fields), v.End, func(i int) {
		f := v.Fields[i]
		p.notes(&f.Notes, func() {
			p.b.Write(append(appendKey(nil, f.Key), ": "...))
			p.value(f.Value)
		})
	}, '{', '}')
}

// appendInline appends v in one line. It is false, and what was appended
// nothing, where v was not in one line, has comments or is far too long.
func appendInline(dst []byte, v *Value) ([]byte, bool) {
	const tooLong = 4 * width
	open, end := byte('['), byte(']')
	switch {
	case v.Kind == Map:
		open, end = '{', '}'
	case v.Kind != List:
		return appendScalar(dst, v), true
	}
	dst = append(dst, open)
	ok := (!v.Break || len(v.Items)+len(v.Fields) == 0) && len(v.End) == 0
	for i := 0; ok && i < len(v.Items); i++ {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst, ok = appendInline(dst, v.Items[i].Value)
		ok = ok && !v.Items[i].commented() && len(dst) < tooLong
	}
	for i := 0; ok && i < len(v.Fields); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := v.Fields[i]
		dst = append(appendKey(append(dst, ' '), f.Key), ": "...)
		dst, ok = appendInline(dst, f.Value)
		ok = ok && !f.commented() && len(dst) < tooLong
	}
	if len(v.Fields) > 0 {
		dst = append(dst, ' ')
	}
	return append(dst, end), ok
}

// appendKey appends a key. It needs quotes where a word would not be one.
func appendKey(dst []byte, key string) []byte {
	if bare(key) && isLetter(key[0]) {
		return append(dst, key...)
	}
	return appendQuoted(dst, key)
}

func appendScalar(dst []byte, v *Value) []byte {
	if v.Kind == String && (v.Quoted || !bare(v.Text)) {
		return appendQuoted(dst, v.Text)
	}
	return append(dst, v.Text...)
}

// appendQuoted appends s in quotes, with escapes as JSON has them.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case isControl(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// when prints a condition: in one line where it fits and has no comments, else
// with AND and OR at the beginning of lines.
func (p *printer) when(c *Cond) {
	text, ok := appendCond(nil, c, Or)
	if ok && p.column()+utf8.RuneCount(text) <= width {
		p.b.Write(text)
		return
	}
	p.indent++
	p.operands(c)
	p.indent--
}

// operands prints c, and what its operator joins on lines of their own. The
// last of these is ended by the caller.
func (p *printer) operands(c *Cond) {
	if !c.joins() {
		text, _ := appendCond(nil, c, Or)
		p.b.Write(text)
		return
	}
	for i, inner := range c.Conds {
		if i > 0 {
			p.after(&Notes{After: after(c.Conds[i-1])})
			p.comments(before(inner))
			p.line(p.indent)
			p.b.WriteString(opWords[c.Op] + " ")
		}
		p.indent++
		if inner.Op < c.Op {
			p.operands(inner)
		} else { // of a tree that was made by hand
			p.operands(&Cond{Op: inner.Op, Conds: inner.Conds, Paren: true})
		}
		p.indent--
	}
}

// joins reports whether c is AND or OR, and not in parentheses.
func (c *Cond) joins() bool { return !c.Paren && (c.Op == And || c.Op == Or) }

// after returns the comment behind the last line of c.
func after(c *Cond) string {
	if c.joins() {
		return after(c.Conds[len(c.Conds)-1])
	}
	return c.After
}

// before returns the comments before the first line of c.
func before(c *Cond) []Comment {
	if c.joins() {
		return before(c.Conds[0])
	}
	return c.Before
}

// appendCond appends c in one line, in parentheses where it binds less than
// what holds it. It is false where c has comments.
func appendCond(dst []byte, c *Cond, within Op) (_ []byte, ok bool) {
	ok = !c.commented()
	switch c.Op {
	case Test:
		return appendTest(dst, c), ok
	case Not:
		dst, inner := appendCond(append(dst, "NOT "...), c.Conds[0], Not)
		return dst, ok && inner
	}
	paren := c.Paren || c.Op > within
	if paren {
		dst = append(dst, '(')
	}
	for i, inner := range c.Conds {
		if i > 0 {
			dst = append(append(append(dst, ' '), opWords[c.Op]...), ' ')
		}
		var good bool
		dst, good = appendCond(dst, inner, c.Op-1)
		ok = ok && good
	}
	if paren {
		dst = append(dst, ')')
	}
	return dst, ok
}

func appendTest(dst []byte, c *Cond) []byte {
	dst = append(append(dst, c.Name...), '(')
	for i, a := range c.Args {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendScalar(dst, a)
	}
	return append(dst, ')')
}
