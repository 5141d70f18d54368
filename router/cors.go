package router

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/configs"
)

// exposed are the fields of the router that a web page may read beside those that
// any may (the Fetch standard, CORS-safelisted response-header name).
const exposed = "x-request-id, x-router-error-code, x-sluice-warning, x-sluice-cache, retry-after"

// cors is what web pages of other sites may do, compiled. Nil is nothing.
type cors struct {
	any         bool
	origins     map[string]bool
	credentials bool
	methods     string // empty: those of the path
	headers     string // empty: those that are asked for
	maxAge      string
}

func newCORS(c *configs.CORS) *cors {
	if len(c.Origins) == 0 {
		return nil
	}
	p := &cors{
		any:         slices.Contains(c.Origins, "*"),
		origins:     map[string]bool{},
		credentials: c.Credentials,
		methods:     strings.Join(c.Methods, ", "),
		headers:     strings.Join(c.Headers, ", "),
		maxAge:      strconv.Itoa(int(c.MaxAge / time.Second)),
	}
	for _, o := range c.Origins {
		p.origins[o] = true
	}
	return p
}

// mark puts on the answer what lets the page read it. It is done before anything
// else is, so that every answer has it, whoever gives it.
func (p *cors) mark(ctx *fasthttp.RequestCtx) {
	if p == nil {
		return
	}
	h := &ctx.Response.Header
	origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	switch {
	case p.any:
		h.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
	case p.origins[string(origin)]:
		// The answer depends on who asks: no cache may give it to another page.
		h.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
		h.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
	default:
		h.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
		return
	}
	if p.credentials {
		h.Set(fasthttp.HeaderAccessControlAllowCredentials, "true")
	}
	h.Set(fasthttp.HeaderAccessControlExposeHeaders, exposed)
}

// preflight answers the question of a browser whether a page may send a request
// (the Fetch standard, CORS-preflight request), to which no credentials belong.
func (q *request) preflight() bool {
	p, h := q.snap.cors, &q.ctx.Request.Header
	if p == nil || !q.ctx.IsOptions() || len(h.Peek(fasthttp.HeaderOrigin)) == 0 || len(h.Peek(fasthttp.HeaderAccessControlRequestMethod)) == 0 {
		return false
	}
	if n := h.ContentLength(); n > drained || n == -1 {
		closeAfter(q.ctx) // the body is not read
	}
	refused := q.intake.locate(h.RequestURI(), []byte(fasthttp.MethodGet), q.snap.rules.passes)
	if q.endpoint == nil {
		return !q.passed(refused)
	}
	q.series = q.router.metrics.none[q.endpoint.surface]
	resp := &q.ctx.Response
	resp.Header.Del(fasthttp.HeaderAccessControlExposeHeaders)
	if len(resp.Header.Peek(fasthttp.HeaderAccessControlAllowOrigin)) > 0 {
		methods := p.methods
		if methods == "" {
			methods = q.endpoint.methods
		}
		if methods == "" { // of a path that is passed through with any
			methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
		}
		resp.Header.Set(fasthttp.HeaderAccessControlAllowMethods, methods)
		if p.headers != "" {
			resp.Header.Set(fasthttp.HeaderAccessControlAllowHeaders, p.headers)
		} else if asked := h.Peek(fasthttp.HeaderAccessControlRequestHeaders); len(asked) > 0 {
			resp.Header.SetBytesV(fasthttp.HeaderAccessControlAllowHeaders, asked)
			resp.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAccessControlRequestHeaders)
		}
		resp.Header.Set(fasthttp.HeaderAccessControlMaxAge, p.maxAge)
	}
	resp.Header.SetStatusCode(fasthttp.StatusNoContent)
	resp.Header.SetBytesKV(nameRequestID, q.id)
	q.outcome = outcomeOK
	q.finish(fasthttp.StatusNoContent, "")
	return true
}

// ours reports a field of a worker's answer that says which pages may read it,
// where the router says so itself: two values would be none.
func (p *cors) ours(name []byte) bool {
	const prefix = "Access-Control-"
	return p != nil && len(name) > len(prefix) && bytes.EqualFold(name[:len(prefix)], []byte(prefix))
}
