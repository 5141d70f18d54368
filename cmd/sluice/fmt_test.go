package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runWith runs a verb to its end.
func runWith(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(&process{args: args, env: []string{"KEY=k"}, stdin: strings.NewReader(stdin), stdout: &out, stderr: &err})
	return code, out.String(), err.String()
}

// writeFile writes text to a file in a directory of the test and returns its
// name.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	unformatted = "# log\nLOG{level:info}\nSIM {}\n"
	formatted   = "# log\nLOG { level: info }\n\nSIM {}\n"
)

func TestFmt(t *testing.T) {
	name := writeFile(t, "a.sluice", unformatted)
	good := writeFile(t, "b.sluice", formatted)
	bad := writeFile(t, "c.sluice", "LOG {\n")
	diff := "--- " + name + "\n+++ " + name + "\n@@ -1,3 +1,4 @@\n # log\n-LOG{level:info}\n+LOG { level: info }\n+\n SIM {}\n"
	fault := bad + ":1:5: the \"{\" is never closed\n    LOG {\n        ^\n"
	f := func(stdin string, args []string, code int, stdout, stderr string) {
		t.Helper()
		gotCode, gotOut, gotErr := runWith(stdin, append([]string{"fmt"}, args...)...)
		if gotCode != code || gotOut != stdout || gotErr != stderr {
			t.Errorf("unexpected result of fmt %v\n got %d %q %q\nwant %d %q %q", args, gotCode, gotOut, gotErr, code, stdout, stderr)
		}
	}
	f("", []string{name}, 0, formatted, "")
	f("", []string{good}, 0, formatted, "")
	f(unformatted, []string{"-"}, 0, formatted, "")
	f("", []string{"-l", name, good}, 1, name+"\n", "")
	f("", []string{"-d", name, good}, 1, diff, "")
	f("", []string{"-l", good}, 0, "", "")
	f("", []string{bad}, 2, "", fault)
	f("", []string{"-w", bad, good}, 2, "", fault)
	f("", nil, 2, "", "sluice fmt: no files; - is standard input\n")
	f("", []string{"-w", name, good}, 0, "", "")
	f("", []string{"-l", "-w", name}, 0, "", "")
	if text, err := os.ReadFile(name); err != nil || string(text) != formatted {
		t.Errorf("unexpected file after -w: %q %v", text, err)
	}
	if code, _, stderr := runWith("", "fmt", filepath.Join(t.TempDir(), "none")); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("unexpected result for a file that is not there: %d %s", code, stderr)
	}
	if code, _, stderr := runWith(strings.Repeat("#", 1<<20+1), "fmt", "-"); code != 2 || !strings.Contains(stderr, "larger than 1 MiB") {
		t.Errorf("unexpected result for a large file: %d %s", code, stderr)
	}
}

// -w keeps the mode and a symbolic link, and leaves no other file behind.
func TestFmtWrites(t *testing.T) {
	name := writeFile(t, "a.sluice", unformatted)
	link := filepath.Join(filepath.Dir(name), "link.sluice")
	if err := os.Symlink("a.sluice", link); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runWith("", "fmt", "-w", link); code != 0 {
		t.Fatalf("cannot write: %s", stderr)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if info, err = os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("unexpected mode: %v %v", info, err)
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 2 {
		t.Errorf("unexpected files: %v %v", entries, err)
	}
}

func TestConvertVerb(t *testing.T) {
	yaml := writeFile(t, "a.yaml", "log: {level: warn}\npools: [{name: a, workers: [{url: 'http://a:1'}], headers: {set: {k: {env: KEY}}}}]")
	sluice := writeFile(t, "b.sluice", "LOG { acces: 1 }\n")
	f := func(args []string, code int, stdout, stderr string) {
		t.Helper()
		gotCode, gotOut, gotErr := runWith("", append([]string{"convert"}, args...)...)
		if gotCode != code || gotOut != stdout || gotErr != stderr {
			t.Errorf("unexpected result of convert %v\n got %d %q %q\nwant %d %q %q", args, gotCode, gotOut, gotErr, code, stdout, stderr)
		}
	}
	f([]string{"--to", "sluice", yaml}, 0,
		"LOG {\n  level: warn\n}\n\nPOOL a {\n  workers: [{ url: \"http://a:1\" }]\n  headers: { set: { k: { env: KEY } } }\n}\n", "")
	f([]string{"--to", "json", yaml, sluice}, 2, "",
		"sluice convert: wrong configuration:\n"+sluice+":1:7: log.acces: unknown key; did you mean access?\n    LOG { acces: 1 }\n          ^\n")
	f([]string{yaml}, 2, "", "sluice convert: --to is missing: yaml, json, toml, sluice\n")
	f([]string{"--to", "yaml"}, 2, "", "sluice convert: no files\n")
	f([]string{"--to", "xml", yaml}, 2, "", "sluice convert: unknown format \"xml\": yaml, json, toml, sluice\n")
}

func TestConvertFromSemanticRouter(t *testing.T) {
	name := writeFile(t, "sr.yaml", "model_config: {m: {}}\nvllm_endpoints: [{address: a, port: 1}]\ndecisions: [{name: r, tier: 1}]\n")
	const want = "POOL m {\n  models: [m]\n  engine: vllm\n  workers: [{ url: \"http://a:1\" }]\n}\n\nROUTE r {}\n"
	left := name + ":3:23: decisions[0].tier: is not taken over\n"
	for _, tc := range []struct {
		args []string
		code int
	}{{nil, 0}, {[]string{"--strict"}, 1}} {
		args := append([]string{"convert", "--from", "semantic-router", "--to", "sluice"}, append(tc.args, name)...)
		if code, stdout, stderr := runWith("", args...); code != tc.code || stdout != want || stderr != left {
			t.Errorf("unexpected result of %v: %d %q %q", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"--from", "nginx", name}, {"--from", "semantic-router", name, name}, {"--from", "semantic-router", "none.yaml"}} {
		if code, _, stderr := runWith("", append([]string{"convert", "--to", "yaml"}, args...)...); code != exitUsage || stderr == "" {
			t.Errorf("unexpected result of %v: %d %q", args, code, stderr)
		}
	}
}

// failing is an output that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestConvertCannotPrint(t *testing.T) {
	p := &process{args: []string{"convert", "--to", "json", writeFile(t, "a.yaml", "{}")}, stdout: failing{}, stderr: failing{}}
	if code := run(p); code != exitFailed {
		t.Errorf("unexpected exit code; got %d; want %d", code, exitFailed)
	}
}

func TestDiff(t *testing.T) {
	f := func(before, after, want string) {
		t.Helper()
		if got := strings.TrimPrefix(diff("f", before, after), "--- f\n+++ f\n"); got != want {
			t.Errorf("unexpected difference from %q to %q\n got %s\nwant %s", before, after, got, want)
		}
	}
	f("a\n", "a\n", "")
	f("", "a\n", "@@ -0,0 +1,1 @@\n+a\n")
	f("a\n", "", "@@ -1,1 +0,0 @@\n-a\n")
	f("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n")
	f("\n\n", "\n", "@@ -1,2 +1,1 @@\n \n-\n")
	f("1\n2\n3\n4\n5\nx\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\ny\n6\n7\n8\n9\n", "@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-x\n+y\n 6\n 7\n 8\n")
	// far changes are hunks of their own, near ones share one
	f("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "1\n2\n3\n4\n5\n6\n7\n", "@@ -1,4 +1,3 @@\n-a\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-b\n")
	f("a\n1\n2\n3\n4\n5\n6\nb\n", "1\n2\n3\n4\n5\n6\n", "@@ -1,8 +1,6 @@\n-a\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n")
}
