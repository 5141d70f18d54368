package policy

import "sluice/probe"

// Edit puts Lit in the place of body[Start:End]. Lit belongs to the config.
type Edit struct {
	Start, End uint32
	Lit        []byte
}

// Edits returns the edits that the operations so far come to: in body order,
// not overlapping; edits at one offset apply in their order. They are valid
// until the next operation or Reset.
func (p *Plan) Edits() []Edit {
	if !p.built {
		p.build()
	}
	return p.edits
}

// Len returns the length of body after the edits.
func (p *Plan) Len(body []byte) int {
	p.Edits()
	return len(body) + p.delta
}

// AppendTo appends the edited body to dst.
func (p *Plan) AppendTo(dst, body []byte) []byte {
	at := uint32(0)
	for i := range p.Edits() {
		e := &p.edits[i]
		dst = append(dst, body[at:e.Start]...)
		dst = append(dst, e.Lit...)
		at = e.End
	}
	return append(dst, body[at:]...)
}

// AppendSegments appends the edited body to dst as slices of body and of the
// config's literals, in order and never joined; none is empty. They are valid as
// long as body is.
func (p *Plan) AppendSegments(dst [][]byte, body []byte) [][]byte {
	at := uint32(0)
	for i := range p.Edits() {
		e := &p.edits[i]
		if e.Start > at {
			dst = append(dst, body[at:e.Start])
		}
		if len(e.Lit) > 0 {
			dst = append(dst, e.Lit)
		}
		at = e.End
	}
	if int(at) < len(body) {
		dst = append(dst, body[at:])
	}
	return dst
}

// build turns the operations into edits.
func (p *Plan) build() {
	p.built = true
	p.edits, p.delta, p.nextObj = p.edits[:0], 0, 0
	if !p.open {
		return
	}
	top := p.body.Members
	marks := p.marks[:len(top)]
	makeNew, makeAt := false, -1
	if p.made.first != 0 && p.injected(Top, probe.FieldSamplingParams, "") == nil {
		makeAt = lastKept(top, marks, probe.FieldSamplingParams)
		makeNew = makeAt < 0
	}
	at := p.body.Span.Start + 1
	more := anyKept(marks)
	p.putInserts(at, p.top, more || makeNew)
	if makeNew {
		p.put(at, at, madeKey)
		p.putMade(at, at)
		if more {
			p.put(at, at, comma)
		}
	}
	p.putMembers(top, marks, makeAt, true)
}

// putMembers emits the edits of the members of one object, in order. Removed
// members go with the comma behind them, or, at the end of the object, with the
// comma before them; the white space of what is kept stays.
func (p *Plan) putMembers(ms []probe.Member, marks []*Literal, makeAt int, top bool) {
	cut := -1 // the first of the run of removed members before i
	for i := range ms {
		m, lit := &ms[i], marks[i]
		if lit == removed {
			if cut < 0 {
				cut = i
			}
			continue
		}
		if cut >= 0 {
			p.put(ms[cut].Key.Start, m.Key.Start, nil)
			cut = -1
		}
		switch {
		case lit != nil:
			p.put(m.Val.Start, m.Val.End, lit.value)
		case i == makeAt:
			p.putMade(m.Val.Start, m.Val.End)
		case top && p.inner:
			p.putObjects(m)
		}
	}
	if cut < 0 {
		return
	}
	start := ms[cut].Key.Start
	if cut > 0 {
		start = ms[cut-1].Val.End
	}
	p.put(start, ms[len(ms)-1].Val.End, nil)
}

// putObjects emits the edits of the objects in the value of m, a kept member of
// the top level. Objects of members that are not kept are passed over.
func (p *Plan) putObjects(m *probe.Member) {
	objects := p.body.Objects
	for ; p.nextObj < len(objects) && objects[p.nextObj].Span.Start < m.Val.End; p.nextObj++ {
		o := &objects[p.nextObj]
		if o.Span.Start < m.Val.Start {
			continue
		}
		base := uint32(len(p.body.Members))
		marks := p.marks[base+o.First : base+o.Last]
		p.putInserts(o.Span.Start+1, p.chains[p.nextObj], anyKept(marks))
		p.putMembers(p.body.Inner[o.First:o.Last], marks, -1, false)
	}
}

// putInserts emits the injected members of one object. A comma follows the last
// one if there are more members.
func (p *Plan) putInserts(at uint32, c chain, more bool) {
	for i := c.first; i != 0; {
		in := &p.inserts[i-1]
		text := in.lit.member
		i = in.next
		if i == 0 && !more {
			text = text[:len(text)-1]
		}
		p.put(at, at, text)
	}
}

// putMade emits the made object in the place of body[start:end].
func (p *Plan) putMade(start, end uint32) {
	p.put(start, end, openBrace)
	p.putInserts(end, p.made, false)
	p.put(end, end, closeBrace)
}

func (p *Plan) put(start, end uint32, lit []byte) {
	p.edits = append(p.edits, Edit{Start: start, End: end, Lit: lit})
	p.delta += len(lit) - int(end-start)
}

func anyKept(marks []*Literal) bool {
	for _, lit := range marks {
		if lit != removed {
			return true
		}
	}
	return false
}

// lastKept returns the index of the last member of field f that is not removed,
// or -1.
func lastKept(ms []probe.Member, marks []*Literal, f probe.Field) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Field == f && marks[i] != removed {
			return i
		}
	}
	return -1
}

// Literals of the plan itself. Never written to.
var (
	comma      = []byte(",")
	openBrace  = []byte("{")
	closeBrace = []byte("}")
	madeKey    = []byte(`"sampling_params":`)
)
