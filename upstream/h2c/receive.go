package h2c

import (
	"encoding/binary"

	"golang.org/x/net/http2/hpack"
)

// feed takes bytes of the peer. After an error the session is of no further
// use, and what it has queued, a GOAWAY, should still be written.
func (ss *session) feed(p []byte) error {
	if ss.closed != nil {
		return ss.closed
	}
	for {
		n, ev, payload := ss.in.next(p)
		ss.received += int64(n)
		p = p[n:]
		var err *wireError
		switch ev {
		case eventNone:
			return nil
		case eventBegin:
			err = ss.beginFrame(ss.in.h)
		case eventData:
			ss.dataPiece(payload)
		case eventEnd:
			err = ss.endFrame(ss.in.h, payload)
		case eventBad:
			err = errPadding
		}
		if err == nil && ss.junk > maxJunk || ss.replies > maxReplies {
			err = errFlood
		}
		if err != nil {
			return ss.fail(err)
		}
	}
}

// beginFrame judges a frame by its header.
func (ss *session) beginFrame(h header) *wireError {
	if !ss.greeted && (h.kind != frameSettings || h.has(flagAck) || h.length > maxFrame || h.id != 0) {
		// RFC 9113 section 3.4: the preface of a server is a SETTINGS frame.
		return errNotH2C
	}
	if h.length > maxFrame || !sizeFits(h) {
		return errFrameSize
	}
	if (ss.block.id != 0) != (h.kind == frameContinuation) || h.id != ss.block.id && ss.block.id != 0 {
		return errContinuation // RFC 9113 section 6.10
	}
	switch h.kind {
	case frameData, frameHeaders, frameReset, frameContinuation:
		if ss.idle(h.id) {
			return errStreamID
		}
	case framePriority:
		if h.id == 0 {
			return errStreamID
		}
	case frameSettings, framePing, frameGoAway:
		if h.id != 0 {
			return errStreamID
		}
	case framePush:
		return errPush
	case frameWindow:
		if h.id != 0 && ss.idle(h.id) {
			return errStreamID
		}
	}
	if h.kind == frameData {
		return ss.beginDataFrame(h)
	}
	return nil
}

// sizeFits tells whether a frame can be as long as it is (RFC 9113 section 6).
func sizeFits(h header) bool {
	switch h.kind {
	case frameData:
		return h.length > 0 || !h.has(flagPadded)
	case framePriority:
		return h.length == 5
	case frameReset, frameWindow:
		return h.length == 4
	case framePing:
		return h.length == 8
	case frameGoAway:
		return h.length >= 8
	case frameSettings:
		return h.length%6 == 0 && (h.length == 0 || !h.has(flagAck))
	}
	return true
}

// idle tells whether id is that of no stream so far. The peer opens none.
func (ss *session) idle(id uint32) bool { return id&1 == 0 || id >= ss.nextID }

// beginDataFrame accounts for a DATA frame, with its padding (RFC 9113 section
// 6.9). The window of the connection is given back here: nothing that one
// stream does must keep the others from receiving.
func (ss *session) beginDataFrame(h header) *wireError {
	n := int64(h.length)
	if ss.recvWindow -= n; ss.recvWindow < 0 {
		return errOverrun
	}
	if ss.unreturned += h.length; ss.unreturned >= returnConn {
		ss.reply(appendWindow(ss.out, 0, ss.unreturned))
		ss.recvWindow += int64(ss.unreturned)
		ss.unreturned = 0
	}
	st := ss.table[h.id]
	ss.data = st
	if st == nil || h.length == 0 && !h.has(flagEndStream) {
		ss.junk++
		return nil
	}
	ss.junk = max(0, ss.junk-2)
	st.recvWindow -= n
	switch {
	case st.recvWindow < 0:
		ss.breakStream(st, errOverrun)
	case !st.headDone:
		ss.breakStream(st, errNoHead)
	case st.recvDone:
		ss.breakStream(st, errEnded)
	}
	return nil
}

func (ss *session) dataPiece(p []byte) {
	st := ss.data
	if st == nil {
		return
	}
	if cap(st.body)-len(st.body) < len(p) {
		st.body = ss.grow(st.body, len(p))
	}
	if err := st.data(p); err != nil {
		ss.breakStream(st, err)
		return
	}
	ss.touch(st)
}

// endFrame takes a frame that is complete.
func (ss *session) endFrame(h header, p []byte) *wireError {
	switch h.kind {
	case frameData:
		ss.endDataFrame(h)
	case frameHeaders:
		return ss.beginBlock(h, p)
	case frameContinuation:
		return ss.fragment(h, p)
	case frameReset:
		ss.peerReset(h.id, Code(binary.BigEndian.Uint32(p)))
	case frameSettings:
		return ss.settings(h, p)
	case framePing:
		ss.pinged(h, binary.BigEndian.Uint64(p))
	case frameGoAway:
		ss.goAway(binary.BigEndian.Uint32(p)&maxID, Code(binary.BigEndian.Uint32(p[4:])))
	case frameWindow:
		return ss.windowUpdate(h.id, int64(binary.BigEndian.Uint32(p)&maxWindow))
	default:
		ss.junk++ // PRIORITY and frames that nobody here knows
	}
	return nil
}

func (ss *session) endDataFrame(h header) {
	st := ss.data
	ss.data = nil
	if st == nil {
		return
	}
	if h.has(flagPadded) {
		ss.consumed(st, 1+ss.in.pad) // nobody else will
	}
	if h.has(flagEndStream) {
		ss.endReceive(st)
	}
}

// endReceive ends what the peer sends on st.
func (ss *session) endReceive(st *state) {
	ss.touch(st)
	if st.length >= 0 && st.got != st.length && !st.bodyless() {
		ss.breakStream(st, errMismatch)
		return
	}
	if st.recvDone = true; st.sendDone {
		ss.retire(st)
	}
}

func (ss *session) beginBlock(h header, p []byte) *wireError {
	p, err := headerFragment(h, p)
	if err != nil {
		return err
	}
	st := ss.table[h.id]
	if st != nil && st.recvDone {
		ss.breakStream(st, errEnded)
		st = nil
	}
	ss.block = block{id: h.id, st: st, end: h.has(flagEndStream)}
	ss.dec.SetEmitEnabled(st != nil)
	if st != nil {
		st.sawField = false
		if !st.headDone {
			st.status = 0
		}
	}
	return ss.fragment(h, p)
}

// fragment takes a piece of a header block. Blocks are decoded for streams that
// are gone, too, as the dynamic table depends on each.
func (ss *session) fragment(h header, p []byte) *wireError {
	b := &ss.block
	b.size += len(p)
	if b.fragments++; b.size > maxBlock || b.fragments > maxFragments {
		return errBlockSize
	}
	if _, err := ss.dec.Write(p); err != nil {
		return errHPACK
	}
	if !h.has(flagEndHeaders) {
		return nil
	}
	if err := ss.dec.Close(); err != nil {
		return errHPACK
	}
	ss.endBlock()
	return nil
}

func (ss *session) endBlock() {
	b := ss.block
	ss.block = block{}
	if b.st == nil {
		ss.junk++
		return
	}
	if b.bad == nil {
		b.bad = b.st.endBlock(b.end)
	}
	switch {
	case b.bad != nil:
		ss.breakStream(b.st, b.bad)
	case b.end:
		ss.endReceive(b.st)
	case b.st.headDone:
		ss.touch(b.st)
	}
}

// field takes one decoded field of the header block under way.
func (ss *session) field(f hpack.HeaderField) {
	b := &ss.block
	b.list += int(f.Size())
	if b.fields++; b.list > maxBlock || b.fields > maxFields {
		b.bad = errHeadSize
	} else {
		b.bad = b.st.field(&f)
	}
	if b.bad != nil {
		ss.dec.SetEmitEnabled(false)
	}
}

// peerReset ends a stream that the peer has reset. After the end of the answer it
// only says that the rest of the request is not wanted (RFC 9113 section 8.1).
func (ss *session) peerReset(id uint32, code Code) {
	st := ss.table[id]
	if st == nil {
		ss.junk++
		return
	}
	if !st.recvDone {
		st.fault = &Error{Fault: FaultReset, Code: code}
		if st.headDone {
			st.fault.Fault = FaultIncomplete
		} else {
			st.fault.Unprocessed = code == RefusedStream
		}
	}
	st.sendDone = true
	ss.retire(st)
	ss.touch(st)
}

// settings takes the settings of the peer, or its acknowledgement of ours.
func (ss *session) settings(h header, p []byte) *wireError {
	ss.junk += 1 + len(p)/6
	if h.has(flagAck) {
		ss.acked = true
		return nil
	}
	if !ss.greeted {
		ss.greeted, ss.peerMax = true, maxID // no limit unless it gives one
	}
	for ; len(p) > 0; p = p[6:] {
		if err := ss.setting(binary.BigEndian.Uint16(p), int64(binary.BigEndian.Uint32(p[2:]))); err != nil {
			return err
		}
	}
	ss.reply(appendHeader(ss.out, header{0, frameSettings, flagAck, 0}))
	return nil
}

func (ss *session) setting(id uint16, v int64) *wireError {
	switch id {
	case settingTableSize:
		// RFC 7541 section 4.2: an encoder says so when it gives up what it
		// was allowed at first, even if it never used it.
		ss.shrink = ss.shrink || v < maxTable
	case settingPush:
		if v != 0 {
			return errSetting
		}
	case settingMaxStreams:
		ss.peerMax = int(min(v, maxID))
	case settingWindow:
		return ss.firstWindows(v)
	case settingMaxFrame:
		// All our frames have the size that is always allowed.
		if v < maxFrame || v > 1<<24-1 {
			return errSetting
		}
	}
	return nil
}

// firstWindows sets the window of new streams, and moves that of open ones
// (RFC 9113 section 6.9.2).
func (ss *session) firstWindows(v int64) *wireError {
	if v > maxWindow {
		return errWindow
	}
	delta := v - ss.peerWindow
	ss.peerWindow = v
	for _, st := range ss.table {
		if st.sendWindow += delta; st.sendWindow > maxWindow {
			return errWindow
		}
	}
	ss.roomier = true
	return nil
}

// pinged answers a PING, or takes the answer to ours: then the peer has seen
// every reset that was sent before.
func (ss *session) pinged(h header, data uint64) {
	ss.junk++
	if !h.has(flagAck) {
		ss.reply(appendPing(ss.out, flagAck, data))
		return
	}
	if !ss.pinging || data != ss.ping {
		return
	}
	ss.pinging = false
	ss.slots -= ss.covered
	ss.covered = 0
	if ss.uncovered > 0 {
		ss.sendPing()
	}
}

// goAway ends the streams that the peer will not process. Another GOAWAY may
// only lower the last stream (RFC 9113 section 6.8).
func (ss *session) goAway(last uint32, code Code) {
	ss.junk++
	ss.going = true
	ss.code = code
	ss.last = min(ss.last, last)
	for id, st := range ss.table {
		// An answer that has begun was made by someone.
		if id <= ss.last || st.headDone {
			continue
		}
		st.fault = &Error{Fault: FaultGoAway, Code: code, Unprocessed: true}
		ss.retire(st)
		ss.touch(st)
	}
}

func (ss *session) windowUpdate(id uint32, n int64) *wireError {
	ss.junk++
	if id == 0 {
		if n == 0 {
			return errIncrement
		}
		if ss.sendWindow += n; ss.sendWindow > maxWindow {
			return errWindow
		}
		ss.roomier = true
		return nil
	}
	st := ss.table[id]
	if st == nil {
		return nil
	}
	st.sendWindow += n
	switch {
	case n == 0:
		ss.breakStream(st, errIncrement)
	case st.sendWindow > maxWindow:
		ss.breakStream(st, errWindow)
	default:
		ss.touch(st)
	}
	return nil
}
