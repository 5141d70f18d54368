package gone

import (
	"bytes"
	"errors"
)

// ErrBareLF is what Conn.Read returns when a line of a request head ends in LF
// without CR. RFC 9112 §2.2 lets a server take it for a line end; parsers that
// do and parsers that do not see different requests, and fasthttp, which waits
// for CRLF CRLF, waits for ever. Answer 400 and close.
var ErrBareLF = errors.New("gone: line of a request head ends without CR")

// headGuard looks for a bare LF in the heads of the requests on a connection.
// The zero value expects the first head.
//
// It does not follow bodies, so that somebody has to tell it where the next
// head begins. That is easy while the client waits for each answer. A client
// that pipelines may have sent part of its next request before, and then the
// next byte read is not the first of a head: such a head is not looked at.
type headGuard struct {
	state   guardState
	begun   bool // the server has reported the beginning of this request
	started bool // the request line has been seen; before it, empty lines are skipped
	cr      bool // the byte before the next one is CR
	line    int  // bytes of the current line so far
}

type guardState uint8

const (
	guardFirst  guardState = iota // the next byte is the first of the connection
	guardNext                     // the next byte is the first of a head
	guardHead                     // within a head
	guardBody                     // behind a head, or in one that is not looked at
	guardTLS                      // the connection is encrypted, nothing is looked at
	guardFailed                   // a bare LF was found
)

// tlsHandshake is the first byte of a TLS connection (RFC 8446 §5.1). No request
// begins with it.
const tlsHandshake = 0x16

// feed looks at the bytes that have just been read and returns the offset of a
// bare LF in a head, or -1.
func (g *headGuard) feed(p []byte) int {
	if len(p) == 0 || g.state >= guardBody {
		return -1
	}
	if g.state == guardFirst && p[0] == tlsHandshake {
		g.state = guardTLS
		return -1
	}
	g.state = guardHead
	for i := 0; ; {
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			if rest := len(p) - i; rest > 0 {
				g.line += rest
				g.cr = p[len(p)-1] == '\r'
			}
			return -1
		}
		at := i + n
		cr := g.cr
		if n > 0 {
			cr = p[at-1] == '\r'
		}
		if !cr {
			g.state = guardFailed
			return at
		}
		empty := g.line+n == len("\r")
		if empty && g.started {
			g.state = guardBody
			return -1
		}
		g.started = g.started || !empty
		g.cr, g.line, i = false, 0, at+1
	}
}

// next notes that the current request is done with.
func (g *headGuard) next() {
	switch {
	case g.state != guardBody && g.state != guardHead:
		// Encrypted, failed, or nothing has been read since the last time.
	case g.begun:
		*g = headGuard{state: guardNext}
	default:
		// Nobody reports where requests begin, so we cannot know whether the
		// next byte read is the first of one.
		g.state = guardBody
	}
}

// begin notes that the server has the first byte of a request. If it was not
// read just now, it had come with the request before.
func (g *headGuard) begin() {
	g.begun = true
	if g.state == guardFirst || g.state == guardNext {
		g.state = guardBody
	}
}
