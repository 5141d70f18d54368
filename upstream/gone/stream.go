package gone

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sluice/upstream/socket"
)

// half is one direction of a connection: a read or a write that is under way. It
// is kept with the connection so that none of them allocates. As fasthttp does,
// one goroutine reads at a time and one writes.
type half struct {
	p   []byte
	n   int
	err error
	// step is read or write, a function value that is made once.
	step func(fd uintptr) bool
}

// run does what h is for with p. wait is the Read or Write of a
// [syscall.RawConn], which calls h.step again whenever the socket is ready and
// ends with the deadline.
func (h *half) run(wait func(func(uintptr) bool) error, p []byte) (int, error) {
	h.p, h.n, h.err = p, 0, nil
	err := wait(h.step)
	h.p = nil
	if err == nil {
		err = h.err
	}
	return h.n, err
}

// read reads what is there, and reports whether that was anything.
func (h *half) read(fd uintptr) bool {
	n, err := socket.Read(fd, h.p)
	switch {
	case err == unix.EAGAIN:
		return false
	case err != nil:
		h.err = os.NewSyscallError("read", err)
	case n == 0 && len(h.p) > 0:
		h.err = io.EOF
	}
	h.n = n
	return true
}

// write writes what the socket takes, and reports whether that was the last of
// it.
func (h *half) write(fd uintptr) bool {
	for len(h.p) > 0 {
		n, err := socket.Write(fd, h.p)
		if err == unix.EAGAIN {
			return false
		}
		if err != nil {
			h.err = os.NewSyscallError("write", err)
			return true
		}
		h.p = h.p[n:]
		h.n += n
	}
	return true
}

// open makes c ready to read and write.
func (c *Conn) open() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	c.raw = raw
	c.in.step, c.out.step = c.in.read, c.out.write
	return nil
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.out.run(c.raw.Write, p) }
