//go:build unix

package upstream

import "golang.org/x/sys/unix"

// quiet reports whether the socket fd is open and has nothing to read.
func quiet(fd uintptr) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n <= 0 && (err == unix.EAGAIN || err == unix.EWOULDBLOCK)
}
