package h2c

import (
	"fmt"
	"net"
	"os"
	"time"
)

// Probe finds out whether the peer at the other end of nc speaks HTTP/2 with
// prior knowledge: it sends the preface and waits for the SETTINGS of the peer
// and its acknowledgement of ours. The connection that it returns is good for
// traffic. Where there is an error nc is closed.
//
// An HTTP/1.1 server answers 400 or closes the connection, which is ErrNotH2C or
// the error of the socket at once; one that waits for more of the "request"
// takes until the deadline (os.ErrDeadlineExceeded). Each means that this peer
// is better spoken to in HTTP/1.1.
func Probe(nc net.Conn, cfg Config, deadline time.Time) (*Conn, error) {
	c, err := NewConn(nc, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.waitReady(deadline); err != nil {
		c.Close()
		return nil, fmt.Errorf("h2c: no HTTP/2 connection: %w", err)
	}
	return c, nil
}

func (c *Conn) waitReady(deadline time.Time) error {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-c.ready:
		return c.Err()
	case <-t.C:
		return os.ErrDeadlineExceeded
	}
}
