package router

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// adminPage is one path of the admin listener.
type adminPage struct {
	methods string // as in the Allow field
	serve   func(*Router, *fasthttp.RequestCtx)
}

// adminPages are all paths of the admin listener, but for those of a worker.
var adminPages = map[string]adminPage{
	"/metrics":     {"GET, HEAD", (*Router).serveMetrics},
	"/workers":     {"GET, HEAD, POST", (*Router).serveWorkers},
	"/version":     {"GET, HEAD", (*Router).serveVersion},
	"/config/hash": {"GET, HEAD", (*Router).serveHash},
	"/explain":     {"POST", (*Router).serveExplain},
	"/-/reload":    {"POST", (*Router).serveReload},
}

// serveAdmin is fasthttp's handler for the admin listener.
func (r *Router) serveAdmin(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	page, ok := adminPages[path]
	if id, found := strings.CutPrefix(path, workerPrefix); found {
		page, ok = workerPage(id)
	}
	if !ok {
		adminError(ctx, fasthttp.StatusNotFound, codeNotFound, "the admin listener serves "+strings.Join(slices.Sorted(maps.Keys(adminPages)), ", "))
		return
	}
	if !slices.Contains(strings.Split(page.methods, ", "), string(ctx.Method())) {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, page.methods)
		adminError(ctx, fasthttp.StatusMethodNotAllowed, codeMethodNotAllowed, "method not allowed; use "+page.methods)
		return
	}
	page.serve(r, ctx)
}

func adminError(ctx *fasthttp.RequestCtx, status int, code errorCode, msg string) {
	writeError(ctx, shapeOpenAI, status, code, msg, "")
}

func answerJSON(ctx *fasthttp.RequestCtx, v any) {
	ctx.SetContentType("application/json")
	ctx.SetBody(append(marshal(v), '\n'))
}

func (r *Router) serveMetrics(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
	r.writeMetrics(ctx.Response.BodyWriter())
}

func (r *Router) serveVersion(ctx *fasthttp.RequestCtx) {
	answerJSON(ctx, struct {
		Version string `json:"version"`
	}{r.version})
}

// configView is the configuration that serves, as GET /config/hash shows it.
type configView struct {
	Hash  string    `json:"hash"`
	Since time.Time `json:"since"`
	// LastError is why the last reload failed, if it did.
	LastError string `json:"last_error,omitempty"`
}

func (r *Router) configView() configView {
	last := r.reloads.last.Load()
	v := configView{Hash: last.hash, Since: last.since}
	if last.err != nil {
		v.LastError = last.err.Error()
	}
	return v
}

func (r *Router) serveHash(ctx *fasthttp.RequestCtx) { answerJSON(ctx, r.configView()) }

// serveReload reads the configuration anew. The answer says what serves, and why
// not the new one, if it does not.
func (r *Router) serveReload(ctx *fasthttp.RequestCtx) {
	if r.reload == nil {
		adminError(ctx, fasthttp.StatusConflict, codeBadRequest, "there is no configuration to read anew")
		return
	}
	if err := r.reload(); err != nil {
		adminError(ctx, fasthttp.StatusUnprocessableEntity, codeBadRequest, err.Error())
		return
	}
	answerJSON(ctx, r.configView())
}

// serveExplain explains the request whose target is given by ?path=, with its
// header and body. The answer has the body that would be sent.
func (r *Router) serveExplain(ctx *fasthttp.RequestCtx) {
	ask := Question{Target: string(ctx.QueryArgs().Peek("path")), Method: string(ctx.QueryArgs().Peek("method")), Body: ctx.PostBody()}
	if ask.Target == "" {
		ask.Target = "/v1/chat/completions"
	}
	for name, value := range ctx.Request.Header.All() {
		ask.Header = append(ask.Header, string(name)+": "+string(value))
	}
	x := r.snap.Load().rules.Explain(ask)
	answerJSON(ctx, struct {
		Explanation
		Body string `json:"body,omitempty"`
	}{x, string(x.Body)})
}
