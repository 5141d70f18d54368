package h2c

import (
	"net"
	"slices"
)

// A large body is not copied: its stream waits for its turn to write, and then
// writes what others have queued and its own frames, the data from where it is, in
// one system call. Turns come in the order in which they were waited for, so that
// bodies of many streams share the connection.

// keptParts is how many pieces of a write a stream keeps the memory for.
const keptParts = 256

// parts is what one such write consists of.
type parts struct {
	heads []byte      // the headers of the frames
	list  net.Buffers // what is left to be written
	kept  net.Buffers // list from its beginning, for its memory
}

// turnLocked waits until s may write, which sets c.writing. It returns false where
// there is no more sense in it.
func (s *Stream) turnLocked() bool {
	c := s.conn
	if !c.writing {
		c.writing = true
		return true
	}
	c.turns = append(c.turns, s)
	for !s.granted {
		s.waitLocked()
		if !s.granted && s.stopLocked() {
			i := slices.Index(c.turns, s)
			c.turns = slices.Delete(c.turns, i, i+1)
			return false
		}
	}
	s.granted = false
	return true
}

// writeBodyLocked writes what is queued and frames of body, of which left bytes
// are left, as the windows allow, and ends the turn of s. It returns how much of
// the body that was, which may be nothing.
func (s *Stream) writeBodyLocked(body *segments, left int64) (n int64) {
	c := s.conn
	if !c.writableLocked() || s.stopLocked() {
		c.endTurnLocked()
		return 0
	}
	out := c.takeOutputLocked()
	total := len(out) + s.framesLocked(body, left, &n)
	s.parts.kept[0] = out
	c.ss.queued += int64(total - len(out))
	c.handed += int64(total)
	c.beginWriteLocked(s)
	c.mu.Unlock()
	wrote, err := s.parts.list.WriteTo(c.nc)
	c.mu.Lock()
	done := c.endWriteLocked(total-int(wrote), err)
	if !done {
		c.handOverLocked(slices.Concat(s.parts.list...))
	}
	clear(s.parts.kept)
	if !done {
		return n
	}
	c.keepLocked(out)
	c.endTurnLocked()
	return n
}

// framesLocked makes s.parts a place for the output and frames of body behind it.
// It returns their length and, in n, that of the data.
func (s *Stream) framesLocked(body *segments, left int64, n *int64) (total int) {
	ss := s.conn.ss
	p := &s.parts
	p.heads = slices.Grow(p.heads[:0], headerLen*(maxTurn/maxFrame))
	list := append(p.kept[:0], nil)
	for *n < maxTurn && *n < left {
		size := ss.room(&s.st, left-*n)
		if size == 0 {
			break
		}
		*n += int64(size)
		at := len(p.heads)
		p.heads = appendHeader(p.heads, ss.account(&s.st, size, *n == left))
		list = append(list, p.heads[at:])
		total += headerLen + size
		for size > 0 {
			piece := body.next(size)
			list = append(list, piece)
			size -= len(piece)
		}
		ss.sent(&s.st)
	}
	p.kept, p.list = list, list
	return total
}
