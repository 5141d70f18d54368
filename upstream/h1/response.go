package h1

import "io"

// Limits of an answer.
const (
	// MaxHead bounds the bytes of the head: status line, fields and empty
	// line, together with all interim answers that came before it.
	MaxHead = 64 << 10
	// MaxFields bounds the field lines of one head.
	MaxFields = 256
	// MaxInterim bounds the 1xx answers before the final one.
	MaxInterim = 16
)

// What Reset lets a Response keep. A larger buffer goes to the collector, so
// that one fat head does not stay with a connection for its whole life.
const (
	keepHead   = 8 << 10
	keepFields = 64
)

// Response reads one answer, fed to it in pieces of any size. It must be Reset
// before each answer, the first included. A connection owns one Response and
// uses it for all its answers; it must not be copied after Reset and is not
// safe for concurrent use.
//
// The first fault is final: every later call returns the same error.
type Response struct {
	// Status is the status code of the final answer, 200 to 599. Valid once
	// FeedHead has returned done.
	Status int

	// Fields are the fields of the final answer, in the order and with the
	// spelling they came in, optional white space around the values cut off.
	// Content-Length and Transfer-Encoding are left out: they were judged
	// here, and what they said is in ContentLength and Chunked. The slice and
	// what it points to are valid from the end of the head until the next Reset.
	Fields []Field

	// ContentLength is the Content-Length of the answer, -1 if it has none.
	// For an answer to HEAD and for 304 it is what the worker said about a body
	// that does not follow (RFC 9110 §8.6); for 204 it is 0. Valid once
	// FeedHead has returned done.
	ContentLength int64

	head    []byte // this head so far; Fields alias it
	spans   []span // the fields by offset, because head moves while it grows
	line    int    // offset in head of the line being read
	fed     int    // bytes of all heads of this answer
	interim int    // 1xx answers skipped
	left    int64  // body bytes still to come, of the message or of the chunk
	skipped int    // bytes of the chunk extension or the trailer section so far
	digits  int    // digits of the chunk size so far
	err     error  // the first fault

	phase     phase
	framing   framing
	chunk     chunkState
	isHead    bool // answers a HEAD request
	http10    bool // the answer is HTTP/1.0
	statusEnd bool // the status line has been read
	chunkedTE bool // Transfer-Encoding: chunked was seen
	closes    bool // Connection: close was seen
	keepAlive bool // Connection: keep-alive was seen
}

// phase is how far an answer has come.
type phase uint8

const (
	phaseHead phase = iota
	phaseBody
	phaseDone
)

// framing is how the end of the body is found (RFC 9112 §6.3).
type framing uint8

const (
	framedNone    framing = iota // there is no body
	framedLength                 // Content-Length
	framedChunked                // Transfer-Encoding: chunked
	framedEOF                    // the body ends with the connection
)

// span is a Field by offsets in the head buffer.
type span struct {
	name, nameEnd, value, valueEnd int32
}

// Reset makes r ready for the answer to a request with the given method, of
// which it only has to know whether it is HEAD. Fields of the answer before
// become invalid. Buffers are kept unless they are large; method is not kept.
func (r *Response) Reset(method []byte) {
	head, spans, fields := r.head[:0], r.spans[:0], r.Fields[:0]
	if cap(head) > keepHead {
		head = nil
	}
	if cap(spans) > keepFields {
		spans, fields = nil, nil
	}
	*r = Response{
		Fields:        fields,
		ContentLength: -1,
		head:          head,
		spans:         spans,
		isHead:        string(method) == "HEAD",
	}
}

// Begun tells whether any byte of the answer, an interim answer included, has
// been fed. A request that was sent on a connection kept alive and got not even
// one byte back before the connection ended may be sent again on a fresh one
// (RFC 9112 §9.5 has the race this is about).
func (r *Response) Begun() bool { return r.fed > 0 }

// HasBody tells whether a body follows the head: not after HEAD, 204, 304 or
// Content-Length: 0. A chunked or read-to-EOF body may still turn out empty.
// Valid once FeedHead has returned done.
func (r *Response) HasBody() bool { return r.framing != framedNone }

// Chunked tells whether the body that follows is chunked.
func (r *Response) Chunked() bool { return r.framing == framedChunked }

// UntilEOF tells whether the body that follows ends when the worker closes the
// connection.
func (r *Response) UntilEOF() bool { return r.framing == framedEOF }

// EOF tells r that the worker closed its side in an orderly way, and returns
// whether the answer may end here: nil if it is complete or its body is read to
// EOF (and is complete now), [io.ErrUnexpectedEOF] if something is missing,
// the earlier fault if there was one. Over TLS a missing close_notify is not
// orderly (RFC 9112 §9.8): do not call EOF for it.
func (r *Response) EOF() error {
	switch {
	case r.err != nil:
		return r.err
	case r.phase == phaseDone:
		return nil
	case r.phase == phaseBody && r.framing == framedEOF:
		r.phase = phaseDone
		return nil
	}
	r.err = io.ErrUnexpectedEOF
	return r.err
}

// Reusable tells whether the connection may carry another request after this
// answer (RFC 9112 §9.3): the answer is complete and without fault, its end
// was not the end of the connection, and it is HTTP/1.1 without Connection:
// close or HTTP/1.0 with Connection: keep-alive. Bytes that the worker sent
// beyond the end are not known here: a caller that was left with any must not
// reuse the connection.
func (r *Response) Reusable() bool {
	if r.err != nil || r.phase != phaseDone || r.framing == framedEOF || r.closes {
		return false
	}
	return !r.http10 || r.keepAlive
}
