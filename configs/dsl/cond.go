package dsl

import (
	"slices"
	"strings"
)

// The words between conditions, by Op.
var opWords = [...]string{Not: "NOT", And: "AND", Or: "OR"}

// isOp reports whether tok is the word of op.
func (p *parser) isOp(op Op) bool { return p.tok.kind == tokWord && p.tok.text == opWords[op] }

// cond reads a condition that binds as op does, or more: OR joins conditions of
// AND, and AND those of NOT.
func (p *parser) cond(op Op) (*Cond, bool) {
	if op == Not {
		return p.not()
	}
	first, ok := p.cond(op - 1)
	if word := p.tok.text; ok && p.tok.kind == tokWord && (word == "and" || word == "or") {
		return nil, p.fail(p.tok.pos, "write "+strings.ToUpper(word)+" in capitals")
	}
	if !ok || !p.isOp(op) {
		return first, ok
	}
	all := &Cond{Pos: first.Pos, Op: op, Conds: []*Cond{first}}
	for p.isOp(op) {
		p.advance()
		next, ok := p.cond(op - 1)
		if !ok {
			return nil, false
		}
		all.Conds = append(all.Conds, next)
	}
	return all, true
}

func (p *parser) not() (*Cond, bool) {
	if !p.deeper(p.tok.pos) {
		return nil, false
	}
	defer p.shallower()
	notes, at := p.begin(), p.tok.pos
	var c *Cond
	ok := false
	switch {
	case p.isOp(Not):
		p.advance()
		var inner *Cond
		if inner, ok = p.not(); ok {
			notes.take(inner)
			c = &Cond{Op: Not, Conds: []*Cond{inner}}
		}
	case p.tok.is("("):
		if c, ok = p.paren(); ok {
			notes.take(c)
			if notes.After != "" { // of what is inside, not of the parenthesis
				notes.Before, notes.After = append(notes.Before, Comment{Text: notes.After}), ""
			}
		}
	case p.tok.kind == tokWord:
		c, ok = p.test()
	default:
		p.unexpected("a condition such as model(\"…\")")
	}
	if !ok {
		return nil, false
	}
	c.Pos, c.Notes = at, notes
	p.end(&c.Notes)
	return c, true
}

// take moves the comments of c and everything in it to n: a condition inside of
// another is printed on the line of that.
func (n *Notes) take(c *Cond) {
	n.Before = append(n.Before, c.Before...)
	for _, inner := range c.Conds {
		n.take(inner)
	}
	switch {
	case c.After == "":
	case n.After == "":
		n.After = c.After
	default:
		n.Before = append(n.Before, Comment{Text: c.After})
	}
	c.Notes = Notes{}
}

// takeBefore moves away the comments before the first line of c.
func (c *Cond) takeBefore() []Comment {
	before := c.Before
	c.Before = nil
	if c.joins() {
		before = append(before, c.Conds[0].takeBefore()...)
	}
	return before
}

// takeAfter moves away the comment behind the last line of c.
func (c *Cond) takeAfter() string {
	after := c.After
	c.After = ""
	if c.joins() {
		after = c.Conds[len(c.Conds)-1].takeAfter()
	}
	return after
}

func (p *parser) paren() (*Cond, bool) {
	open := p.tok.pos
	p.advance()
	c, ok := p.cond(Or)
	switch {
	case !ok:
		return nil, false
	case p.take(")"):
		c.Paren = c.Op == And || c.Op == Or
		return c, true
	case p.outside(), p.tok.is("}"), p.isWord(p.words.clauses()):
		return nil, p.fail(open, `the "(" is never closed`)
	}
	return nil, p.unexpected("AND, OR or )")
}

// test reads name(args).
func (p *parser) test() (*Cond, bool) {
	c := &Cond{Op: Test, Name: p.tok.text}
	at := p.tok.pos
	if slices.Contains(opWords[:], strings.ToUpper(c.Name)) || p.isWord(p.words.clauses()) {
		return nil, p.unexpected("a condition such as model(\"…\")")
	}
	p.advance()
	if !p.take("(") {
		return nil, p.unexpected(`"(" behind ` + shown(c.Name))
	}
	for !p.tok.is(")") {
		if p.outside() {
			return nil, p.fail(at, `the "(" of `+c.Name+" is never closed")
		}
		if p.tok.kind == tokPunct {
			return nil, p.unexpected(`a value or ")"`)
		}
		c.Args = append(c.Args, p.scalar())
		if !p.take(",") {
			p.take(":") // exact: "…" as exact "…"
		}
	}
	p.advance()
	return c, true
}
