package probe

import "bytes"

// MultipartField finds the form field name in a multipart/form-data body and
// returns the span of its value, the zero Span if there is no such field. The
// whole body is read, whatever the order of its parts; nothing is allocated.
//
// The reading is strict, for what two parsers could read differently must not be
// routed by: RFC 2046 and 7578 with CRLF line ends, no preamble, no padding
// behind a boundary, nothing but a line end behind the last one, no folded header, a Content-Disposition in every part, no
// name* parameter, and no transfer encoding of the wanted field. Two fields of
// the wanted name are FaultDuplicate.
func MultipartField(body, boundary []byte, name string) (Span, Fault) {
	if uint64(len(body)) > MaxBody {
		return Span{}, FaultTooLarge
	}
	if len(boundary) == 0 || len(boundary) > maxBoundary {
		return Span{}, FaultSyntax
	}
	var found Span
	seen := false
	i := 2 + len(boundary)
	if len(body) < i || body[0] != '-' || body[1] != '-' || !bytes.Equal(body[2:i], boundary) {
		return Span{}, FaultSyntax
	}
	for {
		// i is behind a boundary.
		if len(body)-i < 2 {
			return Span{}, FaultTruncated
		}
		if body[i] == '-' && body[i+1] == '-' {
			if rest := body[i+2:]; len(rest) > 0 && string(rest) != "\r\n" {
				return Span{}, FaultTrailing
			}
			return found, FaultNone
		}
		if body[i] != '\r' || body[i+1] != '\n' {
			return Span{}, FaultSyntax
		}
		start, wanted, f := partHead(body, i+2, name)
		if f != FaultNone {
			return Span{}, f
		}
		end, f := partEnd(body, start, boundary)
		if f != FaultNone {
			return Span{}, f
		}
		if wanted {
			if seen {
				return Span{}, FaultDuplicate
			}
			seen = true
			found = Span{uint32(start), uint32(end)}
		}
		i = end + 4 + len(boundary)
	}
}

// maxBoundary is the longest boundary of RFC 2046, section 5.1.1.
const maxBoundary = 70

// partEnd returns the offset from start on of the line end that belongs to the
// next boundary.
func partEnd(body []byte, start int, boundary []byte) (int, Fault) {
	rest := body[start:]
	if bytes.HasPrefix(rest, []byte("--")) && bytes.HasPrefix(rest[2:], boundary) {
		// Some parsers end an empty part here, others read on.
		return start, FaultSyntax
	}
	for i := start; ; i += 2 {
		n := bytes.Index(body[i:], []byte("\r\n--"))
		if n < 0 {
			return i, FaultTruncated
		}
		i += n
		if bytes.HasPrefix(body[i+4:], boundary) {
			return i, FaultNone
		}
	}
}

// partHead reads the headers of a part and their empty line. It returns the
// offset of the part's content and whether the part is the field name.
func partHead(body []byte, i int, name string) (start int, wanted bool, f Fault) {
	disposed, encoded := false, false
	for {
		n := bytes.IndexByte(body[i:], '\n')
		if n < 0 {
			return i, false, FaultTruncated
		}
		if n == 0 || body[i+n-1] != '\r' {
			return i, false, FaultSyntax
		}
		line := body[i : i+n-1]
		i += n + 1
		if len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || !isToken(line[:colon]) {
			return i, false, FaultSyntax // a folded line among them
		}
		value := trimBlank(line[colon+1:])
		switch key := line[:colon]; {
		case equalHeader(key, "content-disposition"):
			if disposed {
				return i, false, FaultSyntax
			}
			disposed = true
			if wanted, f = disposition(value, name); f != FaultNone {
				return i, false, f
			}
		case equalHeader(key, "content-transfer-encoding"):
			encoded = !equalHeader(value, "7bit") && !equalHeader(value, "8bit") && !equalHeader(value, "binary")
		}
	}
	if !disposed || wanted && encoded {
		return i, false, FaultSyntax
	}
	return i, wanted, FaultNone
}

// disposition reports whether the value of a Content-Disposition is that of the
// form field name.
func disposition(value []byte, name string) (wanted bool, f Fault) {
	kind, rest := value, []byte(nil)
	if n := bytes.IndexByte(value, ';'); n >= 0 {
		kind, rest = value[:n], value[n:]
	}
	if !equalHeader(trimBlank(kind), "form-data") {
		return false, FaultSyntax
	}
	named := false
	for rest = trimBlank(rest); len(rest) > 0; rest = trimBlank(rest) {
		if rest[0] != ';' {
			return false, FaultSyntax
		}
		rest = trimBlank(rest[1:])
		if len(rest) == 0 {
			break // a trailing semicolon
		}
		n := bytes.IndexByte(rest, '=')
		if n <= 0 || !isToken(rest[:n]) {
			return false, FaultSyntax
		}
		param := rest[:n]
		size, equal := paramValue(rest[n+1:], name)
		if size == 0 {
			return false, FaultSyntax
		}
		rest = rest[n+1+size:]
		switch {
		case equalHeader(param, "name"):
			if named {
				return false, FaultSyntax
			}
			named, wanted = true, equal
		case len(param) > 4 && equalHeader(param[:5], "name*"):
			return false, FaultSyntax
		}
	}
	if !named {
		return false, FaultSyntax
	}
	return wanted, FaultNone
}

// paramValue reads the token or quoted string at the start of b. It returns its
// length, 0 if it is neither, and whether it reads as name.
func paramValue(b []byte, name string) (size int, equal bool) {
	if len(b) == 0 || b[0] != '"' {
		for size < len(b) && tokenChar(b[size]) {
			size++
		}
		return size, string(b[:size]) == name
	}
	equal = true
	n := 0
	for i := 1; i < len(b); i++ {
		c := b[i]
		if c == '"' {
			return i + 1, equal && n == len(name)
		}
		// Only a quote and a backslash are escaped (RFC 7578 does not say more);
		// a backslash before anything else stands for itself, as in file names.
		if c == '\\' && i+1 < len(b) && (b[i+1] == '"' || b[i+1] == '\\') {
			i++
			c = b[i]
		}
		equal = equal && n < len(name) && name[n] == c
		n++
	}
	return 0, false
}

// equalHeader reports whether b equals lower in any case.
func equalHeader(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenChar(c) {
			return false
		}
	}
	return len(b) > 0
}

// tokenChar reports whether c may stand in a token (RFC 9110, section 5.6.2).
func tokenChar(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return true
	}
	return c > ' ' && c < 0x7F && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}

// trimBlank returns b without the spaces and tabs around it.
func trimBlank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
