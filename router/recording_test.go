package router

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/router/record"
)

// rows returns the rows of a database once there are n, each as column=value.
func rows(t *testing.T, file string, n int) []map[string]string {
	t.Helper()
	var out []map[string]string
	eventually(t, "the rows", func() bool {
		r, err := record.OpenReader(context.Background(), record.SQLite, file)
		if err != nil {
			return false
		}
		defer func() { _ = r.Close() }()
		table, err := r.Last(context.Background(), record.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		out = nil
		for _, row := range table.Rows {
			m := map[string]string{}
			for i, name := range table.Columns {
				if row[i] != nil {
					m[name] = strings.TrimSpace(text(row[i]))
				}
			}
			out = append(out, m)
		}
		return len(out) >= n
	})
	return out
}

func text(v any) string { return strings.Trim(string(marshal(v)), `"`) }

func startRecorded(t *testing.T, engines int, config string) (s *stand, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "records.db")
	s, _ = startPools(t, engines, "records: {store: sqlite, dsn: '"+file+"', flush: 10ms}\n"+config)
	return s, file
}

// Each attempt, each answer from the cache and each failure of the router is a
// row, with the usage of the answer and the client's sampling intent.
func TestRecords(t *testing.T) {
	s, file := startRecorded(t, 1, `
server: {tenant_header: x-tenant}
sampling_contract: {params: {top_k: 5}}
pools:
  - {name: a, models: [m], aliases: {alias: m}, engine: vllm, extra_body: {min_p: 0.5, response_format: {type: text}}, workers: [{url: ENGINE0}]}
  - {name: dead, models: [z], workers: [{url: "http://127.0.0.1:1"}]}
routing:
  decisions:
    - {name: d, rules: {type: tenant, name: acme}, plugins: [{type: response_cache}]}
`)
	const chat = "/v1/chat/completions"
	f := func(path, body string, fields ...string) {
		t.Helper()
		s.send("POST", path, body, append(fields, "x-request-id: r-1")...)
	}
	f(chat, `{"model":"alias","messages":[],"temperature":0.25,"top_k":null}`, "x-tenant: acme")
	f(chat, `{"model":"alias","messages":[],"temperature":0.25,"top_k":null}`, "x-tenant: acme")
	f(chat, `{"model":"m","messages":[],"stream":true}`)
	f("/generate", `{"model":"m","text":"p","sampling_params":{"temperature":0}}`)
	f("/v1/messages", `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":true}`)
	f("/v1/responses", `{"model":"m","input":"p","stream":true}`)
	f("/v1/completions", `{"model":"m","prompt":"p"}`)
	f(chat, `{"model":"m","messages":[],"top_k":6}`)
	f(chat, `{"model":"z","messages":[]}`)
	got := rows(t, file, 10)
	kinds := make([]string, len(got))
	for i, r := range got {
		kinds[i] = r["surface"] + " " + r["kind"] + " " + r["status"] + " " + r["error_code"]
	}
	slices.Sort(kinds)
	want := []string{
		"chat attempt 200 ", "chat attempt 200 ", "chat attempt 502 upstream_unreachable", "chat cache_hit 200 ",
		"chat terminal_failure 400 sampling_contract_violation", "chat terminal_failure 502 upstream_unreachable",
		"completions attempt 200 ", "generate attempt 200 ", "messages attempt 200 ", "responses attempt 200 ",
	}
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Fatalf("unexpected rows\n got %q\nwant %q", kinds, want)
	}
	for _, r := range got {
		if r["kind"] == "attempt" && r["status"] == "200" {
			if r["prompt_tokens"] == "" || r["completion_tokens"] == "" || r["pool"] != "a" || r["provider"] != "vllm" || r["model"] != "m" || r["attempt"] != "1" ||
				r["model_reported"] != "m" && r["surface"] != "generate" {
				t.Errorf("a row lacks something: %v", r)
			}
		}
		if strings.Contains(r["sampling"], "response_format") {
			t.Errorf("a row has the response format: %v", r)
		}
	}
	first := got[0]
	if first["tenant"] != "acme" || first["decision"] != "d" || !strings.Contains(first["sampling"], `temperature`) || !strings.Contains(first["sampling"], "min_p") {
		t.Errorf("unexpected first row %v", first)
	}
	hit := got[slices.IndexFunc(got, func(r map[string]string) bool { return r["kind"] == "cache_hit" })]
	if strings.Contains(hit["sampling"], "min_p") || !strings.Contains(hit["sampling"], "0.25") {
		t.Errorf("unexpected sampling of an answer from the cache: %v", hit)
	}
}

// The usage of a stream is asked for where a row needs it, beside what the client
// asks for, and left out of the answer of a client that did not ask.
func TestB43_UsageIsForcedAndHidden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records.db")
	s, e := startPools(t, 1, "records: {store: sqlite, dsn: '"+file+"', flush: 10ms}\npools: [{name: a, models: [m], workers: [{url: ENGINE0}]}]\n")
	f := func(body, want string, shown bool) {
		t.Helper()
		r := s.chat(body)
		if r.status != http.StatusOK || !strings.HasSuffix(r.body, "data: [DONE]\n\n") || strings.Contains(r.body, `"usage":{`) != shown {
			t.Errorf("unexpected stream for %s: %d %s", body, r.status, r.body)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(r.body, "\n\n"), "\n\n") {
			if !strings.HasPrefix(event, "data: ") {
				t.Errorf("the framing of the stream is broken at %q", event)
			}
		}
		if got := last(t, e[0]); got != want {
			t.Errorf("unexpected body for %s\n got %s\nwant %s", body, got, want)
		}
	}
	f(`{"model":"m","messages":[],"stream":true}`, `{"stream_options":{"include_usage":true},"model":"m","messages":[],"stream":true}`, false)
	f(`{"model":"m","messages":[],"stream":true,"stream_options":null}`, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, false)
	f(`{"model":"m","messages":[],"stream":true,"stream_options":{"a":1}}`, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true,"a":1}}`, false)
	f(`{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":false}}`, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, false)
	const asked = `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`
	f(asked, asked, true)
	for _, r := range rows(t, file, 5) {
		if r["prompt_tokens"] == "" || r["completion_tokens"] != "3" {
			t.Errorf("a row lacks the usage: %v", r)
		}
	}
	if r := s.chat(`{"model":"m","messages":[]}`); strings.Contains(last(t, e[0]), "stream_options") || r.status != http.StatusOK {
		t.Errorf("unexpected answer to a request for no stream: %d", r.status)
	}
}

// Without records nothing is added.
func TestUsageIsNotForcedWithoutRecords(t *testing.T) {
	s, e := startPools(t, 1, "pools: [{name: a, models: [m], workers: [{url: ENGINE0}]}]\n")
	const body = `{"model":"m","messages":[],"stream":true}`
	if r := s.chat(body); r.status != http.StatusOK || last(t, e[0]) != body {
		t.Errorf("the body was changed, or answered %d", r.status)
	}
}
