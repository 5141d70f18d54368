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

// A block is what is looked at at once, 64 bytes, and the three bytes before it.
type block [3 + blockSize]byte

// A scratch is what skipNested needs while it runs. It need not be cleared.
type scratch struct {
	kinds    [MaxDepth]byte // of the open containers: their opening brackets
	brackets [MaxDepth / spillBits]uint32
	last     [2*blockSize + 3]byte // the last bytes of a body, filled up with white space
}

// vectorString is skipString for a string whose first block lies within src. It
// reports !ok for a fault, and where a string reaches into the last bytes of src.
func vectorString(src []byte, start int) (end int, ok bool) {
	if start < 3 {
		return 0, false
	}
	var escape, hex, wide uint64 // what one block leaves to the next
	for i := start; ; i += blockSize {
		// Fast path
		if hex|wide == 0 {
			i, escape = textBlocks(src, i, escape)
		}
		if len(src)-i < blockSize {
			break
		}
		b := (*block)(src[i-3:])
		var quotes, slashes, odd uint64
		if hasWide {
			quotes, slashes, odd = wideStringBits(b.text())
		} else {
			quotes, slashes, odd = stringBits(b.text())
		}
		bad := uint64(0)
		escapes, next := escapeRuns(slashes, escape)
		escape = next
		if escapes&^(equalBits(b, &allN)|quotes|slashes)|hex != 0 {
			bad, hex = badEscapes(b, escapes, hex)
		}
		quotes &^= escapes
		inside := quotes ^ (quotes - 1) // up to the closing quote, all if there is none
		if odd|wide != 0 {
			var controls uint64
			controls, wide, ok = oddBytes(b, odd, wide)
			if bad |= controls; !ok {
				break
			}
		}
		if bad&inside != 0 {
			break
		}
		if quotes != 0 {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros64(quotes) + 1, true
		}
	}
	archsimd.ClearAVXUpperBits()
	return 0, false
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
	var escape, hex, wide uint64 // what one block leaves to the next
	in := uint64(0)              // all ones while the block begins inside a string
	for i := start; i < len(src); i += blockSize {
		// Fast path
		if in != 0 && hex|wide == 0 {
			i, escape = textBlocks(src, i, escape)
		}
		var b *block
		if len(src)-i >= blockSize {
			b = (*block)(src[i-3:])
		} else {
			b = lastBlock(src, len(src)-i, &tmp.last)
		}
		var quotes, slashes, odd uint64
		if hasWide {
			quotes, slashes, odd = wideStringBits(b.text())
		} else {
			quotes, slashes, odd = stringBits(b.text())
		}
		bad := uint64(0)
		escapes, next := escapeRuns(slashes, escape)
		escape = next
		if escapes&^(equalBits(b, &allN)|quotes|slashes)|hex != 0 {
			bad, hex = badEscapes(b, escapes, hex)
		}
		quotes &^= escapes
		inside := in // from an opening quote to before its closing one
		if quotes != 0 {
			inside ^= prefixXor(quotes)
			in = uint64(int64(inside) >> 63)
		}
		if odd|wide != 0 {
			var controls uint64
			controls, wide, ok = oddBytes(b, odd, wide)
			if bad |= controls & inside; !ok {
				break
			}
		}
		if ^inside != 0 {
			foreign, opens, shuts, curlies := outsideBits(b)
			bad |= foreign &^ inside
			if opens, shuts = opens&^inside, shuts&^inside; opens|shuts != 0 {
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
func badEscapes(b *block, escaped, hex uint64) (bad, next uint64) {
	bad = escaped & foreignBits(b, &escapeLow, &escapeHigh)
	us := escaped & equalBits(b, &allU)
	if us|hex == 0 {
		return bad, 0
	}
	digits := us<<1 | us<<2 | us<<3 | us<<4 | hex
	return bad | digits&foreignBits(b, &hexLow, &hexHigh), us>>63 | us>>62 | us>>61 | us>>60
}

// oddBytes looks at a block with odd bytes: control characters, which it returns,
// or such that are not ASCII. carry is not 0 if a character of the block before
// may reach into it, next the same for the next one. sound reports that the block
// is UTF-8 as far as it can be told.
func oddBytes(b *block, odd, carry uint64) (controls, next uint64, sound bool) {
	wide := wideBits(b)
	if wide|carry == 0 {
		return odd, 0, true
	}
	return odd &^ wide, wide >> (blockSize - 3), wellFormed(b)
}

// lastBlock returns the block of the last n bytes of src, fewer than 64, filled up
// with white space in buf.
//
// NOTE: copied with vectors, for the built-in copy uses SSE instructions, which
// cost hundreds of cycles among AVX instructions on some machines.
func lastBlock(src []byte, n int, buf *[2*blockSize + 3]byte) *block {
	end := (*block)(src[len(src)-len(block{}):])
	copy32(buf[0:], end[0:])
	copy32(buf[32:], end[32:])
	copy32(buf[35:], end[35:])
	copy32(buf[67:], allSpaces[:])
	copy32(buf[99:], allSpaces[:])
	return (*block)(buf[blockSize-n:])
}

// shortString is portableShort.
//
// NOTE: with registers of 16 bytes, behind which no ClearAVXUpperBits is due: it
// would take longer than the search.
func shortString(src []byte, i int) int {
	if !hasVectors || len(src)-i < 16 {
		return portableShort(src, i)
	}
	for end := i + 32; i < end && len(src)-i >= 16; i += 16 {
		quotes, others := shortBits(src[i:])
		if others&(quotes^(quotes-1)) != 0 {
			return 0
		}
		if quotes != 0 {
			return i + bits.TrailingZeros32(quotes) + 1
		}
	}
	return 0
}

// vectorLine is lineLen for at least 64 bytes, which also reports whether there
// is one of the tellingKeys in the line. What it says of a line without an end is
// of no use.
func vectorLine(p []byte) (n int, tells bool) {
	last := len(p) - blockSize
	for i, skip := 0, 0; ; i += blockSize {
		if i > last {
			// The last block again takes in bytes that were seen.
			if i == len(p) {
				archsimd.ClearAVXUpperBits()
				return -1, false
			}
			i, skip = last, i-last
		}
		keys, ends := lineBits((*[blockSize]byte)(p[i:]))
		keys, ends = keys>>(skip&63)<<(skip&63), ends>>(skip&63)<<(skip&63)
		if ends != 0 {
			keys &= ends ^ (ends - 1)
		}
		for ; keys != 0 && !tells; keys &= keys - 1 {
			tells = tellingKey(p[i+bits.TrailingZeros64(keys):])
		}
		if ends != 0 {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros64(ends), tells
		}
	}
}
