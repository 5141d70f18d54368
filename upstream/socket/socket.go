// Package socket reads and writes sockets within a wait of Go's poller, in the
// function that a [syscall.RawConn] is given.
//
// A system call that may block makes the runtime give the thread's place to
// another, and look later whether it took long. A call on a socket that is
// non-blocking, as all of Go's are, never waits, so that on Linux the calls here
// leave that out. It was a tenth of what a small request costs.
//
// The package builds on unix systems.
package socket

import "golang.org/x/sys/unix"

// Read reads from the non-blocking socket fd what is there. At the end of the
// stream it returns 0, where there is nothing yet EAGAIN. The error is a
// [syscall.Errno], and n is then 0.
func Read(fd uintptr, p []byte) (n int, err error) {
	for {
		n, err = read(fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Write writes to the non-blocking socket fd as much of p as it takes. Where it
// takes nothing now, the error is EAGAIN. The error is a [syscall.Errno], and n
// is then 0.
func Write(fd uintptr, p []byte) (n int, err error) {
	for {
		n, err = write(fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
