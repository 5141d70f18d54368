package policy

import (
	"math"

	"sluice/probe"
)

// Judge compares the request whose body is scanned in b, and changed by the
// operations that p holds so far, with the contract, and adds to p what the
// contract asks for. p must be Reset to b, and b a scan without a fault, for this
// surface and with at least Numbers settled. Where nothing has to change, p gets
// no operation. A nil contract and a surface that is not generative pass.
//
// The fields are members of the top level or, on the generate surface, of each
// object in sampling_params; there an absent or null sampling_params counts as
// one object without members, and an empty list holds none. Of a repeated
// member the last copy is judged, because that is what engines read, and the
// others are removed; observe changes nothing.
func (c *Contract) Judge(b *probe.Body, surface probe.Surface, p *Plan) Verdict {
	var v Verdict
	if c == nil || !surface.Generative() {
		return v
	}
	if p.body != b {
		panic("BUG: the plan is not one of this body")
	}
	if surface == probe.SurfaceGenerate {
		c.judgeSamplingParams(p, &v)
	} else {
		c.judgeObject(Top, b.Members, 0, p, &v)
	}
	if v.Refused {
		v.Injected, v.Replaced = 0, 0
	}
	return v
}

// judgeSamplingParams judges the objects in sampling_params, which stands at
// most once: the scan refuses a second one.
func (c *Contract) judgeSamplingParams(p *Plan, v *Verdict) {
	b := p.body
	m := b.Last(probe.FieldSamplingParams)
	switch {
	case p.injected(Top, probe.FieldSamplingParams, "") != nil:
		// The operator's own value was checked when the config was built.
	case m != nil && p.Replacement(m) != nil:
		// The operator's own value, as above.
	case m == nil || m.Kind == probe.KindNull || p.Removed(m):
		c.judgeObject(Made, nil, 0, p, v)
	case b.OddSampling:
		v.note(Violation{Field: probe.FieldSamplingParams, State: probe.Unusable})
		v.Refused = c.mode != modeObserve
	default:
		for i := range b.Objects {
			o := &b.Objects[i]
			c.judgeObject(i, b.Inner[o.First:o.Last], len(b.Members)+int(o.First), p, v)
		}
	}
}

// judgeObject judges the governed fields among the members ms of one object,
// whose marks in p begin at base. For obj see Plan.Inject.
func (c *Contract) judgeObject(obj int, ms []probe.Member, base int, p *Plan, v *Verdict) {
	marks := p.marksOf(base, base+len(ms))
	var at [probe.LastSampling + 1]int32 // 1 + index of the last copy, 0: absent
	for i := range ms {
		f := ms[i].Field
		if !c.fields.Has(f) || marks != nil && marks[i] == removed {
			continue
		}
		if at[f] != 0 && c.mode != modeObserve {
			p.mark(base+int(at[f])-1, removed)
		}
		at[f] = int32(i + 1)
	}
	for _, f := range c.order {
		i := int(at[f]) - 1
		state, num := probe.Absent, 0.0
		if i >= 0 {
			state, num = ms[i].State, ms[i].Num
			if marks != nil && marks[i] != nil {
				state, num = marks[i].State, marks[i].Num
			}
		} else if lit := p.injected(obj, f, ""); lit != nil {
			state, num = lit.State, lit.Num
		}
		lit := c.settle(f, state, num, v)
		switch {
		case lit == nil:
		case i >= 0:
			p.mark(base+i, lit)
		default:
			p.Inject(obj, lit)
		}
	}
}

// settle notes in v what the contract does about the value of one field, and
// returns the literal to write in its place, or nil.
func (c *Contract) settle(f probe.Field, state probe.State, num float64, v *Verdict) *Literal {
	r := &c.rules[f]
	a := r.action(c.mode, state, num)
	switch a {
	case pass:
		return nil
	case flag, refuse:
		v.note(Violation{Field: f, State: state, Num: num, Pin: r.pin, Min: r.min, Max: r.max})
		v.Refused = v.Refused || a == refuse
		return nil
	}
	if state == probe.Absent {
		v.Injected = v.Injected.With(f)
	} else {
		v.Replaced = v.Replaced.With(f)
	}
	if a == writeMax {
		return r.hi
	}
	return r.lo
}

// action is what a rule does about one value.
type action uint8

const (
	pass     action = iota
	flag            // count it and let it pass
	refuse          // count it and answer 400
	writeMin        // write rule.min, which is the number of a pin
	writeMax
)

// action returns the cell of the table of spec §3 for a value.
func (r *rule) action(m mode, state probe.State, num float64) action {
	if state == probe.Absent {
		if r.pin && m != modeObserve {
			return writeMin
		}
		return pass
	}
	if state == probe.Number && r.holds(num) {
		return pass
	}
	switch m {
	case modeAllow:
		return pass
	case modeObserve:
		return flag
	case modeReject:
		return refuse
	}
	// modeReplace
	switch {
	case r.pin:
		return writeMin
	case state == probe.Unusable || math.IsNaN(num):
		return refuse
	case num < r.min:
		return writeMin
	default:
		return writeMax
	}
}
