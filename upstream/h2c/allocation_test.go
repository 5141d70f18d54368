//go:build !race

package h2c

import (
	"strings"
	"testing"
	"time"
)

func TestAllocations(t *testing.T) {
	f := func(name string, c *Conn, r *Request) {
		t.Helper()
		run := h2(t, c, r)
		for range 50 {
			run() // the buffers grow
		}
		if n := testing.AllocsPerRun(200, run); n > 0 {
			t.Errorf("%s: unexpected allocations; got %v; want 0", name, n)
		}
	}
	c := dial(t, answerer(t, 0, 1000), Config{})
	f("buffered request", c, post(strings.Repeat("x", 1000)))
	f("request in pieces", c, post("a", strings.Repeat("x", 1000), "b", strings.Repeat("x", 20000)))
	f("large body", c, post(strings.Repeat("x", 1<<20)))
	f("streamed answer", dial(t, answerer(t, 0, 60000), Config{}), post("{}"))
}

func TestAllocations_Reserve(t *testing.T) {
	c := dial(t, answerer(t, 0, 2), Config{})
	h2(t, c, get("/"))()
	if n := testing.AllocsPerRun(200, func() {
		s, ok := c.Reserve()
		if !ok {
			t.Error("no stream")
			return
		}
		s.SetDeadline(time.Now().Add(time.Hour))
		_ = s.Buffered()
		s.Close()
	}); n > 0 {
		t.Errorf("unexpected allocations; got %v; want 0", n)
	}
}

func TestAllocations_Encode(t *testing.T) {
	r := post("body")
	var dst []byte
	if n := testing.AllocsPerRun(100, func() { dst = appendHead(dst[:0], r) }); n > 0 {
		t.Errorf("unexpected allocations; got %v; want 0", n)
	}
}
