package h2c

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestWindow_Send: never more than the two windows and a frame allow.
func TestWindow_Send(t *testing.T) {
	r := start(0)
	a, b := r.open("POST", false), r.open("POST", false)
	f := func(in wire, st *state, want int64, room int) {
		t.Helper()
		if err := r.feed(in); err != nil {
			t.Fatal(err)
		}
		if got := r.ss.room(st, want); got != room {
			t.Errorf("unexpected room for %d; got %d; want %d", want, got, room)
		}
	}
	send := func(st *state, n int) {
		body := segments{list: [][]byte{make([]byte, n)}}
		r.ss.sendData(st, &body, n, false)
	}
	f(hello(), a, 1<<40, maxFrame)
	f(nil, a, 5, 5)
	for range 3 {
		send(a, maxFrame)
	}
	f(nil, a, 1<<20, firstWindow-3*maxFrame)
	send(a, firstWindow-3*maxFrame)
	f(nil, a, 1, 0)
	f(nil, b, 1, 0) // the connection's window is used up by a
	f(wire(nil).window(0, 100), a, 1000, 0)
	f(nil, b, 1000, 100)
	f(wire(nil).window(1, 7), a, 1000, 7)
	send(a, 7)
	f(nil, b, 1000, 93)
	// A smaller first window makes that of b smaller, and that of a negative.
	f(wire(nil).settings(uint32(settingWindow), 50), b, 1000, 50)
	f(wire(nil).window(1, firstWindow-50), a, 1000, 0)
	f(wire(nil).window(1, 1), a, 1000, 1)
	f(wire(nil).settings(uint32(settingWindow), maxWindow), b, 1000, 93)
	f(wire(nil).window(0, maxWindow-93), b, 1<<20, maxFrame)
	if err := r.feed(wire(nil).window(0, 1)); err != error(errWindow) {
		t.Errorf("unexpected error; got %v; want %v", err, errWindow)
	}
}

// TestWindow_Pieces: small pieces share a frame, large ones are cut.
func TestWindow_Pieces(t *testing.T) {
	r := start(0)
	st := r.open("POST", false)
	r.ss.takeOutput(nil)
	body := segments{list: [][]byte{[]byte("a"), nil, []byte("bcd"), []byte("efgh")}}
	r.ss.sendData(st, &body, 3, false)
	r.ss.sendData(st, &body, 1, false)
	r.ss.sendData(st, &body, 4, true)
	if !st.sendDone {
		t.Error("the end was not noted")
	}
	var got strings.Builder
	var in reader
	for out := r.ss.out; ; {
		n, ev, p := in.next(out)
		out = out[n:]
		if ev == eventNone {
			break
		}
		if ev == eventData {
			fmt.Fprintf(&got, "%s/%d ", p, in.h.flags)
		}
	}
	if want := "abc/0 d/0 efgh/1 "; got.String() != want {
		t.Errorf("unexpected frames; got %s; want %s", got.String(), want)
	}
}

// TestWindow_Receive: the window of a stream comes back when data was consumed,
// padding at once, and that of the connection on receipt.
func TestWindow_Receive(t *testing.T) {
	const window = firstWindow
	r := start(1)
	st := r.streams[0]
	if err := r.feed(hello().head(1, "200")); err != nil {
		t.Fatal(err)
	}
	r.ss.takeOutput(nil)
	f := func(in wire, consume int, out ...string) {
		t.Helper()
		if err := r.feed(in); err != nil || st.fault != nil {
			t.Fatal(err, st.fault)
		}
		r.ss.consumed(st, consume)
		wantFrames(t, r.ss, out...)
	}
	chunk := strings.Repeat("x", 10000)
	f(wire(nil).data(1, chunk), 0)
	f(nil, 10000)
	f(wire(nil).data(1, chunk), 0)
	f(nil, window/4-10000-1)
	f(nil, 1, fmt.Sprintf("8/0/1:%08x", window/4))
	st.take(nil)
	if got, want := st.recvWindow, int64(window-20000+window/4); got != want {
		t.Errorf("unexpected window; got %d; want %d", got, want)
	}
	// Padding counts, and is nobody's to consume.
	r = start(1)
	st = r.streams[0]
	in := hello().head(1, "200")
	for range 64 {
		in = in.padded(frameData, 0, 1, "", 255)
	}
	if err := r.feed(in); err != nil {
		t.Fatal(err)
	}
	if got := st.recvWindow + int64(st.unreturned); got != window {
		t.Errorf("unexpected window and what is to come back; got %d; want %d", got, window)
	}
	// After the end nothing is given back.
	if err := r.feed(wire(nil).dataEnd(1, chunk)); err != nil {
		t.Fatal(err)
	}
	r.ss.takeOutput(nil)
	r.ss.consumed(st, window)
	wantFrames(t, r.ss)
}

func TestWindow_Overrun(t *testing.T) {
	r := start(2)
	in := hello().head(1, "200").head(3, "200")
	for range 4 {
		in = in.data(1, strings.Repeat("x", maxFrame-1))
	}
	if err := r.feed(in); err != nil || r.streams[0].fault != nil {
		t.Fatal(err, r.streams[0].fault)
	}
	if got := r.streams[0].recvWindow; got != 3 {
		t.Fatalf("unexpected window; got %d; want 3", got)
	}
	if err := r.feed(wire(nil).data(1, "abcd").data(3, "x")); err != nil {
		t.Fatal(err)
	}
	if e := r.streams[0].fault; !errors.Is(e, errOverrun) || e.Code != FlowControlError {
		t.Errorf("unexpected fault; got %v; want %v", e, errOverrun)
	}
	if st := r.streams[1]; st.fault != nil || string(st.body) != "x" {
		t.Errorf("unexpected sibling; got %q, %v", st.body, st.fault)
	}
}

// TestWindow_Connection: it comes back on receipt, whoever the data is for.
func TestWindow_Connection(t *testing.T) {
	r := start(1)
	st := r.streams[0]
	if err := r.feed(hello().head(1, "200")); err != nil {
		t.Fatal(err)
	}
	r.ss.abandon(st, Cancel)
	r.ss.takeOutput(nil)
	frame := wire(nil).data(1, strings.Repeat("x", maxFrame))
	for range returnConn/maxFrame - 1 {
		if err := r.feed(frame); err != nil {
			t.Fatal(err)
		}
	}
	wantFrames(t, r.ss)
	if err := r.feed(frame); err != nil {
		t.Fatal(err)
	}
	wantFrames(t, r.ss, fmt.Sprintf("8/0/0:%08x", returnConn))
	if r.ss.recvWindow != connWindow {
		t.Errorf("unexpected window; got %d; want %d", r.ss.recvWindow, connWindow)
	}
	r.ss.recvWindow = maxFrame - 1
	if err := r.feed(frame); err != error(errOverrun) {
		t.Errorf("unexpected error; got %v; want %v", err, errOverrun)
	}
}
