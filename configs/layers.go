package configs

import (
	"maps"
	"slices"

	"sluice/policy"
)

// pairs returns the members of o as the package that writes them reads them.
func (o Object) pairs() []policy.Pair {
	var pairs []policy.Pair
	for _, m := range o.Members() {
		pairs = append(pairs, policy.Pair{Key: m.Key, Value: m.Value})
	}
	return pairs
}

// ForceLayer compiles Force. The error joins faults of its members.
func (d *Decision) ForceLayer() (*policy.Layer, error) {
	return newLayer(policy.LayerForce, d.Force)
}

// ExtraLayer compiles ExtraBody. The error joins faults of its members.
func (p *Pool) ExtraLayer() (*policy.Layer, error) {
	return newLayer(policy.LayerExtraBody, p.ExtraBody)
}

func newLayer(kind policy.LayerKind, o Object) (*policy.Layer, error) {
	if o == "" {
		return nil, nil
	}
	return policy.NewLayer(policy.LayerSpec{Kind: kind, Members: o.pairs()})
}

// ThinkingProfile compiles Thinking; nil is none. The error joins faults of its
// members.
func (p *Pool) ThinkingProfile() (*policy.Thinking, error) {
	t := &p.Thinking
	spec := policy.ThinkingSpec{Preset: t.Preset, On: t.On.pairs(), Off: t.Off.pairs()}
	if t.On != "" && spec.On == nil {
		spec.On = []policy.Pair{} // given, and empty
	}
	if t.Off != "" && spec.Off == nil {
		spec.Off = []policy.Pair{}
	}
	return policy.NewThinking(spec)
}

// layers checks what pools and decisions put on top of a request, and that the
// contracts which hold there take it.
func (v *validator) layers(c *Config) {
	for i := range c.Pools {
		p, path := &c.Pools[i], itemPath("pools", i)
		extra, err := p.ExtraLayer()
		v.specErrors(path+".extra_body", err)
		_, err = p.ThinkingProfile()
		v.specErrors(path+".thinking", err)
		v.held(c, nil, p, path+".extra_body", extra)
		for j := range c.Routing.Decisions {
			if d := &c.Routing.Decisions[j]; slices.Contains(c.Destinations(d), p) {
				v.held(c, d, p, path+".extra_body", extra)
			}
		}
	}
	for i := range c.Routing.Decisions {
		d, path := &c.Routing.Decisions[i], itemPath("routing.decisions", i)+".force"
		force, err := d.ForceLayer()
		v.specErrors(path, err)
		for _, p := range c.Destinations(d) {
			v.held(c, d, p, path, force)
		}
	}
}

// held checks the members of a layer, stated at path, against the contracts for
// requests that d takes to p.
func (v *validator) held(c *Config, d *Decision, p *Pool, path string, l *policy.Layer) {
	for _, model := range append([]string{""}, slices.Sorted(maps.Keys(p.ModelContracts))...) {
		spec, _, err := c.ContractOf(d, p, model)
		if err != nil {
			continue // it is told where the contract is
		}
		contract, err := policy.NewContract(spec)
		if err == nil {
			v.specErrors(path, contract.CheckLayer(l))
		}
	}
}
