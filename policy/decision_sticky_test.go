package policy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func shares(tb testing.TB, weights ...int) *Shares {
	tb.Helper()
	specs := make([]ShareSpec, len(weights))
	for i, w := range weights {
		specs[i] = ShareSpec{Name: fmt.Sprintf("p%d", i), Weight: w}
	}
	s, err := NewShares(specs)
	if err != nil {
		tb.Fatalf("unexpected error: %v", err)
	}
	return s
}

func TestDecisionShares(t *testing.T) {
	const n = 40_000
	f := func(weights ...int) {
		t.Helper()
		s := shares(t, weights...)
		random, sticky := make([]int, len(weights)), make([]int, len(weights))
		r, sum := rand.New(rand.NewPCG(1, 2)), 0
		for i := range n {
			random[s.Pick(r.Uint64())]++
			sticky[s.Pick(RequestHash([]byte(fmt.Sprintf("session-%d", i)), nil))]++
		}
		for _, w := range weights {
			sum += w
		}
		for i, w := range weights {
			want := float64(w) / float64(sum)
			for _, got := range []int{random[i], sticky[i]} {
				if off := math.Abs(float64(got)/n - want); off > 0.01 || w == 0 && got > 0 {
					t.Errorf("unexpected share %d of %v; got %d of %d; want %.3f", i, weights, got, n, want)
				}
			}
		}
	}
	f(1)
	f(1, 1)
	f(95, 5)
	f(0, 1, 0, 3, 0)
	f(MaxWeight, 1, MaxWeight)
	f(1, 2, 3, 4, 5, 6, 7)

	s := shares(t, 0, 1, 1, 0)
	if first, last := s.Pick(0), s.Pick(math.MaxUint64); first != 1 || last != 2 {
		t.Errorf("unexpected ends; got %d, %d; want 1, 2", first, last)
	}
}

// When a canary grows from 5 to 10 in 100, only those who join it move.
func TestDecisionSharesMove(t *testing.T) {
	before, after := shares(t, 95, 5), shares(t, 90, 10)
	r, moved := rand.New(rand.NewPCG(3, 4)), 0
	const n = 40_000
	for range n {
		hash := r.Uint64()
		switch a, b := before.Pick(hash), after.Pick(hash); {
		case a == 1 && b == 0:
			t.Fatalf("unexpected move of %x out of the canary", hash)
		case a != b:
			moved++
		}
	}
	if moved < n*4/100 || moved > n*6/100 {
		t.Errorf("unexpected number of moves; got %d of %d; want about 5%%", moved, n)
	}
}

func TestDecisionSharesFaults(t *testing.T) {
	f := func(specs []ShareSpec, want ...string) {
		t.Helper()
		_, err := NewShares(specs)
		if err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("unexpected faults;\ngot  %v\nwant %q", err, want)
		}
		var spec *SpecError
		if !errors.As(err, &spec) {
			t.Errorf("unexpected type of an error; got %T; want *SpecError", err)
		}
	}
	f(nil, `pools: 0 pools have no weight; expected one or more with a weight above 0`)
	f([]ShareSpec{{"a", 0}}, `pools: 1 pools have no weight; expected one or more with a weight above 0`)
	f([]ShareSpec{{"a", 1}, {"a", -1}, {"", MaxWeight + 1}},
		`pools[1].name: "a" is the name of pools[0], too; expected one of its own`,
		`pools[1].weight: -1 is out of range; expected a whole number in [0, 1000000]`,
		`pools[2].name: "" is empty; expected a name`,
		`pools[2].weight: 1000001 is out of range; expected a whole number in [0, 1000000]`)
}

func TestDecisionInShare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := shares(t, 1, 1)
	const n = 40_000
	var in [5]int
	both := 0
	for range n {
		hash := r.Uint64()
		last := false
		for i, share := range []float64{0, 0.01, 0.25, 0.5, 1} {
			now := InShare(hash, share)
			if last && !now {
				t.Fatalf("unexpected: %x left a share that grew to %v", hash, share)
			}
			if last = now; now {
				in[i]++
			}
		}
		if InShare(hash, 0.5) && s.Pick(hash) == 0 {
			both++
		}
		if InShare(hash, math.NaN()) || InShare(hash, -1) || !InShare(hash, 2) {
			t.Fatalf("unexpected answer of %x for a share that is none", hash)
		}
	}
	for i, want := range [5]float64{0, 0.01, 0.25, 0.5, 1} {
		if off := math.Abs(float64(in[i])/n - want); off > 0.005 || (want == 0 || want == 1) && off != 0 {
			t.Errorf("unexpected share; got %d of %d; want %v", in[i], n, want)
		}
	}
	if off := math.Abs(float64(both)/n - 0.25); off > 0.01 {
		t.Errorf("a share of requests and the pool are not independent; got %d of %d; want a quarter", both, n)
	}
}

// The hash is what replicas and restarts agree on: it must never change.
func TestDecisionHashGolden(t *testing.T) {
	f := func(session, body string, want uint64) {
		t.Helper()
		if got := RequestHash([]byte(session), []byte(body)); got != want {
			t.Errorf("unexpected hash of %q, %.20q; got %#x; want %#x", session, body, got, want)
		}
	}
	f("", "", 0x9bd9dcfc625cf401)
	f("s", "", 0xd87972018ec22f05)
	f("", "s", 0xde634d89ac470f11)
	f("3f2a9c0e-7d51", `{"model":"m"}`, 0x9063565912aac69f)
	f("", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`, 0x3cd66a0b00d98ad6)
	f("", strings.Repeat("0123456789", 1000), 0xa48ed3737d0c87d)
	if RequestHash([]byte("s"), []byte("a")) != RequestHash([]byte("s"), []byte("b")) {
		t.Error("unexpected: the body counts beside a session")
	}
}

// Each bit of the text moves half of the bits of the hash.
func TestDecisionHashAvalanche(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	seen := make(map[uint64]bool)
	for n := range 100 {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(r.Uint64())
		}
		hash := RequestHash(nil, text)
		if seen[hash] {
			t.Errorf("unexpected collision at length %d", n)
		}
		seen[hash] = true
		flipped := 0
		for bit := range 8 * n {
			text[bit/8] ^= 1 << (bit % 8)
			for x := hash ^ RequestHash(nil, text); x != 0; x &= x - 1 {
				flipped++
			}
			text[bit/8] ^= 1 << (bit % 8)
		}
		if mean := float64(flipped) / float64(max(8*n, 1)); n > 0 && math.Abs(mean-32) > 3 {
			t.Errorf("unexpected mean of flipped bits at length %d; got %.1f; want about 32", n, mean)
		}
		if n > 0 && RequestHash(nil, make([]byte, n)) == RequestHash(nil, make([]byte, n-1)) {
			t.Errorf("unexpected: %d and %d zeros have one hash", n, n-1)
		}
	}
}
