package h1

import "errors"

// The faults of an answer. They name what the worker did wrong and are meant
// for the operator's log: they hold no bytes of the answer and must not be
// sent to a client. After any of them the connection is of no further use.
var (
	// ErrStatusLine: the first line is not "HTTP/1.0 nnn" or "HTTP/1.1 nnn"
	// with an optional reason phrase, or nnn is outside 100 to 599.
	ErrStatusLine = errors.New("h1: malformed status line")
	// ErrBareLF: a line of the head ends in LF without CR.
	ErrBareLF = errors.New("h1: line of the head ends without CR")
	// ErrFieldName: a field line has no colon, or its name is empty, is not a
	// token or is followed by white space.
	ErrFieldName = errors.New("h1: malformed field name")
	// ErrFieldValue: a field value holds a control character other than HTAB.
	ErrFieldValue = errors.New("h1: control character in a field value")
	// ErrFold: a field line begins with white space (obs-fold).
	ErrFold = errors.New("h1: folded field line")
	// ErrHeadTooLarge: the head, interim answers before it included, is longer
	// than MaxHead.
	ErrHeadTooLarge = errors.New("h1: head of the answer is too large")
	// ErrTooManyFields: the head has more than MaxFields field lines.
	ErrTooManyFields = errors.New("h1: too many fields in the head of the answer")
	// ErrTooManyInterim: more than MaxInterim 1xx answers came before the final one.
	ErrTooManyInterim = errors.New("h1: too many interim answers")
	// ErrUpgrade: the worker answered 101, which no request of ours asks for.
	ErrUpgrade = errors.New("h1: unexpected 101 Switching Protocols")
	// ErrContentLength: a Content-Length is not a decimal number below 2^63, or
	// two of them differ.
	ErrContentLength = errors.New("h1: invalid or contradicting Content-Length")
	// ErrTransferEncoding: a Transfer-Encoding is not exactly "chunked", is
	// repeated, or stands in an HTTP/1.0 answer.
	ErrTransferEncoding = errors.New("h1: unsupported Transfer-Encoding")
	// ErrBothLengths: the head has Transfer-Encoding and Content-Length.
	ErrBothLengths = errors.New("h1: both Transfer-Encoding and Content-Length")
	// ErrChunkSize: a chunk does not begin with 1 to 16 hexadecimal digits
	// that make a number below 2^63, or something else follows them.
	ErrChunkSize = errors.New("h1: malformed chunk size")
	// ErrChunkExtension: a chunk extension is too long or holds a control character.
	ErrChunkExtension = errors.New("h1: malformed or oversized chunk extension")
	// ErrChunkEnd: the data of a chunk is not followed by CRLF.
	ErrChunkEnd = errors.New("h1: chunk does not end in CRLF")
	// ErrTrailer: the trailer section is too long or a line of it is malformed.
	ErrTrailer = errors.New("h1: malformed or oversized trailer section")
)
