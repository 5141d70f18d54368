package policy

import (
	"cmp"
	"errors"
	"maps"

	"sluice/probe"
)

// Narrow returns the spec of a contract that holds to base and, where by has a
// rule for a field, to that one. by may only narrow base: each of its rules must
// lie within base's rule of the field, and a contract that is enforced stays
// enforced. An error joins *SpecError values with paths in by. Neither spec is
// changed. A base without params is off, and by stands alone.
func (base ContractSpec) Narrow(by ContractSpec) (ContractSpec, error) {
	merged := ContractSpec{OnConflict: cmp.Or(by.OnConflict, base.OnConflict), Params: maps.Clone(base.Params)}
	if merged.Params == nil {
		merged.Params = make(map[string]any, len(by.Params))
	}
	maps.Copy(merged.Params, by.Params)
	narrow, err := NewContract(merged)
	if err != nil {
		return ContractSpec{}, err
	}
	wide, err := NewContract(base)
	if err != nil {
		return ContractSpec{}, err
	}
	if wide == nil {
		return merged, nil
	}
	var faults faults
	if wide.enforces() && !narrow.enforces() {
		faults.add("on_conflict", by.OnConflict, "would weaken the contract that this one narrows, which is held by %s", wide)
	}
	for f := probe.FirstSampling; f <= probe.LastSampling; f++ {
		value, ok := by.Params[f.String()]
		if !ok || !wide.fields.Has(f) {
			continue
		}
		w, n := &wide.rules[f], &narrow.rules[f]
		if n.min < w.min || n.max > w.max {
			faults.add("params."+f.String(), value, "is not within %s, the rule that it narrows", printed(base.Params[f.String()]))
		}
	}
	return merged, errors.Join(faults...)
}

// enforces reports whether no request that disagrees gets past c as it came.
func (c *Contract) enforces() bool { return c.mode == modeReject || c.mode == modeReplace }
