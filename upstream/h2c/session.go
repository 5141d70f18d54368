package h2c

import (
	"slices"

	"golang.org/x/net/http2/hpack"

	"sluice/upstream/h1"
)

// Bounds of what a peer may make us hold or do.
const (
	// maxBlock bounds a header block on the wire and, counted as RFC 9113
	// section 6.5.2 does it, decoded.
	maxBlock = h1.MaxHead
	// maxFields bounds the fields of one header block.
	maxFields = h1.MaxFields
	// maxFragments bounds the frames of one header block, which may be empty.
	maxFragments = 32
	// maxTable is the dynamic table of our decoder, the size of RFC 9113.
	maxTable = 4 << 10
	// maxReplies bounds what waits to be written only because of frames of the
	// peer, which does not read.
	maxReplies = 256 << 10
	// maxJunk bounds frames that serve nothing, see session.junk.
	maxJunk = 10000
	// assumedStreams is how many streams a peer is taken to allow before its
	// SETTINGS (RFC 9113 section 6.5.2 recommends no less).
	assumedStreams = 100
	// returnConn is how much data is received before that much of the window
	// of the connection is given back.
	returnConn = 1 << 20
	// connWindow is the window of the connection. It is never the limit: it is
	// given back on receipt.
	connWindow = 1 << 30
)

// session is the wire half of one connection, without any I/O. What the peer
// sends goes into feed; what must be sent to it is appended to out. It is not
// safe for concurrent use.
type session struct {
	maxStreams int // our own cap
	window     int // of a stream, for what the peer sends

	out      []byte // frames to be written
	queued   int64  // bytes that were ever appended to out
	received int64  // bytes that were ever fed
	replies  int    // bytes of out that the peer provoked
	touched  []*state
	roomier  bool // some window that is not one stream's has grown

	in     reader
	dec    *hpack.Decoder
	block  block
	data   *state // of the DATA frame under way, or nil
	closed error  // why the session has ended

	table  map[uint32]*state
	nextID uint32
	slots  int // streams reserved, open, or reset and not yet acknowledged
	last   uint32
	going  bool // a GOAWAY came
	code   Code // of it

	greeted    bool // the SETTINGS of the peer came
	acked      bool // and its acknowledgement of ours
	peerMax    int
	peerWindow int64 // what a new stream may send
	sendWindow int64
	recvWindow int64
	unreturned int
	shrink     bool // the peer wants us to give up the dynamic table
	shrunk     bool // and was told that we have

	large     [][]byte // buffers for bodies that nobody uses
	largeSize int      // of all of them together

	ping      uint64 // number of the last PING
	pinging   bool   // it was not answered yet
	covered   int    // streams reset before it was queued
	uncovered int    // and since
	junk      int    // frames that served nothing, less those that did
}

// block is a header block under way.
type block struct {
	id        uint32 // 0 where there is none
	st        *state // nil where nobody waits for it
	end       bool   // END_STREAM
	fragments int
	size      int // on the wire
	list      int // decoded
	fields    int
	bad       *wireError
}

// newSession returns a session whose output begins with the preface.
func newSession(maxStreams, window int) *session {
	ss := &session{
		maxStreams: maxStreams, window: window,
		table: make(map[uint32]*state), nextID: 1,
		peerMax: assumedStreams, peerWindow: firstWindow, sendWindow: firstWindow, recvWindow: connWindow,
		last: maxID,
	}
	ss.dec = hpack.NewDecoder(maxTable, ss.field)
	ss.dec.SetMaxStringLength(maxBlock)
	out := append(ss.out, preface...)
	out = appendHeader(out, header{4 * 6, frameSettings, 0, 0})
	out = appendSetting(out, settingPush, 0)
	out = appendSetting(out, settingWindow, uint32(window))
	out = appendSetting(out, settingMaxFrame, maxFrame)
	out = appendSetting(out, settingMaxHeadBytes, maxBlock)
	out = appendWindow(out, 0, connWindow-firstWindow)
	ss.queue(out)
	return ss
}

// queue makes out, an extension of ss.out, the output.
func (ss *session) queue(out []byte) {
	ss.queued += int64(len(out) - len(ss.out))
	ss.out = out
}

// reply is queue for what the peer provoked.
func (ss *session) reply(out []byte) {
	ss.replies += len(out) - len(ss.out)
	ss.queue(out)
}

// takeOutput hands out what is to be written in exchange for a buffer.
func (ss *session) takeOutput(spare []byte) []byte {
	p := ss.out
	ss.out, ss.replies = spare[:0], 0
	return p
}

// capacity is how many streams may be open at a time.
func (ss *session) capacity() int {
	if ss.leaving() {
		return 0
	}
	return min(ss.peerMax, ss.maxStreams)
}

// leaving tells whether no more streams can be opened.
func (ss *session) leaving() bool {
	return ss.going || ss.closed != nil || ss.nextID > maxID
}

// reserve takes a slot for a stream that may be opened later.
func (ss *session) reserve() bool {
	if ss.slots >= ss.capacity() {
		return false
	}
	ss.slots++
	return true
}

// begin opens st, which was reserved, with a header block.
func (ss *session) begin(st *state, head []byte, end bool) bool {
	if ss.leaving() {
		return false
	}
	st.id, st.open = ss.nextID, true
	ss.nextID += 2
	st.sendWindow, st.recvWindow, st.begunAt = ss.peerWindow, int64(ss.window), ss.received
	ss.table[st.id] = st
	if ss.shrink && !ss.shrunk {
		ss.shrunk = true
		head = append([]byte{hpackShrink}, head...)
	}
	flags := uint8(0)
	if st.sendDone = end; end {
		flags = flagEndStream
	}
	ss.queue(appendBlock(ss.out, st.id, flags, head))
	st.headEnd = ss.queued
	return true
}

// room returns how much of want bytes may be sent on st in one frame.
func (ss *session) room(st *state, want int64) int {
	return int(max(0, min(want, maxFrame, ss.sendWindow, st.sendWindow)))
}

// sendData queues a DATA frame of n bytes, which room allowed, from body. The
// small pieces of a body so share a frame.
func (ss *session) sendData(st *state, body *segments, n int, end bool) {
	h := ss.account(st, n, end)
	out := appendHeader(ss.out, h)
	for n > 0 {
		p := body.next(n)
		out = append(out, p...)
		n -= len(p)
	}
	ss.queue(out)
	ss.sent(st)
}

// account takes n bytes, which room allowed, out of the windows for a DATA frame,
// and returns its header. Once the frame is queued, sent must be called.
func (ss *session) account(st *state, n int, end bool) header {
	ss.sendWindow -= int64(n)
	st.sendWindow -= int64(n)
	h := header{n, frameData, 0, st.id}
	if st.sendDone = end; end {
		h.flags = flagEndStream
	}
	return h
}

// sent notes that a DATA frame is queued, or as good as.
func (ss *session) sent(st *state) {
	// A peer gives windows back in as many frames as it likes.
	ss.junk = max(0, ss.junk-8)
	if st.sendDone && st.recvDone {
		ss.retire(st)
	}
}

// segments is a place in the pieces of a body.
type segments struct {
	list [][]byte
	off  int // into the first
}

// next returns up to n bytes and goes on behind them. It returns nothing only
// where a piece is empty.
func (sg *segments) next(n int) []byte {
	p := sg.list[0][sg.off:]
	if len(p) > n {
		sg.off += n
		return p[:n]
	}
	sg.list, sg.off = sg.list[1:], 0
	return p
}

// consumed gives n bytes of the window of st back, some time.
func (ss *session) consumed(st *state, n int) {
	if st.unreturned += n; !st.open || st.recvDone || st.unreturned < ss.window/4 {
		return
	}
	ss.queue(appendWindow(ss.out, st.id, st.unreturned))
	st.recvWindow += int64(st.unreturned)
	st.unreturned = 0
}

// retire ends a stream that both sides have ended.
func (ss *session) retire(st *state) {
	ss.forget(st)
	ss.slots--
}

func (ss *session) forget(st *state) {
	delete(ss.table, st.id)
	st.open = false
	if ss.data == st {
		ss.data = nil
	}
	if ss.block.st == st {
		ss.block.st = nil
		ss.dec.SetEmitEnabled(false)
	}
}

// touch remembers that st has changed.
func (ss *session) touch(st *state) {
	if n := len(ss.touched); n == 0 || ss.touched[n-1] != st {
		ss.touched = append(ss.touched, st)
	}
}

// abandon resets st, which is open. The peer counts the stream until it has
// seen that, and punishes who opens and resets streams faster than it can see;
// so the slot is held until it has answered a PING that was sent later.
func (ss *session) abandon(st *state, code Code) {
	ss.forget(st)
	ss.queue(appendReset(ss.out, st.id, code))
	ss.uncovered++
	ss.sendPing()
}

// sendPing sends a PING unless one is under way.
func (ss *session) sendPing() {
	if ss.pinging {
		return
	}
	ss.pinging = true
	ss.ping++
	ss.covered, ss.uncovered = ss.uncovered, 0
	ss.queue(appendPing(ss.out, 0, ss.ping))
}

// breakStream resets st for what the peer did wrong.
func (ss *session) breakStream(st *state, why *wireError) {
	st.fault = &Error{Fault: FaultProtocol, Code: why.code, Err: why}
	if why == errMismatch {
		st.fault.Fault = FaultLength
	}
	ss.abandon(st, why.code)
	ss.touch(st)
}

// fail ends the session for what the peer did wrong. It is told, and every
// open stream breaks.
func (ss *session) fail(why *wireError) error {
	if ss.closed != nil {
		return ss.closed
	}
	ss.queue(appendGoAway(ss.out, why.code))
	ss.close(why, -1)
	return why
}

// close ends the session and breaks every open stream. sent is how many bytes of
// the output have certainly left, or −1 where the peer is known to have read.
func (ss *session) close(why error, sent int64) {
	if ss.closed != nil {
		return
	}
	ss.closed = why
	ss.slots -= ss.covered + ss.uncovered
	ss.covered, ss.uncovered = 0, 0
	for _, st := range ss.table {
		st.fault = ss.closeFault(st, why, sent)
		ss.retire(st)
		ss.touch(st)
	}
}

func (ss *session) closeFault(st *state, why error, sent int64) *Error {
	e := &Error{Fault: FaultClosed, Code: ss.code, Err: why}
	wire, isWire := why.(*wireError)
	switch {
	case isWire:
		e.Fault, e.Code, e.Unprocessed = FaultProtocol, wire.code, wire == errNotH2C
	case st.headDone:
		e.Fault = FaultIncomplete
	default:
		e.Unprocessed = sent < st.headEnd
		e.Stale = st.begunAt == ss.received
	}
	return e
}

// keptLarge bounds the large buffers that wait for another body.
const keptLarge = 2 << 20

// grow returns b with room for n more bytes. Where that takes a large buffer, it
// may be one that was given back, as b is then: many streams end before another
// begins, and the answers of engines that do not pause fill whole windows.
func (ss *session) grow(b []byte, n int) []byte {
	n += len(b)
	if n <= keptBody {
		return slices.Grow(b, n-len(b))
	}
	var bigger []byte
	if last := len(ss.large) - 1; last >= 0 && cap(ss.large[last]) >= n {
		bigger = ss.large[last]
		ss.large[last] = nil
		ss.large = ss.large[:last]
		ss.largeSize -= cap(bigger)
	} else {
		bigger = make([]byte, 0, 2*n)
	}
	bigger = append(bigger, b...)
	if cap(b) > keptBody {
		ss.giveBack(b)
	}
	return bigger
}

// giveBack takes a large buffer that is not used any more. The largest are the
// first to be used again.
func (ss *session) giveBack(b []byte) {
	if ss.largeSize+cap(b) > keptLarge {
		return
	}
	ss.largeSize += cap(b)
	ss.large = append(ss.large, b[:0])
	for i := len(ss.large) - 1; i > 0 && cap(ss.large[i]) < cap(ss.large[i-1]); i-- {
		ss.large[i], ss.large[i-1] = ss.large[i-1], ss.large[i]
	}
}
