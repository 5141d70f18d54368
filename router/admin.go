package router

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"
)

// adminPage is one path of the admin listener.
type adminPage struct {
	methods string // as in the Allow field
	serve   func(*Router, *fasthttp.RequestCtx)
}

// explainPath is where a request is explained.
const explainPath = "/explain"

// adminPages are all paths of the admin listener, but for those of a worker and of
// a profile.
var adminPages = map[string]adminPage{
	"/":             {"GET, HEAD", (*Router).serveStatusPage},
	"/status.json":  {"GET, HEAD", (*Router).serveStatus},
	"/metrics":      {"GET, HEAD", (*Router).serveMetrics},
	"/workers":      {"GET, HEAD, POST", (*Router).serveWorkers},
	"/version":      {"GET, HEAD", (*Router).serveVersion},
	"/config":       {"GET, HEAD", (*Router).serveConfig},
	"/config/hash":  {"GET, HEAD", (*Router).serveHash},
	explainPath:     {"POST", (*Router).serveExplain},
	"/log/level":    {"GET, HEAD, PUT", (*Router).serveLogLevel},
	"/-/reload":     {"POST", (*Router).serveReload},
	"/debug/pprof":  {"GET, HEAD", (*Router).serveProfile},
	"/debug/pprof/": {"GET, HEAD", (*Router).serveProfile},
}

// newAdmin returns the server of the admin listener.
func newAdmin(r *Router, log *slog.Logger) fasthttp.Server {
	return fasthttp.Server{
		Handler:               r.serveAdmin,
		ErrorHandler:          r.refuseAdmin,
		HeaderReceived:        r.adminLimits,
		Logger:                fasthttpLog{log},
		ReadTimeout:           time.Minute,
		IdleTimeout:           2 * time.Minute,
		MaxRequestBodySize:    adminBody,
		ReadBufferSize:        16 << 10,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		CloseOnShutdown:       true,
		// Header bytes hold the token.
		SecureErrorLogMessage: true,
	}
}

// serveAdmin is fasthttp's handler for the admin listener. The status page is for
// all: it holds nothing, and asks for the token that /status.json needs.
func (r *Router) serveAdmin(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	path := string(ctx.Path())
	switch {
	case path != "/" && !r.admitted(ctx):
		h.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="sluice"`)
		adminError(ctx, fasthttp.StatusUnauthorized, codeUnauthorized, "this needs the token of server.admin.token as Authorization: Bearer, or a client certificate")
		return
	case foreign(ctx):
		adminError(ctx, fasthttp.StatusForbidden, codeForbidden, "a web page of another site may change nothing here")
		return
	}
	page, ok := adminPages[path]
	if id, found := strings.CutPrefix(path, workerPrefix); found {
		page, ok = workerPage(id)
	} else if strings.HasPrefix(path, "/debug/pprof/") {
		page, ok = adminPages["/debug/pprof/"]
	}
	if !ok {
		adminError(ctx, fasthttp.StatusNotFound, codeNotFound, "the admin listener serves "+strings.Join(slices.Sorted(maps.Keys(adminPages)), ", "))
		return
	}
	if !slices.Contains(strings.Split(page.methods, ", "), string(ctx.Method())) {
		h.Set(fasthttp.HeaderAllow, page.methods)
		adminError(ctx, fasthttp.StatusMethodNotAllowed, codeMethodNotAllowed, "method not allowed; use "+page.methods)
		return
	}
	page.serve(r, ctx)
}

// refuseAdmin answers what could not be read as a request. fasthttp closes the
// connection afterwards.
func (r *Router) refuseAdmin(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		adminError(ctx, fasthttp.StatusRequestEntityTooLarge, codePayloadTooLarge, "the body is too large")
	case errors.As(err, &small):
		adminError(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, codeBadRequest, "the header is too large")
	case errors.Is(err, os.ErrDeadlineExceeded):
		adminError(ctx, fasthttp.StatusRequestTimeout, codeBadRequest, "the request did not arrive in time")
	default:
		adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, "cannot read the request")
	}
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
		v.LastError = cut(last.err.Error())
	}
	return v
}

// maxMessage bounds what is told of a faulty configuration.
const maxMessage = 32 << 10

func cut(msg string) string {
	if len(msg) <= maxMessage {
		return msg
	}
	return strings.ToValidUTF8(msg[:maxMessage], "") + "…"
}

// serveConfig shows the configuration that serves, in the ?format= yaml (the
// default) or json, each value with its origin unless ?origins=false.
func (r *Router) serveConfig(ctx *fasthttp.RequestCtx) {
	format, origins := "yaml", true
	if f := ctx.QueryArgs().Peek("format"); len(f) > 0 {
		format = string(f)
	}
	if o := string(ctx.QueryArgs().Peek("origins")); o != "" {
		var err error
		if origins, err = strconv.ParseBool(o); err != nil {
			adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, "origins must be true or false")
			return
		}
	}
	if format != "yaml" && format != "json" {
		adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, "format must be yaml or json")
		return
	}
	if err := r.snap.Load().cfg.Print(ctx.Response.BodyWriter(), format, origins); err != nil {
		adminError(ctx, fasthttp.StatusInternalServerError, codeInternal, err.Error())
		return
	}
	// A browser shows this one, and saves application/yaml.
	ctx.SetContentType("text/plain; charset=utf-8")
	if format == "json" {
		ctx.SetContentType("application/json")
	}
}

// logLevel is the level of the log, as /log/level has it.
type logLevel struct {
	Level string `json:"level"`
}

// serveLogLevel shows or sets the level of the log, until the next reload sets the
// one of the configuration.
func (r *Router) serveLogLevel(ctx *fasthttp.RequestCtx) {
	if r.level == nil {
		adminError(ctx, fasthttp.StatusConflict, codeBadRequest, "the level of the log is not the router's to change")
		return
	}
	if ctx.IsPut() {
		var want logLevel
		var level slog.Level
		err := sonic.Unmarshal(ctx.PostBody(), &want)
		if err == nil {
			err = level.UnmarshalText([]byte(want.Level))
		}
		if err != nil || !slices.Contains([]string{"debug", "info", "warn", "error"}, want.Level) {
			adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, `want {"level": "debug"}, or info, warn or error`)
			return
		}
		r.level.Set(level)
		r.log.Warn("the level of the log was changed by hand", "level", want.Level) // unseen at error, as was asked for
	}
	answerJSON(ctx, logLevel{strings.ToLower(r.level.Level().String())})
}

// longestProfile bounds the ?seconds= of a profile.
const longestProfile = 120

// serveProfile serves what net/http/pprof does.
func (r *Router) serveProfile(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) == "/debug/pprof" { // whose links would lead astray
		ctx.Redirect("/debug/pprof/", fasthttp.StatusFound)
		return
	}
	if s := ctx.QueryArgs().Peek("seconds"); len(s) > 0 {
		if n, err := strconv.Atoi(string(s)); err != nil || n < 1 || n > longestProfile {
			adminError(ctx, fasthttp.StatusBadRequest, codeBadRequest, "seconds must be from 1 to "+strconv.Itoa(longestProfile))
			return
		}
	}
	pprofhandler.PprofHandler(ctx)
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
		adminError(ctx, fasthttp.StatusUnprocessableEntity, codeBadRequest, cut(err.Error()))
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
		if r.snap.Load().cfg.Server.Admin.Token != "" && strings.EqualFold(string(name), fasthttp.HeaderAuthorization) {
			continue // it is for us
		}
		ask.Header = append(ask.Header, string(name)+": "+string(value))
	}
	x := r.snap.Load().rules.Explain(ask)
	answerJSON(ctx, struct {
		Explanation
		Body string `json:"body,omitempty"`
	}{x, string(x.Body)})
}
