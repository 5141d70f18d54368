package probe

import (
	"math"
	"math/bits"
)

// skipNumber reads a number by the grammar of RFC 8259, or one of NaN, Infinity
// and -Infinity, which Python's json reads.
func skipNumber(src []byte, i int) (int, Fault) {
	start := i
	if src[i] == 'N' {
		return skipWord(src, i, "NaN")
	}
	if src[i] == '-' {
		i++
	}
	if i < len(src) && src[i] == 'I' {
		return skipWord(src, i, "Infinity")
	}
	end := skipDigits(src, i)
	if end == i || end > i+1 && src[i] == '0' {
		return start, FaultSyntax
	}
	i = end
	if i < len(src) && src[i] == '.' {
		if end = skipDigits(src, i+1); end == i+1 {
			return start, FaultSyntax
		}
		i = end
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if end = skipDigits(src, i); end == i {
			return start, FaultSyntax
		}
		i = end
	}
	return i, FaultNone
}

// skipDigits returns the offset of the first byte from i on that is not a digit.
func skipDigits(src []byte, i int) int {
	const sixes, zeros, threes = lowBits * 6, lowBits * 0xF0, lowBits * 0x30
	for len(src)-i >= 8 {
		// A digit is 0x30 to 0x39; six more and it is still 0x3_.
		w := load64(src[i:])
		if w&zeros != threes || (w+sixes)&zeros != threes {
			break
		}
		i += 8
	}
	for i < len(src) && src[i]-'0' < 10 {
		i++
	}
	return i
}

// ReadNumber returns what an engine reads in a governed value, the bytes of one
// JSON value without white space around it, as Scan found them.
//
// A JSON number is that number, correctly rounded; outside float64 it is
// Unusable. NaN, Infinity and -Infinity are what they say. true and false are 1
// and 0, null is Absent. A string is the number that pydantic's lax mode reads
// in it (pydantic-core input/shared.rs, str_as_float), or Unusable where that
// needs more than 64 bytes: a decimal float with Unicode white space around it,
// or one without white space that holds single underscores. Anything else is
// Unusable. The number is valid iff the state is Number.
func ReadNumber(val []byte, kind Kind) (float64, State) {
	switch kind {
	case KindNone, KindNull:
		return 0, Absent
	case KindFalse:
		return 0, Number
	case KindTrue:
		return 1, Number
	case KindNumber:
		return readLiteral(val)
	case KindString:
		var buf [maxNumericString]byte
		text, ok := numericText(val, &buf)
		if !ok {
			return 0, Unusable
		}
		if text, ok = dropUnderscores(text); !ok {
			return 0, Unusable
		}
		if d, ok := parseDecimal(text); ok {
			return d.float(text), Number
		}
		if x, ok := parseSpecial(text); ok {
			return x, Number
		}
	}
	return 0, Unusable
}

// readLiteral reads a number that skipNumber accepted.
func readLiteral(val []byte) (float64, State) {
	d, ok := parseDecimal(val)
	if !ok {
		switch string(val) {
		case "NaN":
			return math.NaN(), Number
		case "Infinity":
			return math.Inf(1), Number
		case "-Infinity":
			return math.Inf(-1), Number
		}
		return 0, Unusable
	}
	x := d.float(val)
	if math.IsInf(x, 0) {
		return 0, Unusable
	}
	return x, Number
}

// shortNumber reads the number at i if it has at most 7 digits and no exponent,
// as most have. It reports false for any other.
func shortNumber(src []byte, i int) (x float64, end int, ok bool) {
	if len(src)-i >= 2 && src[i]-'0' <= 9 && (src[i+1] == ',' || src[i+1] == '}') { // Fast path
		return float64(src[i] - '0'), i + 1, true
	}
	neg := src[i] == '-'
	if neg {
		i++
	}
	if len(src)-i < 8 {
		return 0, 0, false
	}
	w := load64(src[i:]) ^ lowBits*'0'
	marks := notDigits(w)
	end = i + bits.TrailingZeros64(marks)>>3
	if marks != 0 && src[end] == '.' {
		marks &= marks - 1
		end = i + bits.TrailingZeros64(marks)>>3
	}
	if marks == 0 || end == i || src[end]|0x20 == 'e' {
		return 0, 0, false
	}
	x, ok = eightDigits(w, end-i)
	if neg {
		x = -x
	}
	return x, end, ok
}

// notDigits marks the highest bit of the bytes in w that are not 0 to 9.
func notDigits(w uint64) uint64 { return (w&^highBits + lowBits*0x76 | w) & highBits }

// eightDigits reads the first n bytes of w, 1 to 8 of them, as a number: w holds
// text without the bits of '0', the first byte lowest. It reports false where that
// is more than digits with a point between them, or less than JSON has. The digits
// and the power of ten are exact in float64, and IEEE 754 rounds their quotient
// correctly.
func eightDigits(w uint64, n int) (x float64, ok bool) {
	const point = '.' ^ '0'
	if w>>8&0xFF == point && (n == 3 || n == 4) { // Fast path: 0.7, 0.95
		first, tenths, hundredths := w&0xFF, w>>16&0xFF, w>>24&0xFF
		if first > 9 || tenths > 9 {
			return 0, false
		}
		if n == 3 {
			return float64(int64(first*10+tenths)) / 10, true
		}
		return float64(int64(first*100+tenths*10+hundredths)) / 100, hundredths <= 9
	}
	if w&0xFF == 0 && n > 1 && w>>8&0xFF != point {
		return 0, false
	}
	// Zeros in front: the number ends with the highest byte.
	w <<= (64 - 8*uint(n)) & 63
	frac := 0
	if marks := notDigits(w); marks != 0 {
		at := uint(bits.TrailingZeros64(marks)) &^ 7
		front := w & (1<<(at&63) - 1)
		frac = 7 - int(at>>3)
		if marks&(marks-1) != 0 || w>>(at&63)&0xFF != point || frac == 0 || frac == n-1 {
			return 0, false
		}
		w = w>>(at&63)>>8<<8<<(at&63) | front<<8
	}
	w = w*10 + w>>8 // the digits two by two
	w = (w&0x0000_00FF_0000_00FF*(100+1_000_000<<32) + w>>16&0x0000_00FF_0000_00FF*(1+10_000<<32)) >> 32
	x = float64(int64(w))
	if frac > 0 {
		x /= powersOfTen[frac&7]
	}
	return x, true
}

// ReadWhole returns the whole number that an engine reads in the value of an
// integer field, given as to ReadNumber. It is settled on the decimal text and
// never through a float or an overflowing integer: 500, 500.0, 5e2, "500" and
// "500.0" are 500, true is 1.
//
// ok reports a whole number; it is false for null, fractions, NaN, Infinity and
// whatever an engine would not read as an integer. huge reports one outside
// int64, for which n is math.MaxInt64 or math.MinInt64.
func ReadWhole(val []byte, kind Kind) (n int64, ok, huge bool) {
	switch kind {
	case KindFalse:
		return 0, true, false
	case KindTrue:
		return 1, true, false
	case KindNumber:
		if d, ok := parseDecimal(val); ok {
			return d.whole(val)
		}
	case KindString:
		var buf [maxNumericString]byte
		text, ok := numericText(val, &buf)
		if !ok || !integerText(text) {
			return 0, false, false
		}
		text, _ = dropUnderscores(text)
		if d, ok := parseDecimal(text); ok {
			return d.whole(text)
		}
	}
	return 0, false, false
}

// integerText reports whether text has the form that pydantic reads as an
// integer: digits with single underscores between them, then nothing or a point
// and zeros. An exponent has no place in it.
func integerText(text []byte) bool {
	i := 0
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		i++
	}
	last := byte('_')
	for ; i < len(text) && text[i] != '.'; i++ {
		c := text[i]
		if c-'0' > 9 && (c != '_' || last == '_') {
			return false
		}
		last = c
	}
	if last == '_' || i == len(text)-1 {
		return false
	}
	for i++; i < len(text); i++ {
		if text[i] != '0' {
			return false
		}
	}
	return true
}
