package router

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

var streamed = []struct{ path, body string }{
	{"/v1/chat/completions", `{"model":"sim-8b","stream":true,"messages":[]}`},
	{"/v1/completions", `{"model":"sim-8b","stream":true,"prompt":"hi"}`},
	{"/v1/responses", `{"model":"sim-8b","stream":true,"input":"hi"}`},
	{"/v1/messages", `{"model":"sim-8b","stream":true,"max_tokens":9,"messages":[]}`},
	{"/generate", `{"model":"sim-8b","stream":true,"text":"hi"}`},
}

const sseHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// chunk frames s.
func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// Each event reaches the client before the worker sends the next one.
func TestStreamIsRelayedAsItComes(t *testing.T) {
	next := make(chan struct{})
	url := scripted(t, sseHead, func(c net.Conn) {
		for i := range 5 {
			<-next
			if _, err := io.WriteString(c, chunk("data: {\"i\":"+itoa(i)+"}\n\n")); err != nil {
				return
			}
		}
		<-next
		_, _ = io.WriteString(c, chunk("data: [DONE]\n\n")+"0\r\n\r\n") // the client's view is checked
	})
	s := startRouter(t, url, nil)
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	// The head comes before any event.
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = c.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		next <- struct{}{}
		want := chunk("data: {\"i\":" + itoa(i) + "}\n\n")
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
			t.Fatalf("unexpected event %q (%v); want %q", got, err, want)
		}
	}
	next <- struct{}{}
	want := chunk("data: [DONE]\n\n") + "0\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		t.Fatalf("unexpected end %q (%v); want %q", got, err, want)
	}
}

// Streams of every surface arrive byte for byte as the engine wrote them, over
// one connection that is used again.
func TestStreamsPassUnchanged(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 40}, nil)
	for _, g := range streamed {
		r := s.send("POST", g.path, g.body)
		if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("%s: unexpected answer %d %v", g.path, r.status, r.header)
		}
		if n := strings.Count(r.body, "\n\n"); n < 9 {
			t.Errorf("%s: unexpected number of events %d", g.path, n)
		}
		if r.header.Get("Content-Length") != "" {
			t.Errorf("%s: a stream has a Content-Length", g.path)
		}
		if got := s.metric(`sluice_streams_total{surface="` + surfaceOf(g.path) + `",pool="sim",outcome="ok"}`); got != "1" {
			t.Errorf("%s: unexpected count of streams %q", g.path, got)
		}
		if got := s.metric(`sluice_time_to_first_token_seconds_count{surface="` + surfaceOf(g.path) + `",pool="sim"}`); got != "1" {
			t.Errorf("%s: unexpected count of first tokens %q", g.path, got)
		}
	}
}

func surfaceOf(path string) string { return lookup([]byte(path)).surface.String() }

// Odd but legal streams pass unchanged whatever the cuts between reads are.
func TestB30_B32_B33_B36_OddStreamsPassUnchanged(t *testing.T) {
	for name, body := range map[string]string{
		"CR only":      "data: A\r\rdata: B\r\r",
		"CRLF":         "data: A\r\n\r\ndata: B\r\n\r\n",
		"mixed":        "data: A\r\n\ndata: B\n\r\ndata: C\r\r\n",
		"no space":     "data:{\"x\":\"é\"}\n\ndata:[DONE]\n\n",
		"empty":        "data: \n\ndata\n\nevent: ping\n\n",
		"comment":      ": OPENROUTER PROCESSING\n\ndata: {}\n\n",
		"no last line": "data: A\n\ndata: B",
		"BOM":          "\xef\xbb\xbfdata: A\n\n",
		"nothing":      "",
		"65,537":       "data: " + strings.Repeat("a", 65537) + "\n\ndata: B\n\n",
		"8 MiB":        "data: " + strings.Repeat("a", 8<<20) + "\n\ndata: B\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []int{1, 2, 3, 5, 7}
			if len(body) > 1000 {
				steps = []int{1000, 16 << 10, 100001}
			}
			for _, step := range steps {
				step, quick := step, len(body) > 1000
				url := scripted(t, sseHead, func(c net.Conn) {
					for rest := body; rest != ""; {
						n := min(step, len(rest))
						if _, err := io.WriteString(c, chunk(rest[:n])); err != nil {
							return
						}
						rest = rest[n:]
						if !quick {
							time.Sleep(200 * time.Microsecond) // so that reads are cut where chunks are
						}
					}
					_, _ = io.WriteString(c, "0\r\n\r\n") // checked by what arrives
				})
				s := startRouter(t, url, nil)
				if r := s.chat(chatBody); r.status != 200 || r.body != body {
					t.Fatalf("in steps of %d: unexpected stream of %d bytes; want %d", step, len(r.body), len(body))
				}
			}
		})
	}
}

// B39: a stream that breaks ends with one error event in the surface's shape
// and no [DONE], and is counted.
func TestB39_BrokenStreams(t *testing.T) {
	want := map[string]string{
		"/v1/chat/completions": "data: {\"error\":{\"message\":\"the model's answer ended too early\",\"type\":\"server_error\",\"code\":\"upstream_body_incomplete\",\"param\":null}}\n\n",
		"/v1/messages":         "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"the model's answer ended too early\"}}\n\n",
		"/v1/responses":        "event: error\ndata: {\"type\":\"error\",\"code\":\"upstream_body_incomplete\",\"message\":\"the model's answer ended too early\",\"param\":null}\n\n",
	}
	want["/v1/completions"], want["/generate"] = want["/v1/chat/completions"], want["/v1/chat/completions"]
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 40}, nil)
	for _, g := range streamed {
		whole := s.send("POST", g.path, g.body)
		r := s.send("POST", g.path, g.body, "x-sim-fail: cut=3")
		before, event, ok := strings.Cut(r.body, want[g.path])
		if r.status != 200 || !ok || event != "" || strings.Contains(r.body, "[DONE]") || strings.Count(before, "\n\n") != 3 {
			t.Errorf("%s: unexpected stream %d %q", g.path, r.status, r.body)
		}
		if len(whole.body) <= len(before) {
			t.Errorf("%s: the stream was not cut", g.path)
		}
		if got := s.metric(`sluice_streams_total{surface="` + surfaceOf(g.path) + `",pool="sim",outcome="upstream_broken"}`); got != "1" {
			t.Errorf("%s: unexpected count of broken streams %q", g.path, got)
		}
	}
	if !strings.Contains(s.access.String(), `"outcome":"upstream_broken"`) {
		t.Errorf("the access log does not tell: %s", s.access.String())
	}
}

// A stream that breaks within an event ends with the error event all the same:
// the beginning of the broken event is held back.
func TestBrokenWithinAnEvent(t *testing.T) {
	for name, tail := range map[string]string{
		"chunked": chunk("data: {\"a\":1}\n\ndata: {\"b\":") + "5\r\nab",
		"between": chunk("data: {\"a\":1}\n\n") + chunk("data: {\"b\":"),
	} {
		t.Run(name, func(t *testing.T) {
			s := startRouter(t, scripted(t, sseHead+tail, func(net.Conn) {}), nil)
			r := s.chat(chatBody)
			if !strings.HasPrefix(r.body, "data: {\"a\":1}\n\ndata: {\"error\":") || strings.Contains(r.body, `"b"`) {
				t.Errorf("unexpected stream %q", r.body)
			}
		})
	}
	t.Run("until the end of the connection", func(t *testing.T) {
		s := startRouter(t, scripted(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"a\":1}\n\n", func(net.Conn) {}), nil)
		if r := s.chat(chatBody); !strings.HasPrefix(r.body, "data: {\"a\":1}\n\ndata: {\"error\":") {
			t.Errorf("unexpected stream %q", r.body)
		}
		s = startRouter(t, scripted(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n", func(net.Conn) {}), nil)
		if r := s.chat(chatBody); r.body != "data: [DONE]\n\n" {
			t.Errorf("unexpected stream %q", r.body)
		}
	})
	t.Run("an event too large to hold back", func(t *testing.T) {
		// The client holds a part of it: only the cut connection can tell.
		url := scripted(t, sseHead+chunk("data: "+strings.Repeat("a", 300<<10)), func(net.Conn) {})
		s := startRouter(t, url, nil)
		c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
		b, err := io.ReadAll(c.r)
		if err != nil || strings.HasSuffix(string(b), "0\r\n\r\n") || strings.Contains(string(b), "error") {
			t.Errorf("a torn stream looks whole: %q (%v)", b[max(0, len(b)-100):], err)
		}
	})
}

// A stream whose last chunk lacks after [DONE] has said all it had to say.
func TestBrokenAfterDone(t *testing.T) {
	const body = "data: {\"a\":1}\n\ndata: [DONE]\n\n"
	s := startRouter(t, scripted(t, sseHead+chunk(body), func(net.Conn) {}), nil)
	if r := s.chat(chatBody); r.body != body {
		t.Errorf("unexpected stream %q", r.body)
	}
}

// Events under a content coding are relayed as they come, unread, and nothing
// is put into them.
func TestCodedStreamPasses(t *testing.T) {
	next := make(chan struct{})
	url := scripted(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", func(c net.Conn) {
		for range 3 {
			<-next
			if _, err := io.WriteString(c, chunk("\x1f\x8bno blank line")); err != nil {
				return
			}
		}
		<-next
	})
	s := startRouter(t, url, nil)
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = c.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	want := chunk("\x1f\x8bno blank line")
	for range 3 {
		next <- struct{}{}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
			t.Fatalf("unexpected piece %q (%v)", got, err)
		}
	}
	next <- struct{}{} // the worker closes without an end, and so does the router
	c.closed()
}

// B42: an error told within a stream passes as it is and counts as one.
func TestB42_ErrorWithinAStream(t *testing.T) {
	const body = "data: {\"error\":{\"code\":502}}\n\ndata: [DONE]\n\n"
	s := startRouter(t, scripted(t, sseHead+chunk(body)+"0\r\n\r\n"), nil)
	if r := s.chat(chatBody); r.body != body {
		t.Errorf("unexpected stream %q", r.body)
	}
	if got := s.metric(`sluice_streams_total{surface="chat",pool="sim",outcome="upstream_error"}`); got != "1" {
		t.Errorf("unexpected count %q", got)
	}
}

// B41: what is refused is an answer like any other, though a stream was asked
// for.
func TestB41_RefusedStream(t *testing.T) {
	s := startStand(t, nil)
	r := s.chat(streamed[0].body, "x-sim-status: 429")
	if r.status != 429 || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") || r.header.Get("Content-Length") == "" {
		t.Errorf("unexpected answer %d %v %s", r.status, r.header, r.body)
	}
}

func TestTimeouts(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 40}, func(c *configs.Config) {
		c.Pools[0].Timeouts = configs.Timeouts{Connect: time.Second, FirstByte: 150 * time.Millisecond, BetweenEvents: 150 * time.Millisecond, Total: time.Second}
	})
	for _, g := range streamed {
		r := s.send("POST", g.path, g.body, "x-sim-fail: silence")
		if r.status != 504 || r.header.Get(headerErrorCode) != "upstream_timeout" {
			t.Errorf("%s: unexpected answer %d %s", g.path, r.status, r.body)
		}
		// A pause within the stream.
		r = s.send("POST", g.path, g.body, "x-sim-pace: 5s")
		if r.status != 200 || !strings.Contains(r.body, "the model's answer paused for too long") || strings.Contains(r.body, "[DONE]") {
			t.Errorf("%s: unexpected stream %d %q", g.path, r.status, r.body)
		}
		if got := s.metric(`sluice_streams_total{surface="` + surfaceOf(g.path) + `",pool="sim",outcome="upstream_timeout"}`); got != "1" {
			t.Errorf("%s: unexpected count of timeouts %q", g.path, got)
		}
	}
	// Each pause is short enough, their sum is not.
	if r := s.chat(streamed[0].body, "x-sim-pace: 50ms"); !strings.Contains(r.body, "paused for too long") {
		t.Errorf("total: unexpected stream %q", r.body)
	}
}

// B71: a stream may take longer than any one timeout.
func TestB71_StreamOutlivesTheTimeouts(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 10}, func(c *configs.Config) {
		c.Server.ReadTimeout, c.Server.WriteTimeout, c.Server.IdleTimeout = time.Second, time.Second, time.Second
		c.Pools[0].Timeouts = configs.Timeouts{Connect: time.Second, FirstByte: time.Second, BetweenEvents: time.Second}
	})
	if r := s.chat(streamed[0].body, "x-sim-pace: 150ms"); r.status != 200 || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		t.Errorf("unexpected stream %d %q", r.status, r.body)
	}
}

// B71: a client that does not take its answer does not hold a worker for long.
func TestB71_ClientStopsReading(t *testing.T) {
	url := scripted(t, sseHead, func(c net.Conn) {
		event := chunk("data: " + strings.Repeat("a", 10000) + "\n\n")
		for {
			if _, err := io.WriteString(c, event); err != nil {
				return
			}
		}
	})
	s := startRouter(t, url, func(c *configs.Config) { c.Server.WriteTimeout = 300 * time.Millisecond })
	s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n" + chatBody)
	eventually(t, "the stream to be given up", func() bool {
		return s.metric(`sluice_streams_total{surface="chat",pool="sim",outcome="client_gone"}`) == "1"
	})
	if n := s.router.snap.Load().pools[0].up.Workers()[0].Load(); n != 0 {
		t.Errorf("unexpected load %d", n)
	}
}

// B47, B48: the engine is free within a second when a client leaves, however it
// leaves and whatever the engine is doing.
func TestB47_B48_ClientGone(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 1000}, nil)
	gone := 0
	f := func(what, body, field string, started bool, leave func(*net.TCPConn)) {
		t.Helper()
		c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + field + "\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
		if started {
			if _, err := bufio.NewReader(c.Conn).ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		} else {
			eventually(t, what+": the engine to have the request", func() bool { return s.engine.Stats().InFlight == 1 })
		}
		left := time.Now()
		leave(c.Conn.(*net.TCPConn))
		gone++
		eventually(t, what+": the engine to be cancelled", func() bool { st := s.engine.Stats(); return st.InFlight == 0 })
		if d := time.Since(left); d > time.Second {
			t.Errorf("%s: the engine was freed after %v", what, d)
		}
		eventually(t, what+": the request to end", func() bool {
			return s.router.InFlight() == 0 && s.router.snap.Load().pools[0].up.Workers()[0].Load() == 0
		})
		if got := s.metric(`sluice_responses_total{surface="chat",pool="sim",code="499"}`); !started && got == "" {
			t.Errorf("%s: not counted as 499", what)
		}
	}
	closes := func(c *net.TCPConn) { _ = c.Close() }
	resets := func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() }
	halfCloses := func(c *net.TCPConn) { _ = c.CloseWrite() }
	plain := `{"model":"sim-8b","messages":[]}`
	stream := streamed[0].body
	for name, leave := range map[string]func(*net.TCPConn){"close": closes, "reset": resets, "half-close": halfCloses} {
		f(name+", buffered", plain, "x-sim-ttfb: 20s", false, leave)
		f(name+", before the first byte", stream, "x-sim-ttfb: 20s", false, leave)
		f(name+", while the engine is silent", stream, "x-sim-ttft: 20s", true, leave)
		f(name+", between events", stream, "x-sim-pace: 20ms", true, leave)
	}
	if n := strings.Count(s.access.String(), `"outcome":"client_gone"`); n != gone {
		t.Errorf("unexpected number of lines of clients gone %d; want %d", n, gone)
	}
}

// A client that closed only its sending side counts as gone, and must not take
// the end of its connection for an answer.
func TestHalfClosedClientGetsNoAnswer(t *testing.T) {
	s := startStand(t, nil)
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-sim-ttfb: 20s\r\nContent-Length: 32\r\n\r\n" + chatBody)
	eventually(t, "the engine to have the request", func() bool { return s.engine.Stats().InFlight == 1 })
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.closed()
}
