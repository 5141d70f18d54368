package policy

import (
	"fmt"

	"sluice/probe"
)

// Change is one operation of a plan, for an operator who asks what becomes of a
// request. It refers to nothing of the request.
type Change struct {
	// Op is remove, replace or inject.
	Op string
	// Param is the key of the member, un-escaped, with sampling_params. or
	// sampling_params[i]. before it where it belongs to one of those objects.
	Param string
	// At is the offset in the client's body: of the member, or of the place at
	// which it is injected.
	At int
	// Before is the JSON text that the client sent, whole; After what is sent in
	// its place. Empty stands for none.
	Before, After string
}

// Changes returns the operations that the plan holds so far, in body order:
// members that come as the client sent them are not among them, nor is what lies
// within a member that is removed or replaced.
func (p *Plan) Changes(body []byte) []Change {
	if !p.open {
		return nil
	}
	c := changes{plan: p, body: body}
	c.inserts(p.top, int(p.body.Span.Start)+1, "")
	madeAt := int(p.body.Span.Start) + 1
	if i := lastKept(p.body.Members, p.marks[:len(p.body.Members)], probe.FieldSamplingParams); i >= 0 {
		madeAt = int(p.body.Members[i].Val.Start)
	}
	if p.injected(Top, probe.FieldSamplingParams, "") == nil {
		c.inserts(p.made, madeAt, "sampling_params.")
	}
	obj := 0
	for i := range p.body.Members {
		m := &p.body.Members[i]
		c.member(m, p.marks[i], "")
		for ; obj < len(p.body.Objects) && p.body.Objects[obj].Span.Start < m.Val.End; obj++ {
			if p.marks[i] == nil {
				c.object(obj, m)
			}
		}
	}
	return c.list
}

type changes struct {
	plan *Plan
	body []byte
	list []Change
}

// object adds what becomes of the object at index i of Body.Objects, which lies
// in the value of m.
func (c *changes) object(i int, m *probe.Member) {
	p, o := c.plan, &c.plan.body.Objects[i]
	prefix := m.Field.String() + "."
	if m.Kind == probe.KindArray {
		n := 0
		for j := range i {
			if p.body.Objects[j].Of == o.Of {
				n++
			}
		}
		prefix = fmt.Sprintf("%s[%d].", m.Field, n)
	}
	c.inserts(p.chains[i], int(o.Span.Start)+1, prefix)
	for k := o.First; k < o.Last; k++ {
		c.member(&p.body.Inner[k], p.marks[len(p.body.Members)+int(k)], prefix)
	}
}

func (c *changes) inserts(ch chain, at int, prefix string) {
	for i := ch.first; i != 0; i = c.plan.inserts[i-1].next {
		lit := c.plan.inserts[i-1].lit
		c.list = append(c.list, Change{Op: "inject", Param: prefix + lit.Key, At: at, After: string(lit.value)})
	}
}

func (c *changes) member(m *probe.Member, mark *Literal, prefix string) {
	if mark == nil {
		return
	}
	change := Change{
		Op:     "replace",
		Param:  prefix + string(probe.AppendUnquoted(nil, m.Key.Of(c.body))),
		At:     int(m.Key.Start),
		Before: string(m.Val.Of(c.body)),
		After:  string(mark.value),
	}
	if mark == removed {
		change.Op, change.After = "remove", ""
	}
	c.list = append(c.list, change)
}
