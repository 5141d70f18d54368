package upstream

import (
	"net"
	"sync"
	"syscall"
	"time"

	"sluice/upstream/h1"
)

// bufSize is the size of a connection's read and write buffers. A body up to
// it leaves in one write with its head, and an event stream is relayed in
// pieces of up to it.
const bufSize = 16 << 10

// buffers are the two halves of I/O memory that a connection holds while it is
// in use. One at rest holds none.
type buffers struct {
	in  [bufSize]byte
	out []byte
}

var bufferPool = sync.Pool{New: func() any { return &buffers{out: make([]byte, 0, bufSize)} }}

// conn is one HTTP/1.1 connection to a worker. One exchange owns it at a time,
// or the worker's stack while it rests.
type conn struct {
	nc     *net.TCPConn
	answer h1.Response
	buf    *buffers
	rested time.Time

	// raw and peek look at the socket without a wait; both are made once, so
	// that a look allocates nothing.
	raw  syscall.RawConn
	peek func(fd uintptr) bool
	dead bool
}

func newConn(nc *net.TCPConn) (*conn, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, raw: raw}
	c.peek = func(fd uintptr) bool {
		c.dead = !quiet(fd)
		return true
	}
	return c, nil
}

// quiet reports whether the connection is open and silent, as one at rest
// must be: bytes that nobody asked for would be read as the next answer.
func (c *conn) quiet() bool {
	if err := c.raw.Read(c.peek); err != nil {
		return false
	}
	return !c.dead
}

// attach and detach give and take the I/O memory.
func (c *conn) attach() {
	if c.buf == nil {
		c.buf = bufferPool.Get().(*buffers)
	}
}

func (c *conn) detach() {
	if c.buf != nil {
		bufferPool.Put(c.buf)
		c.buf = nil
	}
}

// write sends the head in c.buf.out and then the body. Small pieces are
// gathered in front of each write, large ones are written from where they are.
func (c *conn) write(body [][]byte) error {
	out := c.buf.out
	for _, p := range body {
		for len(out)+len(p) > bufSize {
			if len(out) == 0 {
				if _, err := c.nc.Write(p); err != nil {
					return err
				}
				p = nil
				break
			}
			n := max(bufSize-len(out), 0)
			out = append(out, p[:n]...)
			if _, err := c.nc.Write(out); err != nil {
				return err
			}
			p, out = p[n:], out[:0]
		}
		out = append(out, p...)
	}
	c.buf.out = out[:0]
	if len(out) == 0 {
		return nil
	}
	_, err := c.nc.Write(out)
	return err
}
