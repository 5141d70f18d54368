package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// ShareSpec is one of several destinations as a config states it.
type ShareSpec struct {
	// Name identifies the destination. No two of a Shares share one.
	Name string
	// Weight is its part relative to the other weights, 0 to MaxWeight. Zero is
	// none.
	Weight int
}

// MaxWeight bounds a weight.
const MaxWeight = 1_000_000

// Shares divides requests among destinations by weight. It is immutable and safe
// for concurrent use.
type Shares struct {
	// ends are the sums of the weights up to each destination, itself included.
	ends []uint64
}

// NewShares compiles specs. An error joins one *SpecError for each fault, whose
// path is that of a key of a decision: pools[1].weight.
func NewShares(specs []ShareSpec) (*Shares, error) {
	s := &Shares{}
	var faults faults
	names, sum := make(map[string]int, len(specs)), uint64(0)
	for i, spec := range specs {
		path := fmt.Sprintf("pools[%d]", i)
		if first, ok := names[spec.Name]; ok {
			faults.add(path+".name", spec.Name, "is the name of pools[%d], too; expected one of its own", first)
		} else {
			names[spec.Name] = i
		}
		if spec.Name == "" {
			faults.add(path+".name", spec.Name, "is empty; expected a name")
		}
		if spec.Weight < 0 || spec.Weight > MaxWeight {
			faults.add(path+".weight", spec.Weight, "is out of range; expected a whole number in [0, %d]", MaxWeight)
		}
		sum += uint64(max(spec.Weight, 0))
		s.ends = append(s.ends, sum)
	}
	if sum == 0 {
		faults.add("pools", len(specs), "pools have no weight; expected one or more with a weight above 0")
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// Pick returns the index, in the specs, of the destination of a request: with
// RequestHash always the same one for the same session, in every replica of the
// router that has the same specs; with a random number, one by chance. When two
// weights trade places or one grows, only requests at the borders move, and with
// two destinations no more than need be.
func (s *Shares) Pick(hash uint64) int {
	at, _ := bits.Mul64(hash, s.ends[len(s.ends)-1])
	i := 0
	for s.ends[i] <= at {
		i++
	}
	return i
}

// InShare reports whether a request of the given hash, see RequestHash, is in a
// share of all requests between 0, none, and 1, all. Who is in a share is also in
// every larger one, so a rollout that grows takes nobody back. The answer is
// independent of what Pick says for the same hash. NaN is none.
func InShare(hash uint64, share float64) bool {
	// 53 bits are what a float64 holds exactly.
	return float64(mix(hash^0x9e3779b97f4a7c15, 0xd1342543de82ef95)>>11) < share*(1<<53)
}

// RequestHash returns a hash of what makes requests belong together: of the
// session, or, where that is empty, of the body, so that equal requests do. It
// is the same in every process and version of the router. It is no defence
// against who looks for collisions: those choose their own share.
//
// It multiplies 16 bytes at a time to 128 bits and folds them, like wyhash and
// its kin; for 1 KiB, hash/crc64 of std takes 7 times as long and hash/fnv 17 times.
func RequestHash(session, body []byte) uint64 {
	seed := uint64(0x2545f4914f6cdd1d)
	if len(session) > 0 {
		seed, body = 0x8cb92ba72f3d8dd7, session
	}
	return foldHash(body, seed)
}

// The odd constants of foldHash: digits of the square roots of 2 and 3.
const (
	fold1 = 0x6a09e667f3bcc909
	fold2 = 0xbb67ae8584caa73b
)

func foldHash(b []byte, seed uint64) uint64 {
	n := uint64(len(b))
	one, two := seed, seed
	for len(b) >= 32 {
		one = mix(binary.LittleEndian.Uint64(b)^fold1, binary.LittleEndian.Uint64(b[8:])^one)
		two = mix(binary.LittleEndian.Uint64(b[16:])^fold2, binary.LittleEndian.Uint64(b[24:])^two)
		b = b[32:]
	}
	var rest [32]byte
	copy(rest[:], b)
	one = mix(binary.LittleEndian.Uint64(rest[:])^fold1, binary.LittleEndian.Uint64(rest[8:])^one)
	two = mix(binary.LittleEndian.Uint64(rest[16:])^fold2, binary.LittleEndian.Uint64(rest[24:])^two)
	return mix(one^n^fold2, bits.RotateLeft64(two, 32)^fold1)
}

// mix folds the 128-bit product of a and b.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
