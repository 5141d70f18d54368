package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ask sends a request and returns the status and the body of the answer.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// logged waits for text in the log.
func (r *running) logged(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(r.stderr.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log lacks %q: %s", text, r.stderr.String())
		}
	}
}

// The level and the access log follow PUT /log/level and a reload; the format is
// that of the start.
func TestServeLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write := func(log string) {
		t.Helper()
		text := "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nlog: " + log + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{level: info}")
	r := start(t, "serve", "--config", file)
	listen, admin := r.serving(t)
	level := "http://" + admin + "/log/level"
	if status, body := ask(t, "PUT", level, `{"level": "debug"}`); status != 200 || body != `{"level":"debug"}`+"\n" {
		t.Errorf("unexpected answer %d %s", status, body)
	}
	r.logged(t, `"level":"WARN","msg":"the level of the log was changed by hand"`)
	if status, _ := ask(t, "GET", "http://"+listen+"/health", ""); status != 200 {
		t.Errorf("unexpected health %d", status)
	}
	r.logged(t, `"path":"/health"`)

	write("{level: warn, access: false, format: text}")
	if status, body := ask(t, "POST", "http://"+admin+"/-/reload", ""); status != 200 {
		t.Errorf("unexpected answer %d %s", status, body)
	}
	if _, body := ask(t, "GET", level, ""); body != `{"level":"warn"}`+"\n" {
		t.Errorf("unexpected level after the reload: %s", body)
	}
	r.logged(t, `"keys":"log.format"`)
	if status, _ := ask(t, "GET", "http://"+listen+"/ready", ""); status != 200 {
		t.Errorf("unexpected readiness %d", status)
	}
	r.stop()
	if code := r.exit(t); code != exitOK {
		t.Errorf("unexpected exit code %d", code)
	}
	if strings.Contains(r.stderr.String(), "/ready") {
		t.Errorf("a line for a request without an access log: %s", r.stderr.String())
	}
}

func TestServeLogText(t *testing.T) {
	r := start(t, "serve", "--set", "server.listen=127.0.0.1:0", "--set", "server.admin_listen=127.0.0.1:0", "--set", "log.format=text")
	r.logged(t, "level=INFO msg=serving listen=127.0.0.1:")
	r.stop()
	if code := r.exit(t); code != exitOK {
		t.Errorf("unexpected exit code %d", code)
	}
}
