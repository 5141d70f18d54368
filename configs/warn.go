package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sluice/policy"
)

// Warning is something that a valid configuration says and that its author may
// not have meant.
type Warning struct {
	// Origin is where it was set, Path the key.
	Origin Origin
	Path   string
	// Msg says what happens, and what to do about it.
	Msg string
}

// String returns origin: path: message.
func (w Warning) String() string { return Fault(w).Error() }

// Warnings returns what in a valid configuration looks wrong, in the order of
// its sections.
func (c *Config) Warnings() []Warning {
	w := warner{c: c}
	w.pools()
	for i := range c.Routing.Decisions {
		w.decision(&c.Routing.Decisions[i], itemPath("routing.decisions", i))
	}
	return w.found
}

type warner struct {
	c     *Config
	found []Warning
}

func (w *warner) add(path, format string, args ...any) {
	w.found = append(w.found, Warning{w.c.origins.of(path), path, fmt.Sprintf(format, args...)})
}

func (w *warner) pools() {
	for i := range w.c.Pools {
		p, path := &w.c.Pools[i], itemPath("pools", i)
		if len(p.Models) == 0 {
			w.add(path+".models", "the pool %s lists no models, so it serves every model that no other pool lists", p.Name)
		}
		w.extraBody(p, path+".extra_body")
	}
}

// nonGenerative are members that only requests for no generation have.
var nonGenerative = []string{
	"dimensions", "encoding_format", "input_type", "truncate_prompt_tokens", "top_n", "return_documents",
	"documents", "query", "embedding_types", "add_special_tokens", "return_token_strs", "normalize",
}

// extraBody warns of a pool whose extra_body is meant for surfaces that ignore
// it.
func (w *warner) extraBody(p *Pool, path string) {
	var keys []string
	for _, m := range p.ExtraBody.Members() {
		if slices.Contains(nonGenerative, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) > 0 {
		w.add(path, "%s: extra_body has no effect on embeddings and the other surfaces that generate nothing; "+
			"set such members, as dimensions, with force in a decision for {type: surface, name: embeddings}", strings.Join(keys, ", "))
	}
}

func (w *warner) decision(d *Decision, path string) {
	w.shadowed(d, path)
	w.models(d.Rules, path+".rules", d)
	for i := range d.Plugins {
		p, at := &d.Plugins[i], itemPath(path+".plugins", i)+".configuration"
		switch p.Type {
		case RequestParams:
			w.params(d, &p.Configuration, at)
		case ResponseCache:
			if w.c.Cache.Store == "off" {
				w.add(at, "nothing is stored: cache.store is off")
			}
		}
	}
}

// shadowed warns of a decision that another one takes everything from.
func (w *warner) shadowed(d *Decision, path string) {
	for i := range w.c.Routing.Decisions {
		e := &w.c.Routing.Decisions[i]
		if e == d || e.Priority < d.Priority || e.Priority == d.Priority && e.Name >= d.Name {
			continue
		}
		if e.Rules == nil || d.Rules != nil && covers(e.Rules, d.Rules) {
			w.add(path, "the decision %s can never win: %s comes before it and takes all that it would", d.Name, e.Name)
			return
		}
	}
}

// covers reports whether wide certainly holds wherever narrow does: it is the
// same, or one of the conditions that narrow joins by AND.
func covers(wide, narrow *Rule) bool {
	if reflect.DeepEqual(wide, narrow) {
		return true
	}
	switch {
	case wide.Operator == "AND":
		return all(wide.Conditions, func(r *Rule) bool { return covers(r, narrow) })
	case narrow.Operator == "OR":
		return all(narrow.Conditions, func(r *Rule) bool { return covers(wide, r) })
	case wide.Operator == "OR" && !all(wide.Conditions, func(r *Rule) bool { return !covers(r, narrow) }):
		return true
	}
	return narrow.Operator == "AND" && !all(narrow.Conditions, func(r *Rule) bool { return !covers(wide, r) })
}

func all(rules []Rule, ok func(*Rule) bool) bool {
	for i := range rules {
		if !ok(&rules[i]) {
			return false
		}
	}
	return true
}

// models warns of a rule for a model that is served nowhere.
func (w *warner) models(r *Rule, path string, d *Decision) {
	if r == nil || d.Pool != "" || len(d.Pools) > 0 || d.Model != "" {
		return
	}
	for i := range r.Conditions {
		w.models(&r.Conditions[i], itemPath(path+".conditions", i), d)
	}
	if r.Type != "model" {
		return
	}
	var known []string
	for i := range w.c.Pools {
		p := &w.c.Pools[i]
		if len(p.Models) == 0 {
			return
		}
		known = append(append(known, p.Models...), slices.Sorted(maps.Keys(p.Aliases))...)
	}
	if !slices.Contains(known, r.Name) {
		w.add(path+".name", "no pool serves the model %s%s", quote(r.Name), near(r.Name, known))
	}
}

func (w *warner) params(d *Decision, p *PluginConfiguration, path string) {
	def, limit := p.DefaultMaxTokens, p.MaxTokensLimit
	switch {
	case limit != nil && def == nil:
		w.add(path+".max_tokens_limit", "a request that gives no output limit is not capped: set default_max_tokens, too")
	case limit != nil && *def > 0 && int(*def) > *limit:
		w.add(path+".default_max_tokens", "the default, %d, is above the limit and will be lowered to it: %d", int(*def), *limit)
	}
	if len(p.KnownParams) > 0 && !p.StripUnknown {
		w.add(path+".known_params", "has no effect without strip_unknown")
	}
	if p.MaxN == nil || p.OnViolation == "observe" {
		return
	}
	for _, pool := range w.c.Destinations(d) {
		for _, model := range append([]string{""}, pool.Models...) {
			spec, from, err := w.c.ContractOf(d, pool, model)
			if err == nil && leastN(spec) > float64(*p.MaxN) {
				w.add(path+".max_n", "%s wants n to be at least %v: no request can meet both", from, leastN(spec))
				return
			}
		}
	}
}

// leastN returns the least n that a contract takes, or 0.
func leastN(spec policy.ContractSpec) float64 {
	n := spec.Params["n"]
	if band, ok := n.(map[string]any); ok {
		n = band["min"]
	}
	switch n := n.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}
