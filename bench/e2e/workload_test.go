//go:build linux

package main

import (
	"bytes"
	"testing"
	"time"
)

func TestWant_Target(t *testing.T) {
	for _, w := range []want{{}, {Size: 5}, {Events: 3, Pace: time.Second, Size: 7}} {
		got, err := parseWant(w.target())
		if err != nil || got != w {
			t.Errorf("unexpected want; got %+v, %v; want %+v", got, err, w)
		}
	}
	if _, err := parseWant("/health"); err == nil {
		t.Error("a probe was taken for a request")
	}
}

func TestEvent(t *testing.T) {
	for _, sent := range []int64{0, 1, 0x123456789abcdef, 1 << 62} {
		got, ok := sentAt(appendEvent(nil, sent))
		if !ok || got != sent {
			t.Errorf("unexpected time; got %d, %t; want %d", got, ok, sent)
		}
	}
	if _, ok := sentAt([]byte(lastEvent)); ok {
		t.Error("the last event has a time")
	}
}

// TestRequest: a body has the size that the table says.
func TestRequest(t *testing.T) {
	for _, s := range scenarios(false) {
		r := s.request("h")
		_, body, ok := bytes.Cut(r, []byte("\r\n\r\n"))
		if !ok || len(body) != s.Body {
			t.Errorf("%s: unexpected body of %d bytes; want %d", s.Name, len(body), s.Body)
		}
	}
}

// TestClient_Events: an event counts once, wherever reads cut it.
func TestClient_Events(t *testing.T) {
	var stream []byte
	for i := range 5 {
		stream = appendEvent(stream, monotonic()+int64(i))
	}
	stream = append(stream, lastEvent...)
	for cut := range len(stream) {
		c := client{want: want{Events: 5, Pace: 1}}
		var gaps histogram
		if n := c.events(stream[:cut], &gaps) + c.events(stream[cut:], &gaps); n != 5 || gaps.N != 4 {
			t.Fatalf("cut at %d: unexpected number of events %d, of gaps %d", cut, n, gaps.N)
		}
	}
}
