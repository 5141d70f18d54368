package router

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"

	"sluice/upstream"
)

// workerView is a worker as the admin listener shows it.
type workerView struct {
	// ID names the worker in paths: the pool, an @ and the host and port.
	ID          string    `json:"id"`
	Pool        string    `json:"pool"`
	URL         string    `json:"url"`
	Weight      int       `json:"weight"`
	Source      string    `json:"source"`
	State       string    `json:"state"`
	Since       time.Time `json:"since"`
	Load        int64     `json:"load"`
	Picks       uint64    `json:"picks"`
	Failures    uint64    `json:"failures"`
	Healthy     bool      `json:"healthy"`
	Breaker     string    `json:"breaker"`
	Connections int       `json:"connections"`
	Idle        int       `json:"connections_idle"`
	Protocol    string    `json:"protocol"`
	Streaming   int       `json:"connections_h2c"`
}

func (r *Router) workerViews() []workerView {
	views := []workerView{}
	for _, p := range r.snap.Load().pools {
		for _, w := range append(p.up.Workers(), p.up.Leaving()...) {
			open, idle := w.Connections()
			state, since := w.State()
			views = append(views, workerView{
				ID: workerID(p.up.Name(), w.URL()), Pool: p.up.Name(), URL: w.URL(), Weight: w.Weight(),
				Source: w.Source(), State: state.String(), Since: since,
				Load: w.Load(), Picks: w.Picks(), Failures: w.Failures(),
				Healthy: w.Healthy(), Breaker: p.up.Breaker(w).String(), Connections: open, Idle: idle,
				Protocol: w.Protocol(), Streaming: w.Streams(),
			})
		}
	}
	return views
}

func workerID(pool, url string) string {
	_, host, _ := strings.Cut(url, "://")
	return pool + "@" + host
}

// serveWorkers lists the workers, or adds one.
func (r *Router) serveWorkers(ctx *fasthttp.RequestCtx) {
	if !ctx.IsPost() {
		answerJSON(ctx, struct {
			Workers []workerView `json:"workers"`
		}{r.workerViews()})
		return
	}
	var add struct {
		Pool   string `json:"pool"`
		URL    string `json:"url"`
		Weight int    `json:"weight"`
	}
	dec := sonic.Config{DisallowUnknownFields: true}.Froze()
	if err := dec.Unmarshal(ctx.PostBody(), &add); err != nil || add.Weight < 0 || add.Weight > 1000 {
		adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, `want {"pool": "name", "url": "http://host:port", "weight": 1 to 1000}`)
		return
	}
	snap := r.snap.Load()
	p := snap.pool(add.Pool)
	if add.Pool == "" && len(snap.pools) == 1 {
		p = snap.pools[0]
	}
	if p == nil {
		adminError(ctx, fasthttp.StatusNotFound, codeNotFound, "there is no such pool")
		return
	}
	r.answerWorker(ctx, p, add.URL, p.up.Add(upstream.WorkerSpec{URL: add.URL, Weight: add.Weight}), "added")
}

// workerPrefix begins the paths of single workers.
const workerPrefix = "/workers/"

// workerPage returns what the admin listener does at the path of a worker: id,
// id/drain or id/undrain.
func workerPage(path string) (adminPage, bool) {
	id, verb, _ := strings.Cut(path, "/")
	methods, do, done := "POST", (*upstream.Pool).Drain, "draining"
	switch verb {
	case "":
		methods, do, done = "DELETE", (*upstream.Pool).Remove, "removed"
	case "undrain":
		do, done = (*upstream.Pool).Undrain, "taking requests"
	case "drain":
	default:
		return adminPage{}, false
	}
	return adminPage{methods, func(r *Router, ctx *fasthttp.RequestCtx) {
		pool, host, _ := strings.Cut(id, "@")
		p := r.snap.Load().pool(pool)
		if p == nil {
			adminError(ctx, fasthttp.StatusNotFound, codeNotFound, "there is no such pool: a worker's id is pool@host:port")
			return
		}
		for _, w := range p.up.Workers() {
			if u, err := url.Parse(w.URL()); err == nil && strings.EqualFold(u.Host, host) {
				r.answerWorker(ctx, p, w.URL(), do(p.up, w.URL()), done)
				return
			}
		}
		r.answerWorker(ctx, p, "", upstream.ErrNotMember, "")
	}}, true
}

// answerWorker answers what became of a change to the workers of p.
func (r *Router) answerWorker(ctx *fasthttp.RequestCtx, p *pool, url string, err error, done string) {
	switch {
	case errors.Is(err, upstream.ErrNotMember):
		adminError(ctx, fasthttp.StatusNotFound, codeNotFound, "there is no such worker")
	case err != nil:
		adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, err.Error())
	default:
		r.log.Info("a worker was changed by hand", "pool", p.up.Name(), "worker", url, "is", done)
		answerJSON(ctx, struct {
			ID string `json:"id"`
			Is string `json:"is"`
		}{workerID(p.up.Name(), url), done})
	}
}
