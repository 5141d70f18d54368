package probe

import "math/bits"

// blockSize is the number of bytes that the vector path looks at at once.
const blockSize = 64

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// skipString reads a string from i, the offset after its opening quote, and
// returns the offset after the closing one. Control characters, escapes that RFC
// 8259 does not have, and ill-formed UTF-8 are faults. Escaped surrogates need not
// be paired: Python reads them, and no parser reads a different string end for
// them.
func skipString(src []byte, i int) (int, Fault) {
	if hasVectors && len(src)-i >= blockSize {
		if end, ok := vectorString(src, i); ok {
			return end, FaultNone
		}
	}
	return portableString(src, i)
}

// portableString is skipString without vectors. What it says is the last word:
// vectorString leaves every fault to it.
func portableString(src []byte, i int) (int, Fault) {
	for {
		i = plainEnd(src, i)
		if i >= len(src) {
			return len(src), FaultTruncated
		}
		var f Fault
		switch c := src[i]; {
		case c == '"':
			return i + 1, FaultNone
		case c == '\\':
			if end := textWords(src, i); end > i { // Fast path
				i = end
				continue
			}
			i, f = skipEscapes(src, i)
		case c < ' ':
			f = FaultSyntax
		default:
			i, f = skipWide(src, i)
		}
		if f != FaultNone {
			return i, f
		}
	}
}

// textWords passes ordinary text from i on, eight bytes at a time: ASCII without the
// closing quote, and without the escapes that are rare. It returns the offset of the
// first eight bytes that are not, or of the backslash that escapes the first of them.
//
// NOTE: it has to be ASCII for the marks to be right; where it is not, they do not
// matter. Each is the highest bit of a byte first, then the lowest one.
func textWords(src []byte, i int) int {
	const quote, slash, line, tab, cr = lowBits * '"', lowBits * '\\', lowBits * 'n', lowBits * 't', lowBits * 'r'
	const odd = 0x0100_0100_0100_0100
	carry := uint64(0) // 1 if the first byte is escaped
	for ; len(src)-i >= 8; i += 8 {
		w := load64(src[i:])
		if carry == 0 && stringMarks(w) == 0 { // Fast path
			continue
		}
		quotes, backs := highBits-(w^quote), highBits-(w^slash)
		known := quotes | backs | (highBits - (w ^ line)) | (highBits - (w ^ tab)) | (highBits - (w ^ cr))
		// As in escapeRuns, with a byte for each bit.
		slashes := backs >> 7 & lowBits
		starts := slashes &^ carry
		codes := (starts<<8 | odd) - starts ^ odd
		escaped := codes ^ (slashes | carry)
		if (quotes>>7&^escaped|escaped&^(known>>7))&lowBits|(w|^((w|highBits)-lowBits*' '))&highBits != 0 {
			break
		}
		carry = codes & slashes >> 56
	}
	return i - int(carry)
}

// skipEscapes reads the escapes in a row at i.
func skipEscapes(src []byte, i int) (int, Fault) {
	for i < len(src) && src[i] == '\\' {
		if i+1 < len(src) && shortEscape[src[i+1]] != 0 { // Fast path
			i += 2
			continue
		}
		n := escapeLen(src[i:])
		if n == 0 {
			return i, FaultSyntax
		}
		i += n
	}
	return i, FaultNone
}

// skipWide reads the characters of several bytes in a row at i.
func skipWide(src []byte, i int) (int, Fault) {
	for i < len(src) && src[i] >= 0x80 {
		if len(src)-i >= 3 && src[i]-0xE1 < 0xED-0xE1 && src[i+1]&0xC0 == 0x80 && src[i+2]&0xC0 == 0x80 { // Fast path
			i += 3
			continue
		}
		n := utf8Len(src[i:])
		if n == 0 {
			return i, FaultUTF8
		}
		i += n
	}
	return i, FaultNone
}

// portableShort returns the offset after a string that begins at i, if it is
// plain and short, as most keys are, and 0 for any other.
func portableShort(src []byte, i int) int {
	for n := i; n < i+24 && len(src)-n >= 8; n += 8 {
		if marks := stringMarks(load64(src[n:])); marks != 0 {
			if n += bits.TrailingZeros64(marks) >> 3; src[n] == '"' {
				return n + 1
			}
			return 0
		}
	}
	return 0
}

// plainEnd returns the offset of the first byte from i on that is a quote, a
// backslash, a control character or not ASCII; len(src) if there is none.
func plainEnd(src []byte, i int) int {
	for ; len(src)-i >= 8; i += 8 {
		if marks := stringMarks(load64(src[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)>>3
		}
	}
	for i < len(src) {
		if c := src[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x80 {
			return i
		}
		i++
	}
	return i
}

// stringMarks marks the highest bit of the first byte in w that is a quote, a
// backslash, a control character or not ASCII. Each term marks its first byte
// exactly; a borrow can only add marks above a true one.
func stringMarks(w uint64) uint64 {
	quote := w ^ lowBits*'"'
	slash := w ^ lowBits*'\\'
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*' ')&^w | w) & highBits
}

// load64 reads eight bytes, the first one lowest.
func load64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// escapeLen returns the length of the escape at the start of b, which must be a
// backslash, or 0 if it is none of RFC 8259.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hexDigit[b[2]]|hexDigit[b[3]]|hexDigit[b[4]]|hexDigit[b[5]] < 16 {
			return 6
		}
	}
	return 0
}

// utf8Len returns the length of the multi-byte UTF-8 sequence at the start of b,
// or 0 if it is ill-formed (Unicode, table 3-7).
func utf8Len(b []byte) int {
	c := b[0]
	lo, hi := byte(0x80), byte(0xBF)
	n := 0
	switch {
	case c >= 0xC2 && c <= 0xDF:
		n = 2
	case c >= 0xE0 && c <= 0xEF:
		n = 3
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		n = 4
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	if n == 0 || len(b) < n || b[1] < lo || b[1] > hi {
		return 0
	}
	for _, c := range b[2:n] {
		if c&0xC0 != 0x80 {
			return 0
		}
	}
	return n
}

// hexDigit holds the value of each hexadecimal digit and 0xFF for other bytes.
var hexDigit = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := byte(0); i < 10; i++ {
		t['0'+i] = i
	}
	for i := byte(0); i < 6; i++ {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()
