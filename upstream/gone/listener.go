package gone

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Bounds of the pause after an Accept that failed for want of resources, as
// in net/http.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// Listen returns a listener that accepts from ln and whose connections are
// watched: Accept returns a *Conn where ln returns a *net.TCPConn, with
// TCP_NODELAY on, as Go sets it. Other connections are passed through as they
// are. For TLS see [Watcher.ListenTLS].
//
// When the process is out of descriptors or the kernel out of memory, Accept
// waits and tries again instead of returning an error, which fasthttp would
// take for the end of the listener; [Watcher.Refused] counts that.
func (w *Watcher) Listen(ln net.Listener) net.Listener {
	return &listener{Listener: ln, watcher: w}
}

type listener struct {
	net.Listener
	watcher *Watcher
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	pause := minPause
	for {
		c, err := l.accept()
		if err == nil || !exhausted(err) {
			return c, err
		}
		l.watcher.refused.Add(1)
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
}

func (l *listener) accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tc, ok := c.(*net.TCPConn)
	if !ok {
		return c, nil
	}
	gc, err := l.watcher.watch(tc)
	if err != nil {
		err = fmt.Errorf("cannot watch a connection: %w", err)
		if errors.Is(err, os.ErrClosed) {
			err = net.ErrClosed // the Watcher: no more connections
		}
		return nil, errors.Join(err, tc.Close())
	}
	return gc, nil
}

// exhausted tells whether err may pass when others give resources back.
func exhausted(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, // descriptors
		syscall.ENOBUFS, syscall.ENOMEM, // memory
		syscall.ENOSPC,       // entries of epoll sets
		syscall.ECONNABORTED, // the client has gone already
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
