//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary what the command makes of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "role:") {
		if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"quick", "out=dir", "-rounds=3", "only=^sse", "targets=sluice", "sluice=a", "before=b"})
	if err != nil {
		t.Fatal(err)
	}
	if !o.quick || o.out != "dir" || o.rounds != 3 || o.sluice != "a" || o.before != "b" ||
		!o.only.MatchString("sse-paced") || o.only.MatchString("post") || o.beside.MatchString("nginx") {
		t.Fatalf("unexpected options %+v", o)
	}
	for _, arg := range []string{"", "slow", "out", "rounds=0", "rounds=x", "only=(", "quick=1"} {
		if _, err := parseOptions([]string{arg}); err == nil {
			t.Errorf("argument %q was taken", arg)
		}
	}
}
