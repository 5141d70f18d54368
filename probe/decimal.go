package probe

import (
	"math"
	"strconv"
)

// A decimal is a decimal number taken apart without any loss, however long its
// text. Its significant digits are those from the first that is not zero to the
// last that is not zero; its value is 0.ddd… × 10^point.
type decimal struct {
	neg         bool
	digits      int // number of significant digits, 0 for zero
	first, last int // offsets of the first and last significant digit
	point       int64
}

// parseDecimal takes apart b: a sign or none, digits with at most one point in
// front, between or behind them, and an exponent or none. That is the decimal
// part of what Rust's f64::from_str reads, and more than JSON.
func parseDecimal(b []byte) (d decimal, ok bool) {
	i := 0
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		d.neg = b[0] == '-'
		i++
	}
	start := i
	point := skipDigits(b, start)
	end, n := point, point-start
	if end < len(b) && b[end] == '.' {
		end = skipDigits(b, point+1)
		n += end - point - 1
	}
	if n == 0 {
		return d, false
	}
	for d.first = start; d.first < end && (b[d.first] == '0' || b[d.first] == '.'); {
		d.first++
	}
	for d.last = end - 1; d.last > d.first && (b[d.last] == '0' || b[d.last] == '.'); {
		d.last--
	}
	if d.first < end {
		d.digits = d.last - d.first + 1
		d.point = int64(point - d.first)
		if d.first < point && d.last > point {
			d.digits-- // the point
		} else if d.first > point {
			d.point++
		}
	}
	if end == len(b) {
		return d, true
	}
	exp, ok := parseExponent(b[end:])
	d.point += exp
	return d, ok
}

// parseExponent reads b, all of it, as an exponent with its letter. One that is
// beyond anything a body's length could make up for is cut short.
func parseExponent(b []byte) (exp int64, ok bool) {
	if b[0]|0x20 != 'e' {
		return 0, false
	}
	b = b[1:]
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	for _, c := range b {
		if c -= '0'; c > 9 {
			return 0, false
		} else if exp < 1<<40 {
			exp = exp*10 + int64(c)
		}
	}
	if neg {
		exp = -exp
	}
	return exp, len(b) > 0
}

// mantissa returns the significant digits of d as a number. There are at most
// 19 of them.
func (d *decimal) mantissa(text []byte) uint64 {
	if d.digits == 0 {
		return 0
	}
	m := uint64(0)
	for _, c := range text[d.first : d.last+1] {
		if c != '.' {
			m = m*10 + uint64(c-'0')
		}
	}
	return m
}

// float returns d, correctly rounded (to nearest, ties to even), ±Inf where that
// is outside float64. text is what d was parsed from.
func (d *decimal) float(text []byte) float64 {
	x := 0.0
	// Fast path: a mantissa below 2^53 and a power of ten up to 10^22 are exact
	// in float64, and IEEE 754 rounds the one product or quotient correctly
	// (Clinger, How to Read Floating Point Numbers Accurately, 1990).
	exp := d.point - int64(d.digits)
	switch {
	case d.digits == 0:
	case d.digits <= 15 && exp == 0:
		x = float64(d.mantissa(text))
	case d.digits <= 15 && exp > 0 && exp < int64(len(powersOfTen)):
		x = float64(d.mantissa(text)) * powersOfTen[exp]
	case d.digits <= 15 && exp < 0 && -exp < int64(len(powersOfTen)):
		x = float64(d.mantissa(text)) / powersOfTen[-exp]
	default:
		x = d.floatSlow(text)
	}
	if d.neg {
		return -x
	}
	return x
}

var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

const (
	// enoughDigits decide the rounding of any decimal: halfway between two
	// float64 lies no number with more than 767 significant digits. One digit
	// more, not zero, stands for whatever follows.
	enoughDigits = 767
	// tooLarge holds the digits of the least number that rounds to infinity,
	// 2^1024 - 2^970, which is 0.ddd… × 10^309, without its last zero.
	tooLarge = "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587" +
		"20709633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447" +
		"5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"
)

// floatSlow returns the magnitude of d. The text is written anew in a bounded
// form first: strconv cuts exponents short that zeros in the text could make up
// for, and its errors would hold a copy of the client's text.
func (d *decimal) floatSlow(text []byte) float64 {
	if d.point > 309 {
		return math.Inf(1)
	}
	if d.point < -323 { // below 10^-324, less than half of the least float64
		return 0
	}
	var buf [enoughDigits + 16]byte
	b := append(buf[:0], '.')
	for _, c := range text[d.first : d.last+1] {
		if c == '.' {
			continue
		}
		if len(b) > enoughDigits {
			b = append(b, '1')
			break
		}
		b = append(b, c)
	}
	if d.point == 309 && string(b[1:]) >= tooLarge {
		return math.Inf(1)
	}
	b = append(b, 'e')
	b = strconv.AppendInt(b, d.point, 10)
	x, err := strconv.ParseFloat(unsafeString(b), 64)
	if err != nil {
		panic("BUG: a decimal in range does not parse")
	}
	return x
}

// whole returns d as ReadWhole does.
func (d *decimal) whole(text []byte) (n int64, ok, huge bool) {
	if int64(d.digits) > d.point && d.digits > 0 {
		return 0, false, false // digits behind the point
	}
	limit := uint64(math.MaxInt64)
	if d.neg {
		limit++
	}
	m, over := uint64(0), d.digits > 0 && d.point > 19
	if !over {
		m = d.mantissa(text)
		for zeros := d.point - int64(d.digits); zeros > 0 && m > 0; zeros-- {
			m *= 10 // at most 19 digits: no overflow of 64 bits
		}
		over = m > limit
	}
	if over {
		m = limit
	}
	if d.neg {
		return -int64(m), true, over
	}
	return int64(m), true, over
}
