package router

import "bytes"

// framingFault says why two parsers could read the head of a request
// differently, or returns "". In passing it collects the client's Connection
// options into q.connection, since fasthttp keeps some of them to itself.
//
// fasthttp refuses most such heads itself (repeated or odd
// Content-Length, odd Transfer-Encoding, missing or repeated Host, control
// characters); what it lets through is refused here, from the raw bytes.
func (q *request) framingFault() string {
	h := &q.ctx.Request.Header
	q.connection = q.connection[:0]
	if uri := h.RequestURI(); !originForm(uri) {
		// RFC 9112 section 3.2.2: absolute-form names a host of its own.
		return "invalid request: the request target must be an absolute path"
	}
	if p := h.Protocol(); string(p) != "HTTP/1.1" && string(p) != "HTTP/1.0" {
		return "invalid request: HTTP version not supported"
	}
	var hasLength, hasCoding bool
	raw := h.RawHeaders()
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\n')
		if n < 1 || raw[n-1] != '\r' {
			// RFC 9112 section 2.2: a lone LF ends a line for some parsers.
			return "invalid request: header lines must end with CRLF"
		}
		line := raw[:n-1]
		raw = raw[n+1:]
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			// RFC 9112 section 5.2: obsolete line folding.
			return "invalid request: header lines must not be folded"
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || bytes.IndexByte(line[:colon], ' ') >= 0 || bytes.IndexByte(line[:colon], '\t') >= 0 {
			// RFC 9112 section 5.1.
			return "invalid request: white space in a header name"
		}
		switch colon {
		case len("connection"):
			if bytes.EqualFold(line[:colon], []byte("connection")) {
				q.connection = append(append(q.connection, line[colon+1:]...), ',')
			}
		case len("content-length"):
			hasLength = hasLength || bytes.EqualFold(line[:colon], []byte("content-length"))
		case len("transfer-encoding"):
			hasCoding = hasCoding || bytes.EqualFold(line[:colon], []byte("transfer-encoding"))
		}
	}
	if hasLength && hasCoding {
		// RFC 9112 section 6.1: a sign of request smuggling.
		return "invalid request: both Content-Length and Transfer-Encoding"
	}
	return ""
}

// originForm reports whether uri is a path and perhaps a query, of visible
// characters only.
func originForm(uri []byte) bool {
	if len(uri) == 0 || uri[0] != '/' || (len(uri) > 1 && uri[1] == '/') {
		return false
	}
	for _, c := range uri {
		if c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return true
}
