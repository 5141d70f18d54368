package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// call runs a verb to its end.
func call(env []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(&process{args: args, env: env, stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(name, []byte(withDrain(7)+"records: {store: sqlite, dsn: {env: DSN}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DSN=s3cr3t", "SLUICE_LOG__LEVEL=warn"}
	f := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := call(env, append([]string{"config"}, args...)...)
		if got != code || !strings.Contains(stdout+stderr, want) || (code == exitOK) != (stdout != "") && !slices.Contains(args, "-h") {
			t.Errorf("%q: unexpected exit code %d; want %d, and %q in\n%s%s", args, got, code, want, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "s3cr3t") {
			t.Errorf("%q: a secret is shown", args)
		}
	}
	f(exitOK, "  drain: 7s\n", "print", "--config", name)
	f(exitOK, "  drain: 7s # "+name+":2:17\n", "print", "--origin", "--config", name)
	f(exitOK, "  level: warn # SLUICE_LOG__LEVEL\n", "print", "--origin", "--config", name)
	f(exitOK, `"records.dsn": "`+name+`:3:`, "print", "--origin", "--format", "json", "--config", name)
	f(exitOK, "dsn: '***'", "print", "--config", name)
	f(exitOK, "| `pools[].balance` |", "reference")
	f(exitOK, `"$schema": "https://json-schema.org/draft/2020-12/schema"`, "schema")
	f(exitOK, "usage: sluice config print", "-h")
	f(exitUsage, "wrong configuration", "print", "--config", name, "--set", "server.drain=x")
	f(exitUsage, "cannot print as", "print", "--format", "toml")
	f(exitUsage, "want print, schema or reference", "prin")
	f(exitUsage, "want print, schema or reference")
	f(exitUsage, "unexpected argument", "print", name)
}

// Every verb says what it is for, how it is used and how it exits.
func TestHelp(t *testing.T) {
	for _, v := range verbs() {
		code, stdout, stderr := call(nil, v.name, "-h")
		if code != exitOK {
			t.Errorf("%s -h: unexpected exit code %d", v.name, code)
		}
		help := stdout + stderr
		if !strings.HasPrefix(help, "sluice "+v.name+" ") || !strings.Contains(help, "usage: sluice "+v.name) || !strings.Contains(help, "Exit code") {
			t.Errorf("%s -h does not tell what it does, its usage or its exit codes:\n%s", v.name, help)
		}
	}
}

// The scripts name every verb and flag; bash is here to run its own.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, _ := call(nil, "completion", shell)
		if code != exitOK {
			t.Fatalf("%s: unexpected exit code %d", shell, code)
		}
		for _, v := range verbs() {
			if !strings.Contains(script, v.name) {
				t.Errorf("%s: %s is missing", shell, v.name)
			}
		}
		for _, flag := range []string{"override-sampling-params", "admin-listen", "origin"} {
			if !strings.Contains(script, flag) {
				t.Errorf("%s: the flag %s is missing", shell, flag)
			}
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "csh"}, {"completion", "bash", "zsh"}} {
		if code, _, stderr := call(nil, args...); code != exitUsage || !strings.Contains(stderr, "usage: sluice completion") {
			t.Errorf("%q: unexpected exit code %d", args, code)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("skipped: there is no bash")
	}
	_, script, _ := call(nil, "completion", "bash")
	f := func(want, word string, before ...string) {
		t.Helper()
		words := append(before, word)
		ask := script + "\nCOMP_WORDS=(sluice \"$@\"); COMP_CWORD=$#; _sluice; echo \"${COMPREPLY[*]}\""
		out, err := exec.Command(bash, append([]string{"-c", ask, "bash"}, words...)...).Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: unexpected words %q, %v; want %q", words, out, err, want)
		}
	}
	f("serve", "ser")
	f("print", "p", "config")
	f("--config --config-cache", "--conf", "serve")
	f("-w", "-w", "fmt")
	f("", "none", "version")
}

func TestVersion(t *testing.T) {
	f := func(want string, info *debug.BuildInfo) {
		t.Helper()
		if got := versionLine(info); !strings.HasPrefix(got, "sluice "+want+" go1.") {
			t.Errorf("unexpected version %q; want %s", got, want)
		}
	}
	f("(devel)", &debug.BuildInfo{})
	f("v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}})
	f("(devel) abc modified", &debug.BuildInfo{
		Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	})
	f("v1 abc", &debug.BuildInfo{
		Main: debug.Module{Version: "v1"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
	})
	code, stdout, _ := call(nil, "version", "--build")
	if code != exitOK || !strings.HasPrefix(stdout, version()+"\n") || !strings.Contains(stdout, "  -compiler=") {
		t.Errorf("unexpected answer %d %s", code, stdout)
	}
	if code, _, _ := call(nil, "version", "--nonsense"); code != exitUsage {
		t.Errorf("unexpected exit code %d", code)
	}
	var info map[string]any
	if _, stdout, _ := call(nil, "config", "print", "--format", "json"); json.Unmarshal([]byte(stdout), &info) != nil {
		t.Errorf("not JSON: %s", stdout)
	}
}
