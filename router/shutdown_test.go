package router

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/upstream/sim"
)

// B86: not ready at once, late answers close the connection, idle connections
// are closed, a stream may finish.
func TestB86_DrainLetsStreamsFinish(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 10, Pace: 50 * time.Millisecond}, nil)
	idle := s.dial().write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
	idle.read()
	late := s.dial().write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
	late.read()
	stream := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(streamed[0].body)) + "\r\n\r\n" + streamed[0].body)
	eventually(t, "the stream to run", func() bool { return s.engine.Stats().InFlight == 1 })

	s.router.BeginDrain()
	if r := s.send("GET", "/ready", ""); r.status != 503 || !r.close {
		t.Errorf("unexpected answer %d %v", r.status, r.header)
	}
	r := late.write("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 31\r\n\r\n" + `{"model":"sim-8b","input":"hi"}`).read()
	if r.status != 200 || !r.close {
		t.Errorf("unexpected late answer %d %v", r.status, r.header)
	}
	late.closed()

	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended <- s.router.Shutdown(ctx)
	}()
	idle.closed()
	if r := stream.read(); !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		t.Errorf("unexpected stream %q", r.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("unexpected error of Shutdown: %v", err)
	}
}

// A connection that never sent a byte, as load balancers make them ahead, holds
// nothing up.
func TestDrainClosesSilentConnections(t *testing.T) {
	s := startStand(t, nil)
	c := s.dial()
	eventually(t, "the connection to be served", func() bool { return s.router.data.GetOpenConnectionsCount() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := s.router.Shutdown(ctx); err != nil {
		t.Errorf("unexpected error of Shutdown: %v", err)
	}
	c.closed()
}

// At the end of the drain an endless stream is cut with an error event.
func TestB86_DrainCutsEndlessStreams(t *testing.T) {
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 1 << 12, Pace: 20 * time.Millisecond}, nil)
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(streamed[0].body)) + "\r\n\r\n" + streamed[0].body)
	waiting := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-sim-ttfb: 60s\r\nContent-Length: 32\r\n\r\n" + chatBody)
	eventually(t, "the requests to run", func() bool { return s.engine.Stats().InFlight == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := s.router.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unexpected error of Shutdown: %v", err)
	}
	b, err := io.ReadAll(c.r)
	if err != nil || !strings.Contains(string(b), "the router is shutting down") || strings.Contains(string(b), "[DONE]") {
		t.Errorf("unexpected end of the stream %q (%v)", b[max(0, len(b)-300):], err)
	}
	if r := waiting.read(); r.status != 503 {
		t.Errorf("unexpected answer to the waiting request %d %s", r.status, r.body)
	}
	eventually(t, "the requests to end", func() bool { return s.router.InFlight() == 0 })
	if !strings.Contains(s.access.String(), `"outcome":"cut"`) {
		t.Errorf("the access log does not tell: %s", s.access.String())
	}
}
