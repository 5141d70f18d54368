package router

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

func overH2C(c *configs.Config) { c.Pools[0].Protocol = "h2c" }

// What holds over HTTP/1.1 workers holds over h2c ones.
func TestH2C_SurfacesAndStreams(t *testing.T) {
	s := startStand(t, func(c *configs.Config) {
		overH2C(c)
		contract("reject", map[string]any{"temperature": 1})(c)
	})
	for _, g := range append(generation, streamed...) {
		pinned := `{"temperature":1,` + g.body[1:]
		if g.path == "/generate" {
			pinned = `{"sampling_params":{"temperature":1},` + g.body[1:]
		}
		r := s.send("POST", g.path+"?a=%2B", g.body, "Authorization: Bearer k", "Connection: X-Foo", "X-Foo: 1", "TE: gzip", "X-Bar: 1")
		if r.status != 200 {
			t.Fatalf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		got := s.received()
		if len(got) != 1 || got[0].Proto != "HTTP/2.0" || string(got[0].Body) != pinned || got[0].Target != g.path+"?a=%2B" {
			t.Fatalf("%s: unexpected requests at the engine: %+v", g.path, got)
		}
		for _, name := range []string{"X-Foo", "TE", "Connection", "Transfer-Encoding", "Keep-Alive"} {
			if hasField(got[0].Header, name) {
				t.Errorf("%s: %s crossed to the engine", g.path, name)
			}
		}
		if field(got[0], "Authorization") != "Bearer k" || field(got[0], "X-Bar") != "1" || field(got[0], "X-Forwarded-For") != "127.0.0.1" {
			t.Errorf("%s: unexpected header %+v", g.path, got[0].Header)
		}
		if stream := strings.Contains(g.body, `"stream":true`); stream != strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
			t.Errorf("%s: unexpected type %q", g.path, r.header.Get("Content-Type"))
		}
	}
	if r := s.chat(`{"model":"sim-8b","temperature":0.5}`); r.status != 400 || len(s.received()) != 0 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if got := s.metric(`sluice_worker_connections_h2c{pool="sim",worker="` + s.engine.URL() + `"}`); got != "1" {
		t.Errorf("unexpected number of connections %q", got)
	}
}

func TestH2C_LargeBodiesBothWays(t *testing.T) {
	s := startStand(t, overH2C)
	body := `{"model":"sim-8b","messages":[],"x":"` + strings.Repeat("0123456789abcdef", 1<<20) + `"}`
	sum := sha256.Sum256([]byte(body))
	r := s.chat(body, "x-sim-pad: 5MiB")
	if got := s.received(); len(got) != 1 || got[0].SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the engine received another body")
	}
	if r.status != 200 || len(r.body) < 5<<20 {
		t.Errorf("unexpected answer %d of %d bytes", r.status, len(r.body))
	}
}

func TestH2C_Faults(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 40}, func(c *configs.Config) {
		overH2C(c)
		c.Pools[0].Timeouts = configs.Timeouts{Connect: time.Second, FirstByte: 150 * time.Millisecond, BetweenEvents: 150 * time.Millisecond}
	})
	for _, g := range streamed {
		if r := s.send("POST", g.path, g.body, "x-sim-fail: cut=3"); r.status != 200 || !strings.Contains(r.body, "ended too early") || strings.Contains(r.body, "[DONE]") {
			t.Errorf("%s: unexpected broken stream %d %q", g.path, r.status, r.body)
		}
		if r := s.send("POST", g.path, g.body, "x-sim-fail: silence"); r.status != 504 {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		if r := s.send("POST", g.path, g.body, "x-sim-pace: 5s"); !strings.Contains(r.body, "paused for too long") {
			t.Errorf("%s: unexpected stream %q", g.path, r.body)
		}
		if r := s.send("POST", g.path, g.body, "x-sim-fail: reset"); r.status != 502 {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		if r := s.send("POST", g.path, g.body, "x-sim-status: 429", "x-sim-retry-after: 7"); r.status != 429 || r.header.Get("Retry-After") != "7" {
			t.Errorf("%s: unexpected answer %d %v", g.path, r.status, r.header)
		}
	}
	if n := s.router.snap.Load().pools[0].up.Workers()[0].Load(); n != 0 {
		t.Errorf("unexpected load %d", n)
	}
}

// B58: a client that leaves ends its own stream and no other.
func TestB58_H2C_ClientGone(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 60}, overH2C)
	other := make(chan reply, 1)
	go func() { other <- s.chat(streamed[0].body, "x-sim-pace: 10ms") }()
	eventually(t, "the other stream to run", func() bool { return s.engine.Stats().InFlight == 1 })
	for _, field := range []string{"x-sim-ttfb: 20s", "x-sim-ttft: 20s", "x-sim-pace: 5ms"} {
		c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-sim-words: 5000\r\n" + field + "\r\nContent-Length: " + itoa(len(streamed[0].body)) + "\r\n\r\n" + streamed[0].body)
		eventually(t, field+": the engine to have the request", func() bool { return s.engine.Stats().InFlight == 2 })
		left := time.Now()
		_ = c.Conn.(*net.TCPConn).Close()
		eventually(t, field+": the engine to be cancelled", func() bool { return s.engine.Stats().InFlight == 1 })
		if d := time.Since(left); d > time.Second {
			t.Errorf("%s: the engine was freed after %v", field, d)
		}
	}
	if r := <-other; r.status != http.StatusOK || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		t.Errorf("unexpected end of the other stream: %d %q", r.status, r.body)
	}
}

// auto finds h2c, and a worker that speaks HTTP/1.1 alone is served, too.
func TestProtocolAuto(t *testing.T) {
	for protocol, want := range map[sim.Protocol]string{sim.Both: "HTTP/2.0", sim.HTTP1: "HTTP/1.1"} {
		s := startStandWith(t, sim.Options{Models: []string{simModel}, Protocol: protocol}, func(c *configs.Config) { c.Pools[0].Protocol = "auto" })
		eventually(t, want, func() bool {
			if r := s.chat(chatBody); r.status != 200 {
				t.Fatalf("unexpected answer %d %s", r.status, r.body)
			}
			got := s.received()
			return len(got) == 1 && got[0].Proto == want
		})
	}
}
