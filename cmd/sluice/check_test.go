package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verbRun is what a verb did that ended by itself.
type verbRun struct {
	code           int
	stdout, stderr string
}

// runVerb runs a verb to its end.
func runVerb(t *testing.T, stdin string, args ...string) verbRun {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := run(&process{
		args: args, stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		stop: ctx, now: ctx,
	})
	return verbRun{code, stdout.String(), stderr.String()}
}

// inDir makes a directory with the given files, name and text in turn, and makes
// it the working directory of the test.
func inDir(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for i := 0; i < len(files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(files[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const checked = `
sampling_contract: {params: {n: 2}}
pools:
  - name: a
    models: [m]
    workers: [{url: "http://10.0.0.1:80"}]
    model_contracts: {m: {narrow: true, params: {top_p: {min: 0.5, max: 1}}}}
`

func TestCheck(t *testing.T) {
	inDir(t,
		"good.yaml", checked,
		"odd.yaml", checked+`
routing:
  decisions:
    - {name: x, plugins: [{type: request_params, configuration: {max_tokens_limit: 5}}]}`,
		"bad.yaml", "pools: [{name: a}]\nlog: {level: loud}\n")

	got := runVerb(t, "", "check", "--config", "good.yaml")
	want := "contract of pool a: reject, n 2 (sampling_contract)\n" +
		"contract of pool a, model m: reject, n 2, top_p 0.5 to 1 (pools[0].model_contracts.m)\nvalid: 1 pools, 0 decisions, 0 warnings, hash "
	if got.code != exitOK || !strings.HasPrefix(got.stdout, want) || got.stderr != "" {
		t.Errorf("unexpected check of good.yaml; got %+v", got)
	}

	warning := "warning: odd.yaml:11:84: routing.decisions[0].plugins[0].configuration.max_tokens_limit: " +
		"a request that gives no output limit is not capped: set default_max_tokens, too\n"
	got = runVerb(t, "", "check", "--config", "odd.yaml", "--quiet")
	if got.code != exitOK || got.stdout != "" || got.stderr != warning {
		t.Errorf("unexpected check of odd.yaml; got %+v\nwant %s", got, warning)
	}
	if got = runVerb(t, "", "check", "--config", "odd.yaml", "--strict"); got.code != exitFailed {
		t.Errorf("unexpected exit code of a strict check; got %d; want %d", got.code, exitFailed)
	}

	faults := "bad.yaml:1:9: pools[0].workers: must hold at least one worker\n" +
		"bad.yaml:2:14: log.level: must be one of debug, info, warn, error, got \"loud\"\n"
	if got = runVerb(t, "", "check", "--config", "bad.yaml"); got.code != exitUsage || got.stderr != faults {
		t.Errorf("unexpected check of bad.yaml; got %+v\nwant %s", got, faults)
	}
	if got = runVerb(t, "", "check", "good.yaml"); got.code != exitUsage || !strings.Contains(got.stderr, "did you mean --config good.yaml?") {
		t.Errorf("unexpected check without --config; got %+v", got)
	}
}
