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
	if len(b) < 8 {
		return isTextSlow(b)
	}
	// Fast path: eight bytes at a time, the last eight over again where the
	// length is no multiple. HTAB sends a word the slow way.
	for i := 0; i+8 < len(b); i += 8 {
		if mayHoldControl(binary.LittleEndian.Uint64(b[i:])) && !isTextSlow(b[i:i+8]) {
			return false
		}
	}
	last := b[len(b)-8:]
	return !mayHoldControl(binary.LittleEndian.Uint64(last)) || isTextSlow(last)
}

// mayHoldControl tells whether one of the eight bytes of x is below SP or DEL.
func mayHoldControl(x uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	del := x ^ (0x7f * ones)
	return (((x-' '*ones)&^x)|((del-ones)&^del))&high != 0
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

// EqualFold tells whether b is lower in any case; lower must be lower case
// ASCII. Only ASCII letters fold, as protocol elements do.
func EqualFold(b []byte, lower string) bool {
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
