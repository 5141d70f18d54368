package gone

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptor returns the descriptor number of c.
func descriptor(t *testing.T, c *Conn) (number int) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { number = int(fd) }))
	return number
}

// TestEpoll_LateEventOfAReusedDescriptor: the kernel keeps a registration as
// long as any descriptor of the socket lives. A duplicate makes an event come
// for a connection that is closed, whose number another one has by now.
func TestEpoll_LateEventOfAReusedDescriptor(t *testing.T) {
	b := newTestbed(t, newNotifier)
	old, oldClient := b.pair()
	number := descriptor(t, old)
	duplicate, err := old.File()
	must(t, err)
	defer duplicate.Close()

	// The client's socket must not take the number, so it is made first.
	client, err := net.Dial("tcp", b.ln.Addr().String())
	must(t, err)
	defer client.Close()
	must(t, old.Close())
	accepted, err := b.ln.Accept()
	must(t, err)
	defer accepted.Close()
	server := accepted.(*Conn)
	if got := descriptor(t, server); got != number {
		t.Fatalf("the number was not reused; got %d; want %d", got, number)
	}
	server.Arm(make(signal))

	must(t, oldClient.Close())
	// Events come in order: when this one has been handled, the late one has.
	last, lastClient := b.pair()
	canceled := make(signal)
	last.Arm(canceled)
	must(t, lastClient.Close())
	canceled.wait(t, "the last")
	if server.Gone() || old.Gone() {
		t.Fatalf("the late event was taken; got %v, %v", server.Gone(), old.Gone())
	}
	server.Disarm()
}

func TestTokenOf(t *testing.T) {
	for _, token := range []uint64{1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 | 1<<31 | 5, 1<<64 - 1} {
		event := unix.EpollEvent{Fd: int32(uint32(token)), Pad: int32(uint32(token >> 32))}
		if got := tokenOf(&event); got != token {
			t.Fatalf("unexpected token; got %#x; want %#x", got, token)
		}
	}
}

func TestConn_NoDelay(t *testing.T) {
	server, _ := newTestbed(t, newNotifier).pair()
	raw, err := server.SyscallConn()
	must(t, err)
	var value int
	var get error
	must(t, raw.Control(func(fd uintptr) { value, get = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY) }))
	if get != nil || value == 0 {
		t.Fatalf("unexpected TCP_NODELAY; got %d, %v", value, get)
	}
}
