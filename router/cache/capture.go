package cache

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"sluice/upstream/h1"
)

// Capture gathers an answer while it is relayed. The zero value is ready; its
// owner, one request at a time, uses it again. Begin, then Write what the engine
// sends, then either Cache.Commit, at a clean end, or Drop. Not safe for
// concurrent use.
type Capture struct {
	buf      []byte // an entry without its head
	head     int    // where the body begins in buf
	max      int
	from, to int // of the usage event, in the body
	flags    byte
	count    byte // fields
	active   bool
	overflow bool
}

// keepCapture is the largest buffer that a Capture keeps for its next use.
const keepCapture = 64 << 10

// Shape is what a Capture is told of an answer beforehand.
type Shape struct {
	// MaxEntry bounds the body in bytes.
	MaxEntry int
	// Streamed: the body is an event stream.
	Streamed bool
	// Usage: the request that the engine got includes usage in the stream,
	// whether the client asked for it or the router did.
	Usage bool
}

// Begin begins to gather an answer and reports whether it may be stored so far.
// If not, Write does nothing and nothing will be committed. The fields are copied.
func (c *Capture) Begin(status int, fields []h1.Field, s Shape) bool {
	c.Drop()
	if !Storable(status, fields) {
		return false
	}
	c.active, c.max = true, min(s.MaxEntry, math.MaxInt32)
	if s.Streamed {
		c.flags |= flagStream
		if s.Usage {
			c.flags |= flagUsage
		}
	}
	var values [len(replayed)][]byte
	for _, f := range fields {
		// Of a repeated field the first.
		if i := replayedIndex(f.Name); i >= 0 && values[i] == nil && plainValue(f.Value) {
			values[i] = f.Value
		}
	}
	c.buf = append(c.buf[:0], make([]byte, headSize)...)
	for i, v := range values {
		if len(v) > 0 {
			c.buf = append(c.buf, byte(i))
			c.buf = binary.LittleEndian.AppendUint16(c.buf, uint16(len(v)))
			c.buf = append(c.buf, v...)
			c.count++
		}
	}
	c.head = len(c.buf)
	return true
}

// Write takes the next bytes of the body, which are copied, and reports whether
// the answer may still be stored. Once it is larger than it may be, its memory is
// given up.
func (c *Capture) Write(p []byte) bool {
	if !c.active {
		return false
	}
	if len(p) > c.max-(len(c.buf)-c.head) {
		c.Drop()
		c.overflow = true
		return false
	}
	c.buf = append(c.buf, p...)
	return true
}

// WriteUsage is Write for an event that holds nothing but usage, and the blank
// line that ends it, which some clients are not sent. There is one at most: of
// several the last is it.
func (c *Capture) WriteUsage(p []byte) bool {
	from := len(c.buf) - c.head
	if !c.Write(p) {
		return false
	}
	if c.flags == flagStream|flagUsage {
		c.from, c.to = from, from+len(p)
	}
	return true
}

// Active reports whether the answer may still be stored.
func (c *Capture) Active() bool { return c.active }

// Drop forgets the answer. It may be called at any time, more than once.
func (c *Capture) Drop() {
	if cap(c.buf) > keepCapture {
		c.buf = nil
	}
	*c = Capture{buf: c.buf[:0]}
}

// entry returns what was gathered and ends the Capture.
func (c *Capture) entry(now time.Time) *Entry {
	raw := c.buf
	if cap(raw) <= keepCapture || cap(raw)-len(raw) > len(raw)/8 {
		raw = slices.Clone(raw)
	} else {
		c.buf = nil // it is the entry's now
	}
	copy(raw, entryMagic)
	raw[4], raw[5] = c.flags, c.count
	binary.LittleEndian.PutUint64(raw[6:], uint64(now.UnixMilli()))
	binary.LittleEndian.PutUint32(raw[14:], uint32(len(raw)-c.head))
	binary.LittleEndian.PutUint32(raw[18:], uint32(c.from))
	binary.LittleEndian.PutUint32(raw[22:], uint32(c.to))
	e := &Entry{raw: raw, fields: raw[headSize:c.head], body: raw[c.head:]}
	c.Drop()
	return e
}
