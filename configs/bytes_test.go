package configs

import (
	"math"
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	f := func(s string, want Bytes, printed string) {
		t.Helper()
		got, err := ParseBytes(s)
		if err != nil || got != want {
			t.Errorf("unexpected size of %q; got %d, %v; want %d", s, int64(got), err, int64(want))
		}
		if got.String() != printed {
			t.Errorf("unexpected text of %q; got %s; want %s", s, got, printed)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%s does not read as %d but as %d, %v", got, int64(got), int64(again), err)
		}
	}
	f("0", 0, "0")
	f("0KiB", 0, "0")
	f("1", 1, "1")
	f("512", 512, "512")
	f("512B", 512, "512")
	f("1500", 1500, "1500")
	f("1KiB", 1024, "1KiB")
	f("32MiB", 32<<20, "32MiB")
	f("1536KiB", 1536<<10, "1536KiB")
	f("3GiB", 3<<30, "3GiB")
	f("2TiB", 2<<40, "2TiB")
	f("1KB", 1000, "1KB")
	f("32MB", 32e6, "32MB")
	f("7GB", 7e9, "7GB")
	f("1TB", 1e12, "1TB")
	f("9223372036854775807", math.MaxInt64, "9223372036854775807")
}

func TestParseBytesFaults(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		got, err := ParseBytes(s)
		if err == nil || err.Error() != want {
			t.Errorf("unexpected error of %q; got %d, %v; want %s", s, int64(got), err, want)
		}
	}
	const form = "must be a size such as 32MiB, 64KB or 1048576, got "
	for _, s := range []string{"", "MiB", "B", "1 MiB", " 1", "1.5MiB", "1mib", "1M", "1Mi", "+1", "1_000", "0x10", "1e3", "-", "--1", "1-", "１"} {
		f(s, form+quote(s))
	}
	f("-1", `must not be negative, got "-1"`)
	f("-0", `must not be negative, got "-0"`)
	f("-9TiB", `must not be negative, got "-9TiB"`)
	f("9223372036854775808", `is too large: "9223372036854775808" is more than 8 EiB`)
	f("8388608TiB", `is too large: "8388608TiB" is more than 8 EiB`)
	f("99999999999999999999TB", `is too large: "99999999999999999999TB" is more than 8 EiB`)
}

func TestNearest(t *testing.T) {
	f := func(word, want string, candidates ...string) {
		t.Helper()
		if got := nearest(word, candidates); got != want {
			t.Errorf("unexpected suggestion for %q of %q; got %q; want %q", word, candidates, got, want)
		}
	}
	f("lisen", "listen", "level", "listen")
	f("blaance", "balance", "balance")
	f("on-conflict", "on_conflict", "on_conflict")
	f("URL", "url", "url")
	f("x", "", "url", "name")
	f("", "", "url")
	f("naem", "name", "names", "name")
}

func TestQuote(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := quote(s); got != want {
			t.Errorf("unexpected quote of %q; got %s; want %s", s, got, want)
		}
	}
	f("", `""`)
	f("a\nb", `"a\nb"`)
	f(strings.Repeat("x", 64), `"`+strings.Repeat("x", 64)+`"`)
	f(strings.Repeat("x", 65), `"`+strings.Repeat("x", 64)+`"…`)
	f(strings.Repeat("x", 63)+"öö", `"`+strings.Repeat("x", 63)+`"…`)
	f(strings.Repeat("\x80", 80), `"`+strings.Repeat(`\x80`, 60)+`"…`)
}
