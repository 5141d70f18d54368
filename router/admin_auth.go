package router

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"

	"sluice/configs"
)

// bearer begins an Authorization field with a token (RFC 6750 section 2.1).
const bearer = "Bearer "

// admitted reports whether the client of the admin listener may use it: it has the
// token, or has shown a certificate that the handshake has verified, or neither
// is asked for.
//
// A listener that other machines reach stays closed when a new configuration,
// which has it moved to loopback with a restart, asks for neither.
func (r *Router) admitted(ctx *fasthttp.RequestCtx) bool {
	a := &r.snap.Load().cfg.Server.Admin
	if a.Token == "" && a.TLS.ClientCA == "" {
		return !r.secure.reached
	}
	if s := ctx.TLSConnectionState(); s != nil && a.TLS.ClientCA != "" && len(s.VerifiedChains) > 0 {
		return true
	}
	return hasToken(&ctx.Request.Header, a)
}

// hasToken compares in a time that tells nothing of the token, not even its
// length.
func hasToken(h *fasthttp.RequestHeader, a *configs.Admin) bool {
	value := h.Peek(fasthttp.HeaderAuthorization)
	if a.Token == "" || len(value) < len(bearer) || !bytes.EqualFold(value[:len(bearer)], []byte(bearer)) {
		return false
	}
	got, want := sha256.Sum256(value[len(bearer):]), sha256.Sum256([]byte(a.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// foreign reports a change that a web page of another site asks for: its browser
// reaches the loopback of the operator's machine as well as the operator does
// (the Fetch standard has browsers send Origin with such requests).
func foreign(ctx *fasthttp.RequestCtx) bool {
	origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 || ctx.IsGet() || ctx.IsHead() {
		return false
	}
	_, authority, _ := bytes.Cut(origin, []byte("://"))
	return !bytes.EqualFold(authority, ctx.Host())
}

// Bounds of the body of a request to the admin listener.
const (
	adminBody     = 64 << 10
	strangersBody = 4 << 10
)

// adminLimits is the hook of the admin server that bounds the body of a request:
// what is to be explained may be as large as on the data listener.
func (r *Router) adminLimits(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	snap := r.snap.Load()
	a := &snap.cfg.Server.Admin
	limit := adminBody
	path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	switch {
	case a.Token != "" && a.TLS.ClientCA == "" && !hasToken(h, a):
		limit = strangersBody
	case string(path) == explainPath:
		limit = int(max(snap.maxBody, adminBody))
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}
