package router

import (
	"net"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// oneAtATime starts a router whose worker takes one request at a time, and a
// stream that occupies it until the test releases it.
func oneAtATime(t *testing.T, queue int, timeout time.Duration) (s *stand, release func()) {
	t.Helper()
	s = startStandWith(t, sim.Options{Models: []string{simModel}, Words: 1 << 12, Pace: 20 * time.Millisecond}, func(c *configs.Config) {
		c.Pools[0].Limits = configs.Limits{MaxInflightPerWorker: 1, MaxQueue: queue, QueueTimeout: timeout}
	})
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(streamed[0].body)) + "\r\n\r\n" + streamed[0].body)
	eventually(t, "the stream to run", func() bool { return s.engine.Stats().InFlight == 1 })
	return s, func() { _ = c.Close() }
}

func TestOverload(t *testing.T) {
	s, release := oneAtATime(t, 0, time.Second)
	for _, g := range generation {
		r := s.send("POST", g.path, g.body)
		if r.status != 503 || r.header.Get(headerErrorCode) != "overloaded" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: unexpected answer %d %v %s", g.path, r.status, r.header, r.body)
		}
	}
	if got := s.metric(`sluice_queue_full_total{pool="sim"}`); got != itoa(len(generation)) {
		t.Errorf("unexpected count of full queues %q", got)
	}
	// Other surfaces of the router need no place.
	if r := s.send("GET", "/v1/models", ""); r.status != 200 {
		t.Errorf("unexpected answer %d", r.status)
	}
	release()
	eventually(t, "the place to be free", func() bool { return s.chat(chatBody, "x-sim-words: 1").status == 200 })
}

func TestQueueDeadline(t *testing.T) {
	s, release := oneAtATime(t, 5, 50*time.Millisecond)
	defer release()
	r := s.chat(chatBody)
	if r.status != 503 || r.header.Get(headerErrorCode) != "overloaded" {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if !strings.Contains(s.access.String(), `"queue_us":`) || !strings.Contains(s.access.String(), `"outcome":"overloaded"`) {
		t.Errorf("the access log does not tell: %s", s.access.String())
	}
	if got := s.metric(`sluice_queue_wait_seconds_count{pool="sim"}`); got != "1" {
		t.Errorf("unexpected count of waits %q", got)
	}
}

// B48: a place that a client leaves, running or waiting, is free for the next.
func TestB48_PlacesOfClientsGone(t *testing.T) {
	s, release := oneAtATime(t, 5, 20*time.Second)
	waiting := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	queue := func(n string) func() bool {
		return func() bool { return s.metric(`sluice_queue_length{pool="sim"}`) == n }
	}
	eventually(t, "the request to wait", queue("1"))
	next := make(chan reply, 1)
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-sim-words: 1\r\nContent-Length: 32\r\n\r\n" + chatBody)
	go func() { next <- c.read() }()
	eventually(t, "the next to wait", queue("2"))
	_ = waiting.Conn.(*net.TCPConn).Close()
	eventually(t, "the one that left to be taken out", queue("1"))
	release()
	if r := <-next; r.status != 200 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if got := len(s.received()); got != 2 {
		t.Errorf("unexpected number of requests at the engine: %d", got)
	}
}

// The end of a drain cuts those who wait, too.
func TestDrainCutsTheQueue(t *testing.T) {
	s, release := oneAtATime(t, 5, 60*time.Second)
	defer release()
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	eventually(t, "the request to wait", func() bool { return s.metric(`sluice_queue_length{pool="sim"}`) == "1" })
	s.router.BeginDrain()
	s.router.cutting.Store(true)
	s.router.watcher.CancelAll()
	if r := c.read(); r.status != 503 || !strings.Contains(r.body, "shutting down") {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
}
