package gone

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for something that must happen.
const patience = 10 * time.Second

// notifiers are both ways to notice; Linux can run either.
var notifiers = map[string]func(*Watcher) (notifier, error){
	"default": newNotifier,
	"sweep":   func(w *Watcher) (notifier, error) { return newSweeper(w, time.Millisecond), nil },
}

// testbed is a watched listener and what tests want from it.
type testbed struct {
	t  testing.TB
	w  *Watcher
	ln net.Listener
}

func newTestbed(t testing.TB, newNotifier func(*Watcher) (notifier, error)) *testbed {
	t.Helper()
	w, err := newWatcher(newNotifier)
	if err != nil {
		t.Fatalf("cannot make a watcher: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen: %v", err)
	}
	b := &testbed{t: t, w: w, ln: w.Listen(ln)}
	t.Cleanup(func() {
		if err := b.ln.Close(); err != nil {
			t.Errorf("cannot close the listener: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("cannot close the watcher: %v", err)
		}
	})
	return b
}

// pair opens a connection and returns both ends of it. Both are closed with the test.
func (b *testbed) pair() (server *Conn, client *net.TCPConn) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.ln.Addr().String())
	if err != nil {
		b.t.Fatalf("cannot connect: %v", err)
	}
	s, err := b.ln.Accept()
	if err != nil {
		b.t.Fatalf("cannot accept: %v", err)
	}
	server, client = s.(*Conn), c.(*net.TCPConn)
	b.t.Cleanup(func() { _, _ = server.Close(), client.Close() })
	return server, client
}

// signal is a Canceler that can be waited for.
type signal chan struct{}

func (s signal) Cancel() { close(s) }

func (s signal) wait(t testing.TB, what string) {
	t.Helper()
	select {
	case <-s:
	case <-time.After(patience):
		t.Fatalf("%s: not cancelled", what)
	}
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// allRead tells whether the server has read what its clients have sent.
func (b *testbed) allRead() bool {
	for _, c := range b.w.appendConns(nil) {
		raw, err := c.SyscallConn()
		if err != nil {
			continue // closed
		}
		queued := 0
		err = raw.Control(func(fd uintptr) {
			var b [1]byte
			queued, _, _ = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		})
		if err == nil && queued > 0 {
			return false
		}
	}
	return true
}

func (w *Watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// openFiles counts the descriptors of the process.
func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skipf("no way to count descriptors here: %v", err)
	}
	return len(entries)
}

func goroutines() int {
	runtime.Gosched()
	return runtime.NumGoroutine()
}
