package h2c

import (
	"errors"
	"os"
	"runtime"
	"time"
)

// past is a deadline that wakes whoever writes.
var past = time.Unix(1, 0)

const (
	// maxRounds is how often a stream writes in a row, which is mostly for others.
	maxRounds = 4
	// maxCopied is the longest rest of a body that is copied into the output, to
	// leave with what others have queued.
	maxCopied = maxFrame / 2
	// maxTurn is how much of a body is written before others may write.
	maxTurn = 16 * maxFrame
)

// writeLocked writes what is queued, and what is queued meanwhile, on the time
// of s. While it writes it lets go of the lock. Where somebody writes already
// it leaves the work to him.
func (c *Conn) writeLocked(s *Stream) {
	if c.writing || len(c.ss.out) == 0 || !c.writableLocked() {
		return
	}
	c.writing = true
	// Whoever else is about to queue something does so now, and shares the
	// system call.
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
	c.drainLocked(s)
}

// write is writeLocked for a goroutine of its own, which has nothing else to do.
// Its starter has set c.writing.
func (c *Conn) write() {
	c.mu.Lock()
	c.drainLocked(nil)
	c.mu.Unlock()
}

// kickLocked sees to it that what is queued will be written, without a wait.
// The reader must never write itself: where a peer does not read on until we
// do, both would wait for ever.
func (c *Conn) kickLocked() {
	if !c.writing && len(c.ss.out) > 0 && c.writableLocked() {
		c.writing = true
		go c.flush()
	}
}

// drainLocked writes until nothing is queued; c.writing is set.
func (c *Conn) drainLocked(s *Stream) {
	for round := 0; len(c.ss.out) > 0 && c.writableLocked(); round++ {
		if s != nil && round == maxRounds {
			go c.flush()
			return
		}
		out := c.takeOutputLocked()
		c.handed += int64(len(out))
		c.beginWriteLocked(s)
		c.mu.Unlock()
		n, err := c.nc.Write(out)
		c.mu.Lock()
		if !c.endWriteLocked(len(out)-n, err) {
			c.handOverLocked(out[n:])
			return
		}
		c.keepLocked(out)
	}
	c.endTurnLocked()
}

func (c *Conn) takeOutputLocked() []byte {
	out := c.ss.takeOutput(c.spare)
	c.spare = nil
	c.wakeBlockedLocked()
	return out
}

// keepLocked keeps a buffer that was written for what is queued next.
func (c *Conn) keepLocked(out []byte) {
	if cap(out) <= keptOutput {
		c.spare = out[:0]
	}
}

// beginWriteLocked comes before a write on the time of s.
func (c *Conn) beginWriteLocked(s *Stream) {
	c.writer = s
	if s != nil && s.giveUp() {
		c.rushLocked(s)
	}
}

// endWriteLocked comes after a write, which has left the given number of bytes.
// It returns false where somebody else is to write them, as the stream on whose
// time it was has no more.
func (c *Conn) endWriteLocked(left int, err error) bool {
	c.writer = nil
	c.writes++
	c.handed -= int64(left)
	rushed := c.rushed
	if rushed && c.dead == nil {
		c.rushed = false
		_ = c.nc.SetWriteDeadline(time.Time{}) // fails as the next write will
	}
	switch {
	case err == nil:
	case rushed && c.dead == nil && errors.Is(err, os.ErrDeadlineExceeded):
		return false
	default:
		// What the peer has said before, as which streams it has not
		// processed, is still to be read.
		c.broken = err
		_ = c.nc.SetReadDeadline(time.Now().Add(aftermath)) // fails where the read does
	}
	return true
}

// endTurnLocked ends the time in which nobody else may write.
func (c *Conn) endTurnLocked() {
	c.writing = false
	switch {
	case c.parting:
		c.lastWordsLocked()
	case len(c.turns) > 0:
		next := c.turns[0]
		c.turns = c.turns[:copy(c.turns, c.turns[1:])]
		c.writing, next.granted = true, true
		next.wakeLocked()
	}
}

func (c *Conn) writableLocked() bool { return c.dead == nil && c.broken == nil }

// handOverLocked leaves the rest of a write that took too long for its stream to
// a goroutine of its own.
func (c *Conn) handOverLocked(rest []byte) {
	c.ss.out = append(rest[:len(rest):len(rest)], c.ss.out...)
	go c.flush()
}

// rushLocked makes the write end that is under way on the time of s.
func (c *Conn) rushLocked(s *Stream) {
	if c.writer == s && !c.rushed && c.dead == nil {
		c.rushed = true
		_ = c.nc.SetWriteDeadline(past) // fails where the write does
	}
}

// blockLocked waits until a window or the output has room, or s is woken.
func (c *Conn) blockLocked(s *Stream) {
	if !s.blocked {
		s.blocked = true
		c.blocked = append(c.blocked, s)
	}
	s.waitLocked()
}

func (c *Conn) wakeBlockedLocked() {
	for i, s := range c.blocked {
		s.blocked = false
		s.wakeLocked()
		c.blocked[i] = nil
	}
	c.blocked = c.blocked[:0]
}
