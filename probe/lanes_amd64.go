//go:build goexperiment.simd && amd64

package probe

import "simd/archsimd"

// This file and utf8_amd64.go hold all that is done with vectors. Each question
// about a block is answered with one register of 64 bytes where the machine has
// AVX-512, and with two of 32 bytes where it has AVX2. What asks one question alone
// of text in passing has registers of 32 bytes on both.
//
// NOTE: archsimd.ClearAVXUpperBits stands behind a branch on all that was computed
// from vectors before it: the compiler would move behind it what is not needed yet.

// hasVectors reports that this machine has the vector path, hasWide that it has
// registers of 64 bytes.
var (
	hasVectors = archsimd.X86.AVX2()
	hasWide    = archsimd.X86.AVX512()
)

// cleanVectors undoes what a preemption may leave behind: it restores the vector
// registers in a way that slows down every SSE instruction after it, three times
// in a loop that has few.
func cleanVectors() {
	if hasVectors {
		archsimd.ClearAVXUpperBits()
	}
}

func load32(b []byte) archsimd.Uint8x32 { return archsimd.LoadUint8x32((*[32]byte)(b)) }

// text returns the block without the bytes before it.
func (b *block) text() *[blockSize]byte { return (*[blockSize]byte)(b[3:]) }

func loadWide(b *block) archsimd.Uint8x64 {
	return archsimd.LoadUint8x64(b.text())
}

// copy32 copies 32 bytes.
func copy32(dst, src []byte) { load32(src).Store((*[32]byte)(dst)) }

// bitsOf joins the masks of both halves of a block.
func bitsOf(lo, hi archsimd.Mask8x32) uint64 {
	return uint64(lo.ToBits()) | uint64(hi.ToBits())<<32
}

// wideStringBits returns the bytes that are quotes, backslashes, and odd: control
// characters or not ASCII. It needs hasWide.
func wideStringBits(p *[blockSize]byte) (quotes, slashes, odd uint64) {
	x := archsimd.LoadUint8x64(p)
	quotes = x.Equal(archsimd.LoadUint8x64(&allQuotes)).ToBits()
	slashes = x.Equal(archsimd.LoadUint8x64(&allSlashes)).ToBits()
	odd = archsimd.LoadUint8x64(&allSpaces).AsInt8x64().Greater(x.AsInt8x64()).ToBits()
	return quotes, slashes, odd
}

// stringBits is wideStringBits for any machine.
func stringBits(p *[blockSize]byte) (quotes, slashes, odd uint64) {
	x, y := load32(p[:]), load32(p[32:])
	quote, slash, space := load32(allQuotes[:]), load32(allSlashes[:]), load32(allSpaces[:]).AsInt8x32()
	return bitsOf(x.Equal(quote), y.Equal(quote)), bitsOf(x.Equal(slash), y.Equal(slash)),
		bitsOf(space.Greater(x.AsInt8x32()), space.Greater(y.AsInt8x32()))
}

// plainQuotes returns the quotes in the first 64 bytes of b up to the first one that
// is a backslash, a control character or not ASCII.
func plainQuotes(b *[plainRoom]byte) uint64 {
	p := (*[blockSize]byte)(b[:])
	var quotes, slashes, odd uint64
	if hasWide {
		quotes, slashes, odd = wideStringBits(p)
	} else {
		quotes, slashes, odd = stringBits(p)
	}
	others := slashes | odd
	if quotes &= ^others & (others - 1); quotes == 0 {
		archsimd.ClearAVXUpperBits()
		return 0
	}
	archsimd.ClearAVXUpperBits()
	return quotes
}

// plainField is fieldByName for the n bytes of b at i, behind which a quote stands,
// the first one.
//
// NOTE: with registers of 16 bytes, see shortString.
func plainField(b *[plainRoom]byte, i, n uint) Field {
	name := &quotedNames[fieldHash(uint8(n), b[i&63], b[(i+n-1)&63])&63]
	lo := archsimd.LoadUint8x16((*[16]byte)(b[i&63:])).Equal(archsimd.LoadUint8x16((*[16]byte)(name.text[:16]))).ToBits()
	hi := archsimd.LoadUint8x16((*[16]byte)(b[i&63+16:])).Equal(archsimd.LoadUint8x16((*[16]byte)(name.text[16:]))).ToBits()
	if (uint32(lo)|uint32(hi)<<16)&name.mask != name.mask {
		return FieldNone
	}
	return name.field
}

// A quotedName is the name of a field with a quote behind it, and a mask of as many
// bits as that is long. Its size keeps it in one cache line.
type quotedName struct {
	text  [32]byte
	mask  uint32
	field Field
	_     [27]byte
}

// quotedNames holds the field of each fieldHash.
var quotedNames = func() (names [64]quotedName) {
	for h, f := range fieldTable {
		n := copy(names[h].text[:], fieldNames[f]+`"`)
		names[h].mask, names[h].field = 1<<n-1, f
	}
	return names
}()

// shortBits returns which of the first 16 bytes of b are quotes, and which are
// backslashes, control characters or not ASCII.
func shortBits(b []byte) (quotes, others uint32) {
	x := archsimd.LoadUint8x16((*[16]byte)(b))
	quote, slash := archsimd.LoadUint8x16((*[16]byte)(allQuotes[:])), archsimd.LoadUint8x16((*[16]byte)(allSlashes[:]))
	space := archsimd.LoadUint8x16((*[16]byte)(allSpaces[:])).AsInt8x16()
	return uint32(x.Equal(quote).ToBits()), uint32(x.Equal(slash).Or(space.Greater(x.AsInt8x16())).ToBits())
}

// equalBits returns the bytes that are equal to those of c.
func equalBits(b *block, c *[blockSize]byte) uint64 {
	if hasWide {
		return loadWide(b).Equal(archsimd.LoadUint8x64(c)).ToBits()
	}
	d := load32(c[:])
	return bitsOf(load32(b[3:]).Equal(d), load32(b[35:]).Equal(d))
}

// lineBits returns the quotes behind which one of the tellingKeys may stand, and the
// line ends. The letters that these keys begin with are taken together with others,
// d to g and q, s, u, w; what follows the last byte is not looked at.
func lineBits(p *[blockSize]byte) (keys, ends uint64) {
	if hasWide {
		x := archsimd.LoadUint8x64(p)
		g, w := archsimd.LoadUint8x64(&allG), archsimd.LoadUint8x64(&allW)
		letters := x.Or(archsimd.LoadUint8x64(&all03)).Equal(g).ToBits() | x.Or(archsimd.LoadUint8x64(&all06)).Equal(w).ToBits()
		keys = x.Equal(archsimd.LoadUint8x64(&allQuotes)).ToBits() & (letters>>1 | 1<<63)
		return keys, x.Equal(archsimd.LoadUint8x64(&allLF)).ToBits() | x.Equal(archsimd.LoadUint8x64(&allCR)).ToBits()
	}
	x, y := load32(p[:]), load32(p[32:])
	g, w, three, six := load32(allG[:]), load32(allW[:]), load32(all03[:]), load32(all06[:])
	letters := bitsOf(x.Or(three).Equal(g).Or(x.Or(six).Equal(w)), y.Or(three).Equal(g).Or(y.Or(six).Equal(w)))
	quote, lf, cr := load32(allQuotes[:]), load32(allLF[:]), load32(allCR[:])
	keys = bitsOf(x.Equal(quote), y.Equal(quote)) & (letters>>1 | 1<<63)
	return keys, bitsOf(x.Equal(lf).Or(x.Equal(cr)), y.Equal(lf).Or(y.Equal(cr)))
}

// wideBits returns the bytes that are not ASCII.
func wideBits(b *block) uint64 {
	if hasWide {
		var zero archsimd.Int8x64
		return zero.Greater(loadWide(b).AsInt8x64()).ToBits()
	}
	var zero archsimd.Int8x32
	return bitsOf(zero.Greater(load32(b[3:]).AsInt8x32()), zero.Greater(load32(b[35:]).AsInt8x32()))
}

// outsideBits returns the bytes that have no place outside strings, those that are
// opening brackets and closing brackets, and such that would be curly if they were
// brackets.
func outsideBits(b *block) (foreign, opens, shuts, curlies uint64) {
	if !hasWide {
		opens, shuts, curlies = bracketBits(b)
		return foreignBits(b, &plainLow, &plainHigh), opens, shuts, curlies
	}
	x, curly := loadWide(b), archsimd.LoadUint8x64(&allSpaces)
	y := x.Or(curly) // makes '[' '{' and ']' '}'
	opens = y.Equal(archsimd.LoadUint8x64(&allOpen)).ToBits()
	shuts = y.Equal(archsimd.LoadUint8x64(&allShut)).ToBits()
	return foreignWide(x, &plainLow, &plainHigh), opens, shuts, x.Equal(y).ToBits()
}

// bracketBits is the part of outsideBits about brackets for any machine.
func bracketBits(b *block) (opens, shuts, curlies uint64) {
	x, y, curly := load32(b[3:]), load32(b[35:]), load32(allSpaces[:])
	v, w := x.Or(curly), y.Or(curly)
	open, shut := load32(allOpen[:]), load32(allShut[:])
	return bitsOf(v.Equal(open), w.Equal(open)), bitsOf(v.Equal(shut), w.Equal(shut)), bitsOf(x.Equal(v), y.Equal(w))
}

// foreignBits returns the bytes that are not in a class: those whose entries in
// the tables of their low and high four bits have no bit in common.
func foreignBits(b *block, low, high *[blockSize]byte) uint64 {
	if hasWide {
		return foreignWide(loadWide(b), low, high)
	}
	return uint64(foreign32(b[3:], low, high)) | uint64(foreign32(b[35:], low, high))<<32
}

func foreignWide(x archsimd.Uint8x64, low, high *[blockSize]byte) uint64 {
	half := x.AsUint32x16().ShiftRight(archsimd.LoadUint32x16(&fours)).AsUint8x64().And(archsimd.LoadUint8x64(&all0F))
	var zero archsimd.Uint8x64
	return archsimd.LoadUint8x64(low).PermuteOrZeroGrouped(x.AsInt8x64()).
		And(archsimd.LoadUint8x64(high).PermuteOrZeroGrouped(half.AsInt8x64())).Equal(zero).ToBits()
}

func foreign32(b []byte, low, high *[blockSize]byte) uint32 {
	x := load32(b)
	var zero archsimd.Uint8x32
	return load32(low[:]).PermuteOrZeroGrouped(x.AsInt8x32()).
		And(load32(high[:]).PermuteOrZeroGrouped(highHalf(x))).Equal(zero).ToBits()
}

// highHalf returns the high four bits of each byte.
//
// NOTE: not by ShiftAllRight, which moves its count with an SSE instruction; that
// costs hundreds of cycles among AVX instructions on some machines.
func highHalf(x archsimd.Uint8x32) archsimd.Int8x32 {
	shifted := x.AsUint32x8().ShiftRight(archsimd.LoadUint32x8((*[8]uint32)(fours[:])))
	return shifted.AsUint8x32().And(load32(all0F[:])).AsInt8x32()
}

// textBlocks passes the blocks from i on, inside a string, that are ordinary text:
// ASCII without the closing quote, and without the escapes that are rare. It
// returns the first one that is not, or the end of the whole blocks. escape is 1
// if the first byte is escaped. Most of a large body is passed here.
func textBlocks(src []byte, i int, escape uint64) (next int, escaped uint64) {
	for {
		if escape == 0 && src[i-1] != '\\' {
			var more bool
			if i, more = proseBlocks(src, i); !more {
				return i, slashBit(src[i-1])
			}
			escape = slashBit(src[i-1])
		}
		limit := min(len(src), i+escapedBlocks*blockSize)
		if hasWide {
			i, escape = codeBlocksWide(src[:limit], i, escape)
		} else {
			i, escape = codeBlocks(src[:limit], i, escape)
		}
		if limit-i >= blockSize || limit == len(src) {
			return i, escape
		}
	}
}

// slashBit returns 1 if c is a backslash.
func slashBit(c byte) uint64 {
	if c == '\\' {
		return 1
	}
	return 0
}

// escapedBlocks is the number of blocks in which an escaped backslash is looked for
// after one was found.
const escapedBlocks = 8

// proseBlocks is textBlocks for a first byte that is not escaped, which stops at
// escaped backslashes, too. A quote must have a backslash before it, and a backslash
// one of n, t and a quote behind it: that is one question to each byte and the one
// before it, without any carry. more reports that it was not a quote that it
// stopped at.
func proseBlocks(src []byte, i int) (next int, more bool) {
	quote, slash := load32(allQuotes[:]), load32(allSlashes[:])
	space, line, tab := load32(allSpaces[:]).AsInt8x32(), load32(allN[:]), load32(allT[:])
	for ; len(src)-i >= blockSize; i += blockSize {
		b, before := unsafeBlock(src, i), unsafeBlock(src, i-1)
		x, y := load32(b[:]), load32(b[32:])
		s, t := load32(before[:]).Equal(slash).ToInt8x32(), load32(before[32:]).Equal(slash).ToInt8x32()
		q, r := x.Equal(quote).ToInt8x32(), y.Equal(quote).ToInt8x32()
		k, l := x.Equal(line).Or(x.Equal(tab)).ToInt8x32().Or(q), y.Equal(line).Or(y.Equal(tab)).ToInt8x32().Or(r)
		bad := s.AndNot(k).Or(t.AndNot(l))
		other := q.AndNot(s).Or(r.AndNot(t)).Or(space.Greater(x.AsInt8x32()).ToInt8x32()).Or(space.Greater(y.AsInt8x32()).ToInt8x32())
		if !bad.Or(other).IsZero() {
			return i, !bad.IsZero()
		}
		if i&plainEvery == 0 && b[blockSize-1] != '\\' {
			i = plainBlocks(src, i+blockSize) - blockSize
		}
	}
	return i, false
}

// codeBlocks is textBlocks for text with many escapes.
//
// NOTE: one branch a block, which is hardly ever taken, since it cannot be foretold
// which block of a text has an escape.
func codeBlocks(src []byte, i int, escape uint64) (next int, escaped uint64) {
	quote, slash := load32(allQuotes[:]), load32(allSlashes[:])
	space, line, tab := load32(allSpaces[:]).AsInt8x32(), load32(allN[:]), load32(allT[:])
	for ; len(src)-i >= blockSize; i += blockSize {
		b := unsafeBlock(src, i)
		x, y := load32(b[:]), load32(b[32:])
		quotes, slashes := bitsOf(x.Equal(quote), y.Equal(quote)), bitsOf(x.Equal(slash), y.Equal(slash))
		known := quotes | slashes | bitsOf(x.Equal(line).Or(x.Equal(tab)), y.Equal(line).Or(y.Equal(tab)))
		odd := space.Greater(x.AsInt8x32()).Or(space.Greater(y.AsInt8x32())).ToBits()
		escapes, next := escapeRuns(slashes, escape)
		if quotes&^escapes|escapes&^known|uint64(odd) != 0 {
			break
		}
		escape = next
	}
	return i, escape
}

// codeBlocksWide is codeBlocks with hasWide.
func codeBlocksWide(src []byte, i int, escape uint64) (next int, escaped uint64) {
	quote, slash := archsimd.LoadUint8x64(&allQuotes), archsimd.LoadUint8x64(&allSlashes)
	space := archsimd.LoadUint8x64(&allSpaces).AsInt8x64()
	low, high := archsimd.LoadUint8x64(&shortLow), archsimd.LoadUint8x64(&shortHigh)
	fours, all0F := archsimd.LoadUint32x16(&fours), archsimd.LoadUint8x64(&all0F)
	var zero archsimd.Uint8x64
	for ; len(src)-i >= blockSize; i += blockSize {
		x := archsimd.LoadUint8x64(unsafeBlock(src, i))
		quotes, slashes := x.Equal(quote).ToBits(), x.Equal(slash).ToBits()
		half := x.AsUint32x16().ShiftRight(fours).AsUint8x64().And(all0F).AsInt8x64()
		unknown := low.PermuteOrZeroGrouped(x.AsInt8x64()).And(high.PermuteOrZeroGrouped(half)).Equal(zero).ToBits()
		odd := space.Greater(x.AsInt8x64()).ToBits()
		escapes, next := escapeRuns(slashes, escape)
		if quotes&^escapes|escapes&unknown|odd != 0 {
			break
		}
		escape = next
	}
	return i, escape
}

// plainEvery makes every 16th block one behind which plain ones are looked for.
const plainEvery = 15 * blockSize

// plainBlocks returns the offset of the first block from i on that has a byte
// which means something in a string. Most of an image is passed here.
func plainBlocks(src []byte, i int) int {
	quote, slash, space := load32(allQuotes[:]), load32(allSlashes[:]), load32(allSpaces[:]).AsInt8x32()
	for ; len(src)-i >= 2*blockSize; i += 2 * blockSize {
		p := (*[2 * blockSize]byte)(src[i:])
		a, b, c, d := load32(p[0:]), load32(p[32:]), load32(p[64:]), load32(p[96:])
		ab := a.Equal(quote).Or(a.Equal(slash)).Or(space.Greater(a.AsInt8x32())).
			Or(b.Equal(quote)).Or(b.Equal(slash)).Or(space.Greater(b.AsInt8x32()))
		cd := c.Equal(quote).Or(c.Equal(slash)).Or(space.Greater(c.AsInt8x32())).
			Or(d.Equal(quote)).Or(d.Equal(slash)).Or(space.Greater(d.AsInt8x32()))
		if ab.Or(cd).ToBits() == 0 {
			continue
		}
		if ab.ToBits() == 0 {
			i += blockSize
		}
		return i
	}
	return i
}

// filled returns a block of c.
func filled(c byte) (v [blockSize]byte) {
	for i := range v {
		v[i] = c
	}
	return v
}

// nibbles returns a table of 16 entries as often as the shuffle wants it.
func nibbles(t [16]byte) (v [blockSize]byte) {
	for i := range v {
		v[i] = t[i&15]
	}
	return v
}

var (
	allQuotes  = filled('"')
	allSlashes = filled('\\')
	allSpaces  = filled(' ')
	allLF      = filled('\n')
	allCR      = filled('\r')
	allG       = filled('g')
	allN       = filled('n')
	allT       = filled('t')
	allU       = filled('u')
	allW       = filled('w')
	allOpen    = filled('{')
	allShut    = filled('}')
	all03      = filled(0x03)
	all06      = filled(0x06)
	all0F      = filled(0x0F)
	all60      = filled(0xE0 - 0x80)
	all70      = filled(0xF0 - 0x80)
	all80      = filled(0x80)
	fours      = [16]uint32{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
)

// classTables returns the two tables of foreignBits for a class. Bytes of one high
// half share a bit.
func classTables(in func(c byte) bool) (low, high [blockSize]byte) {
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
	shortLow, shortHigh   = classTables(func(c byte) bool { return shortEscape[c] != 0 })
	escapeLow, escapeHigh = classTables(func(c byte) bool { return c == 'u' || shortEscape[c] != 0 })
)
