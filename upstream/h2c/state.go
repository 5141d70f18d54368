package h2c

import (
	"math"
	"slices"

	"golang.org/x/net/http2/hpack"

	"sluice/upstream/h1"
)

// state is what a session knows of one stream.
type state struct {
	stream *Stream // whoever drives it; of no meaning here

	id         uint32
	sendWindow int64 // what we may send; negative after a smaller SETTINGS
	recvWindow int64 // what the peer may send
	unreturned int   // taken out of recvWindow, consumed and not given back
	begunAt    int64 // bytes of the peer when the stream was opened
	headEnd    int64 // bytes of output up to the end of its HEADERS

	open     bool // in the table of the session
	sendDone bool // END_STREAM was queued, or RST_STREAM came
	recvDone bool // END_STREAM came
	isHead   bool // answers a HEAD request
	headDone bool // the head of the final answer is complete
	interim  int  // 1xx answers so far

	status   int
	length   int64 // content-length, −1 where there is none
	got      int64 // bytes of the body so far
	head     []byte
	spans    []span
	fields   []h1.Field // into head, valid from headDone on
	body     []byte     // received and not yet taken
	fault    *Error     // how the stream broke; what is in body came before
	sawField bool       // of the header block under way
}

// span is a field within state.head.
type span struct{ name, value, end int32 }

// reset makes st ready for a new stream. Its buffers are kept.
func (st *state) reset() {
	*st = state{
		stream: st.stream, length: -1,
		head: st.head[:0], spans: st.spans[:0], fields: st.fields[:0], body: st.body[:0],
	}
}

// bodyless tells whether the answer has no body whatever it says of its length
// (RFC 9110 section 6.4.1).
func (st *state) bodyless() bool {
	return st.isHead || st.status == 204 || st.status == 304
}

// take hands out what was received of the body in exchange for a buffer.
func (st *state) take(spare []byte) []byte {
	p := st.body
	st.body = spare[:0]
	return p
}

// field adds one field of an answer to its head.
func (st *state) field(f *hpack.HeaderField) *wireError {
	if f.Name != "" && f.Name[0] == ':' {
		return st.pseudo(f)
	}
	st.sawField = true
	if !validName(f.Name) || !validValue(f.Value) {
		return errField
	}
	if hopField(f.Name) {
		return errHopField
	}
	if st.headDone {
		return nil // trailers are checked and dropped
	}
	if st.status == 0 {
		return errPseudo
	}
	if f.Name == "content-length" {
		return st.contentLength(f.Value)
	}
	at := len(st.head)
	st.head = append(st.head, f.Name...)
	st.head = append(st.head, f.Value...)
	st.spans = append(st.spans, span{int32(at), int32(at + len(f.Name)), int32(len(st.head))})
	return nil
}

// pseudo takes :status, which is the only pseudo field of an answer, comes once
// and before all other fields (RFC 9113 sections 8.3 and 8.3.2). Trailers have none.
func (st *state) pseudo(f *hpack.HeaderField) *wireError {
	v := f.Value
	if f.Name != ":status" || st.status != 0 || st.sawField || len(v) != 3 {
		return errPseudo
	}
	for i := range v {
		if v[i] < '0' || v[i] > '9' {
			return errPseudo
		}
	}
	n := int(v[0]-'0')*100 + int(v[1]-'0')*10 + int(v[2]-'0')
	if n < 100 || n > 599 {
		return errPseudo
	}
	st.status = n
	return nil
}

// contentLength takes digits only; the same number may come again.
func (st *state) contentLength(v string) *wireError {
	var n int64
	for i := range v {
		d := int64(v[i]) - '0'
		if d < 0 || d > 9 || n > (math.MaxInt64-d)/10 {
			return errLength
		}
		n = n*10 + d
	}
	if v == "" || st.length >= 0 && st.length != n {
		return errLength
	}
	st.length = n
	return nil
}

// endBlock settles a header block that is complete: interim answers are
// forgotten, and after the head of the final one only trailers may follow.
func (st *state) endBlock(end bool) *wireError {
	switch {
	case st.headDone:
		if !end {
			return errTrailer
		}
		return nil
	case st.status == 0:
		return errPseudo
	case st.status < 200:
		// Nobody asks for 101, which RFC 9113 section 8.6 does away with.
		if st.interim++; st.interim > h1.MaxInterim || st.status == 101 || end {
			return errInterim
		}
		st.status, st.length = 0, -1
		st.head, st.spans = st.head[:0], st.spans[:0]
		return nil
	}
	st.headDone = true
	st.fields = slices.Grow(st.fields, len(st.spans))[:len(st.spans)]
	for i, s := range st.spans {
		st.fields[i].Name = st.head[s.name:s.value:s.value]
		st.fields[i].Value = st.head[s.value:s.end:s.end]
	}
	return nil
}

// data adds a piece of the body.
func (st *state) data(p []byte) *wireError {
	st.got += int64(len(p))
	switch {
	case st.bodyless():
		return errNoBody
	case st.length >= 0 && st.got > st.length:
		return errMismatch
	}
	st.body = append(st.body, p...)
	return nil
}

// validName tells whether s may be the name of a field in HTTP/2: a token
// without upper case (RFC 9113 section 8.2.1).
func validName(s string) bool {
	for i := range s {
		if !nameChar[s[i]] {
			return false
		}
	}
	return s != ""
}

// nameChar is tchar of RFC 9110 section 5.6.2 without the capitals.
var nameChar = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] = true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// validValue refuses what the HTTP/1.1 client refuses: control characters,
// and white space at the ends (RFC 9113 section 8.2.1).
func validValue(s string) bool {
	if s == "" {
		return true
	}
	for i := range s {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return !blank(s[0]) && !blank(s[len(s)-1])
}

// hopField tells whether an answer with a field of this name is malformed, as
// it speaks of a connection that HTTP/2 does not have (RFC 9113 section 8.2.2).
func hopField(name string) bool {
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// headerFragment cuts padding and priority off the payload of a HEADERS frame.
func headerFragment(h header, p []byte) ([]byte, *wireError) {
	pad := 0
	if h.has(flagPadded) {
		if len(p) < 1 {
			return nil, errFrameSize
		}
		pad, p = int(p[0]), p[1:]
	}
	if h.has(flagPriority) {
		if len(p) < 5 {
			return nil, errFrameSize
		}
		p = p[5:]
	}
	if pad > len(p) {
		return nil, errPadding
	}
	return p[:len(p)-pad], nil
}
