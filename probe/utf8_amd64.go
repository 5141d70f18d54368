//go:build goexperiment.simd && amd64

package probe

import "simd/archsimd"

// wellFormed reports whether a block is UTF-8 as far as it can be told; what
// reaches out of it is left to the next block (Keiser and Lemire).
func wellFormed(b *block) bool { return utf8Errors(b, 0).Or(utf8Errors(b, 32)).IsZero() }

// utf8Errors returns a vector that is zero if the half of the block at i is
// UTF-8.
func utf8Errors(b *block, i int) archsimd.Uint8x32 {
	in, prev1, prev2, prev3 := load32(b[i+3:]), load32(b[i+2:]), load32(b[i+1:]), load32(b[i:])
	special := load32(utf8First[:]).PermuteOrZeroGrouped(highHalf(prev1)).
		And(load32(utf8FirstLow[:]).PermuteOrZeroGrouped(prev1.And(load32(all0F[:])).AsInt8x32())).
		And(load32(utf8Second[:]).PermuteOrZeroGrouped(highHalf(in)))
	third := prev2.SubSaturated(load32(all60[:]))
	fourth := prev3.SubSaturated(load32(all70[:]))
	return third.Or(fourth).And(load32(all80[:])).Xor(special)
}

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
