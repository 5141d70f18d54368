package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sluice/probe"
)

// Matcher finds the decision that takes a request. It is compiled once, from the
// decisions of a config, is immutable, and safe for concurrent use. A nil Matcher
// has no decisions.
//
// It looks at candidates, not at all decisions: each decision is filed under
// the surfaces that it can hold for and, below that, under the models or else
// the tenants that it asks for. What stands under an OR counts if each branch
// asks for one; what stands under a NOT does not count. So 1,000 decisions for
// 1,000 models cost as much as one, and 1,000 decisions that ask for neither are
// evaluated one by one.
type Matcher struct {
	decisions []decision // by rank, the one to ask first at 0
	surfaces  [probe.NumSurfaces]files
}

// decision is a compiled decision.
type decision struct {
	spec int // its index among the specs
	rule condition
	all  bool // there is no rule
}

// files are the ranks of the decisions that can hold for one surface, in
// ascending order. Each is in one place: under each of its models, or under
// each of its tenants, or among the others.
type files struct {
	models, tenants map[string][]int32
	others          []int32
}

// NewMatcher compiles specs. An error joins one *SpecError for each fault, whose
// path is that of a key below routing: decisions[2].rules.conditions[0].regex.
// The specs are not kept.
func NewMatcher(specs []DecisionSpec) (*Matcher, error) {
	m := &Matcher{decisions: make([]decision, 0, len(specs))}
	var faults faults
	names := make(map[string]int, len(specs))
	for i := range specs {
		spec, path := &specs[i], fmt.Sprintf("decisions[%d]", i)
		if first, ok := names[spec.Name]; ok {
			faults.add(path+".name", spec.Name, "is the name of decisions[%d], too; expected one of its own", first)
		} else {
			names[spec.Name] = i
		}
		if spec.Name == "" {
			faults.add(path+".name", spec.Name, "is empty; expected a name")
		}
		d := decision{spec: i, all: spec.Rules == nil}
		if spec.Rules != nil {
			d.rule = faults.condition(path+".rules", spec.Rules, 1)
		}
		m.decisions = append(m.decisions, d)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	slices.SortFunc(m.decisions, func(a, b decision) int {
		x, y := &specs[a.spec], &specs[b.spec]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Name, y.Name))
	})
	for rank := range m.decisions {
		m.file(int32(rank))
	}
	return m, nil
}

// file puts a decision where Match finds it.
func (m *Matcher) file(rank int32) {
	d := &m.decisions[rank]
	surfaces, models, tenants := allSurfaces, demand{any: true}, demand{any: true}
	if !d.all {
		surfaces, models, tenants = d.rule.surfaces(), d.rule.demand(kindModel), d.rule.demand(kindTenant)
	}
	for s := range m.surfaces {
		if surfaces>>s&1 == 0 {
			continue
		}
		files := &m.surfaces[s]
		switch {
		case !models.any:
			files.models = filed(files.models, models.names, rank)
		case !tenants.any:
			files.tenants = filed(files.tenants, tenants.names, rank)
		default:
			files.others = append(files.others, rank)
		}
	}
}

func filed(files map[string][]int32, names []string, rank int32) map[string][]int32 {
	if files == nil {
		files = make(map[string][]int32)
	}
	for _, name := range names {
		files[name] = append(files[name], rank)
	}
	return files
}

// Match returns the index, in the specs, of the decision that takes the request:
// of those whose rules hold, the one of the highest priority, and of several the
// one whose name comes first. It returns -1 where none does. Nothing is allocated
// but by f.Header, and by package regexp now and then.
func (m *Matcher) Match(f *Facts) int {
	if m == nil || len(m.decisions) == 0 {
		return -1
	}
	files := &m.surfaces[0]
	if f.Surface < probe.NumSurfaces {
		files = &m.surfaces[f.Surface]
	}
	models, tenants, others := files.models[string(f.Model)], files.tenants[string(f.Tenant)], files.others
	for {
		next := &others
		if first(models) < first(*next) {
			next = &models
		}
		if first(tenants) < first(*next) {
			next = &tenants
		}
		if len(*next) == 0 {
			return -1
		}
		d := &m.decisions[(*next)[0]]
		if d.all || d.rule.holds(f) {
			return d.spec
		}
		*next = (*next)[1:]
	}
}

// first returns the first rank, or one beyond all where there is none.
func first(ranks []int32) int32 {
	if len(ranks) == 0 {
		return 1<<31 - 1
	}
	return ranks[0]
}

// surfaceSet is a set of surfaces.
type surfaceSet uint32

const allSurfaces surfaceSet = 1<<probe.NumSurfaces - 1

// surfaces returns the surfaces that the condition may hold for: no other, and
// maybe not all of them.
func (c *condition) surfaces() surfaceSet {
	switch c.kind {
	case kindSurface:
		return 1 << c.surface
	case kindAnd:
		set := surfaceSet(allSurfaces)
		for i := range c.conditions {
			set &= c.conditions[i].surfaces()
		}
		return set
	case kindOr:
		set := surfaceSet(0)
		for i := range c.conditions {
			set |= c.conditions[i].surfaces()
		}
		return set
	}
	return allSurfaces
}

// demand is what a condition demands of the model or of the tenant: that it is
// one of names, or, if any is true, nothing.
type demand struct {
	any   bool
	names []string // sorted, none twice
}

// demand returns what the condition demands of the model, where kind is
// kindModel, or of the tenant, where it is kindTenant. It holds for no other.
func (c *condition) demand(kind conditionKind) demand {
	switch c.kind {
	case kind:
		return demand{names: []string{c.name}}
	case kindAnd:
		all := demand{any: true}
		for i := range c.conditions {
			d := c.conditions[i].demand(kind)
			switch {
			case all.any:
				all = d
			case !d.any:
				all.names = slices.DeleteFunc(all.names, func(name string) bool { return !slices.Contains(d.names, name) })
			}
		}
		return all
	case kindOr:
		var one demand
		for i := range c.conditions {
			d := c.conditions[i].demand(kind)
			if d.any {
				return d
			}
			one.names = append(one.names, d.names...)
		}
		slices.Sort(one.names)
		one.names = slices.Compact(one.names)
		return one
	}
	return demand{any: true}
}
