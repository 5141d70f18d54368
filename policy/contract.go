package policy

import (
	"errors"

	"sluice/probe"
)

// ContractSpec is a sampling contract as a config states it. Off is the zero
// value; a config that states the section leaves Params nil only if it has no
// params at all.
type ContractSpec struct {
	// OnConflict is reject, allow, observe, replace or, for reject, empty.
	OnConflict string
	// Params maps a governed field to a pin, which is a number, or to a band,
	// which is a map[string]any with the numbers min and max. Numbers are of
	// type int, int64, uint64 or float64. No value is changed or kept.
	Params map[string]any
}

// Contract is a compiled sampling contract: for each governed field at most one
// pin or band, and what to do with a request that disagrees. It is immutable and
// safe for concurrent use. A nil Contract is off.
type Contract struct {
	mode mode
	// fields are the fields with a rule, pins those of them with a pin.
	fields, pins probe.FieldSet
	// order holds the fields with a rule, in field order.
	order []probe.Field
	rules [probe.LastSampling + 1]rule
}

// rule is a pin, where min and max are one number, or a band.
type rule struct {
	pin      bool
	min, max float64
	lo, hi   *Literal // of min and max
}

// holds reports whether an engine that reads v does what the rule asks.
//
// NOTE: the form of the condition matters, NaN is in no band and equals no pin.
func (r *rule) holds(v float64) bool {
	return r.min <= v && v <= r.max
}

// mode is what a contract does about a request that disagrees with it.
type mode uint8

const (
	modeReject mode = iota
	modeAllow
	modeObserve
	modeReplace
	numModes
)

var modeNames = [numModes]string{
	modeReject:  "reject",
	modeAllow:   "allow",
	modeObserve: "observe",
	modeReplace: "replace",
}

// NewContract compiles spec. It returns nil without an error for the zero spec.
// An error joins one *SpecError for each fault of spec: on_conflict, the
// governed fields in their order, then the other keys.
func NewContract(spec ContractSpec) (*Contract, error) {
	if spec.OnConflict == "" && spec.Params == nil {
		return nil, nil
	}
	c := &Contract{}
	var faults faults
	c.mode = faults.mode(spec.OnConflict)
	for f := probe.FirstSampling; f <= probe.LastSampling; f++ {
		value, ok := spec.Params[f.String()]
		if !ok {
			continue
		}
		c.rules[f] = faults.rule(f, value, c.mode)
		c.order = append(c.order, f)
		c.fields = c.fields.With(f)
		if c.rules[f].pin {
			c.pins = c.pins.With(f)
		}
	}
	faults.params(spec.Params)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return c, nil
}

// Numbers returns the fields whose numbers probe.Scan must settle for Judge.
func (c *Contract) Numbers() probe.FieldSet {
	if c == nil {
		return 0
	}
	return c.fields
}

// String returns what the contract does on a conflict, by its name in a config,
// or "off".
func (c *Contract) String() string {
	if c == nil {
		return "off"
	}
	return modeNames[c.mode]
}
