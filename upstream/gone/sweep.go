//go:build unix

package gone

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sweeper is the notifier of systems without epoll: it peeks at the armed
// connections again and again. It does not see the end of a connection behind
// bytes that the client sent and the server has not read, such as a pipelined
// request.
type sweeper struct {
	watcher *Watcher
	stop    chan struct{}
	done    chan struct{}
}

func newSweeper(w *Watcher, interval time.Duration) *sweeper {
	s := &sweeper{watcher: w, stop: make(chan struct{}), done: make(chan struct{})}
	go s.run(interval)
	return s
}

func (s *sweeper) run(interval time.Duration) {
	defer close(s.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var conns []*Conn
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		conns = s.watcher.appendConns(conns[:0])
		for _, c := range conns {
			if c.armed() && ended(c) {
				c.hangUp()
			}
		}
		clear(conns) // hold no connection until the next turn
	}
}

// ended tells whether a read from c would find the end of the connection.
func ended(c *Conn) bool {
	conn, err := c.SyscallConn()
	if err != nil {
		return false // closed by us
	}
	var n int
	var peek error
	err = conn.Control(func(fd uintptr) {
		var b [1]byte
		n, _, peek = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	switch {
	case err != nil:
		return false // closed by us
	case peek == nil:
		return n == 0
	}
	return !errors.Is(peek, unix.EAGAIN) && !errors.Is(peek, unix.EINTR)
}

// add implements notifier: the watcher's map is all that is needed.
func (s *sweeper) add(*Conn) error {
	select {
	case <-s.stop:
		return os.ErrClosed
	default:
		return nil
	}
}

// close implements notifier.
func (s *sweeper) close() error {
	close(s.stop)
	<-s.done
	return nil
}
