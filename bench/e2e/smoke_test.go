//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSmoke puts the targets that can be had here under tiny loads of each
// kind and writes a report of them. The figures are of no meaning, but that
// each was measured.
func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	sluice := filepath.Join(dir, "sluice")
	if err := build(sluice); err != nil {
		t.Fatal(err)
	}
	list, missing := targets(dir, sluice, "")
	list = slices.DeleteFunc(list, func(x *target) bool { return strings.HasSuffix(x.name, "no rules") })
	s := &suite{out: io.Discard, list: list}
	t.Cleanup(s.stop)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	r := &report{machine: describeMachine(), targets: list, missing: missing}
	const each = 20 * time.Millisecond
	for _, sc := range []scenario{
		{Name: "post", Title: "POST", Kind: kindPost, Conns: 2, Body: 100 * kib, Want: want{Size: answerSize}, Each: each},
		{Name: "stream", Title: "Streams", Kind: kindStream, Conns: 2, Body: kib, Want: want{Events: 10, Pace: time.Millisecond}, Each: each},
		{Name: "hold", Title: "Open", Kind: kindHold, Conns: 4, Body: kib, Want: want{Events: 1000, Pace: 5 * time.Millisecond}, Each: each},
	} {
		o, err := s.measure(&sc, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			m := o.figures[x.name]
			if m[figRate] <= 0 || (x.program != nil) != (m[figCPU] > 0) {
				t.Errorf("%s: %s: unexpected figures %v", sc.Name, x.name, m)
			}
		}
		r.outcomes = append(r.outcomes, o)
	}
	out := filepath.Join(dir, "report")
	if err := r.write(out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, reportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if n := strings.Count(string(text), "\n| "+x.name+" |"); n != 3 {
			t.Errorf("%s stands in %d of 3 tables", x.name, n)
		}
	}
	for _, name := range []string{"post.svg", "stream.svg", "hold.svg"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}
