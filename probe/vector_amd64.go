//go:build goexperiment.simd && amd64

package probe

import (
	"math/bits"
	"simd/archsimd"
)

// The vector path looks at blocks of 64 bytes, turns each question about them
// into a mask of 64 bits, and answers it for the whole block at once. It settles
// what is sound; where anything is not, or may not be, it gives up and the
// portable path reads the value again from its start, so that there is one place
// that says which fault stands where.
//
// It follows what Langdale and Lemire found (Parsing Gigabytes of JSON per
// Second, 2019) and Keiser and Lemire (Validating UTF-8 in Less than One
// Instruction per Byte, 2020).

// hasVectors reports that this build and machine have the vector path.
var hasVectors = archsimd.X86.AVX2()

// A vector is half of a block.
//
// NOTE: ClearAVXUpperBits stands behind a branch on all that was computed from
// vectors before it: the compiler would move what is not needed yet behind it, and
// SSE instructions after AVX ones cost hundreds of cycles on some machines.
type vector = archsimd.Uint8x32

// A scratch is what skipNested needs while it runs. It need not be cleared.
type scratch struct {
	kinds    [MaxDepth]byte // of the open containers: their opening brackets
	brackets [MaxDepth / spillBits]uint32
	last     [67 + 64]byte // the last bytes of a body, filled up with white space
}

// bitsOf joins the masks of both halves of a block.
func bitsOf(lo, hi archsimd.Mask8x32) uint64 {
	return uint64(lo.ToBits()) | uint64(hi.ToBits())<<32
}

// vectorKey returns the offset after a string that begins at i, if it is plain
// and no longer than 31 bytes, and 0 for any other.
func vectorKey(src []byte, i int) int {
	if len(src)-i < 32 {
		return 0
	}
	a := archsimd.LoadUint8x32((*[32]byte)(src[i:]))
	quotes := a.Equal(archsimd.LoadUint8x32(&allQuotes)).ToBits()
	others := a.Equal(archsimd.LoadUint8x32(&allSlashes)).
		Or(archsimd.LoadUint8x32(&allSpaces).AsInt8x32().Greater(a.AsInt8x32())).ToBits()
	if quotes == 0 || others&(quotes^(quotes-1)) != 0 {
		archsimd.ClearAVXUpperBits()
		return 0
	}
	archsimd.ClearAVXUpperBits()
	return i + bits.TrailingZeros32(quotes) + 1
}

// vectorString is skipString for a string whose first block lies within src. It
// reports !ok for a fault, and where a string reaches into the last bytes of src.
func vectorString(src []byte, start int) (end int, escaped, ok bool) {
	if start < 3 {
		return 0, false, false
	}
	quote, slash := archsimd.LoadUint8x32(&allQuotes), archsimd.LoadUint8x32(&allSlashes)
	space, line := archsimd.LoadUint8x32(&allSpaces).AsInt8x32(), archsimd.LoadUint8x32(&allN)
	var escape, hex, wide uint64 // what one block leaves to the next
	anySlash := uint64(0)
	for i := start; len(src)-i >= blockSize; i += blockSize {
		block := (*[67]byte)(src[i-3:])
		a := archsimd.LoadUint8x32((*[32]byte)(block[3:]))
		b := archsimd.LoadUint8x32((*[32]byte)(block[35:]))
		quotes := bitsOf(a.Equal(quote), b.Equal(quote))
		slashes := bitsOf(a.Equal(slash), b.Equal(slash))
		odd := space.Greater(a.AsInt8x32()).Or(space.Greater(b.AsInt8x32())).ToBits()
		if quotes|slashes|escape|hex|wide|uint64(odd) == 0 {
			// Fast path: where there is one plain block there may be many.
			i = plainBlocks(src, i+blockSize, quote, slash, space) - blockSize
			continue
		}
		bad := uint64(0)
		if slashes|escape|hex != 0 {
			var escapes uint64
			escapes, escape = escapeRuns(slashes, escape)
			lines := bitsOf(a.Equal(line), b.Equal(line))
			if escapes&^(lines|quotes|slashes)|hex != 0 {
				bad, hex = badEscapes(block, escapes, hex)
			}
			quotes &^= escapes
		}
		inside := quotes ^ (quotes - 1) // up to the closing quote, all if there is none
		anySlash |= slashes & inside
		if uint64(odd)|wide != 0 {
			var controls uint64
			controls, wide, ok = oddBytes(block, wide)
			if bad |= controls; !ok {
				break
			}
		}
		if bad&inside != 0 {
			break
		}
		if quotes != 0 {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros64(quotes) + 1, anySlash != 0, true
		}
	}
	archsimd.ClearAVXUpperBits()
	return 0, false, false
}

// plainBlocks returns the offset of the first block from i on that has a byte
// which means something in a string. Most of a large body is passed here.
func plainBlocks(src []byte, i int, quote, slash vector, space archsimd.Int8x32) int {
	for len(src)-i >= 2*blockSize {
		p := (*[128]byte)(src[i:])
		a, b := archsimd.LoadUint8x32((*[32]byte)(p[0:])), archsimd.LoadUint8x32((*[32]byte)(p[32:]))
		c, d := archsimd.LoadUint8x32((*[32]byte)(p[64:])), archsimd.LoadUint8x32((*[32]byte)(p[96:]))
		ab := a.Equal(quote).Or(a.Equal(slash)).Or(space.Greater(a.AsInt8x32())).
			Or(b.Equal(quote)).Or(b.Equal(slash)).Or(space.Greater(b.AsInt8x32()))
		cd := c.Equal(quote).Or(c.Equal(slash)).Or(space.Greater(c.AsInt8x32())).
			Or(d.Equal(quote)).Or(d.Equal(slash)).Or(space.Greater(d.AsInt8x32()))
		if ab.Or(cd).ToBits() != 0 {
			if ab.ToBits() == 0 {
				i += blockSize
			}
			return i
		}
		i += 2 * blockSize
	}
	return i
}

// vectorNested is skipNested for a value whose first block lies within src. It
// reports !ok for a fault, one of being too short among them.
func vectorNested(src []byte, start, depth int, tmp *scratch) (end int, ok bool) {
	if start < 3 {
		return 0, false
	}
	var open brackets
	open.spilled = &tmp.brackets
	open.limit = MaxDepth - depth
	quote, slash := archsimd.LoadUint8x32(&allQuotes), archsimd.LoadUint8x32(&allSlashes)
	space, line := archsimd.LoadUint8x32(&allSpaces).AsInt8x32(), archsimd.LoadUint8x32(&allN)
	var escape, hex, wide uint64 // what one block leaves to the next
	in := uint64(0)              // all ones while the block begins inside a string
	for i := start; i < len(src); i += blockSize {
		var block *[67]byte // the block with the three bytes before it
		if len(src)-i >= blockSize {
			block = (*[67]byte)(src[i-3:])
		} else {
			block = lastBlock(src, len(src)-i, &tmp.last)
		}
		a := archsimd.LoadUint8x32((*[32]byte)(block[3:]))
		b := archsimd.LoadUint8x32((*[32]byte)(block[35:]))
		quotes := bitsOf(a.Equal(quote), b.Equal(quote))
		slashes := bitsOf(a.Equal(slash), b.Equal(slash))
		odd := space.Greater(a.AsInt8x32()).Or(space.Greater(b.AsInt8x32())).ToBits()
		if quotes|slashes|escape|hex|wide|uint64(odd)|^in == 0 {
			// Fast path: where there is one plain block there may be many.
			i = plainBlocks(src, i+blockSize, quote, slash, space) - blockSize
			continue
		}
		bad := uint64(0)
		if slashes|escape|hex != 0 {
			var escapes uint64
			escapes, escape = escapeRuns(slashes, escape)
			lines := bitsOf(a.Equal(line), b.Equal(line))
			if escapes&^(lines|quotes|slashes)|hex != 0 {
				bad, hex = badEscapes(block, escapes, hex)
			}
			quotes &^= escapes
		}
		inside := in // from an opening quote to before its closing one
		if quotes != 0 {
			inside ^= prefixXor(quotes)
			in = uint64(int64(inside) >> 63)
		}
		if uint64(odd)|wide != 0 {
			var controls uint64
			controls, wide, ok = oddBytes(block, wide)
			if bad |= controls & inside; !ok {
				break
			}
		}
		if ^inside != 0 {
			bad |= classBits(a, b, &plainLow, &plainHigh) &^ inside
			opens, shuts := bracketBits(a, b)
			if opens, shuts = opens&^inside, shuts&^inside; opens|shuts != 0 {
				curly := archsimd.LoadUint8x32(&allSpaces) // the bit that '{' has and '[' has not
				curlies := bitsOf(a.And(curly).Equal(curly), b.And(curly).Equal(curly))
				if at := open.read(opens, shuts, curlies); at != 0 {
					if at < 0 || bad<<uint(blockSize-at) != 0 {
						archsimd.ClearAVXUpperBits()
						return 0, false
					}
					archsimd.ClearAVXUpperBits()
					return i + at, true
				}
			}
		}
		if bad != 0 {
			break
		}
	}
	archsimd.ClearAVXUpperBits()
	return 0, false
}

// lastBlock returns the block of the last n bytes of src, fewer than 64, with the
// three bytes before it, filled up with white space in buf.
//
// NOTE: copied with vectors, for the built-in copy uses SSE instructions, which
// cost hundreds of cycles among AVX instructions.
func lastBlock(src []byte, n int, buf *[67 + 64]byte) *[67]byte {
	end := (*[67]byte)(src[len(src)-67:])
	archsimd.LoadUint8x32((*[32]byte)(end[0:])).Store((*[32]byte)(buf[0:]))
	archsimd.LoadUint8x32((*[32]byte)(end[32:])).Store((*[32]byte)(buf[32:]))
	archsimd.LoadUint8x32((*[32]byte)(end[35:])).Store((*[32]byte)(buf[35:]))
	space := archsimd.LoadUint8x32(&allSpaces)
	space.Store((*[32]byte)(buf[67:]))
	space.Store((*[32]byte)(buf[99:]))
	return (*[67]byte)(buf[blockSize-n:])
}

// vectorLine is lineLen for at least 33 bytes, which also reports whether there
// is one of the tellingKeys in the line. What it says of a line without an end is
// of no use.
func vectorLine(p []byte) (n int, tells bool) {
	lf, cr := archsimd.LoadUint8x32(&allLF), archsimd.LoadUint8x32(&allCR)
	quote := archsimd.LoadUint8x32(&allQuotes)
	e, f := archsimd.LoadUint8x32(&allE), archsimd.LoadUint8x32(&allF)
	s, u := archsimd.LoadUint8x32(&allS), archsimd.LoadUint8x32(&allU)
	last := len(p) - 33 // where the last block of 32 bytes begins
	for i, skip := 0, 0; ; i += 32 {
		if i > last {
			// The last block again takes in bytes that were seen.
			if i == last+32 {
				break
			}
			i, skip = last, i-last
		}
		a := archsimd.LoadUint8x32((*[32]byte)(p[i:]))
		b := archsimd.LoadUint8x32((*[32]byte)(p[i+1:]))
		letters := b.Equal(e).Or(b.Equal(f)).Or(b.Equal(s).Or(b.Equal(u)))
		keys := a.Equal(quote).And(letters).ToBits() >> skip << skip
		ends := a.Equal(lf).Or(a.Equal(cr)).ToBits() >> skip << skip
		if ends != 0 {
			keys &= ends ^ (ends - 1)
		}
		for ; keys != 0 && !tells; keys &= keys - 1 {
			tells = tellingKey(p[i+bits.TrailingZeros32(keys):])
		}
		if ends != 0 {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros32(ends), tells
		}
	}
	archsimd.ClearAVXUpperBits()
	if c := p[len(p)-1]; c == '\n' || c == '\r' {
		return len(p) - 1, tells
	}
	return -1, false
}

// prefixXor sets each bit to the parity of the bits up to it.
func prefixXor(x uint64) uint64 {
	x ^= x << 1
	x ^= x << 2
	x ^= x << 4
	x ^= x << 8
	x ^= x << 16
	x ^= x << 32
	return x
}

// escapeRuns returns the bytes that are escaped, and what of it is left to the
// next block. A run of backslashes escapes what follows it if it is odd. Runs are
// told apart by a subtraction that carries through each of them.
func escapeRuns(slashes, carry uint64) (escaped, next uint64) {
	const odd = 0xAAAA_AAAA_AAAA_AAAA
	starts := slashes &^ carry
	codes := (starts<<1 | odd) - starts ^ odd
	return codes ^ (slashes | carry), codes & slashes >> 63
}

// badEscapes returns the bytes that end or spoil an escape which RFC 8259 does
// not have. hex are those that must be hexadecimal digits, next the ones with
// which the next block must begin.
func badEscapes(block *[67]byte, escaped, hex uint64) (bad, next uint64) {
	a := archsimd.LoadUint8x32((*[32]byte)(block[3:]))
	b := archsimd.LoadUint8x32((*[32]byte)(block[35:]))
	bad = escaped & classBits(a, b, &escapeLow, &escapeHigh)
	letter := archsimd.LoadUint8x32(&allU)
	us := escaped & bitsOf(a.Equal(letter), b.Equal(letter))
	if us|hex == 0 {
		return bad, 0
	}
	digits := us<<1 | us<<2 | us<<3 | us<<4 | hex
	return bad | digits&classBits(a, b, &hexLow, &hexHigh), us>>63 | us>>62 | us>>61 | us>>60
}

// oddBytes looks at a block with control characters, which it returns, or with
// bytes that are not ASCII. carry is not 0 if a character of the block before
// may reach into it, next the same for the next one. sound reports that the
// block is UTF-8 as far as it can be told.
func oddBytes(block *[67]byte, carry uint64) (controls, next uint64, sound bool) {
	a := archsimd.LoadUint8x32((*[32]byte)(block[3:])).AsInt8x32()
	b := archsimd.LoadUint8x32((*[32]byte)(block[35:])).AsInt8x32()
	space := archsimd.LoadUint8x32(&allSpaces).AsInt8x32()
	var zero archsimd.Int8x32
	wide := bitsOf(zero.Greater(a), zero.Greater(b))
	controls = bitsOf(space.Greater(a), space.Greater(b)) &^ wide
	if wide|carry == 0 {
		return controls, 0, true
	}
	return controls, wide >> (blockSize - 3), utf8Errors(block, 0).Or(utf8Errors(block, 32)).IsZero()
}

// bracketBits returns the bytes that are opening and closing brackets.
func bracketBits(a, b vector) (opens, shuts uint64) {
	space := archsimd.LoadUint8x32(&allSpaces)
	open, shut := archsimd.LoadUint8x32(&allOpen), archsimd.LoadUint8x32(&allShut)
	a, b = a.Or(space), b.Or(space) // makes '[' '{' and ']' '}'
	return bitsOf(a.Equal(open), b.Equal(open)), bitsOf(a.Equal(shut), b.Equal(shut))
}

// classBits returns the bytes that are not in a class: those whose entries in the
// tables of their low and high four bits have no bit in common.
func classBits(a, b vector, low, high *[32]byte) uint64 {
	lo, hi := archsimd.LoadUint8x32(low), archsimd.LoadUint8x32(high)
	var zero vector
	x := lo.PermuteOrZeroGrouped(a.AsInt8x32()).And(hi.PermuteOrZeroGrouped(highHalf(a)))
	y := lo.PermuteOrZeroGrouped(b.AsInt8x32()).And(hi.PermuteOrZeroGrouped(highHalf(b)))
	return bitsOf(x.Equal(zero), y.Equal(zero))
}

// highHalf returns the high four bits of each byte.
func highHalf(a vector) archsimd.Int8x32 {
	// NOTE: not ShiftAllRight, which moves its count with an SSE instruction; that
	// costs hundreds of cycles among AVX instructions.
	shifted := a.AsUint32x8().ShiftRight(archsimd.LoadUint32x8(&fours))
	return shifted.AsUint8x32().And(archsimd.LoadUint8x32(&all0F)).AsInt8x32()
}

// utf8Errors returns a vector that is zero if the half of the block at i is
// UTF-8.
func utf8Errors(block *[67]byte, i int) vector {
	in := archsimd.LoadUint8x32((*[32]byte)(block[i+3:]))
	prev1 := archsimd.LoadUint8x32((*[32]byte)(block[i+2:]))
	prev2 := archsimd.LoadUint8x32((*[32]byte)(block[i+1:]))
	prev3 := archsimd.LoadUint8x32((*[32]byte)(block[i:]))
	special := archsimd.LoadUint8x32(&utf8First).PermuteOrZeroGrouped(highHalf(prev1)).
		And(archsimd.LoadUint8x32(&utf8FirstLow).PermuteOrZeroGrouped(prev1.And(archsimd.LoadUint8x32(&all0F)).AsInt8x32())).
		And(archsimd.LoadUint8x32(&utf8Second).PermuteOrZeroGrouped(highHalf(in)))
	third := prev2.SubSaturated(archsimd.LoadUint8x32(&all60))
	fourth := prev3.SubSaturated(archsimd.LoadUint8x32(&all70))
	return third.Or(fourth).And(archsimd.LoadUint8x32(&all80)).Xor(special)
}

// filled returns a vector's worth of c.
func filled(c byte) (v [32]byte) {
	for i := range v {
		v[i] = c
	}
	return v
}

// nibbles returns a table of 16 entries, twice, as the shuffle wants it.
func nibbles(t [16]byte) (v [32]byte) {
	copy(v[:], t[:])
	copy(v[16:], t[:])
	return v
}

var (
	allQuotes  = filled('"')
	allSlashes = filled('\\')
	allSpaces  = filled(' ')
	allLF      = filled('\n')
	allCR      = filled('\r')
	allE       = filled('e')
	allF       = filled('f')
	allN       = filled('n')
	allS       = filled('s')
	allU       = filled('u')
	allOpen    = filled('{')
	allShut    = filled('}')
	all0F      = filled(0x0F)
	all60      = filled(0xE0 - 0x80)
	all70      = filled(0xF0 - 0x80)
	all80      = filled(0x80)
	fours      = [8]uint32{4, 4, 4, 4, 4, 4, 4, 4}
)

// classTables returns the two tables of classBits for a class. Bytes of one high
// half share a bit.
func classTables(in func(c byte) bool) (low, high [32]byte) {
	var lo, hi [16]byte
	for c := range byte(0x80) {
		if in(c) {
			lo[c&15] |= 1 << (c >> 4)
			hi[c>>4] |= 1 << (c >> 4)
		}
	}
	return nibbles(lo), nibbles(hi)
}

var (
	plainLow, plainHigh   = classTables(func(c byte) bool { return class[c] != classOther })
	hexLow, hexHigh       = classTables(func(c byte) bool { return hexDigit[c] < 16 })
	escapeLow, escapeHigh = classTables(func(c byte) bool { return c == 'u' || shortEscape[c] != 0 })
)

// What is wrong with two bytes in a row (Keiser and Lemire, table 8).
const (
	tooShort     = 1 << 0
	tooLong      = 1 << 1
	overlong3    = 1 << 2
	tooLargeChar = 1 << 3
	surrogate    = 1 << 4
	overlong2    = 1 << 5
	tooLarge1000 = 1 << 6
	overlong4    = 1 << 6
	twoConts     = 1 << 7
	anyLow       = tooShort | tooLong | twoConts
)

var (
	utf8First = nibbles([16]byte{
		tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong,
		twoConts, twoConts, twoConts, twoConts,
		tooShort | overlong2, tooShort, tooShort | overlong3 | surrogate, tooShort | tooLargeChar | tooLarge1000 | overlong4,
	})
	utf8FirstLow = nibbles([16]byte{
		anyLow | overlong3 | overlong2 | overlong4, anyLow | overlong2, anyLow, anyLow,
		anyLow | tooLargeChar,
		anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000,
		anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000,
		anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000,
		anyLow | tooLargeChar | tooLarge1000 | surrogate, anyLow | tooLargeChar | tooLarge1000, anyLow | tooLargeChar | tooLarge1000,
	})
	utf8Second = nibbles([16]byte{
		tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort,
		tooLong | overlong2 | twoConts | overlong3 | tooLarge1000 | overlong4,
		tooLong | overlong2 | twoConts | overlong3 | tooLargeChar,
		tooLong | overlong2 | twoConts | surrogate | tooLargeChar,
		tooLong | overlong2 | twoConts | surrogate | tooLargeChar,
		tooShort, tooShort, tooShort, tooShort,
	})
)
