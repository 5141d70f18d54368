package upstream

import (
	"crypto/tls"
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

// inlineBody is the largest body that is written before the answer is looked
// for. The buffers of the two sockets take as much from an idle connection, so
// that the write does not wait for the worker to read.
const inlineBody = 64 << 10

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
	nc      net.Conn     // what is read and written: socket or session
	socket  *net.TCPConn // below it
	session *tls.Conn    // nil where there is no TLS

	answer h1.Response
	buf    *buffers
	rested time.Time
	wrote  chan error // how startWrite ended; made by the first one

	// raw and peek look at the socket without a wait; both are made once, so
	// that a look allocates nothing.
	raw  syscall.RawConn
	peek func(fd uintptr)
	dead bool
}

// newConn makes a connection of socket, or of the session over it that is not
// nil.
func newConn(socket *net.TCPConn, session *tls.Conn) (*conn, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &conn{nc: socket, socket: socket, session: session, raw: raw}
	if session != nil {
		c.nc = session
	}
	c.peek = func(fd uintptr) { c.dead = !quiet(fd) }
	return c, nil
}

// quiet reports whether the connection is open and silent, as one at rest
// must be: bytes that nobody asked for would be read as the next answer. A
// session that has ended may show as a record that is unread, so that any bytes
// on the socket below count.
func (c *conn) quiet() bool {
	// Control, because Read would fail for a deadline that passed at rest.
	if err := c.raw.Control(c.peek); err != nil {
		return false
	}
	return !c.dead && (c.session == nil || !unread(c.session))
}

// retire closes a connection at rest. A session is ended in due form (RFC 8446
// section 6.1). Others are closed with their socket: the record that ends a
// session could wait for a worker that does not read. The error of closing
// tells nothing that could be acted on.
func (c *conn) retire() { _ = c.nc.Close() }

// cut closes the connection at once.
func (c *conn) cut() { _ = c.socket.Close() }

// attach and detach give and take the I/O memory. Buffers that a large head
// made grow are left to the collector.
func (c *conn) attach() {
	if c.buf == nil {
		c.buf = bufferPool.Get().(*buffers)
	}
}

func (c *conn) detach() {
	if c.buf != nil && cap(c.buf.out) == bufSize {
		bufferPool.Put(c.buf)
	}
	c.buf = nil
}

// read reads once. What it returns is valid until the next read.
func (c *conn) read() ([]byte, error) {
	n, err := c.nc.Read(c.buf.in[:])
	if n > 0 {
		return c.buf.in[:n], nil
	}
	return nil, err
}

// startWrite is write in a goroutine of its own, which endWrite must end.
func (c *conn) startWrite(body [][]byte) {
	if c.wrote == nil {
		c.wrote = make(chan error, 1)
	}
	go func() { c.wrote <- c.write(body) }()
}

// endWrite waits for the end of startWrite. Unless patient, it makes it end.
func (c *conn) endWrite(patient bool) error {
	if !patient {
		select {
		case err := <-c.wrote:
			return err
		default:
			// Where the socket has failed the write has, too.
			_ = c.nc.SetWriteDeadline(past)
		}
	}
	return <-c.wrote
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
			n := max(bufSize-len(out), 0) // a head may be longer
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
