package configs

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/policy"
)

// routing checks the decisions; pools are those of the configuration.
func (v *validator) routing(c *Config) {
	names := make(map[string]string, len(c.Routing.Decisions)) // name: path
	for i := range c.Routing.Decisions {
		d, path := &c.Routing.Decisions[i], itemPath("routing.decisions", i)
		if msg := poolNameFault(d.Name); msg != "" {
			v.fail(path+".name", "%s", msg)
		} else if first, ok := names[d.Name]; ok {
			v.fail(path+".name", "%s is the name of %s, too", quote(d.Name), first)
		} else {
			names[d.Name] = path
		}
		v.within(path+".priority", d.Priority, -1_000_000, 1_000_000)
		v.rule(c, d.Rules, path+".rules")
		v.destination(c, d, path)
		v.plugins(c, d, path+".plugins")
	}
	v.matcher(c.Routing.Decisions)
}

// matcher leaves what the rules mean to the package that holds requests to them.
// What was found here is not told twice.
func (v *validator) matcher(decisions []Decision) {
	specs := make([]policy.DecisionSpec, len(decisions))
	for i := range decisions {
		specs[i] = decisions[i].Spec()
	}
	_, err := policy.NewMatcher(specs)
	more := validator{origins: v.origins}
	more.specErrors("routing", err)
	v.faults = append(v.faults, more.faults.without(v.faults)...)
}

// rule checks the words of a tree of rules, with suggestions.
func (v *validator) rule(c *Config, r *Rule, path string) {
	if r == nil {
		return
	}
	if r.Operator != "" {
		v.oneOf(path+".operator", r.Operator, "AND", "OR", "NOT")
	}
	if r.Type != "" {
		v.oneOf(path+".type", r.Type, ruleTypes...)
	}
	if r.Type == "tenant" && c.Server.TenantHeader == "" {
		v.fail(path+".type", "tenant needs server.tenant_header")
	}
	for i := range r.Conditions {
		v.rule(c, &r.Conditions[i], itemPath(path+".conditions", i))
	}
}

var ruleTypes = []string{"model", "surface", "path", "header", "tenant", "stream", "context", "body"}

// destination checks where a decision sends its requests.
func (v *validator) destination(c *Config, d *Decision, path string) {
	if d.Pool != "" {
		v.poolName(c, d.Pool, path+".pool")
	}
	if d.Pool != "" && len(d.Pools) > 0 {
		v.fail(path+".pools", "must not be given beside pool")
	}
	if d.Sticky && len(d.Pools) == 0 {
		v.fail(path+".sticky", "needs pools to share the requests among")
	}
	seen, total := make(map[string]bool), 0
	for i, s := range d.Pools {
		at := itemPath(path+".pools", i)
		v.poolName(c, s.Name, at+".name")
		if seen[s.Name] {
			v.fail(at+".name", "%s is named already", quote(s.Name))
		}
		seen[s.Name] = true
		v.within(at+".weight", s.Weight, 0, 1_000_000)
		total += max(s.Weight, 0)
	}
	if len(d.Pools) > 0 && total == 0 {
		v.fail(path+".pools", "must have a weight above 0")
	}
	for i, name := range d.Fallback {
		at := itemPath(path+".fallback", i)
		v.poolName(c, name, at)
		if name == d.Pool || slices.Contains(d.Fallback[:i], name) {
			v.fail(at, "%s is tried already", quote(name))
		}
	}
	v.rewrite(c, d, path)
}

// rewrite checks the model that a decision puts in the place of the client's.
func (v *validator) rewrite(c *Config, d *Decision, path string) {
	if d.Model == "" {
		return
	}
	if len(d.Model) > 512 {
		v.fail(path+".model", "must have at most 512 bytes")
	}
	var known []string
	for _, p := range c.Destinations(d) {
		if len(p.Models) == 0 {
			return // it takes any
		}
		known = append(append(known, p.Models...), slices.Sorted(maps.Keys(p.Aliases))...)
	}
	if slices.Contains(known, d.Model) {
		return
	}
	msg := quote(d.Model) + " is no model of the pools that the decision leads to"
	if near := nearest(d.Model, known); near != "" {
		msg += "; did you mean " + near + "?"
	}
	v.fail(path+".model", "%s", msg)
}

func (v *validator) poolName(c *Config, name, path string) {
	names := make([]string, len(c.Pools))
	for i := range c.Pools {
		names[i] = c.Pools[i].Name
	}
	if slices.Contains(names, name) {
		return
	}
	msg := "must name a pool, got " + quote(name)
	if near := nearest(name, names); near != "" {
		msg += "; did you mean " + near + "?"
	}
	v.fail(path, "%s", msg)
}

// Destinations returns the pools that a request which d takes may get to, those
// of Fallback included.
func (c *Config) Destinations(d *Decision) []*Pool {
	var pools []*Pool
	add := func(name string) {
		for i := range c.Pools {
			if c.Pools[i].Name == name && !slices.Contains(pools, &c.Pools[i]) {
				pools = append(pools, &c.Pools[i])
			}
		}
	}
	if d == nil || d.Pool == "" && len(d.Pools) == 0 {
		for i := range c.Pools {
			add(c.Pools[i].Name)
		}
		return pools
	}
	add(d.Pool)
	for _, s := range d.Pools {
		add(s.Name)
	}
	for _, name := range d.Fallback {
		add(name)
	}
	return pools
}

// plugins checks the plugins of a decision.
func (v *validator) plugins(c *Config, d *Decision, path string) {
	seen := make(map[string]bool)
	for i := range d.Plugins {
		p, at := &d.Plugins[i], itemPath(path, i)
		if p.Type == "" {
			v.fail(at+".type", "must be set: %s or %s", RequestParams, ResponseCache)
			continue
		}
		v.oneOf(at+".type", p.Type, RequestParams, ResponseCache)
		if seen[p.Type] {
			v.fail(at+".type", "the decision has a plugin %s already", p.Type)
		}
		seen[p.Type] = true
		at += ".configuration"
		switch p.Type {
		case RequestParams:
			v.foreign(at, p.Type, cacheKeys)
			v.requestParams(c, d, &p.Configuration, at)
		case ResponseCache:
			v.foreign(at, p.Type, paramKeys)
			v.responseCache(c, &p.Configuration, at)
		}
	}
}

// The keys of each type of plugin.
var (
	paramKeys = []string{"blocked_params", "default_max_tokens", "auto_fallback", "max_tokens_limit", "max_n", "strip_unknown", "known_params", "on_violation"}
	cacheKeys = []string{"namespace", "salt", "ttl", "max_entry", "coalesce"}
)

// foreign finds keys that belong to another type of plugin.
func (v *validator) foreign(path, plugin string, keys []string) {
	for _, key := range keys {
		if _, set := v.origins[path+"."+key]; set {
			v.fail(path+"."+key, "is no key of the plugin %s", plugin)
		}
	}
}

func (v *validator) requestParams(c *Config, d *Decision, p *PluginConfiguration, path string) {
	if p.AutoFallback != "" {
		v.oneOf(path+".auto_fallback", p.AutoFallback, "estimate", "reject")
	}
	auto := p.DefaultMaxTokens != nil && *p.DefaultMaxTokens == AutoTokens
	if p.AutoFallback != "" && !auto {
		v.fail(path+".auto_fallback", "needs default_max_tokens: auto")
	}
	for name, n := range map[string]*int{"max_tokens_limit": p.MaxTokensLimit, "max_n": p.MaxN} {
		if n != nil && (*n < 1 || *n > maxParam) {
			v.fail(path+"."+name, "must be from 1 to %d, got %d", maxParam, *n)
		}
	}
	more := validator{origins: v.origins}
	_, err := policy.NewParams(p.ParamsSpec())
	more.specErrors(path, err)
	v.faults = append(v.faults, more.faults.without(v.faults)...)
	if !auto {
		return
	}
	for _, pool := range c.Destinations(d) {
		for _, model := range pool.Models {
			if pool.ContextWindows[model] == 0 {
				v.fail(path+".default_max_tokens", "auto needs the context window of %s: set context_windows of the pool %s", quote(model), pool.Name)
			}
		}
		if len(pool.Models) == 0 {
			v.fail(path+".default_max_tokens", "auto needs context windows, and the pool %s lists no models", pool.Name)
		}
	}
}

// maxParam bounds the limits that an operator may set: what is beyond is a slip.
const maxParam = 1_000_000_000

func (v *validator) responseCache(c *Config, p *PluginConfiguration, path string) {
	if p.TTL != nil {
		v.atLeast(path+".ttl", *p.TTL, time.Second)
	}
	if p.MaxEntry != nil && (*p.MaxEntry < 1 || c.Cache.Store == "memory" && *p.MaxEntry > c.Cache.MaxBytes) {
		v.fail(path+".max_entry", "must be from 1 to cache.max_bytes, %s, got %s", c.Cache.MaxBytes, *p.MaxEntry)
	}
	if p.Namespace == "tenant" && c.Server.TenantHeader == "" {
		v.fail(path+".namespace", "tenant needs server.tenant_header")
	}
}

// specErrors adds the faults that a compiler of the policy found, with paths
// below path.
func (v *validator) specErrors(path string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			v.specErrors(path, e)
		}
		return
	}
	var spec *policy.SpecError
	if errors.As(err, &spec) {
		v.fail(joinPath(path, spec.Path), "%s %s", spec.Value, spec.Problem)
		return
	}
	v.fail(path, "%v", err)
}

// ContractOf returns the sampling contract that holds for requests that d takes
// (nil: none does) to the given model of p, which may be a name that p does not
// list, and the path of the section that states it, empty where there is none.
// The most specific section wins: decision, model, pool, fleet.
func (c *Config) ContractOf(d *Decision, p *Pool, model string) (spec policy.ContractSpec, from string, err error) {
	sections := []struct {
		path     string
		contract *SamplingContract
	}{
		{"sampling_contract", c.Contract},
		{"", p.Contract},
		{"", p.ModelContracts[model]},
		{"", nil},
	}
	pool := slices.IndexFunc(c.Pools, func(q Pool) bool { return q.Name == p.Name })
	sections[1].path = itemPath("pools", pool) + ".sampling_contract"
	sections[2].path = childPath(itemPath("pools", pool)+".model_contracts", model)
	if d != nil {
		i := slices.IndexFunc(c.Routing.Decisions, func(e Decision) bool { return e.Name == d.Name })
		sections[3].path, sections[3].contract = itemPath("routing.decisions", i)+".sampling_contract", d.Contract
	}
	for _, s := range sections {
		if s.contract == nil {
			continue
		}
		own := policy.ContractSpec{OnConflict: s.contract.OnConflict, Params: s.contract.Params}
		if s.contract.Narrow {
			own, err = spec.Narrow(own)
			if err != nil {
				return policy.ContractSpec{}, s.path, err
			}
		}
		spec, from = own, s.path
	}
	return spec, from, nil
}

// contracts checks all sections that state a contract, each with those that it
// narrows.
func (v *validator) contracts(c *Config) {
	if c.Contract != nil {
		if c.Contract.Narrow {
			v.fail("sampling_contract.narrow", "has nothing to narrow: this is the contract of the fleet")
		}
		v.contract("sampling_contract", policy.ContractSpec{OnConflict: c.Contract.OnConflict, Params: c.Contract.Params})
	}
	for i := range c.Pools {
		p, path := &c.Pools[i], itemPath("pools", i)
		if p.Contract != nil {
			v.contractOf(c, nil, p, "")
		}
		for _, model := range slices.Sorted(maps.Keys(p.ModelContracts)) {
			at := childPath(path+".model_contracts", model)
			if !slices.Contains(p.Models, model) {
				v.fail(at, "%s", "must be for one of the models of the pool, got "+quote(model)+near(model, p.Models))
				continue
			}
			v.contractOf(c, nil, p, model)
		}
	}
	for i := range c.Routing.Decisions {
		d := &c.Routing.Decisions[i]
		if d.Contract == nil {
			continue
		}
		if len(c.Pools) == 0 {
			v.contractOf(c, d, &Pool{}, "")
		}
		for _, p := range c.Destinations(d) {
			for _, model := range append([]string{""}, slices.Sorted(maps.Keys(p.ModelContracts))...) {
				v.contractOf(c, d, p, model)
			}
		}
	}
}

func (v *validator) contractOf(c *Config, d *Decision, p *Pool, model string) {
	spec, from, err := c.ContractOf(d, p, model)
	if err != nil {
		v.specErrors(from, err)
		return
	}
	v.contract(from, spec)
}

func near(word string, candidates []string) string {
	if n := nearest(word, candidates); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

func (v *validator) discover(d *Discover, path string) {
	var given []string
	for _, s := range []struct {
		name string
		set  bool
	}{{"file", d.File != ""}, {"dns", d.DNS.Name != ""}, {"srv", d.SRV != ""}} {
		if s.set {
			given = append(given, s.name)
		}
	}
	if len(given) > 1 {
		v.fail(path, "must have one source, got %s", strings.Join(given, " and "))
	}
	if d.DNS.Name != "" || d.DNS.Port != 0 {
		v.within(path+".dns.port", d.DNS.Port, 1, 65535)
		if d.DNS.Name == "" {
			v.fail(path+".dns.name", "must be set")
		}
	}
	for key, name := range map[string]string{"dns.name": d.DNS.Name, "srv": d.SRV} {
		if name != "" && !dnsName(name) {
			v.fail(path+"."+key, "must be a name in the DNS, got %s", quote(name))
		}
	}
	v.oneOf(path+".scheme", d.Scheme, "http", "https")
	if d.Resolver != "" {
		v.address(path+".resolver", d.Resolver)
	}
	v.atLeast(path+".min_interval", d.MinInterval, 100*time.Millisecond)
	if d.MaxInterval < d.MinInterval {
		v.fail(path+".max_interval", "must not be shorter than min_interval, %s, got %s", d.MinInterval, d.MaxInterval)
	}
}

// none reports whether d finds no workers.
func (d *Discover) none() bool { return d.File == "" && d.DNS.Name == "" && d.SRV == "" }

// dnsName reports whether s may be a name in the DNS, service labels included.
func dnsName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || !plainWord(label) {
			return false
		}
	}
	return true
}

func (v *validator) stores(c *Config) {
	v.oneOf("cache.store", c.Cache.Store, "memory", "redis", "off")
	if c.Cache.MaxBytes < 1<<20 {
		v.fail("cache.max_bytes", "must be at least 1MiB, got %s", c.Cache.MaxBytes)
	}
	r := &c.Cache.Redis
	if r.Addr != "" {
		v.address("cache.redis.addr", r.Addr)
	} else if c.Cache.Store == "redis" {
		v.fail("cache.redis.addr", "must be set for the store redis")
	}
	v.within("cache.redis.db", r.DB, 0, 1023)
	v.atLeast("cache.redis.timeout", r.Timeout, time.Millisecond)
	v.oneOf("records.store", c.Records.Store, "off", "sqlite", "postgres")
	if c.Records.Store == "postgres" && c.Records.DSN == "" {
		v.fail("records.dsn", "must be set for the store postgres")
	}
	v.within("records.queue", c.Records.Queue, 1, 1_000_000)
	v.within("records.batch", c.Records.Batch, 1, 10_000)
	v.atLeast("records.flush", c.Records.Flush, time.Millisecond)
	if n := c.Server.TenantHeader; n != "" && !fieldName(n) {
		v.fail("server.tenant_header", "must be the name of a header field, got %s", quote(n))
	}
}

// windows checks the context windows of a pool.
func (v *validator) windows(p *Pool, path string) {
	for _, model := range slices.Sorted(maps.Keys(p.ContextWindows)) {
		at := childPath(path+".context_windows", model)
		if !slices.Contains(p.Models, model) {
			v.fail(at, "%s", "must be for one of the models of the pool, got "+quote(model)+near(model, p.Models))
		}
		if n := p.ContextWindows[model]; n < 1 {
			v.fail(at, "must be at least 1, got %d", n)
		}
	}
}
