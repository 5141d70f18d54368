package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/configs"
	"sluice/probe"
	"sluice/router/cache"
	"sluice/router/record"
	"sluice/upstream/h1"
)

const (
	headerCache = "x-sluice-cache"
	// What response_cache has where the configuration says nothing.
	defaultTTL      = time.Hour
	defaultMaxEntry = 1 << 20
)

// caching is the plugin response_cache of one decision, compiled.
type caching struct {
	namespace []byte
	byTenant  bool // the tenant is the namespace
	salt      []byte
	ttl       time.Duration
	maxEntry  int
	coalesce  bool
	// pools is the fingerprint of the pools that may answer, by destination where
	// the model decides; rules are those that edit the body.
	pools [][]byte
	rules []byte
}

// newCaching compiles the plugin of d.
func newCaching(cfg *configs.Config, d *configs.Decision, p *configs.PluginConfiguration) *caching {
	c := &caching{
		namespace: []byte(p.Namespace),
		byTenant:  p.Namespace == "tenant",
		salt:      []byte(p.Salt),
		ttl:       defaultTTL,
		maxEntry:  defaultMaxEntry,
		coalesce:  p.Coalesce,
		rules:     editorsOf(cfg, d),
	}
	if p.TTL != nil {
		c.ttl = *p.TTL
	}
	if p.MaxEntry != nil {
		c.maxEntry = int(*p.MaxEntry)
	}
	var all []cache.Source
	for _, pc := range cfg.Destinations(d) {
		all = append(all, cache.Source{Models: pc.Models, ExtraBody: []byte(pc.ExtraBody)})
	}
	byModel := d.Pool == "" && len(d.Pools) == 0
	for i := range cfg.Pools {
		sources := all
		if byModel {
			pc := &cfg.Pools[i]
			sources = []cache.Source{{Models: pc.Models, ExtraBody: []byte(pc.ExtraBody)}}
			for _, name := range d.Fallback {
				for j := range cfg.Pools {
					if f := &cfg.Pools[j]; f.Name == name && i != j {
						sources = append(sources, cache.Source{Models: f.Models, ExtraBody: []byte(f.ExtraBody)})
					}
				}
			}
		}
		c.pools = append(c.pools, cache.Fingerprint(sources...))
	}
	return c
}

// editorsOf returns a digest of all that the configuration says of how bodies
// are edited that d takes: a change of it makes other answers.
func editorsOf(cfg *configs.Config, d *configs.Decision) []byte {
	type editors struct {
		Fleet    *configs.SamplingContract
		Decision configs.Decision
		Pools    []configs.Pool
	}
	e := editors{Fleet: cfg.Contract, Decision: *d}
	e.Decision.Rules, e.Decision.Plugins, e.Decision.Description = nil, nil, ""
	for _, p := range d.Plugins {
		if p.Type != configs.ResponseCache {
			e.Decision.Plugins = append(e.Decision.Plugins, p)
		}
	}
	for _, pc := range cfg.Destinations(d) {
		e.Pools = append(e.Pools, configs.Pool{
			Engine: pc.Engine, Aliases: pc.Aliases, Contract: pc.Contract, ModelContracts: pc.ModelContracts,
			ContextWindows: pc.ContextWindows, Thinking: pc.Thinking,
		})
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic("BUG: a valid configuration cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// newCache makes the store that cfg names; nil is off.
func newCache(cfg *configs.Cache, log *slog.Logger) (*cache.Cache, error) {
	stats := new(cache.Stats)
	switch cfg.Store {
	case "memory":
		return cache.New(cache.NewMemory(int64(cfg.MaxBytes), stats), stats), nil
	case "redis":
		o := cache.RedisOptions{
			Addr: cfg.Redis.Addr, Username: cfg.Redis.Username, Password: string(cfg.Redis.Password),
			DB: cfg.Redis.DB, Prefix: cfg.Redis.Prefix, Timeout: cfg.Redis.Timeout,
		}
		if cfg.Redis.TLS {
			o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		store, err := cache.NewRedis(o, stats, log)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		return cache.New(store, stats), nil
	}
	return nil, nil
}

// cached is what a request has to do with the cache.
type cached struct {
	key     cache.Key
	builder cache.Builder
	seat    cache.Seat
	capture cache.Capture
	usage   bool // the client wants the usage in its stream
}

// recall answers the request from the cache, if its decision has one and that has
// an answer. It reports whether the request has ended.
func (q *request) recall() bool {
	plan, store := q.route.cache, q.router.cache
	if plan == nil || store == nil {
		return false
	}
	directives := q.cacheControl()
	if !q.json() || q.endpoint.kind != kindForward || directives.NoStore {
		store.Stats().Bypass.Add(1)
		q.cacheState = "bypass"
		return false
	}
	q.cacheState = "miss"
	c := q.caching()
	q.sum(plan, c)
	if directives.NoCache {
		store.Stats().Bypass.Add(1)
		q.storing = true
		return false
	}
	if e := store.Get(&c.key, c.usage); e != nil {
		q.replay(e)
		return true
	}
	q.storing = true
	if !plan.coalesce || store.Join(&c.key, &c.seat) {
		return false
	}
	c.seat.Prepare()
	q.arm(&c.seat)
	if q.mustStop() {
		c.seat.Cancel()
	}
	e, err := c.seat.Wait(q.pool.spec.Timeouts.FirstByte, c.usage)
	switch {
	case e != nil:
		q.replay(e)
		return true
	case err == cache.ErrCanceled:
		q.interrupted()
		return true
	}
	return false // alone
}

// caching returns the request's memory for the cache.
func (q *request) caching() *cached {
	if q.cached == nil {
		q.cached = new(cached)
	}
	return q.cached
}

// cacheControl reads what the client says about caches.
func (q *request) cacheControl() (d cache.Directives) {
	for _, v := range q.ctx.Request.Header.PeekAll(fasthttp.HeaderCacheControl) {
		d = d.Or(cache.ParseDirectives(v))
	}
	return d
}

// sum makes the key of the request.
func (q *request) sum(plan *caching, c *cached) {
	b := &c.builder
	b.Reset()
	b.Part(cache.PartPool, plan.pools[q.dest.index])
	namespace := plan.namespace
	if plan.byTenant {
		// Framed apart, so that no tenant gets the entries of a namespace.
		b.Part(cache.PartNamespace, namespace, q.who.tenant)
	} else {
		b.Part(cache.PartNamespace, namespace)
	}
	b.Part(cache.PartSalt, plan.salt)
	b.Part(cache.PartSampling, q.intent)
	var model []byte
	if name := q.renamed(&q.intake); name != nil {
		model = name.name
	}
	b.Part(cache.PartPolicy, plan.rules, model)
	b.Part(cache.PartPolicy, q.sides.mark())
	if q.dest.thinking != nil {
		b.Part(cache.PartThinking, bytes.ToLower(q.who.think))
	}
	target := q.ctx.Request.Header.RequestURI()
	if s := q.endpoint.surface; len(target) > len(q.path) || s == probe.SurfaceAudio || s == probe.SurfaceImages || s == probe.SurfaceTokenize || s == probe.SurfaceDetokenize {
		b.Part(cache.PartTarget, target)
	}
	for name, value := range q.ctx.Request.Header.All() {
		if cache.Varies(name) {
			b.Part(cache.PartField, bytes.ToLower(name), value)
		}
	}
	b.Body(q.endpoint.surface, q.body, &q.scan)
	c.key = b.Sum()
	c.usage = q.stream && q.asksUsage()
}

// replay answers with an entry of the cache: a stream as it was sent, in one
// piece.
func (q *request) replay(e *cache.Entry) {
	resp := &q.ctx.Response
	q.status = fasthttp.StatusOK
	resp.Header.SetStatusCode(q.status)
	q.fields = e.AppendFields(q.fields[:0])
	for _, f := range q.fields {
		if bytes.EqualFold(f.Name, nameContentType) {
			resp.Header.SetContentTypeBytes(f.Value)
		} else {
			resp.Header.AddBytesKV(f.Name, f.Value)
		}
	}
	resp.Header.AddBytesKV(nameRequestID, q.id)
	resp.Header.Set(headerCache, "hit")
	resp.Header.Set(fasthttp.HeaderAge, strconv.FormatInt(e.Age(time.Now()), 10))
	body, rest := e.Body(), []byte(nil)
	if e.Streamed() {
		body, rest = e.Stream(q.cached.usage)
	}
	if len(rest) > 0 {
		body = append(append(make([]byte, 0, len(body)+len(rest)), body...), rest...)
	}
	resp.SetBodyRaw(body)
	q.bytesOut = int64(len(body))
	q.cacheState = "hit"
	q.outcome = outcomeOK
	q.recordHit(e.Streamed())
	q.finish(q.status, "")
}

// beginGather begins to gather the answer of a worker, if it may be stored.
func (q *request) beginGather(fields []h1.Field) {
	if !q.storing {
		return
	}
	c := q.cached
	shape := cache.Shape{MaxEntry: q.route.cache.maxEntry, Streamed: q.sse, Usage: c.usage || q.hideUsage}
	if q.endpoint.surface.Generative() && q.stream != q.sse || !c.capture.Begin(q.status, fields, shape) {
		q.forget()
	}
}

// gather takes the next piece of the answer.
func (q *request) gather(p []byte) {
	if q.storing && !q.cached.capture.Write(p) {
		q.forget()
	}
}

// keep stores the answer, which has come whole.
func (q *request) keep() {
	if q.storing {
		q.storing = false
		c := q.cached
		c.seat.Land(q.router.cache.Commit(&c.key, &c.capture, q.route.cache.ttl))
	}
}

// forget gives up to store an answer, and lets those go that wait for it.
func (q *request) forget() {
	if q.storing {
		q.storing = false
		q.cached.capture.Drop()
		q.cached.seat.Land(nil)
	}
}

// openStores opens the cache and the records.
func (r *Router) openStores(cfg *configs.Config) (err error) {
	rc := &cfg.Records
	r.records, err = record.Open(record.Options{
		Store: rc.Store, DSN: rc.Database(), Queue: rc.Queue, Batch: rc.Batch, Flush: rc.Flush, Retain: rc.Retain,
		Required: rc.Required, Log: r.log,
	})
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	if r.cache, err = newCache(&cfg.Cache, r.log); err != nil {
		return errors.Join(err, r.records.Close(context.Background()))
	}
	return nil
}

// closeStores ends the cache and the records, within ctx. Records that are lost by
// it are no failure of the router.
func (r *Router) closeStores(ctx context.Context) {
	if r.cache != nil {
		r.cache.Close()
	}
	if err := r.records.Close(ctx); err != nil {
		r.log.Warn("cannot close the records", "error", err.Error())
	}
}
