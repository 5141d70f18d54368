package router

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"sluice/configs"
	"sluice/probe"
	"sluice/upstream"
	"sluice/upstream/h1"
)

// maxModelName bounds the name of a model in bytes.
const maxModelName = 512

// snapshot is one configuration, compiled. It does not change once it serves;
// requests under way keep the one they began with.
type snapshot struct {
	cfg          *configs.Config
	rules        *Rules
	maxBody      int64
	writeTimeout time.Duration
	cors         *cors // nil: none

	capture *capture // nil: none

	pools  []*pool         // by destination.index
	counts []*routeMetrics // by route.index

	list     []byte            // the answer to GET /v1/models
	listOnes map[string][]byte // and to GET /v1/models/{id}

	requests atomic.Int64 // that hold it
	retired  atomic.Bool  // another one serves
	left     sync.Once
	drained  chan struct{} // closed when it is retired and no request holds it
}

// pool is an upstream pool with the metrics of each surface.
type pool struct {
	up        *upstream.Pool
	spec      upstream.PoolSpec
	series    [probe.NumSurfaces]*series
	queueWait *metrics.PrometheusHistogram
	unthought *metrics.Counter // that asked of thinking what the pool cannot do
	fallbacks *metrics.Counter // requests that came from another pool
	discovery *discovery       // nil where all workers are configured
	aborts    bool             // its workers can be told to stop a request
}

// newSnapshot compiles cfg. The pools of old, which may be nil, that cfg has as
// well are changed to what it says, and are its own from then on. On an error
// they are as they were.
func newSnapshot(cfg *configs.Config, r *Router, old *snapshot) (*snapshot, error) {
	m := r.metrics
	rules, err := NewRules(cfg)
	if err != nil {
		return nil, err
	}
	if old != nil {
		rules.adopt(old.rules)
	}
	s := &snapshot{
		cfg:          cfg,
		rules:        rules,
		maxBody:      int64(cfg.Server.MaxBody),
		writeTimeout: cfg.Server.WriteTimeout,
		cors:         newCORS(&cfg.Server.CORS),
		drained:      make(chan struct{}),
	}
	if s.capture, err = old.nextCapture(cfg, r.log); err != nil {
		return nil, err
	}
	if err := s.addPools(cfg, m, old); err != nil {
		s.closeCapture(old)
		return nil, err
	}
	for i, p := range s.pools {
		p.discover(&cfg.Pools[i].Discover, old.pool(p.spec.Name), r.log)
	}
	for _, rt := range append([]*route{rules.plain}, rules.routes...) {
		s.counts = append(s.counts, m.route(rt))
	}
	s.listModels(cfg, time.Now())
	return s, nil
}

// addPools makes the new pools first and checks what becomes of those of old, so
// that nothing is left to fail once the first of them has changed.
func (s *snapshot) addPools(cfg *configs.Config, m *metricSet, old *snapshot) (err error) {
	s.pools = make([]*pool, len(cfg.Pools))
	var made []*pool
	defer func() {
		if err != nil {
			for _, p := range made {
				p.up.Close()
			}
		}
	}()
	for i := range cfg.Pools {
		spec, err := poolSpec(&cfg.Pools[i])
		if err != nil {
			return err
		}
		p := newPool(spec, m)
		s.pools[i] = p
		if before := old.pool(spec.Name); before != nil {
			p.up = before.up
			err = p.up.Check(spec)
		} else if p.up, err = upstream.NewPool(spec); err == nil {
			made = append(made, p)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range s.pools {
		if old.pool(p.spec.Name) == nil {
			continue
		}
		if err := p.up.Apply(p.spec); err != nil {
			panic("BUG: a pool does not take what it was checked for: " + err.Error())
		}
	}
	return nil
}

func newPool(spec upstream.PoolSpec, m *metricSet) *pool {
	p := &pool{spec: spec, queueWait: m.queueWait(spec.Name), fallbacks: m.fallbacks(spec.Name), unthought: m.unthought(spec.Name), aborts: spec.AbortPath != ""}
	for i := range p.series {
		p.series[i] = m.series(probe.Surface(i), spec.Name)
	}
	return p
}

// pool returns the pool with the name, or nil. A nil snapshot has none.
func (s *snapshot) pool(name string) *pool {
	if s == nil {
		return nil
	}
	for _, p := range s.pools {
		if p.spec.Name == name {
			return p
		}
	}
	return nil
}

// release ends what a request had with the snapshot.
func (s *snapshot) release() {
	if s.requests.Add(-1) == 0 && s.retired.Load() {
		s.left.Do(func() { close(s.drained) })
	}
}

// retire says that no request will take the snapshot any more.
func (s *snapshot) retire() {
	s.retired.Store(true)
	s.requests.Add(1)
	s.release() // which tells, if there was no other
}

// poolSpec returns what the upstream pool of pc is made of.
func poolSpec(pc *configs.Pool) (upstream.PoolSpec, error) {
	secure, err := pc.TLS.ClientConfig()
	if err != nil {
		return upstream.PoolSpec{}, fmt.Errorf("pool %q: tls: %w", pc.Name, err)
	}
	spec := upstream.PoolSpec{
		Name:       pc.Name,
		Balance:    pc.Balance,
		LoadFactor: pc.LoadFactor,
		Prefix:     upstream.Prefix{MaxBytes: int64(pc.Prefix.MaxBytes), Block: int(pc.Prefix.Block)},
		Timeouts:   upstream.Timeouts(pc.Timeouts),
		Protocol:   pc.Protocol,
		Health: upstream.Health{
			Path: pc.Health.Path, Interval: pc.Health.Interval, Timeout: pc.Health.Timeout,
			UnhealthyAfter: pc.Health.UnhealthyAfter, HealthyAfter: pc.Health.HealthyAfter, MinHealthy: pc.Health.MinHealthy, FailOpen: pc.Health.FailOpen,
		},
		Breaker: upstream.Breaker(pc.Breaker),
		Retry:   upstream.Retry{Attempts: pc.Retry.Attempts, Budget: pc.Retry.Budget, Backoff: upstream.Backoff(pc.Retry.Backoff)},
		Limits: upstream.Limits{
			PerWorker:    pc.Limits.MaxInflightPerWorker,
			Pool:         pc.Limits.MaxInflight,
			Queue:        pc.Limits.MaxQueue,
			QueueTimeout: pc.Limits.QueueTimeout,
		},
		TLS:       secure,
		Fields:    fieldEdits(&pc.Headers),
		AbortPath: abortTarget(pc.Engine),
	}
	if name, _ := sourceOf(&pc.Discover); name != "" {
		spec.Sources = []string{name}
	}
	for _, w := range pc.Workers {
		spec.Workers = append(spec.Workers, upstream.WorkerSpec{URL: w.URL, Weight: w.Weight})
	}
	return spec, nil
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

// closePools ends the pools and the capture that next, which may be nil, has not
// taken over.
func (s *snapshot) closePools(next *snapshot) {
	s.closeCapture(next)
	for _, p := range s.pools {
		if n := next.pool(p.spec.Name); n == nil || n.up != p.up {
			p.discovery.end()
			p.up.Close()
		}
	}
}
