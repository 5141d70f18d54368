package router

import (
	"net"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// twoWorkers changes a pool to a first worker at url and the engine of s
// second, taken in turn.
func twoWorkers(url string, change func(*configs.Pool)) func(*configs.Config) {
	return func(c *configs.Config) {
		p := &c.Pools[0]
		p.Workers = append([]configs.Worker{{URL: url}}, p.Workers...)
		p.Balance = "round_robin"
		p.Retry = configs.Retry{Attempts: 2, Budget: 1}
		if change != nil {
			change(p)
		}
	}
}

const unavailable = "HTTP/1.1 503 X\r\nContent-Type: application/json\r\nRetry-After: 7\r\nX-Ratelimit-Remaining: 0\r\nContent-Length: 2\r\n\r\n{}"

// A request whose worker does not answer is answered by another one, with the
// very same bytes.
func TestB78_RetryOnAnotherWorker(t *testing.T) {
	refused := listen(t)
	_ = refused.Close()
	silent := listen(t)
	t.Cleanup(func() { _ = silent.Close() })
	for name, url := range map[string]string{
		"refuses":     "http://" + refused.Addr().String(),
		"closes":      scripted(t, "", func(net.Conn) {}),
		"silent":      "http://" + silent.Addr().String(),
		"unavailable": scripted(t, unavailable),
		"bad gateway": scripted(t, strings.Replace(unavailable, "503", "502", 1)),
		"timeout":     scripted(t, strings.Replace(unavailable, "503", "504", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			s := startStand(t, twoWorkers(url, func(p *configs.Pool) { p.Timeouts.FirstByte = 300 * time.Millisecond }))
			s.t = t
			for _, body := range []string{`{"model":"small","messages":[],"x":"` + strings.Repeat("a", 200_000) + `"}`, streamed[0].body} {
				r := s.chat(body)
				if r.status != 200 {
					t.Fatalf("unexpected answer %d %s", r.status, r.body)
				}
				if got := s.received(); len(got) != 1 || string(got[0].Body) != strings.Replace(body, "small", simModel, 1) {
					t.Errorf("unexpected requests at the second worker: %d", len(got))
				}
			}
			if got := s.metric(`sluice_retries_total{pool="sim"}`); got != "2" {
				t.Errorf("unexpected count of retries %q", got)
			}
			if !strings.Contains(s.access.String(), `"tries":2`) {
				t.Errorf("the access log does not tell: %s", s.access.String())
			}
			for _, w := range s.router.snap.Load().pools[0].up.Workers() {
				if w.Load() != 0 {
					t.Errorf("unexpected load %d", w.Load())
				}
			}
		})
	}
}

// B51: a client's fault is sent once, whatever the attempts; 0 attempts are one
// try.
func TestB51_NoRetry(t *testing.T) {
	f := func(status, answer string, attempts int) {
		t.Helper()
		s := startStand(t, twoWorkers(scripted(t, answer), func(p *configs.Pool) { p.Retry.Attempts = attempts }))
		if r := s.chat(chatBody); itoa(r.status) != status {
			t.Errorf("%s, %d attempts: unexpected answer %d %s", status, attempts, r.status, r.body)
		}
		if got := s.received(); len(got) != 0 {
			t.Errorf("%s, %d attempts: the request was sent again", status, attempts)
		}
	}
	for _, status := range []string{"400", "404", "422", "429", "500"} {
		f(status, strings.Replace(unavailable, "503", status, 1), 5)
	}
	f("503", unavailable, 0)
	f("503", unavailable, 1)
	f("502", "\x00garbage\r\n\r\n", 5) // an answer of a kind came
}

// B52: where all tries fail the answer of the last one passes as it is.
func TestB52_LastAnswerSurvives(t *testing.T) {
	s := startRouter(t, scripted(t, unavailable), twoWorkers(scripted(t, strings.Replace(unavailable, "Retry-After: 7", "Retry-After: 9", 1)), nil))
	r := s.chat(chatBody)
	if r.status != 503 || r.header.Get("Retry-After") != "7" || r.header.Get("X-Ratelimit-Remaining") != "0" || r.body != "{}" || r.header.Get(headerErrorCode) != "" {
		t.Errorf("unexpected answer %d %v %s", r.status, r.header, r.body)
	}
}

// B40: nothing is sent again after the first byte.
func TestB40_NoRetryOnceBytesWereSent(t *testing.T) {
	s := startStand(t, twoWorkers(scripted(t, sseHead+chunk("data: {\"choices\":[]}\n\n"), func(net.Conn) {}), nil))
	if r := s.chat(streamed[0].body); !strings.Contains(r.body, "upstream_body_incomplete") {
		t.Errorf("unexpected stream %q", r.body)
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("the request was sent again")
	}
}

// Streams that break open the breaker as well as answers that never come.
func TestBreakerOpensOnBrokenStreams(t *testing.T) {
	s := startStand(t, twoWorkers(scripted(t, sseHead+chunk("data: {\"choices\":[]}\n\n"), func(net.Conn) {}), func(p *configs.Pool) {
		p.Breaker = configs.Breaker{Failures: 2, Cooldown: time.Hour}
	}))
	for range 4 {
		s.chat(streamed[0].body)
	}
	if got := s.metric(`sluice_workers_usable{pool="sim"}`); got != "1" {
		t.Fatalf("unexpected number of usable workers %q", got)
	}
	s.received()
	for range 4 {
		if r := s.chat(streamed[0].body); r.status != 200 || strings.Contains(r.body, "upstream_body_incomplete") {
			t.Errorf("unexpected stream %d %q", r.status, r.body)
		}
	}
	if got := s.received(); len(got) != 4 {
		t.Errorf("unexpected number of requests at the other worker: %d", len(got))
	}
}

// No worker is well: a clear 503, and the router says that it is not ready.
func TestNoHealthyWorkers(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}}, func(c *configs.Config) {
		c.Pools[0].Health = configs.Health{Path: "/health", Interval: 5 * time.Millisecond, Timeout: time.Second, UnhealthyAfter: 2, HealthyAfter: 2}
	})
	s.engine.SetHealth(503)
	eventually(t, "the worker to be left alone", func() bool { return s.send("GET", "/ready", "").status == 503 })
	for _, g := range generation {
		r := s.send("POST", g.path, g.body)
		if r.status != 503 || r.header.Get(headerErrorCode) != "no_healthy_workers" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: unexpected answer %d %v %s", g.path, r.status, r.header, r.body)
		}
	}
	if r := s.send("GET", "/health", ""); r.status != 200 {
		t.Errorf("the router itself is said to be dead: %d", r.status)
	}
	s.engine.SetHealth(200)
	eventually(t, "the worker to come back", func() bool { return s.send("GET", "/ready", "").status == 200 })
	if r := s.chat(chatBody); r.status != 200 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
}

// A client that leaves during one try is not served by another.
func TestClientGoneDuringARetry(t *testing.T) {
	accepted := make(chan net.Conn, 1)
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	s := startStand(t, twoWorkers("http://"+l.Addr().String(), nil))
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	worker := <-accepted
	_ = c.Close()
	eventually(t, "the request to end", func() bool { return s.router.InFlight() == 0 })
	_ = worker.Close()
	if got := s.received(); len(got) != 0 {
		t.Errorf("the request was sent again for a client that had left")
	}
	if got := s.metric(`sluice_responses_total{surface="chat",pool="sim",code="499"}`); got != "1" {
		t.Errorf("unexpected count of clients gone %q", got)
	}
}
