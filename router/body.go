package router

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/upstream/gone"
)

// Bodies live in buffers of two pooled sizes. A larger one is made for its
// request and left to the collector, so that an idle router holds none.
const (
	smallBuffer = 16 << 10
	largeBuffer = 1 << 20
)

var (
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, 0, smallBuffer); return &b }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, largeBuffer); return &b }}
)

// getBuffer returns an empty buffer with room for n bytes, or for as much as a
// promise of n bytes is worth before the bytes have come.
func getBuffer(n int) *[]byte {
	if n <= smallBuffer {
		return smallBuffers.Get().(*[]byte)
	}
	return largeBuffers.Get().(*[]byte)
}

func putBuffer(b *[]byte) {
	switch cap(*b) {
	case smallBuffer:
		*b = (*b)[:0]
		smallBuffers.Put(b)
	case largeBuffer:
		*b = (*b)[:0]
		largeBuffers.Put(b)
	}
}

// grow makes room in b, at most for limit bytes and one more, which shows that
// the limit was passed. Of a body that promises length bytes (0: it does not) and
// of which a quarter has come the rest is believed.
func grow(b *[]byte, length, limit int64) *[]byte {
	old := *b
	if cap(old) < largeBuffer {
		nb := largeBuffers.Get().(*[]byte)
		*nb = append((*nb)[:0], old...)
		putBuffer(b)
		return nb
	}
	size := min(2*int64(cap(old)), max(limit+1, int64(len(old))+1))
	if have := int64(len(old)); have < length && have >= length/4 {
		size = length + 1 // and one more, to see the end
	}
	bigger := make([]byte, len(old), size)
	copy(bigger, old)
	putBuffer(b)
	return &bigger
}

var errTooLarge = errors.New("body is larger than the limit")

// readAll reads r to its end into b, which must be empty, up to limit bytes.
// It returns the buffer that holds the bytes, which may be another than b, with
// every error. For length see grow.
func readAll(r io.Reader, b *[]byte, length, limit int64) (*[]byte, error) {
	for {
		p := *b
		if len(p) == cap(p) {
			b = grow(b, length, limit)
			p = *b
		}
		n, err := r.Read(p[len(p):cap(p)])
		*b = p[:len(p)+n]
		if int64(len(*b)) > limit {
			return b, errTooLarge
		}
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// readBody reads the body of the request into q.body, decoded. It returns
// false after it has answered the request itself.
func (q *request) readBody(limit int64) bool {
	h := &q.ctx.Request.Header
	length := int64(h.ContentLength())
	if length > limit {
		return q.tooLarge()
	}
	stream := q.ctx.RequestBodyStream()
	if stream == nil {
		q.body, q.bodyRead = nil, true
		return true
	}
	b, err := readAll(stream, getBuffer(int(length)), length, limit)
	if err == nil && length >= 0 && int64(len(*b)) != length {
		err = io.ErrUnexpectedEOF // fasthttp takes the end of the connection for that of the body
	}
	if err != nil {
		putBuffer(b)
		switch {
		case errors.Is(err, errTooLarge):
			return q.tooLarge()
		case errors.Is(err, os.ErrDeadlineExceeded):
			q.ctx.SetConnectionClose()
			return q.refuse(fasthttp.StatusRequestTimeout, codeBadRequest, "request did not arrive in time", "")
		}
		// The client left, or sent a chunk that is none: either way the end of
		// the body is not known.
		q.ctx.SetConnectionClose()
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: cannot read the body", "")
	}
	q.bodyRead = true
	q.bytesIn = len(*b)
	q.holdBody(b)
	return q.decodeBody(limit)
}

// holdBody makes b the body of the request, in place of another.
func (q *request) holdBody(b *[]byte) {
	q.releaseBody()
	q.bodyBuffer, q.body = b, *b
}

// releaseBody gives the body's memory back. Nothing may point into it anymore.
func (q *request) releaseBody() {
	if q.bodyBuffer != nil {
		putBuffer(q.bodyBuffer)
	}
	q.bodyBuffer, q.body = nil, nil
}

func (q *request) tooLarge() bool {
	closeAfter(q.ctx)
	return q.refuse(fasthttp.StatusRequestEntityTooLarge, codePayloadTooLarge, tooLargeText, "")
}

const (
	// drained is the largest unread body that is left to fasthttp to read and
	// throw away, so that the connection may go on.
	drained = 64 << 10
	// Bounds of what is thrown away of a larger one.
	lingerBytes = 64 << 20
	lingerTime  = 2 * time.Second
)

// closeAfter closes the connection after the answer, and in a way that lets a
// client read that answer which is still sending.
func closeAfter(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c := gone.Of(ctx.Conn()); c != nil {
		c.Linger(lingerBytes, lingerTime)
	}
}
