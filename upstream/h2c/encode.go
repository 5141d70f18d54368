package h2c

import (
	"strconv"

	"sluice/upstream/h1"
)

// Request is what one exchange sends. All of it is the caller's memory, which
// must not change until [Stream.Do] has returned; nothing is kept.
//
// Nothing is checked or escaped: Method must be a token, Path free of white
// space and control characters, the fields valid.
type Request struct {
	// Method, Scheme, Authority and Path are the pseudo fields (RFC 9113
	// section 8.3.1). An empty Authority is left out.
	Method, Scheme, Authority, Path []byte
	// Fields are the end-to-end header fields, their names in any case. Host,
	// Content-Length and every field of a connection are left out, as are TE
	// other than "trailers" and names that begin with a colon.
	Fields []h1.Field
	// Body is the request body in pieces. Length is the sum of their lengths,
	// or −1 where the request has no body at all.
	Body   [][]byte
	Length int64
}

// Patterns of HPACK representations (RFC 7541 section 6).
const (
	hpackIndexed      = 0x80 // index in 7 bits
	hpackLiteral      = 0x00 // without indexing, index of the name in 4 bits
	hpackNeverIndexed = 0x10 // the same, and so for every hop that follows
	hpackShrink       = 0x20 // dynamic table size update to 0
)

// Places in the static table (RFC 7541 appendix A).
const (
	staticAuthority     = 1
	staticMethod        = 2 // GET, and POST behind it
	staticPath          = 4 // "/"
	staticHTTP          = 6 // :scheme http, and https behind it
	staticContentLength = 28
)

// appendHead appends the header block of r. It uses the static table and
// literals without indexing and no Huffman code: the block depends on r alone,
// so that it can be encoded outside any lock, and what it holds is kept by
// neither side.
func appendHead(dst []byte, r *Request) []byte {
	switch string(r.Method) {
	case "GET":
		dst = append(dst, hpackIndexed|staticMethod)
	case "POST":
		dst = append(dst, hpackIndexed|staticMethod+1)
	default:
		dst = appendLiteral(dst, hpackLiteral, staticMethod, r.Method)
	}
	switch string(r.Scheme) {
	case "http":
		dst = append(dst, hpackIndexed|staticHTTP)
	case "https":
		dst = append(dst, hpackIndexed|staticHTTP+1)
	default:
		dst = appendLiteral(dst, hpackLiteral, staticHTTP, r.Scheme)
	}
	if len(r.Authority) > 0 {
		dst = appendLiteral(dst, hpackLiteral, staticAuthority, r.Authority)
	}
	dst = appendLiteral(dst, hpackLiteral, staticPath, r.Path)
	for i := range r.Fields {
		dst = appendField(dst, &r.Fields[i])
	}
	if r.Length >= 0 {
		var digits [20]byte
		dst = appendLiteral(dst, hpackLiteral, staticContentLength, strconv.AppendInt(digits[:0], r.Length, 10))
	}
	return dst
}

func appendField(dst []byte, f *h1.Field) []byte {
	// Longer than any name in the static table or with a meaning here.
	if len(f.Name) > 32 {
		return appendUnknown(dst, f)
	}
	var lower [32]byte
	name := lower[:copy(lower[:], f.Name)]
	toLower(name)
	switch {
	case len(name) == 0 || name[0] == ':', string(name) == "host", string(name) == "content-length":
		return dst
	case string(name) == "te":
		// RFC 9113 section 8.2.2.
		if !h1.EqualFold(f.Value, "trailers") {
			return dst
		}
	case h1.HopByHop(name):
		return dst
	}
	i := staticName(name)
	if i == 0 {
		return appendUnknown(dst, f)
	}
	if s := string(name); s == "authorization" || s == "cookie" {
		return appendLiteral(dst, hpackNeverIndexed, i, f.Value)
	}
	return appendLiteral(dst, hpackLiteral, i, f.Value)
}

// appendUnknown appends a field whose name is not in the static table.
func appendUnknown(dst []byte, f *h1.Field) []byte {
	if f.Name[0] == ':' {
		return dst
	}
	dst = append(dst, hpackLiteral)
	dst = appendString(dst, f.Name)
	toLower(dst[len(dst)-len(f.Name):])
	return appendString(dst, f.Value)
}

// appendLiteral appends a field whose name is the given one of the static table.
func appendLiteral(dst []byte, pattern byte, name int, value []byte) []byte {
	return appendString(appendInt(dst, pattern, 4, name), value)
}

func appendString(dst, s []byte) []byte {
	return append(appendInt(dst, 0, 7, len(s)), s...)
}

// appendInt appends n with a prefix of the given bits behind pattern (RFC 7541
// section 5.1).
func appendInt(dst []byte, pattern byte, bits uint, n int) []byte {
	full := 1<<bits - 1
	if n < full {
		return append(dst, pattern|byte(n))
	}
	dst = append(dst, pattern|byte(full))
	for n -= full; n >= 128; n >>= 7 {
		dst = append(dst, byte(n)|128)
	}
	return append(dst, byte(n))
}

func toLower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
}

// staticName returns the place of a lower-case name in the static table, or 0.
// Names of pseudo fields are not looked for.
func staticName(name []byte) int {
	switch string(name) {
	case "accept-charset":
		return 15
	case "accept-encoding":
		return 16
	case "accept-language":
		return 17
	case "accept-ranges":
		return 18
	case "accept":
		return 19
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "authorization":
		return 23
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "cookie":
		return 32
	case "date":
		return 33
	case "etag":
		return 34
	case "expect":
		return 35
	case "expires":
		return 36
	case "from":
		return 37
	case "if-match":
		return 39
	case "if-modified-since":
		return 40
	case "if-none-match":
		return 41
	case "if-range":
		return 42
	case "if-unmodified-since":
		return 43
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "max-forwards":
		return 47
	case "range":
		return 50
	case "referer":
		return 51
	case "refresh":
		return 52
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return 55
	case "strict-transport-security":
		return 56
	case "user-agent":
		return 58
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return 0
}
