//go:build linux

package main

import (
	"os"
	"slices"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	s, err := parseStat("42 (a) b (c)) S 7 8 9 0 -1 4194560 1 0 0 0 12 34 0 0 20 0 1")
	if want := (procStat{parent: 7, session: 9}); err != nil || s != want {
		t.Fatalf("unexpected stat; got %+v, %v; want %+v", s, err, want)
	}
	for _, line := range []string{"", "42 (a", "42 (a) S 7", "42 (a) S x 8 9", "42 (a) S 7 8 x"} {
		if _, err := parseStat(line); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	d, err := parseSchedstat("1234567 89 10\n")
	if err != nil || d != 1234567 {
		t.Fatalf("unexpected time; got %v, %v", d, err)
	}
	if _, err := parseSchedstat(""); err == nil {
		t.Error("nothing was taken")
	}
}

func TestParsePss(t *testing.T) {
	n, err := parsePss([]byte("00400000-7ffd rollup\nRss:  5000 kB\nPss:  1234 kB\nPss_Anon:  1 kB\n"))
	if err != nil || n != 1234<<10 {
		t.Fatalf("unexpected memory; got %v, %v", n, err)
	}
	if _, err := parsePss([]byte("Rss: 5000 kB\n")); err == nil {
		t.Error("a text without Pss was taken")
	}
}

func TestDescendants(t *testing.T) {
	got := descendants(2, map[int]int{2: 1, 3: 2, 4: 3, 5: 1, 6: 5, 7: 2})
	slices.Sort(got)
	if want := []int{2, 3, 4, 7}; !slices.Equal(got, want) {
		t.Fatalf("unexpected processes; got %v; want %v", got, want)
	}
}

// TestOwnFigures reads those of the test itself.
func TestOwnFigures(t *testing.T) {
	pids, err := family(os.Getpid())
	if err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Fatalf("unexpected family; got %v, %v", pids, err)
	}
	before, err := cpuTime(pids[:1])
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		now, err := cpuTime(pids[:1])
		if err != nil {
			t.Fatal(err)
		}
		if now > before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no CPU time is counted")
		}
	}
	if n, err := memory(pids[:1]); err != nil || n < 1<<20 {
		t.Fatalf("unexpected memory; got %v, %v", n, err)
	}
	if err := inOurSession(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if err := inOurSession(1); err == nil && os.Getpid() != 1 {
		t.Log("process 1 is of our session")
	}
}
