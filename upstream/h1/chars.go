package h1

import "encoding/binary"

// tokenChar tells which bytes may stand in a token (RFC 9110 §5.6.2).
var tokenChar = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// textChar tells which bytes may stand in a field value, a reason phrase or a
// chunk extension: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5, RFC 9112 §4).
func textChar(c byte) bool {
	return c >= ' ' && c != 0x7f || c == '\t'
}

// isText tells whether all of b is textChar.
func isText(b []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	// Fast path: eight bytes at a time. A word with a byte below SP or with a
	// DEL is looked at again byte by byte, because HTAB is below SP too.
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		del := x ^ (0x7f * ones)
		if (((x-' '*ones)&^x)|((del-ones)&^del))&high != 0 && !isTextSlow(b[i:i+8]) {
			return false
		}
	}
	return isTextSlow(b[i:])
}

func isTextSlow(b []byte) bool {
	for _, c := range b {
		if !textChar(c) {
			return false
		}
	}
	return true
}

// isOWS tells whether c is optional white space (RFC 9110 §5.6.3).
func isOWS(c byte) bool { return c == ' ' || c == '\t' }

// trimOWS cuts optional white space off both ends of b.
func trimOWS(b []byte) []byte {
	for len(b) > 0 && isOWS(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isOWS(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// equalFold tells whether b is lower in any case; lower must be lower case
// ASCII. Only ASCII letters fold, as protocol elements do.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
