package gone

import (
	"net"
	"sync"
	"time"
)

// linger is what Conn.Linger asked for. The zero value asks for nothing.
type linger struct {
	maxBytes int64
	maxTime  time.Duration
}

// Linger makes Close end the answer first and then read and throw away what the
// client is still sending, until it stops, but no more than about maxBytes and
// no longer than maxTime; Close blocks meanwhile. Without that, closing a
// connection with unread bytes resets it, and the reset overtakes an answer
// that was given before the request was read, such as a 413 (RFC 9112 §9.6).
func (c *Conn) Linger(maxBytes int64, maxTime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = linger{maxBytes, maxTime}
}

// drainBuffers hold what is thrown away.
var drainBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// drain lingers on c. Errors need no report: whatever fails, the connection is
// closed next, and there is nobody left to tell.
func (l linger) drain(c *net.TCPConn) {
	if l.maxBytes <= 0 || l.maxTime <= 0 || c.CloseWrite() != nil ||
		c.SetReadDeadline(time.Now().Add(l.maxTime)) != nil {
		return
	}
	b := drainBuffers.Get().(*[16 << 10]byte)
	defer drainBuffers.Put(b)
	for left := l.maxBytes; left > 0; {
		n, err := c.Read(b[:])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}
