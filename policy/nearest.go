package policy

import (
	"fmt"
	"strings"
)

// suggestion returns ` (did you mean "x"?)` for the known name that key is
// probably a slip of, or nothing.
func suggestion(key string, known []string) string {
	best, distance := "", 3
	for _, name := range known {
		d := editDistance(strings.ToLower(key), name)
		if len(key) >= 3 && strings.HasPrefix(name, strings.ToLower(key)) {
			d = min(d, 2)
		}
		if d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance returns how many bytes to insert, delete, replace or swap with
// their neighbour turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	const limit = 64 // longer than any name we know
	if len(a) > limit || len(b) > limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
