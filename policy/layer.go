package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"sluice/probe"
)

// LayerKind is the place of a layer in the order of winners (spec §5): force,
// what the contract and request_params write, what the client sent, extra_body,
// thinking.
type LayerKind uint8

// The kinds.
const (
	// LayerForce is the force of a decision: its members are set or replaced
	// whatever the client sent. It applies to every surface with a JSON body.
	LayerForce LayerKind = iota
	// LayerExtraBody is the extra_body of a pool: its members are added where
	// neither the client nor an earlier layer set them. It applies to the
	// surfaces that generate.
	LayerExtraBody
	// LayerThinking is one half of a pool's thinking profile. It is applied after
	// extra_body and in the same way.
	LayerThinking
)

// String returns the name of the section that states the layer.
func (k LayerKind) String() string {
	return [...]string{LayerForce: "force", LayerExtraBody: "extra_body", LayerThinking: "thinking"}[k]
}

// Pair is one member of a layer as a config states it: a key and JSON text.
type Pair struct {
	Key   string
	Value []byte
}

// maxPairs bounds the members of a layer.
const maxPairs = 32

// Layer is a list of members that a config puts on top of or below what the
// client sent, compiled. It is immutable and safe for concurrent use. A nil Layer
// is empty.
//
// A member is a whole: a client that sends chat_template_kwargs has sent all of
// it, and nothing is merged into it. What is one thing under several names (see
// Params) counts as one: a forced max_tokens takes the place of
// max_completion_tokens, too, and one from extra_body is not added beside it. An
// output limit is written under the surface's own spelling where the surface does
// not have the one of the config.
//
// On generate, what SGLang has in sampling_params (the governed fields, the output
// limit, stop, seeds, grammars) goes into each of its objects, one of which is
// made if there is none; anything else goes to the top level.
type Layer struct {
	kind  LayerKind
	items []layerItem
}

// layerItem is one member of a layer.
type layerItem struct {
	// lits holds the member under the spelling of each surface; that of
	// SurfaceNone is the one of the config, for all surfaces that generate
	// nothing.
	lits [probe.SurfaceGenerate + 1]*Literal
	// fields are those that are the same thing, or else other is the other key
	// that is, empty for none.
	fields probe.FieldSet
	other  string
	inner  bool   // on generate it belongs into sampling_params
	on     uint32 // the surfaces that it is for, a bit each
}

// everywhere is a layerItem.on for all surfaces.
const everywhere = math.MaxUint32

// LayerSpec is a layer as a config states it.
type LayerSpec struct {
	Kind    LayerKind
	Members []Pair
}

// NewLayer compiles spec. An error joins one *SpecError for each fault, with the
// key as its path. See also Contract.CheckLayer.
func NewLayer(spec LayerSpec) (*Layer, error) {
	var faults faults
	l := &Layer{kind: spec.Kind}
	if len(spec.Members) > maxPairs {
		faults.add("", len(spec.Members), "are too many members; expected at most %d", maxPairs)
	}
	seen := map[string]bool{}
	for _, pair := range spec.Members {
		switch reason := protected[pair.Key]; {
		case reason != "":
			faults = append(faults, &SpecError{pair.Key, strconv.Quote(pair.Key), fmt.Sprintf("cannot be in %s: %s", spec.Kind, reason)})
			continue
		case pair.Key == "":
			faults.add(pair.Key, pair.Key, "is empty; expected the name of a member")
			continue
		case seen[pair.Key]:
			faults.add(pair.Key, pair.Key, "is given more than once")
			continue
		}
		seen[pair.Key] = true
		item, err := newLayerItem(pair, everywhere)
		if err != nil {
			faults = append(faults, &SpecError{pair.Key, clipped(string(pair.Value)), err.Error()})
			continue
		}
		l.items = append(l.items, item)
	}
	return l, errors.Join(faults...)
}

// protected are the keys that no layer may hold, and why.
var protected = map[string]string{
	"model":           "it says where the request goes; use aliases of a pool or the model of a decision",
	"messages":        "it is what the client asks",
	"prompt":          "it is what the client asks",
	"input":           "it is what the client asks",
	"stream":          "it is the form in which the client reads the answer",
	"stream_options":  "it is the form in which the client reads the answer",
	"sampling_params": "name its members instead: on /generate they go into each object of it",
}

func newLayerItem(pair Pair, on uint32) (layerItem, error) {
	it := layerItem{inner: samplingKeys.find([]byte(pair.Key)) >= 0, on: on}
	lit, err := NewLiteral(pair.Key, pair.Value)
	if err != nil {
		return it, errors.New("is not JSON")
	}
	if err := finite(lit.value); err != nil {
		return it, err
	}
	f := lit.Field
	switch {
	case outputFields.Has(f):
		it.fields, it.inner = outputFields, true
	case answerFields.Has(f):
		it.fields, it.inner = answerFields, true
	case f != probe.FieldNone:
		it.fields = it.fields.With(f)
	case pair.Key == "response_format":
		it.other = "output_format"
	case pair.Key == "output_format":
		it.other = "response_format"
	}
	for s := range it.lits {
		it.lits[s] = lit
		own := outputField[s]
		if !outputFields.Has(f) || own == probe.FieldNone || f == own || s == int(probe.SurfaceChat) && f == probe.FieldMaxCompletionTokens {
			continue
		}
		if it.lits[s], err = NewLiteral(own.String(), pair.Value); err != nil {
			return it, err
		}
	}
	return it, nil
}

// finite checks that all numbers in value fit a float64.
func finite(value []byte) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return errors.New("is not JSON")
		}
		if n, ok := tok.(json.Number); ok {
			if _, err := n.Float64(); err != nil {
				return fmt.Errorf("holds a number that is not finite: %.40s", n)
			}
		}
	}
}

// Effective reports whether the layer says anything on a surface.
func (l *Layer) Effective(s probe.Surface) bool {
	if l == nil || l.kind != LayerForce && !s.Generative() {
		return false
	}
	for i := range l.items {
		if l.items[i].on>>s&1 != 0 {
			return true
		}
	}
	return false
}

// Apply adds the layer to p, a plan over the request src that is scanned in b
// without a fault, and returns how many members it wrote. The layers are applied
// from the strongest to the weakest, after request_params and the contract: force
// wins over what p holds, the others only fill in.
//
// A key that the client sent and policy removed counts as sent; a null does not,
// and is replaced in place. Other copies of a key that is written go. The objects
// of a sampling_params that is none (probe.Body.OddSampling) are left alone.
func (l *Layer) Apply(src []byte, b *probe.Body, s probe.Surface, p *Plan) int {
	if l == nil || l.kind != LayerForce && !s.Generative() {
		return 0
	}
	if p.body != b {
		panic("BUG: the plan is not one of this body")
	}
	a := layering{src: src, plan: p, force: l.kind == LayerForce}
	spelling := probe.SurfaceNone
	if s.Generative() {
		spelling = s
	}
	for i := range l.items {
		it := &l.items[i]
		switch lit := it.lits[spelling]; {
		case it.on>>s&1 == 0:
		case s == probe.SurfaceGenerate && it.inner:
			a.samplingParams(it, lit)
		default:
			a.object(Top, b.Members, 0, it, lit)
		}
	}
	return a.written
}

// layering is the state of one Apply.
type layering struct {
	src     []byte
	plan    *Plan
	force   bool
	written int
}

// samplingParams applies one member to the objects in sampling_params.
func (a *layering) samplingParams(it *layerItem, lit *Literal) {
	b, p := a.plan.body, a.plan
	m := b.Last(probe.FieldSamplingParams)
	switch {
	case m == nil || m.Kind == probe.KindNull || p.Removed(m):
		a.object(Made, nil, 0, it, lit)
	case b.OddSampling || p.Replacement(m) != nil:
	default:
		for i := range b.Objects {
			o := &b.Objects[i]
			a.object(i, b.Inner[o.First:o.Last], len(b.Members)+int(o.First), it, lit)
		}
	}
}

// object applies one member to one object: see Plan.Inject for obj, and
// Plan.marks for base.
func (a *layering) object(obj int, ms []probe.Member, base int, it *layerItem, lit *Literal) {
	marks := a.plan.marksOf(base, base+len(ms))
	last := -1 // the last copy under the spelling that is written
	for i := range ms {
		m := &ms[i]
		if !it.names(a.src, m) {
			continue
		}
		same := lit.spelled(a.src, m)
		if !a.force && (marks != nil && marks[i] != nil && marks[i] != removed || !same && m.Kind != probe.KindNull) {
			return // set by an earlier stage, or sent under another name
		}
		if same {
			last = i
		}
	}
	if !a.force && (last >= 0 && ms[last].Kind != probe.KindNull || a.injected(obj, it, lit)) {
		return
	}
	a.written++
	if a.force {
		a.dropOthers(obj, it, lit)
	}
	inject := last < 0 || a.plan.injected(obj, lit.Field, lit.Key) != nil
	for i := range ms {
		switch {
		case i == last && !inject:
			a.plan.mark(base+i, lit)
		case a.force && it.names(a.src, &ms[i]), !a.force && i < last && lit.spelled(a.src, &ms[i]):
			a.plan.mark(base+i, removed)
		}
	}
	if inject {
		a.plan.Inject(obj, lit)
	}
}

// names reports whether m is the member or another name of it.
func (it *layerItem) names(src []byte, m *probe.Member) bool {
	if m.Field != probe.FieldNone || it.fields != 0 {
		return it.fields.Has(m.Field)
	}
	return equalKey(src, m, it.lits[probe.SurfaceNone].Key) || it.other != "" && equalKey(src, m, it.other)
}

// spelled reports whether the key of m is that of l.
func (l *Literal) spelled(src []byte, m *probe.Member) bool {
	return m.Field == l.Field && (m.Field != probe.FieldNone || equalKey(src, m, l.Key))
}

// equalKey reports whether the key of m reads as name.
func equalKey(src []byte, m *probe.Member, name string) bool {
	raw := m.Key.Of(src)
	if !m.Escaped { // Fast path
		return string(raw[1:len(raw)-1]) == name
	}
	return probe.EqualKey(raw, name)
}

// injected reports whether an earlier stage has put the member into obj under any
// of its names.
func (a *layering) injected(obj int, it *layerItem, lit *Literal) bool {
	p := a.plan
	if len(p.inserts) == 0 {
		return false
	}
	if it.fields == 0 {
		return p.injected(obj, probe.FieldNone, lit.Key) != nil || it.other != "" && p.injected(obj, probe.FieldNone, it.other) != nil
	}
	for f := probe.FieldNone + 1; f < probe.NumFields; f++ {
		if it.fields.Has(f) && p.injected(obj, f, "") != nil {
			return true
		}
	}
	return false
}

// dropOthers takes back what an earlier stage has put into obj under another name
// of the member.
func (a *layering) dropOthers(obj int, it *layerItem, lit *Literal) {
	if it.other != "" {
		a.plan.drop(obj, probe.FieldNone, it.other)
	}
	for f := probe.FieldNone + 1; f < probe.NumFields; f++ {
		if it.fields.Has(f) && f != lit.Field {
			a.plan.drop(obj, f, "")
		}
	}
}

// CheckLayer returns nil if c lets every member of l pass, and otherwise joins one
// *SpecError for each that it refuses, with the key as its path. A contract that
// is not enforced refuses nothing.
func (c *Contract) CheckLayer(l *Layer) error {
	if l == nil {
		return nil
	}
	var all []error
	for i := range l.items {
		if err := c.CheckLiteral(l.items[i].lits[probe.SurfaceNone]); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// CheckLiteral is CheckLayer for one member. A null breaks a pin: it would take
// the pin's number away.
func (c *Contract) CheckLiteral(lit *Literal) error {
	if c == nil || !c.enforces() || !c.fields.Has(lit.Field) {
		return nil
	}
	r := &c.rules[lit.Field]
	if lit.State == probe.Absent && !r.pin || lit.State == probe.Number && r.holds(lit.Num) {
		return nil
	}
	n := Violation{Field: lit.Field, State: lit.State, Num: lit.Num, Pin: r.pin, Min: r.min, Max: r.max}
	return &SpecError{lit.Key, clipped(string(lit.value)), "violates the sampling contract: " + string(n.appendDetail(nil))}
}
