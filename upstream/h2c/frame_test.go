package h2c

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	f := func(h header, want string) {
		t.Helper()
		b := appendHeader(nil, h)
		if got := fmt.Sprintf("%x", b); got != want {
			t.Errorf("unexpected header of %+v; got %s; want %s", h, got, want)
		}
		if got := parseHeader((*[headerLen]byte)(b)); got != h {
			t.Errorf("unexpected header read; got %+v; want %+v", got, h)
		}
	}
	f(header{}, "000000000000000000")
	f(header{1<<24 - 1, 0xff, 0xff, maxID}, "ffffffffff7fffffff")
	f(header{0x010203, frameWindow, flagPadded, 0x04050607}, "010203080804050607")
	// The reserved bit means nothing (RFC 9113 section 4.1).
	if got := parseHeader(&[headerLen]byte{5: 0x80, 8: 3}).id; got != 3 {
		t.Errorf("unexpected stream; got %d; want 3", got)
	}
}

// events reads b in pieces and tells what was found in it. Data is joined.
func events(pieces ...[]byte) string {
	var r reader
	var b strings.Builder
	var data []byte
	for _, p := range pieces {
		for {
			n, ev, payload := r.next(p)
			p = p[n:]
			switch ev {
			case eventBegin:
				fmt.Fprintf(&b, "[%d %x %d %d", r.h.length, r.h.kind, r.h.flags, r.h.id)
			case eventData:
				data = append(data, payload...)
				continue
			case eventEnd:
				fmt.Fprintf(&b, " %q%q]", data, payload)
				data = data[:0]
				continue
			case eventBad:
				b.WriteString("bad padding")
				return b.String()
			case eventNone:
			}
			if ev == eventNone {
				break
			}
		}
		if len(p) > 0 {
			return "bytes left over"
		}
	}
	return b.String()
}

func TestReader(t *testing.T) {
	f := func(in wire, want string) {
		t.Helper()
		if got := events(in); got != want {
			t.Errorf("unexpected events; got %s; want %s", got, want)
		}
		if got := events(singles(in)...); got != want {
			t.Errorf("unexpected events, byte by byte; got %s; want %s", got, want)
		}
		for i := range in {
			if got := events(in[:i], in[i:]); got != want {
				t.Errorf("unexpected events, cut at %d; got %s; want %s", i, got, want)
			}
		}
	}
	f(nil, "")
	f(wire(nil).data(1, ""), `[0 0 0 1 """"]`)
	f(wire(nil).data(1, "abc").dataEnd(3, "d"), `[3 0 0 1 "abc"""][1 0 1 3 "d"""]`)
	f(wire(nil).padded(frameData, 0, 1, "abc", 0), `[4 0 8 1 "abc"""]`)
	f(wire(nil).padded(frameData, 0, 1, "abc", 5).ping(0, 1), `[9 0 8 1 "abc"""][8 6 0 0 """\x00\x00\x00\x00\x00\x00\x00\x01"]`)
	f(wire(nil).padded(frameData, 0, 1, "", 5), `[6 0 8 1 """"]`)
	f(wire(nil).frame(frameData, flagPadded, 1, "\x02a"), `[2 0 8 1bad padding`)
	f(wire(nil).frame(frameData, flagPadded, 1, "\xffab"), `[3 0 8 1bad padding`)
	f(wire(nil).settings().settingsAck(), `[0 4 0 0 """"][0 4 1 0 """"]`)
	f(wire(nil).frame(0xfe, 0xff, 7, "what"), `[4 fe 255 7 """what"]`)
	// The padding of other frames is for who knows them.
	f(wire(nil).padded(frameHeaders, 0, 1, "h", 2), `[4 1 8 1 """\x02h\x00\x00"]`)
	f(wire(nil).data(1, "abc")[:10], `[3 0 0 1`)
}

func TestAppendBlock(t *testing.T) {
	f := func(size int, want string) {
		t.Helper()
		block := bytes.Repeat([]byte("h"), size)
		out := appendBlock(nil, 5, flagEndStream, block)
		var r reader
		var got []string
		var joined []byte
		for {
			n, ev, p := r.next(out)
			out = out[n:]
			if ev == eventNone {
				break
			}
			if ev == eventEnd {
				got = append(got, fmt.Sprintf("%d:%d:%d", r.h.kind, r.h.flags, len(p)))
				joined = append(joined, p...)
			}
		}
		if s := strings.Join(got, " "); s != want || !bytes.Equal(joined, block) {
			t.Errorf("unexpected frames of %d bytes; got %s; want %s", size, s, want)
		}
	}
	f(0, "1:5:0")
	f(10, "1:5:10")
	f(maxFrame, "1:5:16384")
	f(maxFrame+1, "1:1:16384 9:4:1")
	f(3*maxFrame, "1:1:16384 9:0:16384 9:4:16384")
}
