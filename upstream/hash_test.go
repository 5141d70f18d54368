package upstream

import (
	"strings"
	"testing"
)

// TestHash_Vectors holds the hash to the vectors that its author has published:
// routers of all versions must agree.
func TestHash_Vectors(t *testing.T) {
	for seed, v := range []struct {
		text string
		want uint64
	}{
		{"", 0x93228a4de0eec5a2},
		{"a", 0xc5bac3db178713c4},
		{"abc", 0xa97f2f7b1d9b3314},
		{"message digest", 0x786d1f1df3801df4},
		{"abcdefghijklmnopqrstuvwxyz", 0xdca5a8138ad37c87},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xb9e734f117cfaf70},
		{strings.Repeat("1234567890", 8), 0x6cc5eab49a92d617},
	} {
		if got := hash([]byte(v.text), uint64(seed)); got != v.want {
			t.Errorf("unexpected hash of %q; got %#x; want %#x", v.text, got, v.want)
		}
	}
}

// TestHash_EveryLength pins what the vectors above do not reach: each length has
// a way through the hash of its own.
func TestHash_EveryLength(t *testing.T) {
	b := make([]byte, 400)
	for i := range b {
		b[i] = byte(i)
	}
	sum := uint64(0)
	for n := range b {
		sum = hash(b[:n], sum)
	}
	const want = uint64(0x56aecbf4bc7a3bb0)
	if sum != want {
		t.Errorf("unexpected hash of hashes; got %#x; want %#x", sum, want)
	}
}
