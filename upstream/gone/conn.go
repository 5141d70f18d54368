package gone

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Canceler is what can be cancelled when a client has gone. Cancel is called on
// the goroutine of the Watcher, or on that of Arm, with a lock of the Conn held:
// it must not block and must not call Arm or Disarm. It may be called after the
// work has ended by itself, up to the return of Disarm.
type Canceler interface {
	Cancel()
}

// Conn is a watched client connection. Reading is for one goroutine, that of
// the server, as are NextHead and the hook ConnState, and writing is for one;
// everything else is safe for concurrent use.
type Conn struct {
	*net.TCPConn
	raw     syscall.RawConn // of it
	in, out half

	watcher *Watcher
	token   uint64
	gone    atomic.Bool
	heard   atomic.Bool // the client has sent a byte, of what TLS may be around
	guard   headGuard   // of the reading goroutine

	mu       sync.Mutex
	canceler Canceler // nil while not armed
	linger   linger
	closed   bool
}

// Of returns the Conn that c is or, through its NetConn method, is built on, as
// a [crypto/tls.Conn] is. It returns nil if there is none.
func Of(c net.Conn) *Conn {
	for c != nil {
		if gc, ok := c.(*Conn); ok {
			return gc
		}
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = over.NetConn()
	}
	return nil
}

// Arm makes the Conn call canceler.Cancel, once, when the client goes. If it
// has gone already, Cancel is called before Arm returns. An earlier canceler is
// replaced.
func (c *Conn) Arm(canceler Canceler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Load() {
		canceler.Cancel()
		return
	}
	c.canceler = canceler
}

// Disarm takes back what Arm did. After it has returned, no Cancel is running
// or will run. It does no harm on a Conn that is not armed.
func (c *Conn) Disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceler = nil
}

// Gone tells whether the client is known to have gone, whether or not the Conn
// is armed (on Linux; on other systems only armed connections are looked at).
func (c *Conn) Gone() bool {
	return c.gone.Load()
}

// Read implements net.Conn. It returns ErrBareLF when the client ends a line of
// a request head with a bare LF, with the bytes before it, and from then on.
func (c *Conn) Read(p []byte) (int, error) {
	if c.guard.state == guardFailed {
		return 0, ErrBareLF
	}
	n, err := c.in.run(c.raw.Read, p)
	fault := c.guard.feed(p[:n])
	if n > 0 && !c.heard.Load() && c.guard.state != guardTLS {
		c.heard.Store(true)
	}
	if fault >= 0 {
		return fault, ErrBareLF
	}
	return n, err
}

// Close implements net.Conn. It ends the watching and closes the descriptor,
// after having lingered if Linger asked for it. A second Close returns
// [net.ErrClosed] at once. Close does not cancel what is armed.
func (c *Conn) Close() error {
	c.mu.Lock()
	closed, linger := c.closed, c.linger
	c.closed = true
	c.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	// The entry goes first: an event that is under way, or one for the next
	// connection with this descriptor number, cannot find us any more.
	c.watcher.forget(c)
	linger.drain(c.TCPConn)
	return c.TCPConn.Close()
}

// hangUp notes that the client has gone.
func (c *Conn) hangUp() {
	c.gone.Store(true)
	c.cancel()
}

// cancel cancels what is armed.
func (c *Conn) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if canceler := c.canceler; canceler != nil {
		c.canceler = nil
		canceler.Cancel()
	}
}

func (c *Conn) armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.canceler != nil
}
