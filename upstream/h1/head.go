package h1

import (
	"bytes"
	"math"
	"slices"
)

// FeedHead reads the head of the answer from p and returns how many bytes of p
// belonged to it. Until done is true, that is all of p, and more must be fed;
// when done is true, Status, Fields, ContentLength and the framing are known
// and p[n:] is the beginning of the body. Interim answers (1xx) before the
// final one are skipped. p is copied and may be reused after the call.
//
// After done, FeedHead consumes nothing.
func (r *Response) FeedHead(p []byte) (n int, done bool, err error) {
	if r.err != nil || r.phase != phaseHead {
		return 0, r.err == nil, r.err
	}
	for n < len(p) {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			r.err = r.keep(p[n:])
			return len(p), false, r.err
		}
		line := p[n : n+i+1]
		n += len(line)
		if err = r.keep(line); err == nil {
			if r.line+len(line) < len(r.head) {
				line = r.head[r.line:] // it began in an earlier piece
			}
			err = r.endLine(line)
		}
		if err != nil {
			r.err = err
			return n, false, err
		}
		if r.phase != phaseHead {
			return n, true, nil
		}
	}
	return n, false, nil
}

// keep appends b, a piece of one line, to the head.
func (r *Response) keep(b []byte) error {
	if len(b) > MaxHead-r.fed {
		return ErrHeadTooLarge
	}
	r.fed += len(b)
	r.head = append(r.head, b...)
	return nil
}

// endLine judges a line that is complete with its LF.
func (r *Response) endLine(line []byte) error {
	// RFC 9112 §2.2 lets a recipient take a bare LF as the end of a line. A
	// worker that sends one is not what we think it is; refusing costs nothing.
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return ErrBareLF
	}
	line = line[:len(line)-2]
	at := r.line
	r.line = len(r.head)
	switch {
	case !r.statusEnd:
		r.statusEnd = true
		return r.statusLine(line)
	case len(line) == 0:
		return r.endHead()
	default:
		return r.fieldLine(line, at)
	}
}

// statusLine reads HTTP-version SP status-code SP [reason-phrase] (RFC 9112
// §4). The second SP may be missing when there is no reason phrase: many
// servers leave it out. Versions other than 1.0 and 1.1 do not exist.
func (r *Response) statusLine(line []byte) error {
	const prefix = len("HTTP/1.1 ")
	if len(line) < prefix+3 {
		return ErrStatusLine
	}
	switch string(line[:prefix]) {
	case "HTTP/1.1 ":
	case "HTTP/1.0 ":
		r.http10 = true
	default:
		return ErrStatusLine
	}
	status := 0
	for _, c := range line[prefix : prefix+3] {
		if c < '0' || c > '9' {
			return ErrStatusLine
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 || status > 599 {
		return ErrStatusLine
	}
	if reason := line[prefix+3:]; len(reason) > 0 && (reason[0] != ' ' || !isText(reason)) {
		return ErrStatusLine
	}
	r.Status = status
	return nil
}

// fieldLine reads field-name ":" OWS field-value OWS (RFC 9112 §5) of the line
// that begins at the given offset in head.
func (r *Response) fieldLine(line []byte, at int) error {
	n := 0
	for n < len(line) && tokenChar[line[n]] {
		n++
	}
	// RFC 9112 §5.1: no white space between name and colon; a name with some
	// is read as another name by the next parser. RFC 9112 §5.2: a folded line
	// is either replaced by SP or, as here, reason to discard the answer.
	if n == 0 || n == len(line) || line[n] != ':' {
		if isOWS(line[0]) {
			return ErrFold
		}
		return ErrFieldName
	}
	if len(r.spans) == MaxFields {
		return ErrTooManyFields
	}
	lo, hi := n+1, len(line)
	for lo < hi && isOWS(line[lo]) {
		lo++
	}
	for lo < hi && isOWS(line[hi-1]) {
		hi--
	}
	name, value := line[:n], line[lo:hi]
	// RFC 9110 §5.5: CR, LF and NUL are dangerous, other controls invalid.
	if !isText(value) {
		return ErrFieldValue
	}
	switch n {
	case len("connection"):
		if EqualFold(name, "connection") {
			r.closes = r.closes || ConnectionNames(value, []byte("close"))
			r.keepAlive = r.keepAlive || ConnectionNames(value, []byte("keep-alive"))
		}
	case len("content-length"):
		if EqualFold(name, "content-length") {
			return r.contentLength(value)
		}
	case len("transfer-encoding"):
		if EqualFold(name, "transfer-encoding") {
			return r.transferEncoding(value)
		}
	}
	r.spans = append(r.spans, span{
		name: int32(at), nameEnd: int32(at + n),
		value: int32(at + lo), valueEnd: int32(at + hi),
	})
	return nil
}

// contentLength reads the value of a Content-Length field: digits only, so no
// sign, no 0x, no fraction (RFC 9110 §8.6). A list or a repetition of one and
// the same number counts once, anything else is an error (RFC 9112 §6.3).
func (r *Response) contentLength(value []byte) error {
	for more := true; more; {
		member := value
		i := bytes.IndexByte(value, ',')
		if more = i >= 0; more {
			member, value = value[:i], value[i+1:]
		}
		n, ok := parseLength(trimOWS(member))
		if !ok || r.ContentLength >= 0 && r.ContentLength != n {
			return ErrContentLength
		}
		r.ContentLength = n
	}
	return nil
}

func parseLength(b []byte) (n int64, ok bool) {
	for _, c := range b {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

// transferEncoding reads the value of a Transfer-Encoding field. We send no TE
// field, so that "chunked" is the only coding a worker may use (RFC 9112 §6.1,
// §7.4), and it may use it once.
func (r *Response) transferEncoding(value []byte) error {
	// RFC 9112 §6.1: in HTTP/1.0 the framing must be taken as faulty.
	if r.chunkedTE || r.http10 || !EqualFold(value, "chunked") {
		return ErrTransferEncoding
	}
	r.chunkedTE = true
	return nil
}

// endHead settles what follows the head (RFC 9112 §6.3).
func (r *Response) endHead() error {
	// RFC 9112 §6.1: this may be an attempt at response splitting.
	if r.chunkedTE && r.ContentLength >= 0 {
		return ErrBothLengths
	}
	if r.Status < 200 {
		return r.skipInterim()
	}
	r.phase = phaseBody
	switch {
	case r.Status == 204:
		r.ContentLength = 0
		r.framing = framedNone
	case r.isHead || r.Status == 304:
		r.framing = framedNone
	case r.chunkedTE:
		r.framing = framedChunked
	case r.ContentLength == 0:
		r.framing = framedNone
	case r.ContentLength > 0:
		r.framing, r.left = framedLength, r.ContentLength
	default:
		r.framing = framedEOF
	}
	if r.framing == framedNone {
		r.phase = phaseDone
	}
	r.Fields = slices.Grow(r.Fields, len(r.spans))[:len(r.spans)]
	for i, s := range r.spans {
		f := &r.Fields[i]
		f.Name = r.head[s.name:s.nameEnd:s.nameEnd]
		f.Value = r.head[s.value:s.valueEnd:s.valueEnd]
	}
	return nil
}

// skipInterim forgets a 1xx answer (RFC 9110 §15.2) and waits for the next
// head. 101 would end HTTP on this connection; nobody asked for it.
func (r *Response) skipInterim() error {
	if r.Status == 101 {
		return ErrUpgrade
	}
	if r.interim++; r.interim > MaxInterim {
		return ErrTooManyInterim
	}
	r.head, r.spans, r.line = r.head[:0], r.spans[:0], 0
	r.Status, r.ContentLength = 0, -1
	r.statusEnd, r.http10, r.chunkedTE, r.closes, r.keepAlive = false, false, false, false, false
	return nil
}
