package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/upstream/h1"
	"sluice/upstream/socket"
)

// readSize is the size of a read buffer: an event stream is relayed in pieces of
// up to it. bufSize is that of a write buffer: a body that fits into it with its
// head leaves with it in one write.
const (
	readSize = 16 << 10
	bufSize  = 24 << 10
)

// inlineBody is the largest body that is written before the answer is looked
// for. The buffers of the two sockets take as much from an idle connection, so
// that the write does not wait for the worker to read.
const inlineBody = 64 << 10

// A connection holds a write buffer until the request is written, and a read
// buffer from when there was something to read until the next read: one that
// waits holds none.
var (
	inPool  = sync.Pool{New: func() any { return new([readSize]byte) }}
	outPool = sync.Pool{New: func() any { return new([bufSize]byte) }}
)

// conn is one HTTP/1.1 connection to a worker. One exchange owns it at a time,
// or the worker's stack while it rests.
type conn struct {
	nc      net.Conn     // what is read and written: socket or session
	socket  *net.TCPConn // below it
	session *tls.Conn    // nil where there is no TLS

	answer   h1.Response
	in       *[readSize]byte
	out      []byte         // what is to be written before the body
	outBuf   *[bufSize]byte // that out begins in
	rested   time.Time
	deadline time.Time  // of nc, as the exchange has set it; zero for none
	wrote    chan error // how startWrite ended; made by the first one

	// raw and the functions for it look at the socket without a wait, read and
	// write. They are made once, so that a call allocates nothing.
	raw   syscall.RawConn
	peek  func(fd uintptr)
	dead  bool
	step  func(fd uintptr) bool
	stage stage
	look  [1]byte
	n     int   // that the last step has read
	err   error // or why it could not
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
	c.step = c.advance
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

// attach gives c a write buffer, detach takes back what c has.
func (c *conn) attach() {
	c.outBuf = outPool.Get().(*[bufSize]byte)
	c.out = c.outBuf[:0]
}

func (c *conn) detach() {
	c.releaseOut()
	c.releaseIn()
}

func (c *conn) releaseOut() {
	if c.outBuf != nil {
		outPool.Put(c.outBuf)
	}
	c.outBuf, c.out = nil, nil
}

func (c *conn) releaseIn() {
	if c.in != nil {
		inPool.Put(c.in)
		c.in = nil
	}
}

// read reads once. What it returns is valid until the next read.
func (c *conn) read() ([]byte, error) {
	if c.session == nil {
		c.stage = stageRead
		return c.run()
	}
	c.takeIn()
	n, err := c.nc.Read(c.in[:])
	if n > 0 {
		return c.in[:n], nil
	}
	return nil, err
}

func (c *conn) takeIn() {
	if c.in == nil {
		c.in = inPool.Get().(*[readSize]byte)
	}
}

// stage is what the next step on a socket does.
type stage uint8

const (
	stageLook  stage = iota // make sure that nothing came while it rested
	stageWrite              // send out
	stageRest               // nothing: the socket did not take all of out
	stageRead
)

// errStale: a connection at rest was closed, or bytes came that nobody had asked
// for. Nothing was written.
var errStale = errors.New("connection was closed at rest")

// turn sends out and reads the beginning of the answer. Where reused, it looks
// before whether the connection is still open and silent; see errStale. There
// must be no session.
//
// All of it happens in one wait of the poller. So the socket is not read before
// the answer is there, and nothing can come between the look and the write but
// what no look could prevent.
func (c *conn) turn(reused bool) ([]byte, error) {
	c.stage = stageWrite
	if reused {
		c.stage = stageLook
	}
	return c.run()
}

// run goes on with the stages up to the end of a read. After an error that came
// from a deadline it may be called again.
func (c *conn) run() ([]byte, error) {
	for again := true; again; again = c.stage == stageRest {
		if c.stage == stageRest {
			n, err := c.nc.Write(c.out)
			if c.out = c.out[n:]; err != nil {
				return nil, err
			}
			c.releaseOut()
			c.stage = stageRead
		}
		c.n, c.err = 0, nil
		if err := c.raw.Read(c.step); err != nil {
			return nil, err
		}
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case c.n == 0:
		return nil, io.EOF
	}
	return c.in[:c.n], nil
}

// advance goes on until it has to wait for the socket to be readable, and then
// returns false.
//
// NOTE: The poller tells of what changes after the call of raw.Read. So there must
// be a look at the socket, or a try to read, before the first false.
func (c *conn) advance(fd uintptr) (done bool) {
	looked := c.stage == stageLook
	if looked {
		if _, err := socket.Read(fd, c.look[:]); !errors.Is(err, unix.EAGAIN) {
			c.err = errStale
			return true
		}
		c.stage = stageWrite
	}
	if c.stage == stageWrite {
		n, err := socket.Write(fd, c.out)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			c.err = os.NewSyscallError("write", err)
			return true
		}
		if c.out = c.out[n:]; len(c.out) > 0 {
			c.stage = stageRest
			return true
		}
		c.releaseOut()
		if c.stage = stageRead; looked {
			return false // Fast path: no worker answers that fast.
		}
	}
	c.takeIn()
	n, err := socket.Read(fd, c.in[:])
	if errors.Is(err, unix.EAGAIN) {
		c.releaseIn()
		return false
	}
	c.n, c.err = n, os.NewSyscallError("read", err)
	return true
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
			c.deadline = past
		}
	}
	return <-c.wrote
}

// write sends out and then the body. Small pieces are gathered in front of each
// write, large ones are written from where they are.
func (c *conn) write(body [][]byte) error {
	defer c.releaseOut()
	out := c.out
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
	if len(out) == 0 {
		return nil
	}
	_, err := c.nc.Write(out)
	return err
}

// young returns a connection that has not rested for too long, or nil. Whether it
// is still open and silent is for its user to see: an answer read by the wrong
// request is worse than a system call more.
func (w *Worker) young(now time.Time) *conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.idle)
	// Those below the top have rested longer; reap closes them.
	if n == 0 || now.Sub(w.idle[n-1].rested) >= w.rest {
		return nil
	}
	c := w.idle[n-1]
	w.idle[n-1] = nil
	w.idle = w.idle[:n-1]
	return c
}
