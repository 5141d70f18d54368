package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// secureConfig returns what the https worker at host, a name or an address
// without brackets, is dialed with: base, which may be nil, with what must hold
// for every worker.
//
// The sessions are the worker's own. A pool may give all its workers one server
// name, and crypto/tls would keep one session for all of them, which only the
// worker that gave it takes back.
func secureConfig(base *tls.Config, host string) *tls.Config {
	c := &tls.Config{}
	if base != nil {
		c = base.Clone()
	}
	if c.ServerName == "" {
		c.ServerName, _, _ = strings.Cut(host, "%")
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.NextProtos = []string{"http/1.1"}
	c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	// Small first records help a browser to begin to draw. A worker gets a
	// request as a whole, and each record is a write of its own.
	c.DynamicRecordSizingDisabled = true
	return c
}

// handshake makes nc a TLS session before ctx ends and before deadline, if
// there is one. It leaves no deadline.
func handshake(ctx context.Context, nc net.Conn, c *tls.Config, deadline time.Time) (*tls.Conn, error) {
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	session := tls.Client(nc, c)
	if err := session.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return session, nil
}

// unread reports whether a session whose socket is silent has bytes that nobody
// asked for: it may have read more from the socket than it has handed out. The
// deadline that has passed keeps it from reading more, and a record that is not
// for us, such as a ticket, is taken.
func unread(session *tls.Conn) bool {
	if err := session.SetReadDeadline(past); err != nil {
		return true
	}
	var b [1]byte
	n, err := session.Read(b[:])
	return n > 0 || !isTimeout(err)
}
