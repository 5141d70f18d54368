package probe

// Classes of bytes outside strings.
const (
	classOther = iota // never part of JSON
	classPlain        // white space, separators, numbers, literals
	classQuote
	classOpen
	classClose
)

// class sorts the bytes outside strings. What JSON (with NaN and Infinity) never
// has there is refused, comments and single quotes among them, so that a lenient
// parser behind us cannot see a string where we see none.
var class = func() (t [256]uint8) {
	for _, c := range []byte(" \t\r\n,:+-.0123456789truefalsenullNaNInfinityE") {
		t[c] = classPlain
	}
	t['"'] = classQuote
	t['{'], t['['] = classOpen, classOpen
	t['}'], t[']'] = classClose, classClose
	return t
}()

// skipNested reads the object or array at i, with depth containers open around
// it, and returns the offset after its closing bracket. Strings, the kinds of
// brackets, the depth and the alphabet outside strings are checked; the order of
// values, commas and colons is not.
func skipNested(src []byte, i, depth int, tmp *scratch) (int, Fault) {
	if hasVectors && len(src)-i >= blockSize {
		if end, ok := vectorNested(src, i, depth, tmp); ok {
			return end, FaultNone
		}
	}
	return portableNested(src, i, depth, tmp)
}

// portableNested is skipNested without vectors. What it says is the last word:
// vectorNested leaves every fault to it.
func portableNested(src []byte, i, depth int, tmp *scratch) (int, Fault) {
	n := 0
	for i < len(src) {
		c := src[i]
		switch class[c] {
		case classPlain:
			i++
		case classQuote:
			end, f := portableString(src, i+1)
			if f != FaultNone {
				return end, f
			}
			i = end
		case classOpen:
			if depth+n >= MaxDepth {
				return i, FaultDepth
			}
			tmp.kinds[n] = c
			n++
			i++
		case classClose:
			// '[' and ']', '{' and '}' are two apart.
			if n--; tmp.kinds[n] != c-2 {
				return i, FaultSyntax
			}
			i++
			if n == 0 {
				return i, FaultNone
			}
		default:
			if c >= 0x80 && utf8Len(src[i:]) == 0 {
				return i, FaultUTF8
			}
			return i, FaultSyntax
		}
	}
	return len(src), FaultTruncated
}
