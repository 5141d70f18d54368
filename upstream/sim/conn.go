package sim

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// listener hands out connections whose heads are recorded as they came.
type listener struct {
	net.Listener
	accepted func()
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted()
	return &conn{Conn: c}, nil
}

type connKey struct{}

// withConn is the server's ConnContext: handlers find their connection with
// connOf.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, or nil behind a foreign server.
func connOf(ctx context.Context) *conn {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return nil
	}
	return c
}

// conn is a connection that keeps the request heads that pass through it.
// Reads come from one goroutine at a time, as net/http does it.
type conn struct {
	net.Conn

	mu    sync.Mutex
	tap   headTap
	slow  int           // bytes still to be written one at a time
	pause time.Duration // between those
}

// Read reads from the connection, and lets the tap see it.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.mu.Lock()
		c.tap.feed(b[:n])
		c.mu.Unlock()
	}
	return n, err
}

// Write writes to the connection, slowly where dribble has asked for it.
func (c *conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	slow, pause := min(c.slow, len(b)), c.pause
	c.slow -= slow
	c.mu.Unlock()
	for n < slow {
		if _, err := c.Conn.Write(b[n : n+1]); err != nil {
			return n, err
		}
		n++
		time.Sleep(pause)
	}
	m, err := c.Conn.Write(b[n:])
	return n + m, err
}

// dribble makes the next n bytes go out one at a time.
func (c *conn) dribble(n int, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow, c.pause = n, pause
}

// reset closes the connection with a TCP RST.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		// On an error the connection is gone already.
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// garbage writes bytes that no HTTP client can read and closes the connection.
func (c *conn) garbage() {
	// An error means that the client has gone, which is as well.
	_, _ = c.Conn.Write([]byte("\x16\x03\x01 this is not HTTP\x00\xff\r\n\r\n"))
	_ = c.Close()
}

// head returns the head of the oldest request not yet asked for, or nil.
func (c *conn) head() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tap.take()
}

// tapState is what the next byte of a connection belongs to.
type tapState uint8

const (
	tapHead    tapState = iota
	tapBody             // left bytes of a body or of a chunk with its line end
	tapSize             // the size line of a chunk
	tapTrailer          // a line after the last chunk
	tapOff              // not HTTP/1, or not readable
)

// headTap finds the heads in the bytes that a client sends on an HTTP/1.1
// connection. It knows just enough of RFC 9112 to find where bodies end;
// whether the message is right is net/http's business.
type headTap struct {
	state   tapState
	chunked bool
	left    int64
	line    []byte   // the head or line being collected
	heads   [][]byte // whole and not yet taken
}

// maxTapLine bounds what the tap collects; a longer head is not recorded.
const maxTapLine = 1 << 20

func (t *headTap) take() []byte {
	if len(t.heads) == 0 {
		return nil
	}
	h := t.heads[0]
	t.heads = t.heads[1:]
	return h
}

func (t *headTap) feed(b []byte) {
	for len(b) > 0 && t.state != tapOff {
		if t.state == tapBody {
			n := min(t.left, int64(len(b)))
			b = b[n:]
			if t.left -= n; t.left == 0 {
				t.endBody()
			}
			continue
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b) - 1
		}
		t.line = append(t.line, b[:i+1]...)
		b = b[i+1:]
		if len(t.line) > maxTapLine {
			t.state = tapOff
		} else if t.line[len(t.line)-1] == '\n' {
			t.endLine()
		}
	}
}

func (t *headTap) endBody() {
	t.state = tapHead
	if t.chunked {
		t.state = tapSize
	}
}

func (t *headTap) endLine() {
	switch t.state {
	case tapHead:
		if len(t.line) <= 2 { // blank lines before a request, RFC 9112 §2.2
			t.line = t.line[:0]
		} else if bytes.HasSuffix(t.line, []byte("\n\r\n")) || bytes.HasSuffix(t.line, []byte("\n\n")) {
			t.endHead()
		}
	case tapSize:
		size, _, _ := strings.Cut(strings.TrimSpace(string(t.line)), ";")
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 62)
		t.line = t.line[:0]
		switch {
		case err != nil || n < 0:
			t.state = tapOff
		case n == 0:
			t.state = tapTrailer
		default:
			t.state, t.left = tapBody, n+2
		}
	case tapTrailer:
		if len(t.line) <= 2 {
			t.state = tapHead
		}
		t.line = t.line[:0]
	}
}

func (t *headTap) endHead() {
	head := t.line
	t.line = nil
	if bytes.HasPrefix(head, []byte("PRI * HTTP/2.0\r\n")) {
		t.state = tapOff
		return
	}
	t.heads = append(t.heads, head)
	t.chunked, t.left = false, 0
	for _, f := range parseHead(head) {
		switch strings.ToLower(f.Name) {
		case "transfer-encoding":
			t.chunked = true
		case "content-length":
			n, err := strconv.ParseInt(f.Value, 10, 63)
			if err != nil {
				t.state = tapOff
				return
			}
			t.left = n
		}
	}
	switch {
	case t.chunked:
		t.state = tapSize
	case t.left > 0:
		t.state = tapBody
	default:
		t.state = tapHead
	}
}

// parseHead splits the header lines of a head, names as they were spelled.
func parseHead(head []byte) []Field {
	var fields []Field
	lines := strings.Split(string(head), "\n")
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		if ok {
			fields = append(fields, Field{Name: name, Value: strings.Trim(value, " \t")})
		}
	}
	return fields
}
