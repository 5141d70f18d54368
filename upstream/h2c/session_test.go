package h2c

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/upstream/h1"
)

func TestSession_Hello(t *testing.T) {
	ss := newSession(100, 1<<20)
	out, ok := strings.CutPrefix(string(ss.takeOutput(nil)), preface)
	if !ok {
		t.Fatal("no preface")
	}
	ss.out = []byte(out)
	wantFrames(t, ss, "4/0/0:000200000000"+"000400100000"+"000500004000"+"000600010000", "8/0/0:3fff0001")
	if err := ss.feed(hello()); err != nil || !ss.greeted || !ss.acked {
		t.Fatalf("unexpected end; got %v, greeted %v, acknowledged %v", err, ss.greeted, ss.acked)
	}
	wantFrames(t, ss, "4/1/0:")
}

func TestSession_Answers(t *testing.T) {
	f := func(in wire, want string) {
		t.Helper()
		r := start(1)
		if err := r.feed(append(hello(), in...)); err != nil {
			t.Errorf("unexpected error: %v", err)
			return
		}
		st := r.streams[0]
		got := fmt.Sprintf("%d %d", st.status, st.length)
		for _, f := range st.fields {
			got += fmt.Sprintf(" %s=%s", f.Name, f.Value)
		}
		got += fmt.Sprintf(" %q", st.body)
		if st.recvDone && st.fault == nil {
			got += " end"
		}
		if got != want {
			t.Errorf("unexpected answer; got %s; want %s", got, want)
		}
		if done := !st.open; done != (r.ss.slots == 0) {
			t.Errorf("unexpected slots; got %d where the stream is done: %v", r.ss.slots, done)
		}
	}
	w := func() wire { return wire(nil) }
	f(w().head(1, "200", "a", "b"), `200 -1 a=b ""`)
	f(w().headEnd(1, "204"), `204 -1 "" end`)
	f(w().head(1, "200").dataEnd(1, "x"), `200 -1 "x" end`)
	f(w().head(1, "200", "content-length", "3", "a", "").data(1, "ab").data(1, "").dataEnd(1, "c"), `200 3 a= "abc" end`)
	f(w().head(1, "200", "content-length", "3", "content-length", "3").dataEnd(1, "abc"), `200 3 "abc" end`)
	f(w().head(1, "200").data(1, "x").dataEnd(1, ""), `200 -1 "x" end`)
	f(w().head(1, "200").data(1, "x").trailers(1, "grpc-status", "0"), `200 -1 "x" end`)
	f(w().head(1, "200").trailers(1), `200 -1 "" end`)
	f(w().headEnd(1, "304", "content-length", "17"), `304 17 "" end`)
	f(w().head(1, "103", "link", "x", "content-length", "9").head(1, "100").headEnd(1, "200", "a", "b"), `200 -1 a=b "" end`)
	f(w().head(1, "200").padded(frameData, flagEndStream, 1, "abc", 200), `200 -1 "abc" end`)
	f(w().padded(frameHeaders, flagEndHeaders, 1, fields(":status", "200"), 0), `200 -1 ""`)
	f(w().padded(frameHeaders, flagEndHeaders|flagPriority, 1, "\x00\x00\x00\x00\x07"+fields(":status", "200"), 9), `200 -1 ""`)
	f(w().frame(framePriority, 0, 1, "\x00\x00\x00\x00\x07").head(1, "200"), `200 -1 ""`)
	f(w().frame(99, 0xff, 1, "what is this").head(1, "200"), `200 -1 ""`)
	// After the end the rest of a request, here none, is all that can be refused.
	f(w().headEnd(1, "200").reset(1, NoError), `200 -1 "" end`)

	block := fields(":status", "200", "content-type", "text/event-stream", "x-long", strings.Repeat("l", 300))
	for i := range block {
		in := w().frame(frameHeaders, 0, 1, block[:i]).frame(frameContinuation, 0, 1, "").frame(frameContinuation, flagEndHeaders, 1, block[i:])
		f(in, `200 -1 content-type=text/event-stream x-long=`+strings.Repeat("l", 300)+` ""`)
	}
}

func TestSession_Head(t *testing.T) {
	r := start(0)
	st := r.open("HEAD", true)
	if err := r.feed(hello().headEnd(1, "200", "content-length", "1000")); err != nil || st.fault != nil || !st.recvDone {
		t.Fatalf("unexpected end; got %v, %v, ended %v", err, st.fault, st.recvDone)
	}
	st = r.open("HEAD", true)
	if err := r.feed(wire(nil).head(3, "200").dataEnd(3, "x")); err != nil || !errors.Is(st.fault, errNoBody) {
		t.Fatalf("unexpected end; got %v, %v; want %v", err, st.fault, errNoBody)
	}
}

// TestSession_DynamicTable: what one answer puts into the table, the next may
// name, also where nobody waits for the first any more.
func TestSession_DynamicTable(t *testing.T) {
	r := start(3)
	first := "\x88" + "\x40\x03x-a\x05value" // with incremental indexing
	second := "\x88" + "\xbe"                // the newest entry
	r.ss.abandon(r.streams[0], Cancel)
	in := hello().frame(frameHeaders, flagEndHeaders, 1, first)
	in = in.frame(frameHeaders, flagEndHeaders|flagEndStream, 3, second).frame(frameHeaders, flagEndHeaders|flagEndStream, 5, second)
	if err := r.feed(in); err != nil {
		t.Fatal(err)
	}
	for _, st := range r.streams[1:] {
		if len(st.fields) != 1 || string(st.fields[0].Name) != "x-a" || string(st.fields[0].Value) != "value" {
			t.Errorf("unexpected fields of stream %d; got %q", st.id, st.fields)
		}
	}
}

// TestSession_Shrink: a peer that takes the dynamic table away is told once
// that it is gone.
func TestSession_Shrink(t *testing.T) {
	r := start(0)
	if err := r.feed(wire(nil).settings(uint32(settingTableSize), 0)); err != nil {
		t.Fatal(err)
	}
	r.ss.takeOutput(nil)
	for i, want := range []byte{hpackShrink, hpackIndexed | staticMethod + 1} {
		r.open("POST", true)
		if got := r.ss.takeOutput(nil)[headerLen]; got != want {
			t.Errorf("unexpected beginning of block %d; got %x; want %x", i, got, want)
		}
	}
}

// TestSession_Broken: what breaks the connection. The peer is told why.
func TestSession_Broken(t *testing.T) {
	f := func(in wire, want *wireError) {
		t.Helper()
		r := start(2)
		err := r.feed(in)
		if err != error(want) {
			t.Errorf("unexpected error; got %v; want %v", err, want)
			return
		}
		list := frames(t, r.ss.out)
		if got, w := list[len(list)-1], fmt.Sprintf("7/0/0:00000000%08x", uint32(want.code)); got != w {
			t.Errorf("%v: unexpected last frame; got %s; want %s", want, got, w)
		}
		for _, st := range r.streams {
			if st.open || st.fault == nil || st.fault.Fault != FaultProtocol || st.fault.Code != want.code {
				t.Errorf("%v: unexpected fault of stream %d; got %v", want, st.id, st.fault)
			}
		}
		if r.ss.slots != 0 || r.ss.reserve() {
			t.Errorf("%v: the session goes on", want)
		}
		if again := r.feed(hello()); again != error(want) {
			t.Errorf("unexpected error the second time; got %v; want %v", again, want)
		}
	}
	w := func() wire { return wire(nil) }
	h := hello
	set := func(id uint16, v uint32) wire { return w().settings(uint32(id), v) }

	for _, s := range []string{"HTTP/1.1 400 Bad Request\r\n", "<html>\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x16\x00\x00"} {
		f(wire(s), errNotH2C)
	}
	f(w().settingsAck(), errNotH2C)
	f(w().ping(0, 1), errNotH2C)
	f(w().frame(frameSettings, 0, 1, ""), errNotH2C)

	f(h().frame(frameData, 0, 1, strings.Repeat("x", maxFrame+1)), errFrameSize)
	f(h().frame(99, 0, 0, strings.Repeat("x", maxFrame+1)), errFrameSize)
	f(h().frame(frameData, flagPadded, 1, ""), errFrameSize)
	f(h().frame(framePriority, 0, 1, "1234"), errFrameSize)
	f(h().frame(frameReset, 0, 1, "12345"), errFrameSize)
	f(h().frame(frameSettings, 0, 0, "12345"), errFrameSize)
	f(h().frame(frameSettings, flagAck, 0, "123456"), errFrameSize)
	f(h().frame(framePing, 0, 0, "1234567"), errFrameSize)
	f(h().frame(frameGoAway, 0, 0, "1234567"), errFrameSize)
	f(h().frame(frameWindow, 0, 0, "123"), errFrameSize)
	f(h().frame(frameHeaders, flagPadded|flagEndHeaders, 1, ""), errFrameSize)
	f(h().frame(frameHeaders, flagPriority|flagEndHeaders, 1, "1234"), errFrameSize)

	for _, id := range []uint32{0, 2, 5, maxID} {
		f(h().data(id, "x"), errStreamID)
		f(h().headEnd(id, "200"), errStreamID)
		f(h().reset(id, Cancel), errStreamID)
	}
	f(h().window(2, 1), errStreamID)
	f(h().window(7, 1), errStreamID)
	f(h().frame(framePriority, 0, 0, "12345"), errStreamID)
	f(h().frame(frameSettings, 0, 1, ""), errStreamID)
	f(h().frame(framePing, 0, 1, "12345678"), errStreamID)
	f(h().frame(frameGoAway, 0, 1, "12345678"), errStreamID)
	f(h().frame(framePush, flagEndHeaders, 1, "\x00\x00\x00\x02\x88"), errPush)

	f(h().head(1, "200").frame(frameData, flagPadded, 1, "\x04abc"), errPadding)
	f(h().frame(frameHeaders, flagPadded|flagEndHeaders, 1, "\x02\x88"), errPadding)

	f(h().frame(frameContinuation, flagEndHeaders, 1, "\x88"), errContinuation)
	f(h().frame(frameHeaders, 0, 1, "\x88").frame(frameContinuation, flagEndHeaders, 3, ""), errContinuation)
	f(h().frame(frameHeaders, 0, 1, "\x88").ping(0, 1), errContinuation)
	f(h().frame(frameHeaders, 0, 1, "\x88").data(1, "x"), errContinuation)
	f(h().frame(frameHeaders, 0, 1, "\x88").frame(frameHeaders, flagEndHeaders, 1, ""), errContinuation)

	f(set(settingPush, 1), errSetting)
	f(set(settingMaxFrame, maxFrame-1), errSetting)
	f(set(settingMaxFrame, 1<<24), errSetting)
	f(set(settingWindow, 1<<31), errWindow)
	f(h().window(0, 0), errIncrement)
	f(h().window(0, maxWindow), errWindow)
	f(h().window(1, maxWindow-firstWindow).settings(uint32(settingWindow), firstWindow+1), errWindow)

	f(h().frame(frameHeaders, flagEndHeaders, 1, "\xff\xff\xff\xff\xff\x0f"), errHPACK)
	f(h().frame(frameHeaders, flagEndHeaders, 1, "\xbe"), errHPACK)
	f(h().frame(frameHeaders, flagEndHeaders, 1, "\x88\x40\x05ab"), errHPACK)
	f(h().frame(frameHeaders, flagEndHeaders, 1, "\x3f\xe2\x1f"), errHPACK) // a table of 4,097 bytes

	// A header block that grows without end, in size or in number.
	long := h().frame(frameHeaders, 0, 1, "\x88")
	for range 5 {
		long = long.frame(frameContinuation, 0, 1, strings.Repeat("\x88", maxFrame))
	}
	f(long, errBlockSize)
	empty := h().frame(frameHeaders, 0, 1, "\x88")
	for range maxFragments {
		empty = empty.frame(frameContinuation, 0, 1, "")
	}
	f(empty, errBlockSize)
}

// TestSession_Malformed: what breaks one stream and leaves its sibling alone.
func TestSession_Malformed(t *testing.T) {
	f := func(in wire, want *wireError) {
		t.Helper()
		r := start(2)
		if err := r.feed(append(hello(), in...)); err != nil {
			t.Errorf("unexpected error; got %v; want %v of the stream", err, want)
			return
		}
		st := r.streams[0]
		fault := FaultProtocol
		if want == errMismatch {
			fault = FaultLength
		}
		if st.open || st.fault == nil || st.fault.Err != error(want) || st.fault.Fault != fault || st.fault.Unprocessed {
			t.Errorf("unexpected fault; got %v; want %v", st.fault, want)
			return
		}
		out := strings.Join(frames(t, r.ss.takeOutput(nil)), " ")
		if rst := fmt.Sprintf("3/0/1:%08x", uint32(want.code)); !strings.Contains(out, rst) {
			t.Errorf("%v: unexpected output; got %s; want %s in it", want, out, rst)
		}
		// Late frames for the stream harm nobody, and the slot comes back.
		in = wire(nil).data(1, "late").headEnd(1, "200").window(1, 1).reset(1, Cancel).headEnd(3, "200", "a", "b").ping(flagAck, r.ss.ping)
		if err := r.feed(in); err != nil {
			t.Errorf("%v: unexpected error afterwards: %v", want, err)
		}
		if st := r.streams[1]; st.fault != nil || !st.recvDone || len(st.fields) != 1 {
			t.Errorf("%v: the sibling did not end: %v", want, st.fault)
		}
		if r.ss.slots != 0 {
			t.Errorf("%v: unexpected slots; got %d; want 0", want, r.ss.slots)
		}
	}
	w := func() wire { return wire(nil) }
	ok := func(pairs ...string) wire { return w().head(1, "200", pairs...) }

	f(w().data(1, "x"), errNoHead)
	f(w().dataEnd(1, ""), errNoHead)
	f(w().frame(frameHeaders, flagEndHeaders, 1, ""), errPseudo)
	for _, status := range []string{"", "20", "2000", "099", "600", "2x0", "-20", "+20"} {
		f(w().head(1, status), errPseudo)
	}
	f(w().frame(frameHeaders, flagEndHeaders, 1, fields("a", "b", ":status", "200")), errPseudo)
	f(w().frame(frameHeaders, flagEndHeaders, 1, fields("a", "b")), errPseudo)
	f(ok(":status", "200"), errPseudo)
	f(ok(":path", "/"), errPseudo)
	f(ok().trailers(1, ":status", "200"), errPseudo)
	f(ok().head(1, "200"), errPseudo)
	f(ok().frame(frameHeaders, flagEndHeaders, 1, fields("a", "b")), errTrailer)
	f(ok().trailers(1, "A", "b"), errField)
	f(w().headEnd(1, "100"), errInterim)
	f(w().head(1, "101"), errInterim)
	many := w()
	for range h1.MaxInterim + 1 {
		many = many.head(1, "103", "link", "x")
	}
	f(many, errInterim)

	for _, name := range []string{"", "A", "a b", "a:", "a\x00", "\x80", "content-Length"} {
		f(ok(name, "x"), errField)
	}
	for _, value := range []string{"a\nb", "a\rb", "a\x00b", "\x7f", " a", "a ", "\ta", "a\t"} {
		f(ok("x", value), errField)
	}
	for _, value := range []string{"", "x", "-1", "+1", "1 ", "0x1", "1.0", "1, 1", "9223372036854775808"} {
		want := errLength
		if strings.HasSuffix(value, " ") {
			want = errField
		}
		f(ok("content-length", value), want)
	}
	f(ok("content-length", "1", "content-length", "2"), errLength)
	f(ok("content-length", "3").dataEnd(1, "ab"), errMismatch)
	f(ok("content-length", "3").data(1, "abcd"), errMismatch)
	f(ok("content-length", "3").dataEnd(1, ""), errMismatch)
	f(w().headEnd(1, "200", "content-length", "3"), errMismatch)
	f(ok("content-length", "3").data(1, "ab").trailers(1), errMismatch)
	f(w().head(1, "204").data(1, "x"), errNoBody)
	f(w().head(1, "304", "content-length", "1").data(1, "x"), errNoBody)

	f(w().window(1, 0), errIncrement)
	f(w().window(1, maxWindow), errWindow)

	// A head that decodes to far more than it takes on the wire.
	var bomb []string
	for range 20 {
		bomb = append(bomb, "x", strings.Repeat("a", 4000))
	}
	f(w().frame(frameHeaders, 0, 1, fields(":status", "200")).frame(frameContinuation, 0, 1, fields(bomb[:8]...)).
		frame(frameContinuation, 0, 1, fields(bomb[8:16]...)).frame(frameContinuation, 0, 1, fields(bomb[16:24]...)).
		frame(frameContinuation, 0, 1, fields(bomb[24:32]...)).
		frame(frameContinuation, flagEndHeaders, 1, fields("y", strings.Repeat("z", 15000))+strings.Repeat("\x88", 100)), errHeadSize)
	f(w().frame(frameHeaders, flagEndHeaders, 1, "\x88\x40\x01x\x7f\xa1\x1e"+strings.Repeat("v", 4000)+strings.Repeat("\xbe", 100)), errHeadSize)
	f(w().frame(frameHeaders, flagEndHeaders, 1, "\x88"+strings.Repeat("\x90", maxFields)), errHeadSize)
}

// TestB60_HopByHopAnswerFields: an answer that speaks of a connection is malformed.
func TestB60_HopByHopAnswerFields(t *testing.T) {
	for _, name := range []string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"} {
		r := start(1)
		if err := r.feed(hello().headEnd(1, "200", name, "x")); err != nil || !errors.Is(r.streams[0].fault, errHopField) {
			t.Errorf("%s: unexpected end; got %v, %v; want %v", name, err, r.streams[0].fault, errHopField)
		}
	}
}

// TestSession_AfterTheEnd: frames on a stream that the peer has ended.
func TestSession_AfterTheEnd(t *testing.T) {
	f := func(in wire) {
		t.Helper()
		r := start(0)
		st := r.open("POST", false) // we have not ended it
		if err := r.feed(append(hello().headEnd(1, "200"), in...)); err != nil || !errors.Is(st.fault, errEnded) {
			t.Errorf("unexpected end; got %v, %v; want %v", err, st.fault, errEnded)
		}
	}
	f(wire(nil).data(1, "x"))
	f(wire(nil).trailers(1, "a", "b"))
}

// TestSession_SendAfterTheAnswer: a stream is over when both sides are.
func TestSession_SendAfterTheAnswer(t *testing.T) {
	r := start(0)
	st := r.open("POST", false)
	if err := r.feed(hello().headEnd(1, "200")); err != nil || !st.open || r.ss.slots != 1 {
		t.Fatalf("unexpected state; got %v, open %v, %d slots", err, st.open, r.ss.slots)
	}
	body := segments{list: [][]byte{[]byte("ab")}}
	r.ss.sendData(st, &body, 1, false)
	r.ss.sendData(st, &body, 1, true)
	if st.open || st.fault != nil || r.ss.slots != 0 {
		t.Errorf("unexpected state; got open %v, %v, %d slots", st.open, st.fault, r.ss.slots)
	}
}

func TestSession_PeerReset(t *testing.T) {
	f := func(in wire, fault Fault, code Code, unprocessed bool) {
		t.Helper()
		r := start(2)
		if err := r.feed(append(hello(), in...)); err != nil {
			t.Fatal(err)
		}
		e := r.streams[0].fault
		if e == nil || e.Fault != fault || e.Code != code || e.Unprocessed != unprocessed {
			t.Errorf("unexpected fault; got %+v; want %v, %v, %v", e, fault, code, unprocessed)
		}
		if r.ss.slots != 1 || !r.streams[1].open {
			t.Errorf("unexpected slots; got %d; want 1", r.ss.slots)
		}
	}
	w := func() wire { return wire(nil) }
	f(w().reset(1, RefusedStream), FaultReset, RefusedStream, true)
	f(w().reset(1, Cancel), FaultReset, Cancel, false)
	f(w().reset(1, NoError), FaultReset, NoError, false)
	f(w().head(1, "103").reset(1, InternalError), FaultReset, InternalError, false)
	f(w().head(1, "200").data(1, "x").reset(1, InternalError), FaultIncomplete, InternalError, false)
	f(w().head(1, "200").reset(1, RefusedStream), FaultIncomplete, RefusedStream, false)
	f(w().reset(1, 0xdead), FaultReset, 0xdead, false)
}

// TestB56_GoAway: streams above the last one were certainly not processed.
func TestB56_GoAway(t *testing.T) {
	r := start(4)
	if err := r.feed(hello().head(7, "200").goAway(3, NoError)); err != nil {
		t.Fatal(err)
	}
	if r.ss.reserve() || r.ss.slots != 3 {
		t.Errorf("unexpected slots; got %d, or one could be reserved; want 3", r.ss.slots)
	}
	if e := r.streams[2].fault; e == nil || e.Fault != FaultGoAway || !e.Unprocessed {
		t.Errorf("unexpected fault of stream 5; got %+v", e)
	}
	if err := r.feed(wire(nil).headEnd(1, "200").dataEnd(7, "x").goAway(maxID, EnhanceYourCalm)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 3} {
		if st := r.streams[i]; !st.recvDone || st.fault != nil {
			t.Errorf("stream %d did not end: %v", st.id, st.fault)
		}
	}
	// The first GOAWAY of a graceful end names no stream, the second one does.
	if err := r.feed(wire(nil).goAway(1, NoError)); err != nil {
		t.Fatal(err)
	}
	if e := r.streams[1].fault; e == nil || !e.Unprocessed || r.ss.slots != 0 {
		t.Errorf("unexpected fault of stream 3; got %+v, %d slots", e, r.ss.slots)
	}
}

func TestSession_Close(t *testing.T) {
	r := start(3)
	sent := r.streams[1].headEnd
	if err := r.feed(hello().head(1, "200").data(1, "x")); err != nil {
		t.Fatal(err)
	}
	r.open("POST", true)
	why := errors.New("why")
	r.ss.close(why, sent)
	f := func(i int, fault Fault, unprocessed, stale bool) {
		t.Helper()
		e := r.streams[i].fault
		if e == nil || e.Fault != fault || e.Unprocessed != unprocessed || e.Stale != stale || !errors.Is(e, why) {
			t.Errorf("unexpected fault of %d; got %+v; want %v, %v, %v", i, e, fault, unprocessed, stale)
		}
	}
	f(0, FaultIncomplete, false, false)
	f(1, FaultClosed, false, false)
	f(2, FaultClosed, true, false)
	f(3, FaultClosed, true, true)
	if r.ss.slots != 0 {
		t.Errorf("unexpected slots; got %d; want 0", r.ss.slots)
	}
}

func TestSession_MaxStreams(t *testing.T) {
	reserve := func(ss *session) (n int) {
		for ss.reserve() {
			n++
		}
		ss.slots -= n
		return n
	}
	ss := newSession(256, firstWindow)
	f := func(in wire, want int) {
		t.Helper()
		if err := ss.feed(in); err != nil {
			t.Fatal(err)
		}
		if got := reserve(ss); got != want {
			t.Errorf("unexpected streams; got %d; want %d", got, want)
		}
	}
	f(nil, assumedStreams)
	f(hello(), 256) // a peer that gives no limit has none
	f(wire(nil).settings(uint32(settingMaxStreams), 7, uint32(settingMaxStreams), 3), 3)
	f(wire(nil).settings(uint32(settingMaxStreams), 0), 0)
	f(wire(nil).settings(uint32(settingWindow), 5), 0)
	f(wire(nil).settings(uint32(settingMaxStreams), 1<<32-1), 256)
	ss.nextID = maxID
	f(nil, 256)
	ss.nextID += 2
	f(nil, 0)
}

// TestSession_AbandonedSlots: a stream that we reset counts until the peer has
// certainly seen that.
func TestSession_AbandonedSlots(t *testing.T) {
	r := start(4)
	if err := r.feed(hello()); err != nil {
		t.Fatal(err)
	}
	r.ss.takeOutput(nil)
	r.ss.abandon(r.streams[0], Cancel)
	r.ss.abandon(r.streams[1], Cancel)
	wantFrames(t, r.ss, "3/0/1:00000008", "6/0/0:0000000000000001", "3/0/3:00000008")
	f := func(in wire, slots int, out ...string) {
		t.Helper()
		if err := r.feed(in); err != nil {
			t.Fatal(err)
		}
		if r.ss.slots != slots {
			t.Errorf("unexpected slots; got %d; want %d", r.ss.slots, slots)
		}
		wantFrames(t, r.ss, out...)
	}
	f(nil, 4)
	f(wire(nil).ping(flagAck, 7), 4)
	f(wire(nil).ping(flagAck, 1), 3, "6/0/0:0000000000000002") // the second was reset after the PING
	f(wire(nil).ping(flagAck, 1), 3)
	f(wire(nil).ping(flagAck, 2), 2)
	f(wire(nil).ping(flagAck, 2), 2)
	f(wire(nil).headEnd(5, "200").headEnd(7, "200"), 0)
}

func TestSession_Ping(t *testing.T) {
	r := start(0)
	if err := r.feed(hello().ping(0, 0x0102030405060708)); err != nil {
		t.Fatal(err)
	}
	wantFrames(t, r.ss, "4/1/0:", "6/1/0:0102030405060708")
}

// TestSession_Floods: frames that serve nothing are bounded, those that come
// with traffic are not.
func TestSession_Floods(t *testing.T) {
	f := func(name string, frame wire, want error) {
		t.Helper()
		r := start(1)
		if err := r.feed(hello().head(1, "200")); err != nil {
			t.Fatal(err)
		}
		var err error
		n := 0
		for ; n < 2*maxJunk && err == nil; n++ {
			err = r.feed(frame)
			if n%100 == 0 { // as a peer that reads
				r.ss.takeOutput(nil)
			}
		}
		if err != want {
			t.Errorf("%s: unexpected end after %d; got %v; want %v", name, n, err, want)
		}
	}
	w := func() wire { return wire(nil) }
	f("SETTINGS", w().settings(), errFlood)
	f("SETTINGS acknowledged", w().settingsAck(), errFlood)
	f("PING", w().ping(0, 1), errFlood)
	f("PING acknowledged", w().ping(flagAck, 1), errFlood)
	f("empty DATA", w().data(1, ""), errFlood)
	f("padding", w().padded(frameData, 0, 1, "", 0), nil) // bounded by the window in bytes
	f("WINDOW_UPDATE", w().window(0, 1), errFlood)
	f("WINDOW_UPDATE of a stream", w().window(1, 1), errFlood)
	f("GOAWAY", w().goAway(1, NoError), errFlood)
	f("PRIORITY", w().frame(framePriority, 0, 1, "\x00\x00\x00\x00\x00"), errFlood)
	f("unknown", w().frame(200, 0, 0, ""), errFlood)
	f("two useful PINGs", w().data(1, "").ping(0, 1).data(1, ""), errFlood)

	r := start(1)
	r.ss.abandon(r.streams[0], Cancel)
	junk := hello()
	for range maxJunk {
		junk = junk.reset(1, Cancel)
	}
	if err := r.feed(junk); err != error(errFlood) {
		t.Errorf("RST_STREAM: unexpected end; got %v; want %v", err, errFlood)
	}
}

// TestSession_UsefulFrames: a PING and a WINDOW_UPDATE with each event, for ever.
func TestSession_UsefulFrames(t *testing.T) {
	r := start(1)
	if err := r.feed(hello().head(1, "200")); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxJunk {
		if err := r.feed(wire(nil).data(1, "event").ping(0, 1).window(0, 1)); err != nil {
			t.Fatalf("unexpected error after %d events: %v", i, err)
		}
		st := r.streams[0]
		r.ss.consumed(st, len(st.take(nil)))
		r.ss.takeOutput(nil)
	}
}

// TestSession_Deaf: a peer that makes us answer and does not read.
func TestSession_Deaf(t *testing.T) {
	r := start(0)
	var err error
	n := 0
	for ; err == nil && n < 2*maxReplies; n++ {
		err = r.feed(hello().ping(0, 1))
		r.ss.junk = 0 // it takes its time
	}
	if err != error(errFlood) || len(r.ss.out) > maxReplies+100 {
		t.Errorf("unexpected end after %d PINGs; got %v, %d bytes queued; want %v", n, err, len(r.ss.out), errFlood)
	}
}

// TestSession_Splits: the outcome depends on the bytes and not on the reads.
func TestSession_Splits(t *testing.T) {
	in := hello().head(1, "103", "link", "x").settings(uint32(settingWindow), 70000, uint32(settingMaxStreams), 9)
	in = in.head(1, "200", "content-length", "8", "x", "y").data(1, "ab").ping(0, 99).padded(frameData, 0, 1, "cdef", 3).window(3, 10)
	in = in.frame(frameHeaders, flagPadded, 3, "\x01\x88\x40\x03x-a\x00").frame(frameContinuation, flagEndHeaders, 3, "\x05value")
	in = in.dataEnd(1, "gh").reset(5, RefusedStream).goAway(7, EnhanceYourCalm).data(7, "x").headEnd(3, "200").frame(77, 1, 2, "??")
	whole := start(4)
	if err := whole.feed(in); err != nil {
		t.Fatal(err)
	}
	want := whole.outcome()
	f := func(pieces ...[]byte) {
		t.Helper()
		r := start(4)
		if err := r.feed(pieces...); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome(); got != want {
			t.Fatalf("unexpected outcome in %d pieces;\n got %s;\nwant %s", len(pieces), got, want)
		}
	}
	f(singles(in)...)
	for i := range in {
		f(in[:i], in[i:])
	}
}

// TestSession_LargeBuffers: what is given back is used again, the largest first, and
// no more is kept than keptLarge.
func TestSession_LargeBuffers(t *testing.T) {
	ss := newSession(1, firstWindow)
	small := ss.grow(nil, 100)
	if cap(small) > keptBody {
		t.Fatalf("unexpected capacity of a small buffer; got %d", cap(small))
	}
	first := ss.grow(append(small, "begin"...), keptBody)
	if string(first) != "begin" || cap(first) < keptBody+5 {
		t.Fatalf("unexpected buffer; got %q of %d", first, cap(first))
	}
	second := ss.grow(first, 4*keptBody)
	if string(second) != "begin" || len(ss.large) != 1 || ss.largeSize != cap(first) {
		t.Fatalf("unexpected buffers kept; got %d of %d bytes", len(ss.large), ss.largeSize)
	}
	size := cap(second)
	ss.giveBack(second)
	if third := ss.grow(nil, keptBody+1); cap(third) != size || len(third) != 0 {
		t.Fatalf("unexpected buffer; got %d of %d; want the largest, %d", len(third), cap(third), size)
	}
	for range 3 {
		ss.giveBack(make([]byte, keptLarge/2))
	}
	total := 0
	for i, b := range ss.large {
		total += cap(b)
		if i > 0 && cap(b) < cap(ss.large[i-1]) {
			t.Errorf("buffer %d is smaller than the one before", i)
		}
	}
	if total != ss.largeSize || total > keptLarge {
		t.Errorf("unexpected size of what is kept; got %d, counted as %d; want at most %d", total, ss.largeSize, keptLarge)
	}
}
