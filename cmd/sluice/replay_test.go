package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sluice/configs"
	"sluice/router"
)

const replayLines = `{"path":"/v1/chat/completions","headers":{"x-tier":"free"},"body":{"model":"m","max_tokens":900}}
{"path":"/v1/chat/completions","body":{"model":"m","n":3}}
{"path":"/v1/chat/completions","body":{"model":"m","n":2}}
`

const replayedConfig = checked + `
routing:
  decisions:
    - name: free
      rules: {type: header, name: x-tier, exact: free}
      plugins: [{type: request_params, configuration: {max_tokens_limit: 500}}]
`

var manySpaces = regexp.MustCompile(` +`)

func TestReplay(t *testing.T) {
	inDir(t, "c.yaml", replayedConfig, "old.yaml", checked, "r.jsonl", replayLines, "bad.jsonl", replayLines+"{}\n")
	f := func(args string, code int, stdout, stderr string) {
		t.Helper()
		got := runVerb(t, replayLines, append([]string{"replay"}, strings.Fields(args)...)...)
		got.stdout = manySpaces.ReplaceAllString(got.stdout, " ")
		if got.code != code || !strings.Contains(got.stdout, stdout) || !strings.Contains(got.stderr, stderr) || stderr == "" && got.stderr != "" {
			t.Errorf("unexpected end of replay %s\n got %+v\nwant %d\n%s\n%s", args, got, code, stdout, stderr)
		}
	}
	f("--config c.yaml r.jsonl", exitOK, `3 requests, 68 B of bodies, 0 malformed lines

all
 rejected 1 33.3% r.jsonl:2
 clamped 1 33.3% r.jsonl:1
 injected 1 33.3% r.jsonl:1
 untouched 1 33.3% r.jsonl:3

no decision 2
 answered sampling_contract_violation n 1 50% r.jsonl:2
 violated n 1 50% r.jsonl:2
 untouched 1 50% r.jsonl:3

decision free 1
 clamped max_tokens 1 100% r.jsonl:1
 injected n 1 100% r.jsonl:1
`, "")
	f("--config c.yaml --against old.yaml -", exitOK, `
changes 1 33.3% -:1
 clamped 1 33.3% before: 0, 0%
 body: as sent > replace 500 max_tokens 1 33.3% -:1
 decision: none > free 1 33.3% -:1
`, "")
	f("--config c.yaml --json r.jsonl r.jsonl", exitOK, `"requests": 6`, "")
	f("--config c.yaml bad.jsonl", exitOK, " bad.jsonl:4: has no path\n", "")
	f("--override-sampling-params {\"n\":2} r.jsonl", exitOK, "untouched 1", "")

	f("--config c.yaml --strict bad.jsonl", exitFailed, "", "sluice replay: 1 malformed lines\n")
	f("--config c.yaml --fail-on rejected>33% r.jsonl", exitFailed, "", "sluice replay: failed on rejected>33%: 1 of 3\n")
	f("--config c.yaml --fail-on rejected>34% --fail-on clamped>1 r.jsonl", exitOK, "", "")
	f("--config c.yaml --fail-on clamped>=1 r.jsonl", exitFailed, "", "failed on clamped>=1")
	f("--config c.yaml --fail-on malformed>=25% bad.jsonl", exitFailed, "", "failed on malformed>=25%: 1 of 4\n")
	f("--config c.yaml --fail-on observed_rejected>0 r.jsonl", exitOK, "", "")
	f("--config c.yaml --against old.yaml --fail-on changed>0 r.jsonl", exitFailed, "", "failed on changed>0: 1 of 3\n")

	f("--config c.yaml", exitUsage, "", "want files")
	f("--config c.yaml .", exitUsage, "", ". is a directory")
	f("--config c.yaml none.jsonl", exitUsage, "", "none.jsonl")
	f("--config none.yaml r.jsonl", exitUsage, "", "none.yaml")
	f("--config c.yaml --against none.yaml r.jsonl", exitUsage, "", "to compare with")
	f("--config c.yaml --workers 0 r.jsonl", exitUsage, "", "--workers must be")
	f("--config c.yaml --fail-on changed>0 r.jsonl", exitUsage, "", "needs --against")
	f("--config c.yaml --fail-on rejected r.jsonl", exitUsage, "", "want a condition")
	f("--config c.yaml --fail-on rejectd>1 r.jsonl", exitUsage, "", "unknown metric \"rejectd\"")
	f("--config c.yaml --fail-on rejected>-1 r.jsonl", exitUsage, "", "want a number")
	f("--config c.yaml --fail-on rejected>NaN r.jsonl", exitUsage, "", "want a number")
	f("-h", exitOK, "", "usage: sluice replay")
	f("--nope", exitUsage, "", "-nope")
}

// gzip and zstd are known by the name or the first bytes, several members too.
func TestReplay_Compressed(t *testing.T) {
	var gz, zst bytes.Buffer
	for range 2 {
		w := gzip.NewWriter(&gz)
		z, err := zstd.NewWriter(&zst)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []io.WriteCloser{w, z} {
			if _, err := io.WriteString(c, replayLines); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	inDir(t, "c.yaml", checked, "a.gz", gz.String(), "a.zst", zst.String(), "b", gz.String(), "c", zst.String(), "no.gz", replayLines, "no.zst", replayLines,
		"half.gz", gz.String()[:gz.Len()/2-9], "half.zst", zst.String()[:zst.Len()/2-9])
	for _, name := range []string{"a.gz", "a.zst", "b", "c"} {
		got := runVerb(t, "", "replay", "--config", "c.yaml", name)
		if got.code != exitOK || !strings.HasPrefix(got.stdout, "6 requests, ") || !strings.Contains(got.stdout, name+":2\n") {
			t.Errorf("unexpected end of replay %s: %+v", name, got)
		}
	}
	for _, name := range []string{"no.gz", "no.zst", "half.gz", "half.zst"} {
		if got := runVerb(t, "", "replay", "--config", "c.yaml", name); got.code != exitFailed || !strings.Contains(got.stderr, "cannot read "+name) {
			t.Errorf("unexpected end of replay %s: %+v", name, got)
		}
	}
}

// A signal ends the reading; what was read is told.
func TestReplay_Interrupted(t *testing.T) {
	inDir(t, "c.yaml", checked)
	stop, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	p := &process{
		args: []string{"--config", "c.yaml", "-"}, stdout: &out, stderr: &errs, stop: stop,
		stdin: io.MultiReader(strings.NewReader(replayLines), readFunc(func([]byte) (int, error) { cancel(); return 0, nil }), strings.NewReader(replayLines)),
	}
	if code := runReplay(p); code != exitFailed || !strings.Contains(errs.String(), "interrupted") || !strings.HasPrefix(out.String(), "3 requests") {
		t.Errorf("unexpected end: %d\n%s%s", code, &out, &errs)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestProgress(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(name, []byte(replayLines), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := configs.Default()
	cfg.Pools = []configs.Pool{configs.DefaultPool()}
	r, err := router.NewReplay(cfg, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read(name, strings.NewReader(replayLines)); err != nil {
		t.Fatal(err)
	}
	b := &progress{r: r, total: 2 * int64(len(replayLines))}
	b.read.Store(int64(len(replayLines)))
	if got, want := b.text(time.Second), "[###############...............]  50%  3 requests, 216 B, 216 B/s"; got != want {
		t.Errorf("unexpected bar\n got %s\nwant %s", got, want)
	}
	b.total = 0
	if got, want := b.text(2*time.Second), "3 requests, 216 B, 108 B/s"; got != want {
		t.Errorf("unexpected bar\n got %s\nwant %s", got, want)
	}
	var n atomic.Int64
	if isTerminal(io.Discard) || (&counted{strings.NewReader(""), &n, nil}).n != &n {
		t.Error("a terminal was found where there is none")
	}
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 2.5e9: "2.5 GB", 5e15: "5000.0 TB"} {
		if got := size(n); got != want {
			t.Errorf("unexpected size of %v; got %s; want %s", n, got, want)
		}
	}
}

// The report in JSON can be read back.
func TestReplay_JSON(t *testing.T) {
	inDir(t, "c.yaml", replayedConfig)
	got := runVerb(t, replayLines, "replay", "--config", "c.yaml", "--json", "-")
	var rep router.ReplayReport
	if err := json.Unmarshal([]byte(got.stdout), &rep); err != nil || rep.Totals.Of("clamped", false) != 1 || len(rep.Decisions) != 2 {
		t.Errorf("unexpected report %+v: %v", got, err)
	}
}
