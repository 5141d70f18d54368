package router

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"sluice/configs"
	"sluice/upstream/sim"
)

// ask sends a request to the admin listener.
func (s *stand) ask(method, path, body string, fields ...string) reply {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.admin+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Set(name, value)
	}
	client := http.Client{
		Transport:     s.client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: cannot read the answer: %v", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, string(b), resp.Close}
}

// promise posts to the admin listener the head of a request with n bytes, and none
// of them: what is refused for its length is refused before it comes.
func (s *stand) promise(path string, n int) reply {
	s.t.Helper()
	c, err := net.Dial("tcp", s.admin)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	raw := &rawConn{t: s.t, Conn: c, r: bufio.NewReader(c)}
	return raw.write(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, n)).read()
}

// Every path of the admin listener answers GET or says what it takes, and says
// nothing where there is none.
func TestAdminPaths(t *testing.T) {
	s := startStand(t, nil)
	f := func(method, path, body string, status int, want string) {
		t.Helper()
		r := s.ask(method, path, body)
		if r.status != status || !strings.Contains(r.body, want) {
			t.Errorf("%s %s: unexpected answer %d %.300s; want %d with %q", method, path, r.status, r.body, status, want)
		}
		if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: unexpected header %v", method, path, r.header)
		}
		if status >= 400 && r.header.Get(headerErrorCode) == "" {
			t.Errorf("%s %s: an error without a code", method, path)
		}
	}
	f("GET", "/", "", 200, "<!doctype html>")
	f("GET", "/status.json", "", 200, `"pools":[{"name":"sim"`)
	f("GET", "/metrics", "", 200, "sluice_requests_total")
	f("GET", "/workers", "", 200, `"id":"sim@127.0.0.1:`)
	f("GET", "/version", "", 200, `{"version":"test"}`)
	f("GET", "/config", "", 200, "balance: least_requests")
	f("GET", "/config?format=json&origins=false", "", 200, `"balance": "least_requests"`)
	f("GET", "/config?format=json", "", 200, `"origins": {`)
	f("GET", "/config?format=xml", "", 400, "yaml or json")
	f("GET", "/config?origins=perhaps", "", 400, "true or false")
	f("GET", "/config/hash", "", 200, `"hash":"`)
	f("GET", "/debug/pprof/", "", 200, "goroutine")
	f("GET", "/debug/pprof", "", 302, "")
	f("GET", "/debug/pprof/goroutine?debug=1", "", 200, "goroutine profile")
	f("GET", "/debug/pprof/profile?seconds=121", "", 400, "from 1 to 120")
	f("GET", "/debug/pprof/trace?seconds=x", "", 400, "from 1 to 120")
	f("GET", "/log/level", "", 409, "not the router's")
	f("POST", "/-/reload", "", 409, "no configuration")
	f("GET", "/nothing", "", 404, "/status.json")
	f("GET", "/workers/sim@h:1/what", "", 404, "admin listener serves")
	for path, allow := range map[string]string{"/": "GET, HEAD", "/explain": "POST", "/-/reload": "POST", "/log/level": "GET, HEAD, PUT", "/workers/x": "DELETE", "/workers/x/drain": "POST"} {
		f("PATCH", path, "", 405, "use "+allow)
		if got := s.ask("PATCH", path, "").header.Get("Allow"); got != allow {
			t.Errorf("%s: unexpected Allow %q", path, got)
		}
	}
	if r := s.ask("HEAD", "/metrics", ""); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: unexpected answer %d with %d bytes", r.status, len(r.body))
	}
}

// Workers are added, drained, taken back and removed by hand; what makes no sense
// changes nothing.
func TestAdminWorkers(t *testing.T) {
	s, fleet := startPools(t, 2, `pools: [{name: a, workers: [{url: ENGINE0}]}, {name: b, models: [m], workers: [{url: ENGINE1}]}]`)
	extra := sim.New(sim.Options{Words: 3})
	url, err := extra.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = extra.Close(t.Context()) })
	host := strings.TrimPrefix(url, "http://")
	state := func(id string) string {
		t.Helper()
		var list struct {
			Workers []struct{ ID, State string }
		}
		if err := json.Unmarshal([]byte(s.ask("GET", "/workers", "").body), &list); err != nil {
			t.Fatal(err)
		}
		for _, w := range list.Workers {
			if w.ID == id {
				return w.State
			}
		}
		return ""
	}
	f := func(method, path, body string, status int, want string) {
		t.Helper()
		if r := s.ask(method, path, body); r.status != status || !strings.Contains(r.body, want) {
			t.Errorf("%s %s %s: unexpected answer %d %s; want %d with %q", method, path, body, r.status, r.body, status, want)
		}
	}
	for _, body := range []string{
		"", "{", "[]", `{"pool":"a"}`, `{"pool":"a","url":"ftp://x:1"}`, `{"pool":"a","url":"http://x:1/path"}`,
		`{"pool":"a","url":"http://u:p@x:1"}`, `{"pool":"a","url":5}`, `{"pool":"a","url":"http://x:1","weight":-1}`,
		`{"pool":"a","url":"http://x:1","weight":1001}`, `{"pool":"a","url":"http://x:1","surplus":1}`, `{"pool":"a","url":"http://x:0"}`,
	} {
		f("POST", "/workers", body, 400, "bad_request")
	}
	f("POST", "/workers", `{"pool":"c","url":"http://x:1"}`, 404, "no such pool")
	f("POST", "/workers", `{"url":"http://x:1"}`, 404, "no such pool") // which of the two?
	f("POST", "/workers", "null", 404, "no such pool")
	f("DELETE", "/workers/a@"+host, "", 404, "no such worker")
	f("DELETE", "/workers/"+host, "", 404, "no such pool")
	f("POST", "/workers/c@"+host+"/drain", "", 404, "no such pool")

	f("POST", "/workers", fmt.Sprintf(`{"pool":"a","url":%q,"weight":2}`, url), 200, `"is":"added"`)
	if got := state("a@" + host); got != "up" {
		t.Errorf("unexpected state of what was added: %q", got)
	}
	first := strings.TrimPrefix(engineURL(t, s, "a", host), "http://")
	f("POST", "/workers/a@"+first+"/drain", "", 200, `"is":"draining"`)
	if got := state("a@" + first); got != "draining" {
		t.Errorf("unexpected state of what was drained: %q", got)
	}
	for range 5 {
		s.chat(`{"model":"x","messages":[]}`)
	}
	if a, b := len(fleet[0].Requests()), len(extra.Requests()); a != 0 || b != 5 {
		t.Errorf("unexpected requests: %d at the drained worker, %d at the added one", a, b)
	}
	f("POST", "/workers/a@"+first+"/undrain", "", 200, `"is":"taking requests"`)
	f("DELETE", "/workers/A@"+host, "", 404, "no such pool")
	f("DELETE", "/workers/a@"+strings.ToUpper(host), "", 200, `"is":"removed"`)
	eventually(t, "the worker is gone", func() bool { return state("a@"+host) == "" })
}

// engineURL returns the URL of the worker of a pool that is not at host.
func engineURL(t *testing.T, s *stand, pool, host string) string {
	t.Helper()
	for _, w := range s.router.snap.Load().pool(pool).up.Workers() {
		if !strings.HasSuffix(w.URL(), host) {
			return w.URL()
		}
	}
	t.Fatal("there is no such worker")
	return ""
}

// A request is explained as it came: the body may be as large as on the data
// listener, and what is no request is told.
func TestAdminExplain(t *testing.T) {
	s := startStand(t, func(c *configs.Config) {
		contract("reject", map[string]any{"temperature": 1})(c)
		c.Server.MaxBody = 1 << 20
	})
	f := func(query, body string, status int, want ...string) {
		t.Helper()
		r := s.ask("POST", "/explain"+query, body)
		for _, w := range want {
			if r.status != status || !strings.Contains(r.body, w) {
				t.Errorf("%s: unexpected answer %d %.400s; want %d with %q", query, r.status, r.body, status, w)
			}
		}
	}
	f("", `{"model":"small","messages":[]}`, 200, `"surface":"chat"`, `"sent_model":"sim-8b"`, `"rule":"sampling_contract"`, `\"temperature\":1`)
	f("", `{"model":"small","temperature":0.5,"messages":[]}`, 200, `"code":"sampling_contract_violation"`, `"status":400`)
	f("?path=/v1/messages", `{"model":"small","messages":[]}`, 200, `"surface":"messages"`)
	f("?path=/generate&method=PUT", `{"text":"x"}`, 200, `"surface":"generate"`)
	f("?path=/nothing", `{}`, 200, `"code":"not_found"`)
	f("?path=%00&method=%0a", `{}`, 200, `"code":"not_found"`)
	for _, body := range []string{"", "{", "[]", "\xff\xfe", `{"model":1}`, strings.Repeat("[", 1000)} {
		f("", body, 200, `"code":"bad_request"`)
	}
	f("", `{"model":"small","pad":"`+strings.Repeat("x", 900<<10)+`"}`, 200, `"surface":"chat"`)
	if r := s.promise("/explain", 1<<20+1); r.status != 413 || r.header.Get(headerErrorCode) != "payload_too_large" {
		t.Errorf("unexpected answer to a body over the limit: %d %s", r.status, r.body)
	}
	if r := s.promise("/workers", adminBody+1); r.status != 413 {
		t.Errorf("unexpected answer to a large body on another path: %d %s", r.status, r.body)
	}
}

// A reload answers what became of it; the faults of a long file are cut.
func TestAdminReload(t *testing.T) {
	s := startStand(t, nil)
	var next error
	s.router.reload = func() error {
		if next != nil {
			s.router.ReloadFailed(next)
			return next
		}
		_, err := s.router.Reload(s.router.snap.Load().cfg)
		return err
	}
	if r := s.ask("POST", "/-/reload", ""); r.status != 200 || !strings.Contains(r.body, `"hash":"`) {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	next = errors.New("a.yaml:1:1: " + strings.Repeat("wrong é", 20000))
	if r := s.ask("POST", "/-/reload", ""); r.status != 422 || !strings.Contains(r.body, "a.yaml:1:1: wrong") || len(r.body) > 2*maxMessage {
		t.Errorf("unexpected answer %d with %d bytes", r.status, len(r.body))
	}
	r := s.ask("GET", "/config/hash", "")
	if !strings.Contains(r.body, `"last_error":"a.yaml:1:1: wrong`) || len(r.body) > 2*maxMessage {
		t.Errorf("unexpected answer %d with %d bytes", r.status, len(r.body))
	}
}

func TestAdminLogLevel(t *testing.T) {
	level := new(slog.LevelVar)
	s := startStand(t, nil)
	s.router.level = level
	for _, want := range []string{"debug", "warn", "error", "info"} {
		r := s.ask("PUT", "/log/level", `{"level":"`+want+`"}`)
		if r.status != 200 || r.body != `{"level":"`+want+"\"}\n" || !strings.EqualFold(level.Level().String(), want) {
			t.Errorf("unexpected answer %d %s, level %v", r.status, r.body, level)
		}
	}
	for _, body := range []string{"", "debug", `{"level":""}`, `{"level":"INFO"}`, `{"level":"info+1"}`, `{"level":5}`, `{}`} {
		if r := s.ask("PUT", "/log/level", body); r.status != 400 || level.Level() != slog.LevelInfo {
			t.Errorf("%s: unexpected answer %d %s, level %v", body, r.status, r.body, level)
		}
	}
	if r := s.ask("GET", "/log/level", ""); r.body != "{\"level\":\"info\"}\n" {
		t.Errorf("unexpected level %s", r.body)
	}
}

// What can be reached with a token cannot be reached without it.
func TestAdminToken(t *testing.T) {
	const token = "0123456789abcdef"
	s := startStand(t, func(c *configs.Config) { c.Server.Admin.Token = token })
	good := "Authorization: Bearer " + token
	for path := range adminPages {
		if path == "/" {
			continue
		}
		for _, f := range []string{"A: b", "Authorization: " + token, "Authorization: Basic " + token, "Authorization: Bearer", "Authorization: Bearer " + token + "0", "Authorization: Bearer 0123456789abcde"} {
			for _, method := range []string{"GET", "POST", "PUT", "HEAD"} {
				r := s.ask(method, path, "", f)
				if r.status != 401 || r.header.Get("WWW-Authenticate") != `Bearer realm="sluice"` || r.header.Get(headerErrorCode) != "unauthorized" {
					t.Errorf("%s %s with %s: unexpected answer %d %v", method, path, f, r.status, r.header)
				}
			}
		}
	}
	for _, path := range []string{"/workers/sim@h:1", "/debug/pprof/heap", "/nothing", "/status.json/"} {
		if r := s.ask("DELETE", path, ""); r.status != 401 {
			t.Errorf("%s: unexpected answer %d", path, r.status)
		}
	}
	for _, scheme := range []string{"Bearer ", "bearer "} {
		if r := s.ask("GET", "/workers", "", "Authorization: "+scheme+token); r.status != 200 {
			t.Errorf("unexpected answer %d %s", r.status, r.body)
		}
	}
	if r := s.ask("GET", "/", ""); r.status != 200 {
		t.Errorf("unexpected answer %d of the page", r.status)
	}
	if r := s.promise("/explain", strangersBody+1); r.status != 413 {
		t.Errorf("a stranger's body is read: %d", r.status)
	}
	if r := s.ask("POST", "/explain", chatBody, good); r.status != 200 || strings.Contains(r.body, token) {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	r := s.ask("GET", "/config", "", good)
	if r.status != 200 || strings.Contains(r.body, token) || !strings.Contains(r.body, "***") {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}

	// Another token holds from the reload on; without one a listener that other
	// machines reach stays closed.
	cfg := *s.router.snap.Load().cfg
	cfg.Server.Admin.Token = "fedcba9876543210"
	if _, err := s.router.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	if a, b := s.ask("GET", "/version", "", good).status, s.ask("GET", "/version", "", "Authorization: Bearer fedcba9876543210").status; a != 401 || b != 200 {
		t.Errorf("unexpected answers to the old and new token: %d %d", a, b)
	}
	none := cfg
	none.Server.Admin.Token = ""
	if _, err := s.router.Reload(&none); err != nil {
		t.Fatal(err)
	}
	if r := s.ask("GET", "/version", ""); r.status != 200 {
		t.Errorf("loopback without a token: unexpected answer %d", r.status)
	}
	s.router.secure.reached = true
	if r := s.ask("GET", "/version", ""); r.status != 401 {
		t.Errorf("beyond loopback without a token: unexpected answer %d", r.status)
	}
}

// No web page of another site changes anything, not even on loopback.
func TestAdminForeignPages(t *testing.T) {
	s := startStand(t, nil)
	f := func(method, path, origin string, status int) {
		t.Helper()
		if r := s.ask(method, path, "{}", "Origin: "+origin); r.status != status || r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s from %s: unexpected answer %d", method, path, origin, r.status)
		}
	}
	f("POST", "/-/reload", "https://evil.example", 403)
	f("POST", "/-/reload", "null", 403)
	f("DELETE", "/workers/sim@h:1", "http://127.0.0.1:1", 403)
	f("PUT", "/log/level", "https://evil.example", 403)
	f("POST", "/-/reload", "http://"+s.admin, 409)
	f("GET", "/version", "https://evil.example", 200)
}

// What fasthttp cannot read is answered in the shape of an error.
func TestAdminUnread(t *testing.T) {
	s := startStand(t, nil)
	s.addr = s.admin
	for text, status := range map[string]int{
		"GET /\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n":         400,
		"GET / HTTP/1.1\r\nA: " + strings.Repeat("x", 20<<10): 431,
	} {
		if r := s.dial().write(text).read(); r.status != status || r.header.Get(headerErrorCode) != "bad_request" {
			t.Errorf("%.30q: unexpected answer %d %s", text, r.status, r.body)
		}
	}
}
