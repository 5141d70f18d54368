package router

import (
	"fmt"

	"sluice/configs"
	"sluice/policy"
	"sluice/probe"
	"sluice/router/record"
)

// Rules is what a configuration says of requests, compiled: which decision takes
// one, where it goes, and how its body is edited. It knows no workers and no
// metrics, so that explain and replay run the very code of the data path. It is
// immutable and safe for concurrent use.
type Rules struct {
	numbers      probe.FieldSet  // whose values the scan must settle
	passes       map[string]bool // server.passthrough_paths
	tenantHeader string          // empty: there are no tenants
	usage        bool            // the usage of every answer is needed

	matcher *policy.Matcher
	routes  []*route // by the index that the matcher returns
	plain   *route   // of the requests that no decision takes

	rollouts map[string]*rollout // by name
	paces    map[string]*pace    // by the section of a contract

	destinations []*destination // in the order of the configuration's pools
	models       map[string]*destination
	// anyModel serves requests that name no model: the catch-all pool, or the
	// only one. catchAll serves models that no pool lists. Either may be nil.
	anyModel, catchAll *destination
}

// destination is a pool, as far as requests to it are edited.
type destination struct {
	index    int // among the configuration's pools
	name     string
	engine   policy.Engine
	targets  map[string]*target // by model and by alias
	unlisted *target            // of any other model
	extra    *policy.Layer      // nil: none
	thinking *policy.Thinking   // nil: none
}

// modelName is the name of a model and the member of a body that says it.
type modelName struct {
	name    []byte
	literal *policy.Literal
}

func newModelName(name string) (*modelName, error) {
	lit, err := policy.NewLiteral("model", marshal(name))
	return &modelName{[]byte(name), lit}, err
}

// terms are a sampling contract, nil where there is none, and the section of the
// configuration that states it.
type terms struct {
	contract *policy.Contract
	from     string
	// watching is the contract when it only observes. Valid iff there is a rollout.
	watching *policy.Contract
	rollout  *rollout
	said     *pace // of what it observes
}

// target is where a model name leads in a pool.
type target struct {
	// model is what the engine is asked for. Nil is a model that the pool does
	// not list, and that goes as the client wrote it.
	model *modelName
	// contract holds for requests whose decision has none.
	contract terms
	window   int // the context window in tokens, 0: not known
}

// route is a decision, compiled.
type route struct {
	index int    // 1 + the index of the decision, 0 for none
	name  string // empty for none
	// destinations are the pools that share the requests, fallback those that
	// are tried after them. Without any, the model leads to the pool.
	destinations []*destination
	shares       *policy.Shares // nil for one destination
	sticky       bool
	fallback     []*destination
	rewrite      *modelName     // in place of the client's model, nil: none
	params       *policy.Params // nil: none
	watching     *policy.Params // params when they only observe. Valid iff there is a rollout.
	rollout      *rollout       // of params, nil: none
	said         pace           // of what they observe
	force        *policy.Layer  // nil: none
	cache        *caching       // nil: none
	exact        bool           // no estimate stands for counted tokens
	// governed says that the decision has a contract; contract is that one, or
	// narrowed holds one for each target that it narrows the contract of.
	governed bool
	contract terms
	narrowed map[*target]terms
}

// NewRules compiles a valid configuration.
func NewRules(cfg *configs.Config) (*Rules, error) {
	r := &Rules{
		passes:       map[string]bool{},
		tenantHeader: cfg.Server.TenantHeader,
		usage:        cfg.Records.Store != record.Off,
		plain:        &route{},
		models:       map[string]*destination{},
		rollouts:     map[string]*rollout{},
		paces:        map[string]*pace{},
	}
	for _, p := range cfg.Server.PassthroughPaths {
		r.passes[p] = true
	}
	for i := range cfg.Pools {
		if err := r.addDestination(cfg, &cfg.Pools[i]); err != nil {
			return nil, fmt.Errorf("pool %q: %w", cfg.Pools[i].Name, err)
		}
	}
	if r.anyModel == nil && len(r.destinations) == 1 {
		r.anyModel = r.destinations[0]
	}
	specs := make([]policy.DecisionSpec, len(cfg.Routing.Decisions))
	for i := range cfg.Routing.Decisions {
		d := &cfg.Routing.Decisions[i]
		specs[i] = d.Spec()
		if err := r.addRoute(cfg, d); err != nil {
			return nil, fmt.Errorf("decision %q: %w", d.Name, err)
		}
	}
	var err error
	r.matcher, err = policy.NewMatcher(specs)
	return r, err
}

func (r *Rules) addDestination(cfg *configs.Config, pc *configs.Pool) (err error) {
	d := &destination{index: len(r.destinations), name: pc.Name, targets: map[string]*target{}}
	if d.engine, err = policy.ParseEngine(pc.Engine); err != nil {
		return err
	}
	if d.extra, err = pc.ExtraLayer(); err != nil {
		return err
	}
	if d.thinking, err = pc.ThinkingProfile(); err != nil {
		return err
	}
	if d.unlisted, err = r.newTarget(cfg, pc, ""); err != nil {
		return err
	}
	for _, model := range pc.Models {
		if d.targets[model], err = r.newTarget(cfg, pc, model); err != nil {
			return err
		}
	}
	for alias, model := range pc.Aliases {
		d.targets[alias] = d.targets[model]
	}
	r.destinations = append(r.destinations, d)
	for name := range d.targets {
		if r.models[name] == nil { // the first pool has it
			r.models[name] = d
		}
	}
	if len(pc.Models) == 0 && r.catchAll == nil {
		r.anyModel, r.catchAll = d, d
	}
	return nil
}

func (r *Rules) newTarget(cfg *configs.Config, pc *configs.Pool, model string) (*target, error) {
	held, err := r.newTerms(cfg, nil, pc, model)
	if err != nil {
		return nil, err
	}
	t := &target{contract: held, window: int(pc.ContextWindows[model])}
	if model == "" {
		return t, nil
	}
	t.model, err = newModelName(model)
	return t, err
}

// newTerms compiles the contract that holds for requests to a model of a pool
// which d takes; d may be nil.
func (r *Rules) newTerms(cfg *configs.Config, d *configs.Decision, pc *configs.Pool, model string) (terms, error) {
	spec, from, err := cfg.ContractOf(d, pc, model)
	if err != nil {
		return terms{}, err
	}
	t := terms{from: from, said: r.pace(from)}
	if t.contract, err = policy.NewContract(spec); err != nil {
		return terms{}, err
	}
	r.numbers |= t.contract.Numbers()
	if t.rollout = r.rollout(cfg.RolloutOf(d, pc, model)); t.rollout != nil {
		spec.OnConflict = "observe"
		t.watching, err = policy.NewContract(spec)
	}
	return t, err
}

// rollout returns the one of n, nil for none.
func (r *Rules) rollout(n *configs.NamedRollout) *rollout {
	if n == nil {
		return nil
	}
	if r.rollouts[n.Name] == nil {
		r.rollouts[n.Name] = newRollout(n)
	}
	return r.rollouts[n.Name]
}

// pace returns the one of the contract that a section states.
func (r *Rules) pace(from string) *pace {
	if r.paces[from] == nil {
		r.paces[from] = &pace{}
	}
	return r.paces[from]
}

func (r *Rules) addRoute(cfg *configs.Config, d *configs.Decision) (err error) {
	rt := &route{index: 1 + len(r.routes), name: d.Name, sticky: d.Sticky}
	if d.Pool != "" {
		rt.destinations = append(rt.destinations, r.destination(d.Pool))
	}
	var shares []policy.ShareSpec
	for _, s := range d.Pools {
		rt.destinations = append(rt.destinations, r.destination(s.Name))
		shares = append(shares, policy.ShareSpec{Name: s.Name, Weight: s.Weight})
	}
	if len(shares) > 1 {
		if rt.shares, err = policy.NewShares(shares); err != nil {
			return err
		}
	}
	for _, name := range d.Fallback {
		rt.fallback = append(rt.fallback, r.destination(name))
	}
	if d.Model != "" {
		if rt.rewrite, err = newModelName(d.Model); err != nil {
			return err
		}
	}
	if rt.force, err = d.ForceLayer(); err != nil {
		return err
	}
	for i := range d.Plugins {
		switch p := &d.Plugins[i]; p.Type {
		case configs.ResponseCache:
			rt.cache = newCaching(cfg, d, &p.Configuration)
		case configs.RequestParams:
			rt.exact = p.Configuration.AutoFallback == "reject"
			if err = r.addParams(d, rt, p.Configuration.ParamsSpec()); err != nil {
				return err
			}
		}
	}
	if err := r.addContract(cfg, d, rt); err != nil {
		return err
	}
	r.routes = append(r.routes, rt)
	return nil
}

// addParams compiles the plugin request_params of a decision.
func (r *Rules) addParams(d *configs.Decision, rt *route, spec policy.ParamsSpec) (err error) {
	if rt.params, err = policy.NewParams(spec); err != nil {
		return err
	}
	if rt.rollout = r.rollout(d.NamedRollout()); rt.rollout != nil {
		spec.OnViolation = "observe"
		rt.watching, err = policy.NewParams(spec)
	}
	return err
}

// addContract compiles the contract of a decision, for each target where it
// narrows what holds there.
func (r *Rules) addContract(cfg *configs.Config, d *configs.Decision, rt *route) (err error) {
	if d.Contract == nil {
		return nil
	}
	rt.governed = true
	if !d.Contract.Narrow {
		rt.contract, err = r.newTerms(cfg, d, &configs.Pool{}, "")
		return err
	}
	rt.narrowed = map[*target]terms{}
	for _, pc := range cfg.Destinations(d) {
		dest := r.destination(pc.Name)
		if rt.narrowed[dest.unlisted], err = r.newTerms(cfg, d, pc, ""); err != nil {
			return err
		}
		for _, model := range pc.Models {
			if rt.narrowed[dest.targets[model]], err = r.newTerms(cfg, d, pc, model); err != nil {
				return err
			}
		}
	}
	return nil
}

// destination returns the one of a pool that the configuration has.
func (r *Rules) destination(pool string) *destination {
	for _, d := range r.destinations {
		if d.name == pool {
			return d
		}
	}
	panic("BUG: a valid configuration names no pool " + pool)
}

// termsFor returns the contract for requests that rt takes to t.
func (rt *route) termsFor(t *target) terms {
	switch {
	case !rt.governed:
		return t.contract
	case rt.narrowed != nil:
		return rt.narrowed[t]
	}
	return rt.contract
}

// target returns where a model name leads in d.
func (d *destination) target(model []byte) *target {
	if t := d.targets[string(model)]; t != nil {
		return t
	}
	return d.unlisted
}
