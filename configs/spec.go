package configs

import (
	"sluice/policy"
)

// Spec returns the decision as the package that matches requests to it reads it.
func (d *Decision) Spec() policy.DecisionSpec {
	spec := policy.DecisionSpec{Name: d.Name, Priority: d.Priority}
	if d.Rules != nil {
		rules := d.Rules.spec()
		spec.Rules = &rules
	}
	return spec
}

func (r *Rule) spec() policy.RuleSpec {
	spec := policy.RuleSpec{
		Operator: r.Operator,
		Type:     r.Type,
		Name:     r.Name,
		Exact:    r.Exact, Prefix: r.Prefix, Regex: r.Regex,
		Present: r.Present, Value: r.Value, Equals: r.Equals,
		MinTokens: int(r.MinTokens), MaxTokens: int(r.MaxTokens),
	}
	for i := range r.Conditions {
		spec.Conditions = append(spec.Conditions, r.Conditions[i].spec())
	}
	return spec
}

// ParamsSpec returns the configuration of a plugin request_params as the package
// that applies it reads it.
func (p *PluginConfiguration) ParamsSpec() policy.ParamsSpec {
	spec := policy.ParamsSpec{
		BlockedParams: p.BlockedParams,
		StripUnknown:  p.StripUnknown,
		KnownParams:   p.KnownParams,
		OnViolation:   p.OnViolation,
	}
	if p.MaxTokensLimit != nil {
		spec.MaxTokensLimit = *p.MaxTokensLimit
	}
	if p.MaxN != nil {
		spec.MaxN = *p.MaxN
	}
	if l := p.DefaultMaxTokens; l != nil && *l == AutoTokens {
		spec.AutoMaxTokens = true
	} else if l != nil {
		spec.DefaultMaxTokens = int(*l)
	}
	return spec
}
