package probe

import "math"

// maxNumericString is the length of the longest text in which a number is
// looked for.
const maxNumericString = 64

// numericText returns the text of a JSON string, given with its quotes, that is
// to be read as a number: un-escaped into buf and without the white space around
// it. It reports false where no number can be.
//
// The rule is that of pydantic-core: trim and read; failing that, drop the
// underscores of the untrimmed text and read. No number holds white space or an
// underscore, so that one look tells which of the two can succeed: text with
// underscores is refused when there was white space.
func numericText(val []byte, buf *[maxNumericString]byte) ([]byte, bool) {
	if len(val) < 2 {
		return nil, false
	}
	in := val[1 : len(val)-1]
	n := 0
	before, after, underscores := false, false, false
	for len(in) > 0 {
		r, size := nextRune(in)
		in = in[size:]
		if isSpace(r) {
			before = before || n == 0
			after = n > 0
			continue
		}
		if after || r >= 0x80 || n == len(buf) {
			return nil, false
		}
		underscores = underscores || r == '_'
		buf[n] = byte(r)
		n++
	}
	return buf[:n], n > 0 && !(underscores && (before || after))
}

// dropUnderscores removes the underscores from b in place. It reports false
// where one leads, trails or follows another.
func dropUnderscores(b []byte) ([]byte, bool) {
	n := 0
	last := byte('_')
	for _, c := range b {
		if c != '_' {
			b[n] = c
			n++
		} else if last == '_' {
			return nil, false
		}
		last = c
	}
	return b[:n], last != '_'
}

// isSpace reports whether r has the Unicode property White_Space, which is what
// Rust's str::trim removes.
func isSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0D, r == ' ', r == 0x85, r == 0xA0:
		return true
	case r < 0x1680:
		return false
	}
	return r == 0x1680 || r >= 0x2000 && r <= 0x200A || r == 0x2028 || r == 0x2029 ||
		r == 0x202F || r == 0x205F || r == 0x3000
}

// parseSpecial reads inf, infinity and nan in any case, with or without a sign,
// as Rust's f64::from_str does.
func parseSpecial(b []byte) (float64, bool) {
	sign := 1
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	switch {
	case equalFold(b, "inf"), equalFold(b, "infinity"):
		return math.Inf(sign), true
	case equalFold(b, "nan"):
		return math.NaN(), true
	}
	return 0, false
}

// equalFold reports whether b equals lower, letters of ASCII, in any case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}
