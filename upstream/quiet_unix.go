//go:build unix

package upstream

import "golang.org/x/sys/unix"

// quiet reports whether the socket fd is open and has nothing to read: neither
// bytes nor the end of the connection.
func quiet(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n == 0 && err == nil
}
