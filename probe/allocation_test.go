//go:build !race

package probe

import (
	"strings"
	"testing"
)

// checkAllocs fails unless f allocates nothing once it has run.
func checkAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	f()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("unexpected allocations of %s: %v", what, n)
	}
}

func TestScanAllocs(t *testing.T) {
	var b Body
	for _, src := range []string{
		`{"model":"m","temperature":0.7,"top_p":"0.95","n":1,"messages":[{"role":"user","content":"hi \u00e9 é"}]}`,
		`{"temperature":1e400,"top_p":1.7976931348623159e308,"min_p":` + strings.Repeat("9", 5000) + `,"top_k":"` + strings.Repeat("9", 64) + `"}`,
		`{"temperature":0.1000000000000000055511151231257827021181583404541015625,"t\u006fp_k":"1_0","a":[`,
		`{"sampling_params":[{"temperature":1},{"n":2}],"temperature":"nan"}`,
	} {
		in := []byte(src)
		checkAllocs(t, src[:40], func() { Scan(in, SurfaceGenerate, allNumbers, &b) })
	}
}

func TestB16_LargeGovernedValue(t *testing.T) {
	var b Body
	for _, val := range []string{
		`"` + strings.Repeat("x", 200_000) + `"`, `"` + strings.Repeat("1", 200_000) + `"`, `[` + strings.Repeat("1,", 50_000) + `1]`,
		strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400), strings.Repeat("1", 200_000),
	} {
		src := []byte(`{"temperature":` + val + `,"n":1}`)
		checkAllocs(t, "Scan of a large value", func() {
			if f := Scan(src, SurfaceChat, allNumbers, &b); f != FaultNone {
				t.Fatalf("unexpected fault for %.40s…: %v", src, f)
			}
		})
		if got := b.Last(FieldTemperature).State; got != Unusable {
			t.Errorf("unexpected state of %.40s…; got %d; want %d", src, got, Unusable)
		}
	}
}

func TestHelperAllocs(t *testing.T) {
	var buf [64]byte
	raw := []byte(`"llama \ud83d\ude00"`)
	checkAllocs(t, "AppendUnquoted", func() { AppendUnquoted(buf[:0], raw) })
	checkAllocs(t, "EqualKey", func() { EqualKey(raw, "llama 😀") })
	long := []byte(strings.Repeat("9", 4000) + "e-5")
	checkAllocs(t, "ReadWhole", func() { ReadWhole(long, KindNumber) })
	body := []byte(crlf("--XX\nContent-Disposition: form-data; name=\"model\"\n\nwhisper-1\n--XX--\n"))
	boundary := []byte("XX")
	checkAllocs(t, "MultipartField", func() { MultipartField(body, boundary, "model") })
}

func TestStreamAllocs(t *testing.T) {
	for _, c := range streamCases {
		var s Stream
		text := []byte(c.text)
		checkAllocs(t, "Feed of "+c.name, func() {
			s.Reset(c.surface)
			s.Feed(text[:len(text)/2])
			s.Feed(text[len(text)/2:])
			s.End()
		})
		checkAllocs(t, "ReadUsage of "+c.name, func() {
			ReadUsage(text[min(6, len(text)):], c.surface)
		})
	}
}
