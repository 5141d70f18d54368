package router

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"

	"sluice/upstream/h1"
)

// maxRequestID bounds a client's x-request-id; a longer or odd one is replaced.
const maxRequestID = 128

var (
	nameContentType    = []byte("Content-Type")
	nameContentCoding  = []byte("Content-Encoding")
	nameErrorCode      = []byte(headerErrorCode)
	nameForwardedFor   = []byte("X-Forwarded-For")
	nameForwardedHost  = []byte("X-Forwarded-Host")
	nameForwardedProto = []byte("X-Forwarded-Proto")
	nameRequestID      = []byte("X-Request-Id")
	nameThinking       = []byte("X-Sluice-Thinking")
	protoHTTP          = []byte("http")
	protoHTTPS         = []byte("https")
)

// identify settles the request's id: the client's own, if it is a plain token,
// or a new one of 128 random bits.
func (q *request) identify() {
	id := q.ctx.Request.Header.PeekBytes(nameRequestID)
	if plainID(id) {
		q.id = append(q.id[:0], id...)
		return
	}
	const digits = "0123456789abcdef"
	q.id = q.id[:0]
	for range 2 {
		for n, i := rand.Uint64(), 0; i < 16; i++ {
			q.id = append(q.id, digits[n&15])
			n >>= 4
		}
	}
}

func plainID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// workerFields fills q.fields with what goes to the worker: the client's
// end-to-end fields and what the router adds, as the pool edits them. They alias
// the request's memory and the pool's.
//
// Fields that the client's Connection field names go first, before the
// router's own are added, so that a client cannot remove those
// (RFC 9110 section 7.6.1).
func (q *request) workerFields() {
	h := &q.ctx.Request.Header
	q.fields = q.fields[:0]
	q.forwarded = q.forwarded[:0]
	var hasHost, hasProto bool
	for name, value := range h.All() {
		switch {
		case bytes.EqualFold(name, []byte("Host")), bytes.EqualFold(name, []byte("Content-Length")):
			continue
		case h1.HopByHop(name), len(q.connection) > 0 && h1.ConnectionNames(q.connection, name):
			continue
		case bytes.EqualFold(name, nameRequestID), bytes.EqualFold(name, []byte("Expect")):
			continue
		case bytes.EqualFold(name, nameThinking):
			continue
		case q.decoded && bytes.EqualFold(name, []byte("Content-Encoding")):
			continue
		case bytes.EqualFold(name, nameForwardedFor):
			q.forwarded = append(append(q.forwarded, value...), ", "...)
			continue
		case bytes.EqualFold(name, nameForwardedHost):
			hasHost = true
		case bytes.EqualFold(name, nameForwardedProto):
			hasProto = true
		}
		q.fields = append(q.fields, h1.Field{Name: name, Value: value})
	}
	q.forwarded = appendIP(q.forwarded, q.ctx.RemoteAddr())
	q.fields = append(q.fields,
		h1.Field{Name: nameRequestID, Value: q.id},
		h1.Field{Name: nameForwardedFor, Value: q.forwarded})
	if !hasHost {
		q.fields = append(q.fields, h1.Field{Name: nameForwardedHost, Value: h.Host()})
	}
	if !hasProto {
		proto := protoHTTP
		if q.ctx.IsTLS() {
			proto = protoHTTPS
		}
		q.fields = append(q.fields, h1.Field{Name: nameForwardedProto, Value: proto})
	}
	q.fields = q.pool.up.EditFields(q.fields)
}

func appendIP(dst []byte, a net.Addr) []byte {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return append(dst, "unknown"...)
	}
	ip, ok := netip.AddrFromSlice(t.IP)
	if !ok {
		return append(dst, "unknown"...)
	}
	return ip.Unmap().AppendTo(dst)
}

// clientFields translates the head of the worker's answer for the client.
// Framing and Date are fasthttp's own, and what the router says of itself is
// not for a worker to say.
func (q *request) clientFields(fields []h1.Field) {
	h := &q.ctx.Response.Header
	q.connection = q.connection[:0]
	for _, f := range fields {
		if bytes.EqualFold(f.Name, []byte("Connection")) {
			q.connection = append(append(q.connection, f.Value...), ',')
		}
	}
	for _, f := range fields {
		switch {
		case h1.HopByHop(f.Name), bytes.EqualFold(f.Name, []byte("Content-Length")):
		case len(q.connection) > 0 && h1.ConnectionNames(q.connection, f.Name):
		case bytes.EqualFold(f.Name, nameRequestID), bytes.EqualFold(f.Name, nameErrorCode):
		case q.snap.cors.ours(f.Name):
		case bytes.EqualFold(f.Name, nameContentType):
			h.SetContentTypeBytes(f.Value)
		default:
			h.AddBytesKV(f.Name, f.Value)
		}
	}
	h.AddBytesKV(nameRequestID, q.id)
	if q.cacheState != "" {
		h.Set(headerCache, q.cacheState)
	}
	if w := q.warning(); w != "" {
		h.Set(headerWarning, w)
		q.pool.unthought.Inc()
	}
}

// headerWarning tells a client what of its request has no effect.
const headerWarning = "x-sluice-warning"

// eventStream reports whether fields announce server-sent events that can be
// read. Those under a content coding pass like any other body.
func eventStream(fields []h1.Field) bool {
	events := false
	for _, f := range fields {
		switch {
		case bytes.EqualFold(f.Name, nameContentType):
			const want = "text/event-stream"
			events = len(f.Value) >= len(want) && bytes.EqualFold(f.Value[:len(want)], []byte(want))
		case bytes.EqualFold(f.Name, nameContentCoding):
			if !bytes.EqualFold(f.Value, []byte("identity")) {
				return false
			}
		}
	}
	return events
}

// jsonType reports whether a Content-Type may name a JSON body. The engines
// read JSON whatever it says, and so do we; only what is certainly something
// else is not. curl says form-urlencoded when it is told nothing.
func jsonType(value []byte) bool {
	if i := bytes.IndexByte(value, ';'); i >= 0 {
		value = value[:i]
	}
	value = bytes.TrimSpace(value)
	for _, t := range [...]string{"", "application/json", "text/json", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream"} {
		if len(value) == len(t) && bytes.EqualFold(value, []byte(t)) {
			return true
		}
	}
	const suffix = "+json"
	return len(value) > len(suffix) && bytes.EqualFold(value[len(value)-len(suffix):], []byte(suffix))
}
