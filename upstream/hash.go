package upstream

import (
	"encoding/binary"
	"math/bits"
)

// The odd constants of wyhash.
const (
	wy0 = 0x2d358dccaa6c78a5
	wy1 = 0x8bb84b93962eacc9
	wy2 = 0x4b33a62ed433d4a3
	wy3 = 0x4d5a2da51de1aa47
)

// hash returns the wyhash (final version 4.2, by Wang Yi) of b under seed. It is
// the same in every process, so that all routers of a fleet agree on where a
// session belongs, and fast where the processor multiplies to 128 bits. It
// does not resist who looks for collisions: those cost only an even spread.
func hash(b []byte, seed uint64) uint64 {
	seed ^= mix(seed^wy0, wy1)
	n := len(b)
	if n <= 16 {
		lo, hi := ends(b)
		return finish(lo, hi, seed, n)
	}
	rest := b
	if n >= 48 {
		one, two := seed, seed
		for len(rest) >= 48 {
			seed = mix(word(rest)^wy1, word(rest[8:])^seed)
			one = mix(word(rest[16:])^wy2, word(rest[24:])^one)
			two = mix(word(rest[32:])^wy3, word(rest[40:])^two)
			rest = rest[48:]
		}
		seed ^= one ^ two
	}
	for len(rest) > 16 {
		seed = mix(word(rest)^wy1, word(rest[8:])^seed)
		rest = rest[16:]
	}
	return finish(word(b[n-16:]), word(b[n-8:]), seed, n)
}

// ends reads at most 16 bytes into two words, from both ends.
func ends(b []byte) (lo, hi uint64) {
	switch n := len(b); {
	case n >= 4:
		middle := n >> 3 << 2
		half := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[i:])) }
		return half(0)<<32 | half(middle), half(n-4)<<32 | half(n-4-middle)
	case n > 0:
		return uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1]), 0
	}
	return 0, 0
}

func finish(lo, hi, seed uint64, n int) uint64 {
	hi, lo = bits.Mul64(lo^wy1, hi^seed)
	return mix(lo^wy0^uint64(n), hi^wy1)
}

// mix folds the 128-bit product of a and b.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
