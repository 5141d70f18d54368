package probe

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
)

// TestDeepBrackets walks through random brackets of all depths on both paths, with
// a fault now and then.
func TestDeepBrackets(t *testing.T) {
	onEachPath(func() { checkDeepBrackets(t) })
}

func checkDeepBrackets(t *testing.T) {
	t.Helper()
	rnd := rand.New(rand.NewSource(5))
	var fast, slow scratch
	ends, depths := 0, 0
	for range 1500 {
		src := []byte("    ")
		var open []byte
		up := rnd.Intn(60) + 25 // per cent that open
		for size := 4 + rnd.Intn(3000); len(src) < size; {
			switch {
			case len(open) == 0 || rnd.Intn(100) < up && len(open) < MaxDepth:
				kind := "[{"[rnd.Intn(2)]
				src, open = append(src, kind), append(open, kind)
			case rnd.Intn(8) == 0:
				src = append(src, ", 1"[:rnd.Intn(4)]...)
			default:
				src, open = append(src, open[len(open)-1]+2), open[:len(open)-1]
			}
			depths = max(depths, len(open))
			if rnd.Intn(500) == 0 {
				up = rnd.Intn(100)
			}
		}
		for ; len(open) > 0; open = open[:len(open)-1] {
			src = append(src, open[len(open)-1]+2)
		}
		if rnd.Intn(3) == 0 {
			src[4+rnd.Intn(len(src)-4)] = "[]{}"[rnd.Intn(4)]
		}
		src = append(src, bytes.Repeat([]byte(" "), 64)...)
		if src[4] != '[' && src[4] != '{' {
			continue
		}
		depth := rnd.Intn(3) * 100
		end, f := skipNested(src, 4, depth, &fast)
		wantEnd, want := portableNested(src, 4, depth, &slow)
		if end != wantEnd || f != want {
			t.Fatalf("unexpected end of %s; got %d %v; want %d %v", src, end, f, wantEnd, want)
		}
		if f == FaultNone {
			ends++
		}
	}
	if ends < 300 || depths < 400 {
		t.Errorf("unexpected input: %d sound ones, %d deep", ends, depths)
	}
}

// TestLongStrings reads strings of many blocks on every path, with one odd thing
// somewhere.
func TestLongStrings(t *testing.T) {
	rnd := rand.New(rand.NewSource(6))
	parts := []string{`\n`, `\t`, `\"`, `\\`, `\u00e9`, `\/`, "é", "中文", "😀", "x", "plain text of some length", `\u12`, "\xff", "\n", "\x7f", `\x`, "\xed\xa0\x80", `"`}
	var fast, slow scratch
	onEachPath(func() {
		for range 1500 {
			var src []byte
			odd := rnd.Intn(len(parts)-8) + 8
			for n := rnd.Intn(400); len(src) < 10*n; {
				switch {
				case rnd.Intn(200) == 0:
					src = append(src, parts[odd]...)
				case rnd.Intn(6) == 0:
					src = append(src, parts[rnd.Intn(9)]...)
				default:
					src = append(src, "the quick brown fox"[:rnd.Intn(20)]...)
				}
			}
			checkPaths(t, src, rnd.Intn(64), &fast, &slow)
		}
	})
}

// TestLongStringsBytes reads plain strings of many blocks with one odd thing at each
// place, on every path.
func TestLongStringsBytes(t *testing.T) {
	var fast, slow scratch
	onEachPath(func() {
		for _, odd := range []string{`\0`, `\n`, `\"`, `\\`, `\\"`, `\\\"`, `\u12`, `\u00e9`, `\\u12`, "é", "\xff", "\n", `"`} {
			for at := range 40 * blockSize {
				if at > 3*blockSize && at%blockSize > 4 && at%blockSize < blockSize-4 {
					continue
				}
				src := []byte(`000["` + strings.Repeat("0", 40*blockSize) + `"]`)
				copy(src[len(`000["`)+at:], odd)
				end, f := skipString(src, len(`000["`))
				if wantEnd, want := portableString(src, len(`000["`)); end != wantEnd || f != want {
					t.Fatalf("unexpected end of a string with %q at %d; got %d %v; want %d %v", odd, at, end, f, wantEnd, want)
				}
				end, f = skipNested(src, len(`000`), 1, &fast)
				if wantEnd, want := portableNested(src, len(`000`), 1, &slow); end != wantEnd || f != want {
					t.Fatalf("unexpected end of a list with %q at %d; got %d %v; want %d %v", odd, at, end, f, wantEnd, want)
				}
			}
		}
	})
}
