package policy

import (
	"sort"

	"sluice/probe"
)

// Where Inject puts a member, beside the indexes of Body.Objects.
const (
	// Top is the top-level object.
	Top = -1
	// Made is the sampling_params object that the plan makes for a body of
	// the generate surface whose sampling_params is absent or null. It is
	// made when something is injected into it.
	Made = -2
)

// Plan is the list of changes to one scanned body. The stages of the policy add
// operations to it one after another; the last operation on a member or on an
// injected key wins. Edits, Len, AppendTo and AppendSegments turn them into
// bytes and may be followed by more operations.
//
// A Plan is owned by its caller and used again for the next request after
// Reset; in the steady state it allocates nothing. The zero value is ready for
// Reset. It refers to the Body and to the literals it was given, never to the
// body's bytes, so those two must stay unchanged until the next Reset. Not safe
// for concurrent use.
type Plan struct {
	body *probe.Body
	// marks hold the fate of each member, the top-level ones first, then
	// Body.Inner: nil is kept, removed is removed, and anything else replaces
	// the value. Valid iff open.
	marks []*Literal
	// inserts are the injected members of all objects, linked into one chain
	// an object.
	inserts []insert
	top     chain
	made    chain
	chains  []chain // one for each of Body.Objects. Valid iff open.
	edits   []Edit  // Valid iff built.
	delta   int     // what the edits add to the length. Valid iff built.
	nextObj int     // build's cursor in Body.Objects
	open    bool    // marks and chains fit body
	inner   bool    // some operation is below the top level
	built   bool
}

// insert is one injected member. Links are 1 + the index in Plan.inserts.
type insert struct {
	lit  *Literal
	next uint32
}

type chain struct{ first, last uint32 }

// removed marks a member that is removed.
var removed = new(Literal)

// A plan that has grown past these, by one unusual body, gives its memory back.
const (
	maxKeptMarks   = 4096
	maxKeptInserts = 1024
)

// Reset binds the plan to a freshly scanned body and forgets all operations.
func (p *Plan) Reset(b *probe.Body) {
	if cap(p.marks) > maxKeptMarks || cap(p.chains) > maxKeptMarks {
		p.marks, p.chains = nil, nil
	}
	if cap(p.inserts) > maxKeptInserts || cap(p.edits) > maxKeptInserts {
		p.inserts, p.edits = nil, nil
	}
	p.body = b
	p.inserts = p.inserts[:0]
	p.top, p.made = chain{}, chain{}
	p.open, p.inner, p.built = false, false, false
}

// CopyFrom makes p a plan of its own with the operations of q over the same
// body, for changes that belong to one attempt only. It keeps p's memory.
func (p *Plan) CopyFrom(q *Plan) {
	p.Reset(q.body)
	if !q.open {
		return
	}
	p.marks = append(p.marks[:0], q.marks...)
	p.chains = append(p.chains[:0], q.chains...)
	p.inserts = append(p.inserts, q.inserts...)
	p.top, p.made = q.top, q.made
	p.open, p.inner = true, q.inner
}

// Empty reports whether the body passes as it came.
func (p *Plan) Empty() bool { return !p.open || len(p.Edits()) == 0 }

// Remove takes m, a member of the plan's body at any level, out of its object.
// What was put into m's value is lost with it.
func (p *Plan) Remove(m *probe.Member) { p.mark(p.index(m), removed) }

// Replace puts lit's value in the place of the value of m, a member of the
// plan's body at any level. The key stays as the client wrote it.
func (p *Plan) Replace(m *probe.Member, lit *Literal) { p.mark(p.index(m), lit) }

// Removed reports whether m is removed.
func (p *Plan) Removed(m *probe.Member) bool {
	return p.open && p.marks[p.index(m)] == removed
}

// Replacement returns what the value of m is replaced with, or nil.
func (p *Plan) Replacement(m *probe.Member) *Literal {
	if !p.open {
		return nil
	}
	lit := p.marks[p.index(m)]
	if lit == removed {
		return nil
	}
	return lit
}

// Inject puts lit in front of the members of obj, which is an index in
// Body.Objects, Top or Made. Injected members stand in the order in which they
// were injected. A key that was injected there before gets the new value in its
// old place. The caller has seen to it that the client's body does not hold the
// key, or has removed it.
func (p *Plan) Inject(obj int, lit *Literal) {
	p.prepare()
	p.inner = p.inner || obj >= 0
	c := p.chain(obj)
	if i := p.find(*c, lit.Field, lit.Key); i != 0 {
		p.inserts[i-1].lit = lit
		return
	}
	p.inserts = append(p.inserts, insert{lit: lit})
	i := uint32(len(p.inserts))
	if c.first == 0 {
		c.first = i
	} else {
		p.inserts[c.last-1].next = i
	}
	c.last = i
}

// Injected returns what was injected into obj under the given key, or nil.
func (p *Plan) Injected(obj int, key string) *Literal {
	return p.injected(obj, fieldOf(key), key)
}

// injected is Injected for the given field, or for the key if it has none.
func (p *Plan) injected(obj int, f probe.Field, key string) *Literal {
	if len(p.inserts) == 0 {
		return nil
	}
	i := p.find(*p.chain(obj), f, key)
	if i == 0 {
		return nil
	}
	return p.inserts[i-1].lit
}

// find returns 1 + the index of the insert in c with the given key, or 0. The
// field is the one of the key: it spares comparing the text of known keys.
func (p *Plan) find(c chain, f probe.Field, key string) uint32 {
	for i := c.first; i != 0; i = p.inserts[i-1].next {
		lit := p.inserts[i-1].lit
		if lit.Field == f && (f != probe.FieldNone || lit.Key == key) {
			return i
		}
	}
	return 0
}

// drop takes back what was injected into obj under the given key, if anything.
// See injected for f.
func (p *Plan) drop(obj int, f probe.Field, key string) {
	if len(p.inserts) == 0 {
		return
	}
	c := p.chain(obj)
	i := p.find(*c, f, key)
	if i == 0 {
		return
	}
	p.built = false
	next := p.inserts[i-1].next
	if c.first == i {
		c.first = next
		if next == 0 {
			c.last = 0
		}
		return
	}
	before := c.first
	for p.inserts[before-1].next != i {
		before = p.inserts[before-1].next
	}
	p.inserts[before-1].next = next
	if next == 0 {
		c.last = before
	}
}

func (p *Plan) chain(obj int) *chain {
	switch obj {
	case Top:
		return &p.top
	case Made:
		return &p.made
	default:
		return &p.chains[obj]
	}
}

// mark settles the fate of the member at index i of marks.
func (p *Plan) mark(i int, lit *Literal) {
	p.prepare()
	p.inner = p.inner || i >= len(p.body.Members)
	p.marks[i] = lit
}

// prepare is called by each operation. The first one sizes the tables, so that
// a body that nothing touches costs nothing.
func (p *Plan) prepare() {
	p.built = false
	if p.open {
		return
	}
	p.open = true
	n := len(p.body.Members) + len(p.body.Inner)
	if cap(p.marks) < n {
		p.marks = make([]*Literal, max(n, 64))
	}
	p.marks = p.marks[:n]
	clear(p.marks)
	if cap(p.chains) < len(p.body.Objects) {
		p.chains = make([]chain, max(len(p.body.Objects), 8))
	}
	p.chains = p.chains[:len(p.body.Objects)]
	clear(p.chains)
}

// index returns the index in marks of a member of the plan's body. No two
// members start at one offset.
func (p *Plan) index(m *probe.Member) int {
	top, inner := p.body.Members, p.body.Inner
	if i := searchMember(top, m.Key.Start); i < len(top) && top[i].Key == m.Key {
		return i
	}
	if i := searchMember(inner, m.Key.Start); i < len(inner) && inner[i].Key == m.Key {
		return len(top) + i
	}
	panic("BUG: the member is not one of the plan's body")
}

func searchMember(ms []probe.Member, start uint32) int {
	return sort.Search(len(ms), func(i int) bool { return ms[i].Key.Start >= start })
}

// marksOf returns the marks of members [first:last), or nil when no member is
// marked. See Plan.marks for the offset of inner members.
func (p *Plan) marksOf(first, last int) []*Literal {
	if !p.open {
		return nil
	}
	return p.marks[first:last]
}
