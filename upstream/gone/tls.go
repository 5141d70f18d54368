package gone

import (
	"crypto/tls"
	"net"
)

// ListenTLS returns a listener like that of Listen whose connections speak TLS:
// Accept returns a *TLSConn over the *Conn. The socket itself is watched, so that
// a client is seen to go whether or not it has said so in TLS. c must not be
// changed any more.
func (w *Watcher) ListenTLS(ln net.Listener, c *tls.Config) net.Listener {
	return &tlsListener{Listener: w.Listen(ln), config: c}
}

type tlsListener struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener. The handshake is made by the first Read or
// Write.
func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &TLSConn{Conn: tls.Server(c, l.config)}, nil
}

// TLSConn is a TLS connection over a Conn, which [Of] finds. It looks at request
// heads like a Conn does at those that are not encrypted; reading is for one
// goroutine.
type TLSConn struct {
	*tls.Conn
	guard headGuard // of the reading goroutine
}

// Read implements net.Conn. Its errors are those of [tls.Conn.Read] and
// ErrBareLF, see [Conn.Read].
func (c *TLSConn) Read(p []byte) (int, error) {
	if c.guard.state == guardFailed {
		return 0, ErrBareLF
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		if under := Of(c.NetConn()); under != nil && !under.heard.Load() {
			under.heard.Store(true)
		}
	}
	if i := c.guard.feed(p[:n]); i >= 0 {
		return i, ErrBareLF
	}
	return n, err
}

// guardOf returns the guard of the heads on c, or nil.
func guardOf(c net.Conn) *headGuard {
	switch c := c.(type) {
	case *Conn:
		return &c.guard
	case *TLSConn:
		return &c.guard
	}
	return nil
}
