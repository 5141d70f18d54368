package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pair returns a connection by its raw side, and the other end of it.
func pair(t *testing.T) (syscall.RawConn, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	raw, err := a.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw, b.(*net.TCPConn)
}

func TestRead(t *testing.T) {
	raw, peer := pair(t)
	var buf [16]byte
	read := func(wantErr error) (n int) {
		t.Helper()
		calls := 0
		var err error
		if rawErr := raw.Read(func(fd uintptr) bool {
			calls++
			n, err = Read(fd, buf[:])
			return wantErr != nil || !errors.Is(err, unix.EAGAIN)
		}); rawErr != nil {
			t.Fatal(rawErr)
		}
		if !errors.Is(err, wantErr) {
			t.Fatalf("unexpected error after %d calls; got %v; want %v", calls, err, wantErr)
		}
		return n
	}
	if n := read(unix.EAGAIN); n != 0 {
		t.Fatalf("unexpected length; got %d; want 0", n)
	}
	if _, err := peer.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if n := read(nil); string(buf[:n]) != "hello" {
		t.Fatalf("unexpected bytes; got %q", buf[:n])
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	if n := read(nil); n != 0 {
		t.Fatalf("unexpected length at the end; got %d; want 0", n)
	}
}

// TestWrite writes more than the socket takes at once.
func TestWrite(t *testing.T) {
	raw, peer := pair(t)
	sent := bytes.Repeat([]byte("0123456789"), 1<<20)
	got := make(chan []byte, 1)
	go func() {
		p := make([]byte, len(sent))
		n, _ := io.ReadFull(peer, p)
		got <- p[:n]
	}()
	left, waits := sent, 0
	if err := raw.Write(func(fd uintptr) bool {
		n, err := Write(fd, left)
		if errors.Is(err, unix.EAGAIN) {
			waits++
			return false
		}
		if err != nil {
			t.Errorf("cannot write: %v", err)
			return true
		}
		left = left[n:]
		return len(left) == 0
	}); err != nil {
		t.Fatal(err)
	}
	if p := <-got; !bytes.Equal(p, sent) {
		t.Fatalf("unexpected bytes: %d of %d, after %d waits", len(p), len(sent), waits)
	}
}

func TestErrors(t *testing.T) {
	closed := ^uintptr(0)
	if n, err := Read(closed, make([]byte, 1)); n != 0 || !errors.Is(err, unix.EBADF) {
		t.Errorf("unexpected read; got %d, %v", n, err)
	}
	if n, err := Write(closed, make([]byte, 1)); n != 0 || !errors.Is(err, unix.EBADF) {
		t.Errorf("unexpected write; got %d, %v", n, err)
	}
}
