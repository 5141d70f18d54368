package gone

import (
	"net"

	"github.com/valyala/fasthttp"
)

// ConnState is the hook for [fasthttp.Server.ConnState] that tells a Conn where
// requests begin and end, so that Read can look at the head of each. Without
// it only the first head of a connection is looked at. It ignores connections
// that are neither a *Conn nor a *TLSConn.
func ConnState(c net.Conn, state fasthttp.ConnState) {
	g := guardOf(c)
	if g == nil {
		return
	}
	switch state {
	case fasthttp.StateActive:
		g.begin()
	case fasthttp.StateIdle:
		g.next()
	}
}

// NextHead tells Read that the request under way has been read and answered, so
// that the next byte belongs to another head. The hook ConnState does it; a
// server without that hook has no use for it. For the reading goroutine.
func (c *Conn) NextHead() {
	c.guard.next()
}
