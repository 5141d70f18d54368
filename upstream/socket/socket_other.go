//go:build unix && !linux

package socket

import "golang.org/x/sys/unix"

func read(fd uintptr, p []byte) (int, error) { return unix.Read(int(fd), p) }

func write(fd uintptr, p []byte) (int, error) { return unix.Write(int(fd), p) }
