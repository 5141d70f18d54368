package gone

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

func newNotifier(w *Watcher) (notifier, error) { return newEpoll(w) }

// epoll is the notifier of Linux: one epoll set that holds every connection,
// registered once, edge-triggered, for hang-ups only, so that the data that
// clients send causes no event.
//
// The epoll descriptor is itself pollable. It is watched by Go's own poller,
// and the goroutine that empties it is parked like any other: no thread is
// pinned and an idle set costs nothing.
type epoll struct {
	file *os.File // the epoll descriptor
	raw  syscall.RawConn
	done chan struct{} // closed when the goroutine has ended
	err  error         // why it ended, if nobody closed the set; valid after done

	// closing is set before file is closed. The error of a call on a closed
	// file's RawConn matches nothing that os exports.
	closing atomic.Bool
}

func newEpoll(w *Watcher) (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create an epoll set: %w", err)
	}
	// Only a non-blocking descriptor is given to Go's poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make an epoll set non-blocking: %w", err), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot poll an epoll set: %w", err), file.Close())
	}
	e := &epoll{file: file, raw: raw, done: make(chan struct{})}
	go e.run(w)
	return e, nil
}

// run tells connections of their events until the set is closed.
func (e *epoll) run(w *Watcher) {
	defer close(e.done)
	var events [128]unix.EpollEvent
	err := e.raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.EpollWait(int(fd), events[:], 0)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				e.err = fmt.Errorf("cannot wait for an epoll set: %w", err)
				return true
			case n == 0:
				return false // park until the set has something
			}
			for i := range events[:n] {
				if c := w.find(tokenOf(&events[i])); c != nil {
					c.hangUp()
				}
			}
		}
	})
	if err != nil && !e.closing.Load() {
		e.err = fmt.Errorf("cannot poll an epoll set: %w", err)
	}
}

// add implements notifier. Closing the connection takes it out of the set.
func (e *epoll) add(c *Conn) error {
	conn, err := c.SyscallConn()
	if err != nil {
		return err
	}
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLET,
		Fd:     int32(uint32(c.token)),
		Pad:    int32(uint32(c.token >> 32)),
	}
	// Both descriptors are held while they are used: neither number can come
	// to mean something else in between.
	var ctl error
	err = e.raw.Control(func(set uintptr) {
		err := conn.Control(func(fd uintptr) {
			ctl = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, int(fd), &event)
		})
		if err != nil {
			ctl = err
		}
	})
	if err != nil && e.closing.Load() {
		return os.ErrClosed
	}
	return errors.Join(err, ctl)
}

// tokenOf returns the 64 bits that add gave to the kernel. A token is never
// used twice, unlike a descriptor number.
func tokenOf(event *unix.EpollEvent) uint64 {
	return uint64(uint32(event.Pad))<<32 | uint64(uint32(event.Fd))
}

// close implements notifier.
func (e *epoll) close() error {
	e.closing.Store(true)
	err := e.file.Close()
	<-e.done
	return errors.Join(err, e.err)
}
