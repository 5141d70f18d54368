package h1

import "bytes"

// HopByHop tells whether a field belongs to one connection and must not be
// copied from one side of the router to the other, in either direction,
// whether or not Connection names it. Case is ignored. Safe for concurrent use.
//
// The list is RFC 9110 §7.6.1 (Connection, Proxy-Connection, Keep-Alive, TE,
// Transfer-Encoding, Upgrade), plus Trailer, because trailers are dropped
// with the chunked framing they came in, HTTP2-Settings (RFC 7540 §3.2.1), and
// the fields of proxy authentication: RFC 9110 §11.7 lets a proxy relay
// Proxy-Authenticate and Proxy-Authorization, but to clients the router is the
// origin server, so credentials meant for a proxy are not for the workers, and
// a worker has no say in a client's proxy.
//
// Fields named by Connection are the business of [ConnectionNames]. Expect and
// Content-Length are end-to-end fields that the router answers or recomputes
// itself.
func HopByHop(name []byte) bool {
	switch len(name) {
	case 2:
		return EqualFold(name, "te")
	case 7:
		return EqualFold(name, "trailer") || EqualFold(name, "upgrade")
	case 10:
		return EqualFold(name, "connection") || EqualFold(name, "keep-alive")
	case 14:
		return EqualFold(name, "http2-settings")
	case 16:
		return EqualFold(name, "proxy-connection")
	case 17:
		return EqualFold(name, "transfer-encoding")
	case 18:
		return EqualFold(name, "proxy-authenticate")
	case 19:
		return EqualFold(name, "proxy-authorization")
	case 25:
		return EqualFold(name, "proxy-authentication-info")
	}
	return false
}

// ConnectionNames tells whether value, the value of one Connection field,
// lists name: a field that it nominates and that therefore must be dropped
// (RFC 9110 §7.6.1), or an option such as "close". Case is ignored, empty list
// members are skipped, an empty name is in no list. When a message has several
// Connection fields, each is asked. Drop what the peer sent before adding
// fields of the router's own, or the peer could name those. Safe for concurrent use.
func ConnectionNames(value, name []byte) bool {
	if len(name) == 0 {
		return false
	}
	for len(value) >= len(name) {
		member := value
		if i := bytes.IndexByte(value, ','); i >= 0 {
			member, value = value[:i], value[i+1:]
		} else {
			value = nil
		}
		if asciiEqualFold(trimOWS(member), name) {
			return true
		}
	}
	return false
}

// asciiEqualFold is EqualFold for two operands of unknown case.
func asciiEqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if lower(c) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
