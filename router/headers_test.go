package router

import (
	"strings"
	"testing"

	"sluice/upstream/sim"
)

func field(r sim.Request, name string) string {
	var values []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return strings.Join(values, " | ")
}

func TestB60_HopByHopFieldsStay(t *testing.T) {
	s := startStand(t, nil)
	f := func(connection string, gone, kept []string) {
		t.Helper()
		head := "POST /v1/chat/completions HTTP/1.1\r\nHost: public.example\r\nContent-Length: 32\r\n" + connection
		for _, n := range append(gone, kept...) {
			head += n + ": 1\r\n"
		}
		if r := s.dial().write(head + "\r\n" + chatBody).read(); r.status != 200 {
			t.Fatalf("unexpected answer %d %s", r.status, r.body)
		}
		got := s.received()[0]
		for _, n := range gone {
			if hasField(got.Header, n) {
				t.Errorf("%q: %s crossed to the engine", connection, n)
			}
		}
		for _, n := range kept {
			if field(got, n) != "1" {
				t.Errorf("%q: %s was lost on the way to the engine", connection, n)
			}
		}
	}
	f("", []string{"Keep-Alive", "TE", "Proxy-Connection", "Upgrade", "HTTP2-Settings", "Trailer"}, []string{"X-Foo", "Authorization", "X-Mycorp-Id"})
	f("Connection: X-Foo, close\r\n", []string{"X-Foo"}, []string{"X-Bar"})
	f("Connection: close\r\nConnection: X-Foo\r\n", []string{"X-Foo"}, []string{"X-Bar"})
	f("connection: keep-alive , authorization\r\n", []string{"Authorization"}, []string{"X-Bar"})
	f("Connection: x-request-id, X-Forwarded-For\r\n", nil, []string{"X-Bar"})
}

func TestB61_HostAndForwardedFields(t *testing.T) {
	s := startStand(t, nil)
	for _, g := range generation {
		head := "POST " + g.path + " HTTP/1.1\r\nHost: public.example\r\nX-Mycorp-Id: 1\r\nX-Forwarded-For: 10.1.1.1\r\nX-Forwarded-For: 10.2.2.2\r\n" +
			"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nConnection: x-forwarded-for\r\nContent-Length: "
		c := s.dial().write(head + itoa(len(g.body)) + "\r\n\r\n" + g.body)
		if r := c.read(); r.status != 200 {
			t.Fatalf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		got := s.received()[0]
		for name, want := range map[string]string{
			"Host":              strings.TrimPrefix(s.engine.URL(), "http://"),
			"X-Forwarded-Host":  "public.example",
			"X-Forwarded-Proto": "http",
			"X-Mycorp-Id":       "1",
			"X-Forwarded-For":   "127.0.0.1", // the client's own were nominated away
			"Content-Length":    itoa(len(g.body)),
			"Traceparent":       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		} {
			if v := field(got, name); v != want {
				t.Errorf("%s: %s is %q at the engine; want %q", g.path, name, v, want)
			}
		}
	}
	s.chat(chatBody, "X-Forwarded-For: 10.1.1.1, 10.2.2.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: first.example")
	got := s.received()[0]
	if v := field(got, "X-Forwarded-For"); v != "10.1.1.1, 10.2.2.2, 127.0.0.1" {
		t.Errorf("unexpected X-Forwarded-For %q", v)
	}
	if v := field(got, "X-Forwarded-Proto") + " " + field(got, "X-Forwarded-Host"); v != "https first.example" {
		t.Errorf("unexpected X-Forwarded-Proto and -Host %q", v)
	}
}

func TestRequestID(t *testing.T) {
	s := startStand(t, nil)
	f := func(sent string, kept bool) {
		t.Helper()
		r := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + sent + "Content-Length: 32\r\n\r\n" + chatBody).read()
		got := field(s.received()[0], "X-Request-Id")
		if got == "" || r.header.Get("X-Request-Id") != got {
			t.Errorf("%q: the engine got id %q, the client %q", sent, got, r.header.Get("X-Request-Id"))
		}
		if kept != (sent == "X-Request-Id: "+got+"\r\n") {
			t.Errorf("%q: unexpected id %q", sent, got)
		}
	}
	f("", false)
	f("X-Request-Id: abc-7\r\n", true)
	f("X-Request-Id: a b\r\n", false)
	f("X-Request-Id: "+strings.Repeat("a", 200)+"\r\n", false)
	if r := s.chat(`{oops`, "X-Request-Id: abc-8"); r.header.Get("X-Request-Id") != "abc-8" {
		t.Errorf("unexpected id %q on an error", r.header.Get("X-Request-Id"))
	}
}

// B52 in part: what the worker says of itself survives.
func TestAnswerFieldsPass(t *testing.T) {
	s := startStand(t, nil)
	r := s.chat(chatBody, "x-sim-status: 429", "x-sim-retry-after: 7", "x-sim-body: slow down", "x-sim-header: X-Ratelimit-Remaining: 0")
	if r.status != 429 || r.header.Get("Retry-After") != "7" || r.header.Get("X-Ratelimit-Remaining") != "0" || !strings.Contains(r.body, "slow down") {
		t.Errorf("unexpected answer %d %v %q", r.status, r.header, r.body)
	}
	if r.header.Get(headerErrorCode) != "" {
		t.Errorf("a worker's own error is marked as the router's")
	}
	if r.header.Get("Date") == "" || len(r.header["Date"]) != 1 {
		t.Errorf("unexpected Date %q", r.header["Date"])
	}
}
