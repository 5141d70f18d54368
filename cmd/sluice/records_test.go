package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/router/record"
)

// runRecordsWith runs the verb.
func runRecordsWith(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &process{args: args, stdout: &out, stderr: &errs, stop: t.Context(), now: t.Context()}
	code = runRecords(p)
	return code, out.String(), errs.String()
}

// recorded returns a database with five rows, the first two of which are older
// than an hour.
func recorded(t *testing.T) (dsn string) {
	t.Helper()
	dsn = filepath.Join(t.TempDir(), "sluice.db")
	r, err := record.Open(record.Options{Store: record.SQLite, DSN: dsn, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		w := r.Get()
		w.CreatedAt = time.Now().Add(time.Duration(i-5) * 40 * time.Minute)
		w.RequestID.SetString(fmt.Sprintf("id-%d", i))
		w.Attempt, w.Pool, w.Status = 1, []string{"x", "y"}[i%2], 200
		w.Model.SetString("m")
		w.PromptTokens, w.CompletionTokens = 10, int64(i)
		w.TTFT, w.Duration = time.Duration(i+1)*10*time.Millisecond, time.Second
		if i == 4 {
			w.Status, w.ErrorCode = 503, "overloaded"
			w.Tenant.SetString("caf\u00e9 \u202e")
		}
		r.Add(w)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dsn
}

func TestRecords_Last(t *testing.T) {
	dsn := recorded(t)
	code, out, errs := runRecordsWith(t, "--dsn", dsn, "--limit", "2")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || errs != "" || len(lines) != 3 {
		t.Fatalf("unexpected end %d, %s%s", code, out, errs)
	}
	f := func(line string, want ...string) {
		t.Helper()
		if got := strings.Fields(line); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("unexpected line %q; want %q", got, want)
		}
	}
	f(lines[0], narrow...)
	f(lines[1][strings.Index(lines[1], "id-"):], "id-3", "attempt", "1", "-", "-", "y", "-", "m", "200", "-", "10", "-", "3", "40.0", "1000.0")
	f(lines[2][strings.Index(lines[2], "id-"):], "id-4", "attempt", "1", "-", `"café`, `\u202e"`, "x", "-", "m", "503", "overloaded", "10", "-", "4", "50.0", "1000.0")
}

func TestRecords_JSON(t *testing.T) {
	dsn := recorded(t)
	code, out, errs := runRecordsWith(t, "--dsn", dsn, "--since", "90m", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || errs != "" || len(lines) != 2 {
		t.Fatalf("unexpected end %d, %s%s", code, out, errs)
	}
	var row map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &row); err != nil {
		t.Fatal(err)
	}
	if len(row) != 22 || row["request_id"] != "id-4" || row["worker"] != nil || row["ttft_ms"] != 50.0 || row["stream"] != false || row["tenant"] != "caf\u00e9 \u202e" {
		t.Errorf("unexpected row %v", row)
	}
	if at, err := time.Parse(time.RFC3339, row["created_at"].(string)); err != nil || time.Since(at) < 40*time.Minute {
		t.Errorf("unexpected time %v, %v", at, err)
	}
}

func TestRecords_Sums(t *testing.T) {
	dsn := recorded(t)
	f := func(want string, args ...string) {
		t.Helper()
		code, out, errs := runRecordsWith(t, append([]string{"--dsn", dsn}, args...)...)
		if code != exitOK || errs != "" || out != want {
			t.Errorf("unexpected end of %q: %d, %s\n%s\nwant\n%s", args, code, errs, out, want)
		}
	}
	f(`pool  requests  errors  attempts  cache_hits  prompt_tokens  cached_prompt_tokens  completion_tokens  ttft_mean_ms  ttft_p95_ms
x     3         1       3         0           30             0                     6                  30.0          50.0
y     2         0       2         0           20             0                     4                  30.0          40.0
`, "--by", "pool")
	f(`{"requests":5,"errors":1,"attempts":5,"cache_hits":0,"prompt_tokens":50,"cached_prompt_tokens":0,"completion_tokens":10,"ttft_mean_ms":30,"ttft_p95_ms":50}
`, "--by", "all", "--json", "--since", "7d")
	f(`{"model":"m","status":200,"requests":1,"errors":0,"attempts":1,"cache_hits":0,"prompt_tokens":10,"cached_prompt_tokens":0,"completion_tokens":3,"ttft_mean_ms":40,"ttft_p95_ms":40}
`, "--by", "model,status", "--json", "--since", "2h", "--limit", "1")
}

func TestRecords_Errors(t *testing.T) {
	dsn := recorded(t)
	missing := filepath.Join(t.TempDir(), "none.db")
	f := func(code int, want string, args ...string) {
		t.Helper()
		got, out, errs := runRecordsWith(t, args...)
		if got != code || !strings.Contains(errs, want) || out != "" {
			t.Errorf("unexpected end of %q; got %d, %s%s; want %d, %q", args, got, out, errs, code, want)
		}
	}
	f(exitOK, "sampling::json", "-h")
	f(exitOK, "\n  kind,surface,decision", "-h")
	f(exitUsage, "--config or --dsn is missing")
	f(exitUsage, `unexpected argument "x"`, "--dsn", dsn, "x")
	f(exitUsage, `--store must be sqlite or postgres, got "off"`, "--dsn", dsn, "--store", "off")
	f(exitUsage, "--limit must be at least 1", "--dsn", dsn, "--limit", "0")
	for _, since := range []string{"-1h", "0s", "x", "1", "d", "-1d", "1.5d", "99999d"} {
		f(exitUsage, "want a time such as", "--dsn", dsn, "--since="+since)
	}
	f(exitUsage, `unknown column "sampling"`, "--dsn", dsn, "--by", "model,sampling")
	f(exitUsage, `unknown column ""`, "--dsn", dsn, "--by", "")
	f(exitUsage, `column "model" is there twice`, "--dsn", dsn, "--by", "model,model")
	f(exitFailed, "no such file", "--dsn", missing)
	f(exitFailed, "want the path of a file", "--dsn", "postgres://x")
	f(exitFailed, "cannot read the DSN", "--store", "postgres", "--dsn", "pass@word")
}

// The database may be the one that the configuration names.
func TestRecords_Config(t *testing.T) {
	dsn := recorded(t)
	inDir(t, "on.yaml", "records: {store: sqlite, dsn: "+dsn+"}\n", "off.yaml", "log: {level: info}\n")
	_, want, _ := runRecordsWith(t, "--dsn", dsn)
	code, out, errs := runRecordsWith(t, "--config", "on.yaml")
	if code != exitOK || errs != "" || out != want {
		t.Errorf("unexpected rows %d %s%s; want %s", code, out, errs, want)
	}
	for args, text := range map[string]string{
		"--config off.yaml":           "the configuration records nothing",
		"--config on.yaml --dsn a.db": "both name a database",
		"--config none.yaml":          "cannot be read",
	} {
		if code, _, errs := runRecordsWith(t, strings.Fields(args)...); code != exitUsage || !strings.Contains(errs, text) {
			t.Errorf("unexpected end of %s: %d %s", args, code, errs)
		}
	}
}
