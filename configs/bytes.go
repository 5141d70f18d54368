package configs

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size in bytes. It is written as a plain number or with a unit:
// 512, 64KiB, 32MiB, 1GiB (1024-based) or KB, MB, GB (1000-based).
type Bytes int64

// byteUnits are tried in this order: B is the end of all others.
var byteUnits = []struct {
	name string
	size uint64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

// ParseBytes reads a size such as 32MiB: a whole number and, without a space,
// an optional unit. The error says what is allowed.
func ParseBytes(s string) (Bytes, error) {
	digits, unit := s, uint64(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = rest, u.size
			break
		}
	}
	digits, negative := strings.CutPrefix(digits, "-")
	n, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, errors.New("must be a size such as 32MiB, 64KB or 1048576, got " + quote(s))
	case negative:
		return 0, errors.New("must not be negative, got " + quote(s))
	case err != nil || n > math.MaxInt64/unit:
		return 0, errors.New("is too large: " + quote(s) + " is more than 8 EiB")
	}
	return Bytes(n * unit), nil
}

// String returns the shortest exact form that ParseBytes reads, with a unit
// where that is no longer: 32MiB, 1500.
func (b Bytes) String() string {
	best := strconv.FormatInt(int64(b), 10)
	for _, u := range byteUnits {
		if b <= 0 || uint64(b)%u.size != 0 {
			continue
		}
		if s := strconv.FormatUint(uint64(b)/u.size, 10) + u.name; len(s) <= len(best) {
			best = s
		}
	}
	return best
}

// MarshalText returns the form of String.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// parseDuration reads a duration such as 1m30s, or whole days: 30d. A unit is required, also of
// zero: a bare number was seconds in one program and milliseconds in another.
func parseDuration(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, errors.New("must be a duration, got " + s + ": add a unit, such as " + s + "s")
	}
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // up to 179 years
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil {
		return 0, errors.New("must be a duration such as 500ms, 30s, 1h30m or 30d, at most 2562047h, got " + quote(s))
	}
	if d < 0 {
		return 0, errors.New("must not be negative, got " + quote(s))
	}
	return d, nil
}
