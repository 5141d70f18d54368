package router

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"sluice/configs"
	"sluice/policy"
	"sluice/probe"
	"sluice/upstream"
	"sluice/upstream/h1"
)

// maxModelName bounds the name of a model in bytes.
const maxModelName = 512

// snapshot is one configuration, compiled. It does not change once it serves;
// requests under way keep the one they began with.
type snapshot struct {
	contract     *policy.Contract // nil: off
	numbers      probe.FieldSet   // whose values the scan must settle
	maxBody      int64
	writeTimeout time.Duration
	passes       map[string]bool // server.passthrough_paths

	pools  []*pool
	models map[string]*target // by model and by alias
	// anyModel serves requests that name no model: the catch-all pool, or the
	// only one. catchAll serves models that no pool lists. Either may be nil.
	anyModel, catchAll *pool

	list     []byte            // the answer to GET /v1/models
	listOnes map[string][]byte // and to GET /v1/models/{id}
}

// pool is an upstream pool with the metrics of each surface.
type pool struct {
	up        *upstream.Pool
	series    [probe.NumSurfaces]*series
	queueWait *metrics.PrometheusHistogram
	aborts    bool // its workers can be told to stop a request
}

// target is where a model name leads.
type target struct {
	pool *pool
	// name is the model's own name and literal the member that puts it in
	// place of an alias; literal is nil where the client said the name.
	name    []byte
	literal *policy.Literal
}

func newSnapshot(cfg *configs.Config, m *metricSet) (*snapshot, error) {
	s := &snapshot{
		maxBody:      int64(cfg.Server.MaxBody),
		writeTimeout: cfg.Server.WriteTimeout,
		passes:       map[string]bool{},
		models:       map[string]*target{},
	}
	for _, p := range cfg.Server.PassthroughPaths {
		s.passes[p] = true
	}
	if c := cfg.Contract; c != nil {
		var err error
		if s.contract, err = policy.NewContract(policy.ContractSpec{OnConflict: c.OnConflict, Params: c.Params}); err != nil {
			return nil, err
		}
		s.numbers = s.contract.Numbers()
	}
	for i := range cfg.Pools {
		if err := s.addPool(&cfg.Pools[i], m); err != nil {
			s.close()
			return nil, err
		}
	}
	if s.anyModel == nil && len(s.pools) == 1 {
		s.anyModel = s.pools[0]
	}
	s.listModels(cfg, time.Now())
	return s, nil
}

func (s *snapshot) addPool(cfg *configs.Pool, m *metricSet) error {
	secure, err := cfg.TLS.ClientConfig()
	if err != nil {
		return fmt.Errorf("pool %q: tls: %w", cfg.Name, err)
	}
	spec := upstream.PoolSpec{
		Name:       cfg.Name,
		Balance:    cfg.Balance,
		LoadFactor: cfg.LoadFactor,
		Prefix:     upstream.Prefix{MaxBytes: int64(cfg.Prefix.MaxBytes), Block: int(cfg.Prefix.Block)},
		Timeouts:   upstream.Timeouts(cfg.Timeouts),
		Protocol:   cfg.Protocol,
		Health: upstream.Health{
			Path: cfg.Health.Path, Interval: cfg.Health.Interval, Timeout: cfg.Health.Timeout,
			UnhealthyAfter: cfg.Health.UnhealthyAfter, HealthyAfter: cfg.Health.HealthyAfter, FailOpen: cfg.Health.FailOpen,
		},
		Breaker: upstream.Breaker(cfg.Breaker),
		Retry:   upstream.Retry{Attempts: cfg.Retry.Attempts, Budget: cfg.Retry.Budget},
		Limits: upstream.Limits{
			PerWorker:    cfg.Limits.MaxInflightPerWorker,
			Pool:         cfg.Limits.MaxInflight,
			Queue:        cfg.Limits.MaxQueue,
			QueueTimeout: cfg.Limits.QueueTimeout,
		},
		TLS:       secure,
		Fields:    fieldEdits(&cfg.Headers),
		AbortPath: abortTarget(cfg.Engine),
	}
	for _, w := range cfg.Workers {
		spec.Workers = append(spec.Workers, upstream.WorkerSpec{URL: w.URL, Weight: w.Weight})
	}
	up, err := upstream.NewPool(spec)
	if err != nil {
		return err
	}
	p := &pool{up: up, queueWait: m.queueWait(cfg.Name), aborts: spec.AbortPath != ""}
	for i := range p.series {
		p.series[i] = m.series(probe.Surface(i), cfg.Name)
	}
	s.pools = append(s.pools, p)
	if len(cfg.Models) == 0 && s.catchAll == nil {
		s.anyModel, s.catchAll = p, p
	}
	for _, name := range cfg.Models {
		s.models[name] = &target{pool: p, name: []byte(name)}
	}
	for alias, name := range cfg.Aliases {
		lit, err := policy.NewLiteral("model", marshal(name))
		if err != nil {
			return fmt.Errorf("pool %q: alias %q: %w", cfg.Name, alias, err)
		}
		s.models[alias] = &target{pool: p, name: []byte(name), literal: lit}
	}
	return nil
}

// fieldEdits returns the edits of the header that a pool makes, in the order of
// the names.
func fieldEdits(h *configs.Headers) upstream.FieldEdits {
	var e upstream.FieldEdits
	for _, name := range slices.Sorted(maps.Keys(h.Set)) {
		e.Set = append(e.Set, h1.Field{Name: []byte(name), Value: []byte(h.Set[name])})
	}
	for _, name := range h.Remove {
		e.Remove = append(e.Remove, []byte(name))
	}
	return e
}

// canServe reports whether any pool has a worker that may be chosen.
func (s *snapshot) canServe() bool {
	for _, p := range s.pools {
		if p.up.Usable() > 0 {
			return true
		}
	}
	return false
}

// close ends the pools.
func (s *snapshot) close() {
	for _, p := range s.pools {
		p.up.Close()
	}
}
