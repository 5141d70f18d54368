package router

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

const page = "https://chat.example"

func withCORS(c configs.CORS) func(*configs.Config) {
	return func(cfg *configs.Config) { cfg.Server.CORS = c }
}

// B65: without CORS a preflight is an OPTIONS like any other: 405 with Allow.
func TestB65_NoCORS(t *testing.T) {
	s := startStand(t, nil)
	r := s.send("OPTIONS", "/v1/chat/completions", "", "Origin: "+page, "Access-Control-Request-Method: POST")
	if r.status != 405 || r.header.Get("Allow") != "POST" || r.header.Get(headerErrorCode) != "method_not_allowed" {
		t.Errorf("unexpected answer %d %v", r.status, r.header)
	}
	for name := range s.chat(chatBody, "Origin: "+page).header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
			t.Errorf("unexpected field %s", name)
		}
	}
}

// B65: a preflight is answered 204 by the router alone.
func TestB65_Preflight(t *testing.T) {
	f := func(c configs.CORS, path string, fields []string, status int, want map[string]string) {
		t.Helper()
		s := startStand(t, withCORS(c))
		r := s.send("OPTIONS", path, "", fields...)
		if r.status != status || status == 204 && r.body != "" {
			t.Errorf("%v: unexpected answer %d %s", fields, r.status, r.body)
		}
		for _, name := range []string{
			"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
			"Access-Control-Max-Age", "Access-Control-Allow-Credentials",
		} {
			if got := strings.Join(r.header.Values(name), "; "); got != want[name] {
				t.Errorf("%v: unexpected %s %q; want %q", fields, name, got, want[name])
			}
		}
		if vary := strings.Join(r.header.Values("Vary"), ", "); !strings.Contains(vary, "Origin") && len(c.Origins) > 0 && c.Origins[0] != "*" {
			t.Errorf("%v: unexpected Vary %q", fields, vary)
		}
		if n := len(s.received()); n != 0 {
			t.Errorf("%v: %d requests reached the engine", fields, n)
		}
	}
	ask := []string{"Origin: " + page, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type"}
	one := configs.CORS{Origins: []string{"https://other.example", page}, MaxAge: 10 * time.Minute}
	f(one, "/v1/chat/completions", ask, 204, map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "authorization,content-type", "Access-Control-Max-Age": "600",
	})
	f(one, "/v1/models", ask[:2], 204, map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "GET, HEAD", "Access-Control-Max-Age": "600",
	})
	narrow := configs.CORS{Origins: []string{page}, Methods: []string{"POST"}, Headers: []string{"authorization", "x-a"}, Credentials: true}
	f(narrow, "/v1/messages", ask, 204, map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "authorization, x-a",
		"Access-Control-Max-Age": "0", "Access-Control-Allow-Credentials": "true",
	})
	f(configs.CORS{Origins: []string{"*"}}, "/generate", ask[:2], 204, map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "POST, PUT", "Access-Control-Max-Age": "0",
	})
	for _, origin := range []string{"https://evil.example", "null", page + ":8443", page + ".evil.example", strings.ToUpper(page)} {
		f(one, "/v1/chat/completions", []string{"Origin: " + origin, "Access-Control-Request-Method: POST"}, 204, nil)
	}
	f(one, "/nothing", ask, 404, map[string]string{"Access-Control-Allow-Origin": page})
	// No preflights: a page of the same site, and a question without a method.
	f(one, "/v1/chat/completions", ask[1:], 405, nil)
	f(one, "/v1/chat/completions", ask[:1], 405, map[string]string{"Access-Control-Allow-Origin": page})
}

// B65: what is unclear in the head of a preflight is refused before it is
// answered.
func TestB65_PreflightFraming(t *testing.T) {
	s := startStand(t, withCORS(configs.CORS{Origins: []string{page}}))
	head := "OPTIONS /v1/models HTTP/1.1\r\nHost: a\r\nOrigin: " + page + "\r\nAccess-Control-Request-Method: GET\r\n"
	c := s.dial().write(head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if r := c.read(); r.status != 400 || r.header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("unexpected answer %d %v", r.status, r.header)
	}
	c.closed()
	c = s.dial().write(head + "Content-Length: 2\r\n\r\n{}" + head + "\r\n")
	for range 2 {
		if r := c.read(); r.status != 204 {
			t.Errorf("unexpected answer %d %s", r.status, r.body)
		}
	}
	c = s.dial().write(head + "Transfer-Encoding: chunked\r\n\r\n")
	if r := c.read(); r.status != 204 || !r.close {
		t.Errorf("unexpected answer %d, close %v, to a body of unknown length", r.status, r.close)
	}
}

// B65: each answer says whether the page may read it, once: streams, the worker's
// own errors and the router's.
func TestB65_Answers(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 3}, func(c *configs.Config) {
		contract("reject", map[string]any{"temperature": 1})(c)
		c.Server.CORS = configs.CORS{Origins: []string{page}, Credentials: true}
		c.Server.MaxBody = 1 << 20
	})
	f := func(status int, r reply) {
		t.Helper()
		if r.status != status {
			t.Errorf("unexpected answer %d %s; want %d", r.status, r.body, status)
		}
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": page, "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": exposed,
		} {
			if got := r.header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%d: unexpected %s %q", status, name, got)
			}
		}
		if vary := r.header.Values("Vary"); len(vary) == 0 || vary[0] != "Origin" {
			t.Errorf("%d: unexpected Vary %q", status, vary)
		}
	}
	origin := "Origin: " + page
	const stream = `{"model":"sim-8b","stream":true,"messages":[]}`
	f(200, s.chat(chatBody, origin))
	f(200, s.chat(stream, origin))
	f(200, s.chat(chatBody, origin, "x-sim-header: Access-Control-Allow-Origin: *"))
	f(200, s.chat(stream, origin, "x-sim-header: access-control-allow-credentials: false"))
	f(429, s.chat(chatBody, origin, "x-sim-status: 429"))
	f(502, s.chat(chatBody, origin, "x-sim-fail: reset"))
	f(400, s.chat(`{"model":"sim-8b","temperature":0.5}`, origin))
	f(404, s.chat(`{"model":"none"}`, origin))
	f(413, s.chat(strings.Repeat(" ", 1<<20+1), origin))
	f(404, s.send("POST", "/nothing", "{}", origin))
	f(405, s.send("GET", "/v1/chat/completions", "", origin))
	f(200, s.send("GET", "/v1/models", "", origin))
	f(200, s.send("GET", "/health", "", origin))
	for _, fields := range [][]string{nil, {"Origin: https://evil.example"}} {
		r := s.chat(chatBody, fields...)
		if r.header.Get("Access-Control-Allow-Origin") != "" || r.header.Get("Vary") != "Origin" {
			t.Errorf("%v: unexpected header %v", fields, r.header)
		}
	}
}

// B65: another configuration, another answer.
func TestB65_Reload(t *testing.T) {
	s := startStand(t, withCORS(configs.CORS{Origins: []string{page}}))
	cfg := *s.router.snap.Load().cfg
	cfg.Server.CORS = configs.CORS{}
	if _, err := s.router.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	if r := s.chat(chatBody, "Origin: "+page); r.status != http.StatusOK || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("unexpected answer %d %v", r.status, r.header)
	}
	if got := fmt.Sprint(newCORS(&configs.CORS{MaxAge: time.Hour})); got != "<nil>" {
		t.Errorf("unexpected CORS without origins: %s", got)
	}
}
