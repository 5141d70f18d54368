package router

import (
	"github.com/valyala/fasthttp"
)

// workerView is a worker as the admin listener shows it.
type workerView struct {
	Pool        string `json:"pool"`
	URL         string `json:"url"`
	Load        int64  `json:"load"`
	Picks       uint64 `json:"picks"`
	Failures    uint64 `json:"failures"`
	Healthy     bool   `json:"healthy"`
	Breaker     string `json:"breaker"`
	Connections int    `json:"connections"`
	Idle        int    `json:"connections_idle"`
	Protocol    string `json:"protocol"`
	Streaming   int    `json:"connections_h2c"`
}

// serveAdmin is fasthttp's handler for the admin listener.
func (r *Router) serveAdmin(ctx *fasthttp.RequestCtx) {
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		writeError(ctx, shapeOpenAI, fasthttp.StatusMethodNotAllowed, codeMethodNotAllowed, "method not allowed; use GET, HEAD", "")
		return
	}
	switch string(ctx.Path()) {
	case "/metrics":
		ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
		r.writeMetrics(ctx.Response.BodyWriter())
	case "/workers":
		ctx.SetContentType("application/json")
		ctx.SetBody(marshal(struct {
			Workers []workerView `json:"workers"`
		}{r.workerViews()}))
	case "/version":
		ctx.SetContentType("application/json")
		ctx.SetBody(marshal(struct {
			Version string `json:"version"`
		}{r.version}))
	default:
		writeError(ctx, shapeOpenAI, fasthttp.StatusNotFound, codeNotFound, "the admin listener serves /metrics, /workers and /version", "")
	}
}

func (r *Router) workerViews() []workerView {
	views := []workerView{}
	for _, p := range r.snap.Load().pools {
		for _, w := range p.up.Workers() {
			open, idle := w.Connections()
			views = append(views, workerView{
				Pool: p.up.Name(), URL: w.URL(), Load: w.Load(), Picks: w.Picks(), Failures: w.Failures(),
				Healthy: w.Healthy(), Breaker: p.up.Breaker(w).String(), Connections: open, Idle: idle,
				Protocol: w.Protocol(), Streaming: w.Streams(),
			})
		}
	}
	return views
}
