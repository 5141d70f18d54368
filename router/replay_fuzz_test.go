package router

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sluice/configs"
	"sluice/probe"
)

// FuzzRecorded compares how a line is read with encoding/json, where that takes it
// and no key is there twice.
func FuzzRecorded(f *testing.F) {
	for line := range strings.Lines(generatedLines(20)) {
		f.Add(line)
	}
	for _, line := range []string{
		`{"path":"\/a\u0062","method":"PUT","headers":{"x-a":["1","\"\\"],"b":""},"body":"{\"a\":1}"}`,
		`{"url":"/v1/chat/completions","body":{"model":"m"}}`, `{"path":"/","body":[1,{"a":"]"}]}`, `{"path":null}`, `{}`, ``,
	} {
		f.Add(line)
	}
	var c recorded
	f.Fuzz(func(t *testing.T, line string) {
		problem := c.read([]byte(line))
		var want struct {
			Path   string          `json:"path"`
			Method *string         `json:"method"`
			Body   json.RawMessage `json:"body"`
		}
		if strings.Count(line, `"path"`) != 1 || strings.Contains(line, `\`) || strings.ToLower(line) != line ||
			strings.Count(line, `"body"`) > 1 || strings.Count(line, `"method"`) > 1 || strings.Contains(line, `"url"`) ||
			json.Unmarshal([]byte(line), &want) != nil || want.Path == "" || problem != "" {
			return // what it reads without a problem is compared, and what it refuses is in the tables
		}
		method := "POST"
		if want.Method != nil {
			method = *want.Method
		}
		body := string(want.Body)
		if body == "null" {
			body = ""
		}
		if text := ""; strings.HasPrefix(body, `"`) && json.Unmarshal(want.Body, &text) == nil {
			body = text
		}
		if string(c.target) != want.Path || string(c.method) != method || string(c.body) != body {
			t.Errorf("unexpected request of %q\n got %q %q %q\nwant %q %q %q", line, c.method, c.target, c.body, method, want.Path, body)
		}
	})
}

// FuzzRedact redacts what the scanner takes: the members stay where and what they
// were, and so does the length; redacting again changes nothing.
func FuzzRedact(f *testing.F) {
	for line := range strings.Lines(generatedLines(20)) {
		var l struct{ Body json.RawMessage }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(l.Body))
	}
	f.Add([]byte(`{"model":"m\"","a":["\\","\\\"",{"b":"c"}],"temperature":"1","role":"user"}`))
	r := newRedactor(&configs.Config{})
	var before, after probe.Body
	f.Fuzz(func(t *testing.T, body []byte) {
		if probe.Scan(body, probe.SurfaceGenerate, 0, &before) != probe.FaultNone {
			return
		}
		got := bytes.Clone(body)
		oneLine(got)
		r.redact(got)
		if probe.Scan(got, probe.SurfaceGenerate, 0, &after) != probe.FaultNone {
			t.Fatalf("%q becomes %q, which is none", body, got)
		}
		if len(before.Members) != len(after.Members) || len(before.Inner) != len(after.Inner) {
			t.Fatalf("%q becomes %q with other members", body, got)
		}
		for i := range before.Members {
			if before.Members[i] != after.Members[i] {
				t.Fatalf("%q becomes %q with another member %d", body, got, i)
			}
		}
		again := bytes.Clone(got)
		if r.redact(again); !bytes.Equal(again, got) || bytes.IndexByte(got, '\n') >= 0 {
			t.Fatalf("%q becomes %q, and then %q", body, got, again)
		}
	})
}
