package configs

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/policy"
)

// Validate checks every rule that the types do not hold already. Load has
// called it; it is for a Config that was made by hand. The error is a Faults.
func (c *Config) Validate() error { return c.faults().err() }

func (c *Config) faults() Faults {
	v := validator{origins: c.origins}
	v.server(&c.Server)
	v.pools(c)
	v.contracts(c)
	v.routing(c)
	v.layers(c)
	v.rollouts(c)
	v.stores(c)
	v.capture(&c.Capture)
	v.sim(&c.Sim)
	v.log(&c.Log)
	return v.faults
}

// validator collects the faults of one Config.
type validator struct {
	origins origins
	faults  Faults
}

// fail adds a fault of the value at path.
func (v *validator) fail(path, format string, args ...any) {
	v.faults.add(v.origins.of(path), path, fmt.Sprintf(format, args...))
}

func (v *validator) oneOf(path, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	msg := "must be one of " + strings.Join(allowed, ", ") + ", got " + quote(value)
	if near := nearest(value, allowed); near != "" {
		msg += "; did you mean " + near + "?"
	}
	v.fail(path, "%s", msg)
}

func (v *validator) server(s *Server) {
	listen, listenOK := v.address("server.listen", s.Listen)
	admin, adminOK := v.address("server.admin_listen", s.AdminListen)
	if listenOK && adminOK && listen.clashes(admin) {
		v.fail("server.admin_listen", "must not be the address of server.listen, %s", s.Listen)
		adminOK = false
	}
	v.admin(s, admin, adminOK)
	v.serverTLS(&s.TLS, "server.tls")
	v.cors(&s.CORS)
	if s.MaxBody < 1 {
		v.fail("server.max_body", "must be at least 1 byte")
	}
	if s.DrainDelay > s.Drain {
		v.fail("server.drain_delay", "is a part of server.drain and must not be longer: %v, of %v", s.DrainDelay, s.Drain)
	}
	seen := make(map[string]int, len(s.PassthroughPaths))
	for i, p := range s.PassthroughPaths {
		path := itemPath("server.passthrough_paths", i)
		if first, ok := seen[p]; ok {
			v.fail(path, "repeats %s", itemPath("server.passthrough_paths", first))
			continue
		}
		seen[p] = i
		if msg := passthroughFault(p); msg != "" {
			v.fail(path, "%s, got %s", msg, quote(p))
		}
	}
}

// address is a listen address that can be bound.
type address struct{ host, port string }

func (v *validator) address(path, value string) (a address, ok bool) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		v.fail(path, "must be host:port, such as 127.0.0.1:30000 or :30000, got %s", quote(value))
		return address{}, false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		v.fail(path, "must have a port from 0 to 65535, got %s", quote(value))
		return address{}, false
	}
	return address{host, port}, true
}

// clashes reports whether a and b cannot both be bound.
func (a address) clashes(b address) bool {
	return a.port == b.port && a.port != "0" && (a.host == b.host || a.everywhere() || b.everywhere())
}

func (a address) everywhere() bool {
	ip := net.ParseIP(a.host)
	return a.host == "" || ip != nil && ip.IsUnspecified()
}

// governedPaths are the paths that the router serves itself or governs (spec
// §1); those that end in a slash are all paths below them.
var governedPaths = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/generate",
	"/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/classify", "/v1/moderations",
	"/v1/audio/", "/v1/images/", "/v1/ocr",
	"/tokenize", "/detokenize", "/v1/tokenize", "/v1/detokenize",
	"/v1/models", "/v1/models/",
	"/health", "/healthz", "/liveness", "/ready", "/readyz", "/readiness",
}

// passthroughFault says why p must not be passed through, or returns "". A
// path with another spelling of a governed one would reach the worker, which
// may read both alike, ungoverned: so only plain spellings are taken.
func passthroughFault(p string) string {
	if !strings.HasPrefix(p, "/") {
		return "must begin with /"
	}
	dots := func(segment string) bool { return segment == "." || segment == ".." }
	if strings.Contains(p, "//") || slices.ContainsFunc(strings.Split(p, "/"), dots) {
		return "must not have empty, . or .. segments"
	}
	for i := range len(p) {
		if c := p[i]; !isAlphanumeric(c) && !strings.ContainsRune("/-._~!$&'()*+,;=:@", rune(c)) {
			return "must hold only letters, digits and -._~!$&'()*+,;=:@/ (no query, no % escapes)"
		}
	}
	if governed := governedBy(p); governed != "" {
		return "must not be the path of a surface (" + governed + ")"
	}
	return ""
}

// governedBy returns the governed path that p is a spelling of, or "". Servers
// differ in how they read a final slash and the case of letters.
func governedBy(p string) string {
	p = strings.ToLower(strings.TrimRight(p, "/"))
	for _, g := range governedPaths {
		if p == strings.TrimSuffix(g, "/") || strings.HasSuffix(g, "/") && strings.HasPrefix(p, g) {
			return g
		}
	}
	return ""
}

// contract leaves the domains of the parameters to the package that holds
// requests to them.
func (v *validator) contract(path string, spec policy.ContractSpec) {
	_, err := policy.NewContract(spec)
	v.specErrors(path, err)
}

func (v *validator) sim(s *Sim) {
	v.within("sim.engines", s.Engines, 1, 64)
	v.within("sim.words", s.Words, 1, 1<<20)
}

func (v *validator) pools(c *Config) {
	pools, named := c.Pools, c.namedPools()
	names := make(map[string]string, len(pools)) // name: path
	served := make(map[string]string)            // model or alias: path
	catchAll := ""
	for i := range pools {
		p, path := &pools[i], itemPath("pools", i)
		if msg := poolNameFault(p.Name); msg != "" {
			v.fail(path+".name", "%s", msg)
		} else if first, ok := names[p.Name]; ok {
			v.fail(path+".name", "%s is the name of %s, too", quote(p.Name), first)
		} else {
			names[p.Name] = path
		}
		v.oneOf(path+".engine", p.Engine, "sglang", "vllm", "openai")
		v.oneOf(path+".balance", p.Balance, "least_requests", "round_robin", "random", "power_of_two", "consistent_hash", "prefix_aware")
		v.oneOf(path+".protocol", p.Protocol, "auto", "http1", "h2c")
		v.models(p, path, served, named[p.Name])
		if len(p.Models) == 0 && catchAll != "" {
			v.fail(path+".models", "must be set: only one pool may serve what no other lists, and that is %s", catchAll)
		} else if len(p.Models) == 0 {
			catchAll = path
		}
		v.workers(p, path+".workers")
		v.discover(&p.Discover, path+".discover")
		v.windows(p, path)
		v.tls(p, path)
		v.headers(&p.Headers, path+".headers")
		v.failures(p, path)
	}
}

// failures checks what a pool does about workers that fail or are full.
func (v *validator) failures(p *Pool, path string) {
	h := &p.Health
	if !strings.HasPrefix(h.Path, "/") || strings.ContainsFunc(h.Path, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) {
		v.fail(path+".health.path", "must be a path such as /health, got %s", quote(h.Path))
	}
	v.atLeast(path+".health.timeout", h.Timeout, time.Millisecond)
	if h.Interval != 0 {
		v.atLeast(path+".health.interval", h.Interval, time.Millisecond)
	}
	v.within(path+".health.unhealthy_after", h.UnhealthyAfter, 1, 1000)
	v.within(path+".health.healthy_after", h.HealthyAfter, 1, 1000)
	v.within(path+".breaker.failures", p.Breaker.Failures, 0, 1_000_000)
	v.atLeast(path+".breaker.cooldown", p.Breaker.Cooldown, time.Millisecond)
	v.within(path+".retry.attempts", p.Retry.Attempts, 0, 10)
	v.within(path+".limits.max_inflight_per_worker", p.Limits.MaxInflightPerWorker, 0, 1_000_000)
	v.within(path+".limits.max_inflight", p.Limits.MaxInflight, 0, 1_000_000)
	v.within(path+".limits.max_queue", p.Limits.MaxQueue, 0, 1_000_000)
	v.atLeast(path+".limits.queue_timeout", p.Limits.QueueTimeout, time.Millisecond)
	if f := p.LoadFactor; !(f >= 1 && f <= 100) {
		v.fail(path+".load_factor", "must be from 1 to 100, got %v", f)
	}
	if m := p.Prefix.MaxBytes; m < 64<<10 || m > 16<<30 {
		v.fail(path+".prefix.max_bytes", "must be from 64KiB to 16GiB, got %s", m)
	}
	if b := p.Prefix.Block; b < 64 || b > 64<<10 {
		v.fail(path+".prefix.block", "must be from 64 to 64KiB, got %s", b)
	}
	for i := range p.Workers {
		v.within(itemPath(path+".workers", i)+".weight", p.Workers[i].Weight, 0, 1000)
	}
	v.within(path+".health.min_healthy", h.MinHealthy, 0, 100_000)
	if b := p.Retry.Backoff; b.Max < b.Base {
		v.fail(path+".retry.backoff.max", "must not be shorter than base, %s, got %s", b.Base, b.Max)
	}
	if b := p.Retry.Budget; !(b >= 0 && b <= 1) {
		v.fail(path+".retry.budget", "must be from 0 to 1, got %v", b)
	}
}

func (v *validator) within(path string, n, least, most int) {
	if n < least || n > most {
		v.fail(path, "must be from %d to %d, got %d", least, most, n)
	}
}

func (v *validator) atLeast(path string, d, least time.Duration) {
	if d < least {
		v.fail(path, "must be at least %s, got %s", least, d)
	}
}

func poolNameFault(name string) string {
	switch {
	case name == "":
		return "must be set"
	case len(name) > 64:
		return "must have at most 64 characters, got " + quote(name)
	case !isAlphanumeric(name[0]) || !plainWord(strings.ReplaceAll(name, ".", "-")):
		return "must be letters, digits, dots, dashes and underscores and begin with a letter or digit, got " + quote(name)
	}
	return ""
}

// namedPools returns the names of the pools that decisions lead to.
func (c *Config) namedPools() map[string]bool {
	named := map[string]bool{}
	for i := range c.Routing.Decisions {
		d := &c.Routing.Decisions[i]
		named[d.Pool] = true
		for _, s := range d.Pools {
			named[s.Name] = true
		}
		for _, name := range d.Fallback {
			named[name] = true
		}
	}
	return named
}

// models checks the names that lead to a pool; served holds those of the pools
// before. A name of two pools leads to the first one. It may be given to another
// one only where a decision leads to that (named): otherwise nothing does.
func (v *validator) models(p *Pool, path string, served map[string]string, named bool) {
	own := map[string]bool{}
	serve := func(name, at string) {
		if first, ok := served[name]; ok && (own[name] || !named) {
			v.fail(at, "%s is served by %s already", quote(name), first)
			return
		} else if ok {
			return
		}
		own[name] = true
		served[name] = at
	}
	for i, model := range p.Models {
		serve(model, itemPath(path+".models", i))
	}
	for _, alias := range slices.Sorted(maps.Keys(p.Aliases)) {
		at := childPath(path+".aliases", alias)
		serve(alias, at)
		target := p.Aliases[alias]
		if slices.Contains(p.Models, target) {
			continue
		}
		msg := "must name one of the models of the pool, got " + quote(target)
		if near := nearest(target, p.Models); near != "" {
			msg += "; did you mean " + near + "?"
		}
		v.fail(at, "%s", msg)
	}
}

func (v *validator) workers(p *Pool, path string) {
	if len(p.Workers) == 0 && p.Discover.none() {
		v.fail(path, "must hold at least one worker")
	}
	seen := make(map[string]string, len(p.Workers)) // host:port: path
	for i, w := range p.Workers {
		at := itemPath(path, i) + ".url"
		host, msg := workerHost(w.URL)
		if msg != "" {
			v.fail(at, "%s", msg)
		} else if first, ok := seen[host]; ok {
			v.fail(at, "%s is the url of %s, too", quote(w.URL), first)
		} else {
			seen[host] = itemPath(path, i)
		}
	}
}

// workerHost returns the host and port of a worker's URL, in lower case, or
// what is wrong with it.
func workerHost(raw string) (host, msg string) {
	const form = "must be http://host:port or https://host:port"
	if raw == "" {
		return "", "must be set"
	}
	if strings.Contains(raw, "@") {
		return "", form + " without a user or password" // which are not echoed
	}
	_, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", form + ", got " + quote(raw) + ": put http:// before it"
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", form + ", got " + quote(raw)
	case u.Host != rest:
		return "", form + " and nothing after it, got " + quote(raw)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return "", form + " with a port from 1 to 65535, got " + quote(raw)
	}
	return strings.ToLower(u.Host), ""
}
