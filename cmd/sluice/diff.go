package main

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is how many equal lines are shown around a change, maxDiff how
// large the table of a comparison may be; beyond it, all lines are replaced.
const (
	diffContext = 3
	maxDiff     = 1 << 24
)

// diff returns what turns before into after, by lines, in the unified form that
// patch reads. It is empty for equal texts.
func diff(name, before, after string) string {
	if before == after {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	edits := compare(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after)))
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		from := max(0, i-diffContext)
		to, equal := i, 0 // to is behind the last change of the hunk
		for j := i; j < len(edits) && equal <= 2*diffContext; j++ {
			equal++
			if edits[j].op != ' ' {
				to, equal = j+1, 0
			}
		}
		to = min(len(edits), to+diffContext)
		writeHunk(&b, edits, from, to)
		i = to
	}
	return b.String()
}

// edit is a line that is kept (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

func writeHunk(b *strings.Builder, edits []edit, from, to int) {
	var start, count [2]int // lines before the hunk and in it, of both texts
	for i, e := range edits[:to] {
		n := &start
		if i >= from {
			n = &count
		}
		if e.op != '+' {
			n[0]++
		}
		if e.op != '-' {
			n[1]++
		}
	}
	for side, n := range count {
		if n > 0 {
			start[side]++
		}
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", start[0], count[0], start[1], count[1])
	for _, e := range edits[from:to] {
		b.WriteByte(e.op)
		b.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// compare returns the shortest list of edits that turns a into b.
func compare(a, b []string) []edit {
	var edits []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		edits = append(edits, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	var tail []edit
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, edit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := commonLines(a, b)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case common != nil && len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			edits = append(edits, edit{' ', a[0]})
			a, b = a[1:], b[1:]
		case len(a) > 0 && (len(b) == 0 || common == nil || common[len(a)-1][len(b)] >= common[len(a)][len(b)-1]):
			edits = append(edits, edit{'-', a[0]})
			a = a[1:]
		default:
			edits = append(edits, edit{'+', b[0]})
			b = b[1:]
		}
	}
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}
	return edits
}

// commonLines returns, for the last i lines of a and the last j of b, how many
// they have in common in order. It is nil where the table would be too large.
func commonLines(a, b []string) [][]int32 {
	if (len(a)+1)*(len(b)+1) > maxDiff {
		return nil
	}
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = make([]int32, len(b)+1)
		for j := 1; i > 0 && j <= len(b); j++ {
			if a[len(a)-i] == b[len(b)-j] {
				table[i][j] = table[i-1][j-1] + 1
			} else {
				table[i][j] = max(table[i-1][j], table[i][j-1])
			}
		}
	}
	return table
}
