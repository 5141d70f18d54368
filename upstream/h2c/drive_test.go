package h2c

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// wire builds what a peer sends.
type wire []byte

func (w wire) frame(kind, flags uint8, id uint32, payload string) wire {
	return append(appendHeader(w, header{len(payload), kind, flags, id}), payload...)
}

func (w wire) settings(pairs ...uint32) wire {
	var p []byte
	for i := 0; i < len(pairs); i += 2 {
		p = appendSetting(p, uint16(pairs[i]), pairs[i+1])
	}
	return w.frame(frameSettings, 0, 0, string(p))
}

func (w wire) settingsAck() wire { return w.frame(frameSettings, flagAck, 0, "") }

// hello is what every peer begins with.
func hello() wire { return wire(nil).settings().settingsAck() }

// fields encodes names and values without the dynamic table.
func fields(pairs ...string) string {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSizeLimit(0)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // a bytes.Buffer takes all
	}
	return strings.TrimPrefix(b.String(), "\x20") // the table size that went unused
}

// head sends the head of an answer.
func (w wire) head(id uint32, status string, pairs ...string) wire {
	return w.frame(frameHeaders, flagEndHeaders, id, fields(append([]string{":status", status}, pairs...)...))
}

// headEnd sends an answer that has a head only.
func (w wire) headEnd(id uint32, status string, pairs ...string) wire {
	return w.frame(frameHeaders, flagEndHeaders|flagEndStream, id, fields(append([]string{":status", status}, pairs...)...))
}

func (w wire) trailers(id uint32, pairs ...string) wire {
	return w.frame(frameHeaders, flagEndHeaders|flagEndStream, id, fields(pairs...))
}

func (w wire) data(id uint32, p string) wire    { return w.frame(frameData, 0, id, p) }
func (w wire) dataEnd(id uint32, p string) wire { return w.frame(frameData, flagEndStream, id, p) }

func (w wire) padded(kind, flags uint8, id uint32, p string, pad int) wire {
	return w.frame(kind, flags|flagPadded, id, string([]byte{byte(pad)})+p+strings.Repeat("\x00", pad))
}

func (w wire) reset(id uint32, code Code) wire { return appendReset(w, id, code) }
func (w wire) window(id uint32, n int) wire    { return appendWindow(w, id, n) }
func (w wire) ping(flags uint8, n uint64) wire { return appendPing(w, flags, n) }

func (w wire) goAway(last uint32, code Code) wire {
	p := binary.BigEndian.AppendUint32(nil, last)
	return w.frame(frameGoAway, 0, 0, string(binary.BigEndian.AppendUint32(p, uint32(code)))+"bye")
}

// run is a session with streams 1, 3, … under way.
type run struct {
	ss      *session
	streams []*state
}

// start opens n streams without bodies.
func start(n int) *run {
	r := &run{ss: newSession(1000, firstWindow)}
	r.ss.takeOutput(nil)
	for range n {
		r.open("POST", true)
	}
	r.ss.takeOutput(nil)
	return r
}

func (r *run) open(method string, end bool) *state {
	st := &state{stream: &Stream{}}
	st.reset()
	st.isHead = method == "HEAD"
	if !r.ss.reserve() || !r.ss.begin(st, appendHead(nil, &Request{Method: []byte(method), Length: -1}), end) {
		panic("a stream cannot be opened")
	}
	r.streams = append(r.streams, st)
	return st
}

// feed feeds the pieces and returns the first error.
func (r *run) feed(pieces ...[]byte) error {
	for _, p := range pieces {
		// What was fed may be overwritten at once.
		p = bytes.Clone(p)
		err := r.ss.feed(p)
		for i := range p {
			p[i] = 0xff
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// outcome tells all that can be seen of the session.
func (r *run) outcome() string {
	var b strings.Builder
	ss := r.ss
	fmt.Fprintf(&b, "closed %v, slots %d, max %d, window %d/%d/%d, going %v %v, junk %d\n", ss.closed, ss.slots, ss.peerMax,
		ss.sendWindow, ss.recvWindow, ss.peerWindow, ss.going, ss.code, ss.junk)
	for _, st := range r.streams {
		fmt.Fprintf(&b, "%d: open %v, ends %v %v, head %v %d, length %d, window %d/%d", st.id, st.open, st.sendDone, st.recvDone,
			st.headDone, st.status, st.length, st.sendWindow, st.recvWindow)
		for _, f := range st.fields {
			fmt.Fprintf(&b, " %q=%q", f.Name, f.Value)
		}
		fmt.Fprintf(&b, " body %q", st.body)
		if st.fault != nil {
			fmt.Fprintf(&b, " fault %v unprocessed %v", st.fault, st.fault.Unprocessed)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%x", ss.out)
	return b.String()
}

// frames cuts output of ours into frames.
func frames(tb testing.TB, out []byte) []string {
	tb.Helper()
	var r reader
	var list []string
	for {
		n, ev, payload := r.next(out)
		out = out[n:]
		switch ev {
		case eventNone:
			if len(out) > 0 || r.have > 0 || r.place != placeHeader {
				tb.Fatal("output ends within a frame")
			}
			return list
		case eventBegin:
			list = append(list, fmt.Sprintf("%d/%x/%d:", r.h.kind, r.h.flags, r.h.id))
		case eventData:
			list[len(list)-1] += fmt.Sprintf("%d", len(payload))
		case eventEnd:
			if r.h.kind != frameData {
				list[len(list)-1] += fmt.Sprintf("%x", payload)
			}
		case eventBad:
			tb.Fatal("padding in our output")
		}
	}
}

func wantFrames(tb testing.TB, ss *session, want ...string) {
	tb.Helper()
	got := strings.Join(frames(tb, ss.takeOutput(nil)), " ")
	if w := strings.Join(want, " "); got != w {
		tb.Fatalf("unexpected output; got %q; want %q", got, w)
	}
}

func singles(b []byte) (list [][]byte) {
	for i := range b {
		list = append(list, b[i:i+1])
	}
	return list
}
