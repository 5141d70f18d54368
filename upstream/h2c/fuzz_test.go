package h2c

import "testing"

// FuzzFrames: whatever a peer sends, nothing panics, what is held stays within
// bounds, and the outcome does not depend on how the bytes were cut.
func FuzzFrames(f *testing.F) {
	w := func() wire { return wire(nil) }
	seeds := []wire{
		nil,
		wire("HTTP/1.1 400 Bad Request\r\n\r\n"),
		hello(),
		hello().head(1, "103").head(1, "200", "content-length", "2", "x", "y").dataEnd(1, "ab"),
		hello().head(1, "200").padded(frameData, 0, 1, "abc", 7).trailers(1, "a", "b").headEnd(3, "204"),
		hello().frame(frameHeaders, 0, 3, "\x88\x40\x03x-a").frame(frameContinuation, flagEndHeaders, 3, "\x05value"),
		hello().frame(frameHeaders, flagEndHeaders|flagPadded|flagPriority, 1, "\x01\x00\x00\x00\x00\x07\x88\x00"),
		hello().reset(1, RefusedStream).goAway(1, NoError).window(0, 1).window(3, maxWindow),
		hello().ping(0, 7).ping(flagAck, 1).frame(framePush, 4, 1, "\x00\x00\x00\x02\x88"),
		w().settings(1, 0, 2, 0, 3, 5, 4, 1<<30, 5, 1<<20, 6, 100).settingsAck().data(1, "x").data(1, "").frame(99, 9, 9, "?"),
		hello().frame(frameData, flagPadded, 1, "\xff").data(5, "x"),
	}
	for _, s := range seeds {
		f.Add([]byte(s), uint16(len(s)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		whole := fuzzed(in)
		want := whole.outcome()
		at := min(int(cut), len(in))
		for name, pieces := range map[string][][]byte{"in two": {in[:at], in[at:]}, "byte by byte": singles(in)} {
			if got := fuzzed(pieces...).outcome(); got != want {
				t.Fatalf("unexpected outcome %s;\n got %s;\nwant %s", name, got, want)
			}
		}
		checkBounds(t, whole, len(in))
	})
}

// fuzzed has one stream of each kind under way: sent, being sent, to a HEAD
// request, and reset by us.
func fuzzed(pieces ...[]byte) *run {
	r := start(1)
	r.open("POST", false)
	r.open("HEAD", true)
	r.ss.abandon(r.open("POST", true), Cancel)
	r.ss.takeOutput(nil)
	_ = r.feed(pieces...) // the outcome tells of the error
	return r
}

// checkBounds checks what must hold for whatever has come.
func checkBounds(t *testing.T, r *run, fed int) {
	t.Helper()
	ss := r.ss
	open := 0
	for _, st := range r.streams {
		if st.open {
			open++
		}
		if len(st.body) > ss.window || len(st.head) > maxBlock || len(st.fields) > maxFields || st.open && st.sendWindow > maxWindow {
			t.Errorf("unexpected size of stream %d; body %d, head %d, fields %d, window %d", st.id, len(st.body), len(st.head), len(st.fields), st.sendWindow)
		}
		if done := st.recvDone && st.sendDone || st.fault != nil; st.open && done && ss.closed == nil {
			t.Errorf("stream %d is open and has ended: %v", st.id, st.fault)
		}
	}
	if len(ss.table) != open || ss.slots < open || ss.slots > len(r.streams) {
		t.Errorf("unexpected slots; got %d and %d in the table; want %d open", ss.slots, len(ss.table), open)
	}
	if ss.closed != nil && open != 0 {
		t.Errorf("%d streams are open in a session that has ended", open)
	}
	if limit := maxReplies + 1<<10; len(ss.out) > limit || ss.sendWindow > maxWindow && ss.closed == nil || len(ss.in.buf) > maxFrame {
		t.Errorf("unexpected sizes after %d bytes; output %d, window %d, frame %d", fed, len(ss.out), ss.sendWindow, len(ss.in.buf))
	}
}
