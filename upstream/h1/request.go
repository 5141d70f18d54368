package h1

import "strconv"

// Field is one header field. Name and Value alias memory that someone else
// owns: in an answer the head buffer of the [Response], until its next Reset;
// in a request the caller's.
type Field struct {
	Name, Value []byte
}

// AppendRequest appends the head of a request to dst and returns the extended
// slice: request line, Host (first, RFC 9110 §7.2), fields in their order,
// Content-Length, the empty line. The body follows it on the wire as it is;
// requests are never chunked.
//
// contentLength >= 0 writes a Content-Length; a negative one writes none. A
// method that carries a body by its nature (POST, PUT, PATCH) passes 0 for an
// empty one, a GET or HEAD without a body passes -1 (RFC 9110 §8.6).
//
// Nothing is checked or escaped: method must be a token, target free of white
// space and control characters, the fields valid, and none of them Host,
// Content-Length, Transfer-Encoding or Connection. No argument is kept.
func AppendRequest(dst, method, target, host []byte, fields []Field, contentLength int64) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, target...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, host...)
	dst = append(dst, "\r\n"...)
	for i := range fields {
		dst = append(dst, fields[i].Name...)
		dst = append(dst, ": "...)
		dst = append(dst, fields[i].Value...)
		dst = append(dst, "\r\n"...)
	}
	if contentLength >= 0 {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, contentLength, 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}
