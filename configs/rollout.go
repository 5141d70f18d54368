package configs

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Share is a part of a whole, 0 to 1. It is written as a percentage (5%) or as a
// number (0.05).
type Share float64

var shareType = reflect.TypeFor[Share]()

// String returns the percentage.
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)*100, 'g', 12, 64) + "%"
}

// share reads a percentage or a number.
func (r *reader) share(n *node, path string) (any, bool) {
	f, ok := n.value.(float64)
	if i, whole := n.value.(int); whole {
		f, ok = float64(i), true
	}
	if text, percent := strings.CutSuffix(n.text, "%"); n.kind == kindString && percent {
		var err error
		f, err = strconv.ParseFloat(text, 64)
		f, ok = f/100, err == nil
	}
	if !ok || !(f >= 0 && f <= 1) {
		return r.fail(n, path, "must be a share such as 5% or 0.05, at most 100%, got "+n.describe())
	}
	r.set(n, path)
	return Share(f), true
}

// Rollout enforces a rule on a share of the requests and only observes the others.
// A session (the header x-session-id or x-smg-routing-key), or without one a body,
// stays on its side.
type Rollout struct {
	// Share is the part of the requests that the rule is enforced on, such as 5%.
	// Who is in a share is in every larger one, too.
	Share Share `koanf:"share"`
	// AbortOn are bounds. Past one of them the rule observes all requests, until
	// it or its rollout is changed, or the router restarts.
	AbortOn AbortOn `koanf:"abort_on"`
	// Over is the time that the bounds look back, 10s to 24h. Default 5m.
	Over time.Duration `koanf:"over"`
	// MinRequests is how many requests the rule must have been enforced on within
	// that time before a bound counts, 1 to 1000000. Default 100.
	MinRequests int `koanf:"min_requests"`
}

// AbortOn are bounds of a rollout, each a share of the requests that the rule is
// enforced on. Zero, the default, is none.
type AbortOn struct {
	// Rejected bounds the requests that the rule refuses.
	Rejected Share `koanf:"rejected"`
	// Errors bounds the requests that fail at a worker: no, late or half an
	// answer, a status of 500 or above, and 400 or 422, which is what an engine
	// says to a body that it does not take.
	Errors Share `koanf:"errors"`
}

// Window returns Over, or its default.
func (r *Rollout) Window() time.Duration {
	if r.Over == 0 {
		return 5 * time.Minute
	}
	return r.Over
}

// Least returns MinRequests, or its default.
func (r *Rollout) Least() int {
	if r.MinRequests == 0 {
		return 100
	}
	return r.MinRequests
}

// NamedRollout is a Rollout and what it is of.
type NamedRollout struct {
	// Name is sampling_contract, pools.NAME.sampling_contract,
	// pools.NAME.model_contracts.MODEL, decisions.NAME (of its request_params and
	// its contract) or decisions.NAME.sampling_contract.
	Name string
	*Rollout
	// Text is the rule with its rollout: two are the same if this is.
	Text string
}

// RolloutOf returns the rollout of the contract that holds for requests that d
// takes (nil: none does) to the given model of p, see ContractOf. One that narrows
// another contract has the rollout of that. It is nil where there is none.
func (c *Config) RolloutOf(d *Decision, p *Pool, model string) *NamedRollout {
	var found *NamedRollout
	hold := func(name string, s *SamplingContract) {
		switch {
		case s == nil || s.Narrow:
		case s.Rollout == nil:
			found = nil
		default:
			found = &NamedRollout{name, s.Rollout, ruleText(s)}
		}
	}
	hold("sampling_contract", c.Contract)
	hold("pools."+p.Name+".sampling_contract", p.Contract)
	hold("pools."+p.Name+".model_contracts."+model, p.ModelContracts[model])
	if d != nil && d.Contract != nil {
		hold("decisions."+d.Name+".sampling_contract", d.Contract)
		if d.Rollout != nil {
			found = d.NamedRollout()
		}
	}
	return found
}

// NamedRollout returns the rollout of the decision, nil for none.
func (d *Decision) NamedRollout() *NamedRollout {
	if d.Rollout == nil {
		return nil
	}
	return &NamedRollout{"decisions." + d.Name, d.Rollout, ruleText([]any{d.Rollout, d.Plugins, d.Contract})}
}

func ruleText(rule any) string {
	text, err := json.Marshal(rule)
	if err != nil {
		// As for Hash.
		panic("BUG: a valid rule cannot be encoded: " + err.Error())
	}
	return string(text)
}

// rollouts checks all of them.
func (v *validator) rollouts(c *Config) {
	v.contractRollout("sampling_contract", c.Contract)
	for i := range c.Pools {
		path := itemPath("pools", i)
		v.contractRollout(path+".sampling_contract", c.Pools[i].Contract)
		for model, s := range c.Pools[i].ModelContracts {
			v.contractRollout(childPath(path+".model_contracts", model), s)
		}
	}
	for i := range c.Routing.Decisions {
		d, path := &c.Routing.Decisions[i], itemPath("routing.decisions", i)
		v.contractRollout(path+".sampling_contract", d.Contract)
		v.decisionRollout(path, d)
	}
}

const narrowRollout = "cannot be rolled out: what it narrows would not hold for the other requests; leave out narrow"

func (v *validator) contractRollout(path string, s *SamplingContract) {
	if s == nil || s.Rollout == nil {
		return
	}
	v.rollout(path+".rollout", s.Rollout)
	if s.Narrow {
		v.fail(path+".rollout", "%s", narrowRollout)
	}
	if s.OnConflict != "" && s.OnConflict != "reject" && s.OnConflict != "replace" {
		v.fail(path+".rollout", "needs on_conflict reject or replace, got %s", quote(s.OnConflict))
	}
}

func (v *validator) decisionRollout(path string, d *Decision) {
	if d.Rollout == nil {
		return
	}
	path += ".rollout"
	v.rollout(path, d.Rollout)
	enforced := d.Contract != nil
	for i := range d.Plugins {
		if p := &d.Plugins[i]; p.Type == RequestParams {
			enforced = true
			if p.Configuration.OnViolation == "observe" {
				v.fail(path, "has nothing to enforce: the plugin request_params observes")
			}
		}
	}
	s := d.Contract
	switch {
	case !enforced:
		v.fail(path, "needs a sampling_contract or a plugin request_params")
	case s == nil:
	case s.Rollout != nil:
		v.fail(path, "must not be given beside sampling_contract.rollout")
	case s.Narrow:
		v.fail(path, "the sampling_contract %s", narrowRollout)
	case s.OnConflict != "" && s.OnConflict != "reject" && s.OnConflict != "replace":
		v.fail(path, "needs a sampling_contract with on_conflict reject or replace, got %s", quote(s.OnConflict))
	}
}

func (v *validator) rollout(path string, r *Rollout) {
	v.share(path+".share", r.Share)
	v.share(path+".abort_on.rejected", r.AbortOn.Rejected)
	v.share(path+".abort_on.errors", r.AbortOn.Errors)
	if r.Share == 0 {
		v.fail(path+".share", "must be set, above 0")
	}
	if r.Over != 0 && (r.Over < 10*time.Second || r.Over > 24*time.Hour) {
		v.fail(path+".over", "must be from 10s to 24h, got %s", r.Over)
	}
	if r.MinRequests != 0 {
		v.within(path+".min_requests", r.MinRequests, 1, 1_000_000)
	}
}

func (v *validator) share(path string, s Share) {
	if !(s >= 0 && s <= 1) {
		v.fail(path, "must be from 0 to 100%%, got %s", s)
	}
}
