package policy

import (
	"strconv"

	"sluice/probe"
)

// Judge holds the request src, which is scanned in b and changed by the
// operations that p holds so far, to the plugin, and adds to p what it asks for,
// in the order block, default, cap of the output, cap of the answers, strip. p
// must be Reset to b, and b a scan of src for this surface without a fault; no
// numbers need be settled. It runs before Contract.Judge, which judges the
// request as it leaves it. A nil Params and a surface that is not generative
// pass. Nothing of src is kept.
//
// Numbers are what engines read, see probe.ReadWhole. A number above its cap is
// lowered to it, in place and under the client's spelling; one that is beyond any
// integer is above any cap. What is not a whole number of at least 1 is refused:
// it is never passed on without a cap. Of a repeated member the last copy is
// judged, because that is what engines read, and the others are removed; copies
// of a blocked or unknown one all go. (The scan refuses two copies of n, of an
// output limit, or of sampling_params.)
func (ps *Params) Judge(src []byte, b *probe.Body, s probe.Surface, e Engine, p *Plan) ParamsVerdict {
	if ps == nil || !s.Generative() {
		return ParamsVerdict{}
	}
	if p.body != b {
		panic("BUG: the plan is not one of this body")
	}
	j := paramsJudge{Params: ps, src: src, plan: p}
	if ps.strip {
		j.top = &knownOf[s][e]
	}
	j.object(b.Members, 0, b.Repeated, j.top)
	if s == probe.SurfaceGenerate {
		j.samplingParams()
	}
	if ps.auto || ps.defaults[s] != nil {
		j.giveLimit(s, ps.defaults[s])
	}
	if j.v.Violated != 0 {
		j.v = ParamsVerdict{Refused: !ps.observe, First: j.v.First, Violated: j.v.Violated}
	}
	return j.v
}

// paramsJudge is the state of one Judge.
type paramsJudge struct {
	*Params
	src  []byte
	plan *Plan
	top  *knownKeys // the known members of the top level, nil: nothing is stripped
	v    ParamsVerdict
	// last are the indexes of the last copies of repeated fields, see findLast.
	last [probe.NumFields]int32
}

// samplingParams judges the objects in sampling_params, which stands at most
// once: the scan refuses a second one.
func (j *paramsJudge) samplingParams() {
	b, p := j.plan.body, j.plan
	m := b.Last(probe.FieldSamplingParams)
	if m == nil || j.blockedField[probe.FieldSamplingParams] != 0 || p.Removed(m) || p.Replacement(m) != nil {
		return
	}
	if b.OddSampling {
		if j.below() {
			j.v.note(ParamViolation{Field: probe.FieldSamplingParams, Kind: m.Kind, State: probe.Unusable})
		}
		return
	}
	for i := range b.Objects {
		o := &b.Objects[i]
		j.object(b.Inner[o.First:o.Last], len(b.Members)+int(o.First), o.Repeated, nil)
	}
}

// below reports whether something is asked of the objects in sampling_params.
func (j *paramsJudge) below() bool {
	return j.capped != 0 || len(j.blocked) > 0 || j.auto || j.defaults[probe.SurfaceGenerate] != nil
}

// object judges the members ms of one object, whose marks begin at base, but for
// the default. repeated are the fields that stand more than once in it, known the
// members that are not stripped, nil: all.
func (j *paramsJudge) object(ms []probe.Member, base int, repeated probe.FieldSet, known *knownKeys) {
	idle := ^(j.blockedFields | j.capped)
	if known != nil {
		idle &= known.fields | j.known
	}
	if known != nil || len(j.keyBlock) > 0 {
		idle &^= 1 << probe.FieldNone
	}
	marks := j.plan.marksOf(base, base+len(ms))
	repeated &= j.capped
	if repeated != 0 {
		j.findLast(ms, marks, repeated)
	}
	for i := range ms {
		f := ms[i].Field
		if idle>>(f&63)&1 != 0 || marks != nil && marks[i] == removed {
			continue // Fast path
		}
		if f == probe.FieldNone && known == nil && !ms[i].Escaped && !j.keys.hasLength(ms[i].Key.Len()-2) {
			continue // Fast path: no key of the config
		}
		block, isKnown := int(j.blockedField[f])-1, known == nil || (known.fields|j.known)>>(f&63)&1 != 0
		if f == probe.FieldNone {
			block, isKnown = j.look(&ms[i], known)
		}
		switch {
		case block >= 0:
			j.v.Blocked |= 1 << (uint(block) & 63)
			j.remove(base + i)
			continue
		case !j.capped.Has(f):
		case repeated.Has(f) && int(j.last[f]) != i:
			j.remove(base + i)
			continue
		case marks != nil && marks[i] != nil:
			val := marks[i].value
			j.hold(f, val, kindOf(val), base+i)
		default:
			j.hold(f, ms[i].Val.Of(j.src), ms[i].Kind, base+i)
		}
		if !isKnown {
			j.v.Stripped++
			j.remove(base + i)
		}
	}
}

// look returns the index of what blocks m, a member without a field, or -1, and
// whether m is not stripped.
func (j *paramsJudge) look(m *probe.Member, known *knownKeys) (block int, isKnown bool) {
	if len(j.keyBlock) > 0 {
		if k := j.keys.findMember(j.src, m); k >= 0 {
			return int(j.keyBlock[k]), true
		}
	}
	return -1, known == nil || known.keys.findMember(j.src, m) >= 0
}

// findLast finds the last copies of fields among the members ms that are kept.
func (j *paramsJudge) findLast(ms []probe.Member, marks []*Literal, fields probe.FieldSet) {
	for i := range ms {
		if f := ms[i].Field; fields.Has(f) && (marks == nil || marks[i] != removed) {
			j.last[f] = int32(i)
		}
	}
}

// hold holds the number in a value of f to its cap. at is the index of its mark.
func (j *paramsJudge) hold(f probe.Field, val []byte, kind probe.Kind, at int) {
	if kind == probe.KindNull {
		return
	}
	bound := j.caps[f]
	n, ok := plainWhole(val)
	if !ok {
		n, ok, _ = probe.ReadWhole(val, kind)
	}
	switch {
	case !ok || n < 1:
		num, state := probe.ReadNumber(val, kind)
		j.v.note(ParamViolation{Field: f, Kind: kind, State: state, Num: num, Cap: bound})
	case n > bound:
		j.v.Capped = j.v.Capped.With(f)
		if !j.observe {
			j.plan.mark(at, j.capLits[f])
		}
	}
}

// plainWhole reads a whole number of a few digits, as most limits are, and
// reports false for any other value.
func plainWhole(val []byte) (n int64, ok bool) {
	if len(val) > 9 {
		return 0, false
	}
	for _, c := range val {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func (j *paramsJudge) remove(at int) {
	if !j.observe {
		j.plan.mark(at, removed)
	}
}

// giveLimit puts lit into each object that gives no output limit. With a nil lit
// it looks for such an object alone, for default_max_tokens auto.
func (j *paramsJudge) giveLimit(s probe.Surface, lit *Literal) {
	b, p := j.plan.body, j.plan
	if s != probe.SurfaceGenerate {
		j.giveObject(Top, b.Members, 0, s, lit)
		return
	}
	m := b.Last(probe.FieldSamplingParams)
	switch {
	case p.injected(Top, probe.FieldSamplingParams, "") != nil:
	case m == nil || m.Kind == probe.KindNull || p.Removed(m) || j.blockedField[probe.FieldSamplingParams] != 0:
		j.giveObject(Made, nil, 0, s, lit)
	case b.OddSampling || p.Replacement(m) != nil:
	default:
		for i := range b.Objects {
			o := &b.Objects[i]
			j.giveObject(i, b.Inner[o.First:o.Last], len(b.Members)+int(o.First), s, lit)
		}
	}
}

// giveObject is giveLimit for one object: see Plan.Inject for obj, and
// Plan.marks for base. A null under the surface's own spelling is replaced in
// place.
func (j *paramsJudge) giveObject(obj int, ms []probe.Member, base int, s probe.Surface, lit *Literal) {
	marks := j.plan.marksOf(base, base+len(ms))
	null := -1
	for i := range ms {
		f := ms[i].Field
		if !outputFields.Has(f) || j.blockedField[f] != 0 || marks != nil && marks[i] == removed {
			continue
		}
		if obj == Top && j.top != nil && !(j.top.fields | j.known).Has(f) {
			continue // stripped
		}
		if ms[i].Kind != probe.KindNull || marks != nil && marks[i] != nil {
			return
		}
		if f == outputField[s] {
			null = i
		}
	}
	for f := probe.FieldMaxTokens; f <= probe.FieldMaxNewTokens; f++ {
		if j.plan.injected(obj, f, "") != nil {
			return
		}
	}
	if lit == nil {
		j.v.WantsLimit = true
		return
	}
	j.v.Defaulted = j.v.Defaulted.With(lit.Field)
	switch {
	case j.observe:
	case null >= 0:
		j.plan.mark(base+null, lit)
	default:
		j.plan.Inject(obj, lit)
	}
}

// AutoLimit is room for the output limit of one request. It is owned by the
// caller and must stay unchanged until the plan that it was given to is Reset.
type AutoLimit struct {
	lit  Literal
	text [64]byte
}

// GiveLimit adds the output limit that was counted for a request whose verdict
// WantsLimit: tokens, which is at least 1, or the cap where that is less. It goes
// where a default would, and not where the plan holds a limit already. room holds
// its text. It reports whether a limit was added; under on_violation observe none
// is.
func (ps *Params) GiveLimit(tokens int, b *probe.Body, s probe.Surface, e Engine, p *Plan, room *AutoLimit) bool {
	if ps == nil || !ps.auto || ps.observe || !s.Generative() || tokens < 1 {
		return false
	}
	n := int64(tokens)
	if ps.limit > 0 {
		n = min(n, ps.limit)
	}
	room.set(outputField[s], n)
	j := paramsJudge{Params: ps, plan: p}
	if ps.strip {
		j.top = &knownOf[s][e]
	}
	if p.body != b {
		panic("BUG: the plan is not one of this body")
	}
	j.giveLimit(s, &room.lit)
	return j.v.Defaulted != 0
}

// set makes r the literal of an output limit.
func (r *AutoLimit) set(f probe.Field, n int64) {
	key := f.String()
	text := append(r.text[:0], '"')
	text = append(text, key...)
	text = append(text, '"', ':')
	start := len(text)
	text = strconv.AppendInt(text, n, 10)
	end := len(text)
	text = append(text, ',')
	r.lit = Literal{Key: key, Field: f, State: probe.Number, Num: float64(n), member: text, value: text[start:end:end]}
}
