package h2c

import (
	"errors"
	"fmt"
	"strconv"
)

// Fault is the kind of a failed exchange.
type Fault uint8

// The faults. What the router may do next depends on [Error.Unprocessed] too.
const (
	// FaultClosed: the connection ended before the head of the answer.
	FaultClosed Fault = iota + 1
	// FaultGoAway: the peer leaves and will not process this request, or the
	// connection takes no more requests.
	FaultGoAway
	// FaultReset: the peer reset the stream before the head of the answer.
	FaultReset
	// FaultProtocol: what the peer sent is not an HTTP/2 answer.
	FaultProtocol
	// FaultLength: the body is not as long as its content-length said.
	FaultLength
	// FaultIncomplete: stream or connection ended within the body.
	FaultIncomplete
	// FaultTimeout: the deadline passed.
	FaultTimeout
	// FaultCanceled: Stream.Cancel was called.
	FaultCanceled
)

var faultTexts = [...]string{
	FaultClosed:     "connection closed before the answer",
	FaultGoAway:     "connection takes no more requests",
	FaultReset:      "stream reset before the answer",
	FaultProtocol:   "not an HTTP/2 answer",
	FaultLength:     "body and content-length differ",
	FaultIncomplete: "the answer ended too early",
	FaultTimeout:    "deadline passed",
	FaultCanceled:   "canceled",
}

// String returns a text for logs.
func (f Fault) String() string {
	if int(f) >= len(faultTexts) || f == 0 {
		return "unknown fault"
	}
	return faultTexts[f]
}

// Error is a failed exchange. Its text is meant for the operator's log.
type Error struct {
	Fault Fault
	// Code is that of the RST_STREAM or GOAWAY that the peer sent, or that of
	// the one it was sent; NoError where there was none.
	Code Code
	// Unprocessed: the peer has certainly not processed the request, which may
	// be sent again elsewhere whatever its method (RFC 9113 section 8.7): its
	// stream is above the last one of a GOAWAY, it was refused, or the
	// connection ended before its head was written.
	Unprocessed bool
	// Stale: the connection ended without a byte from the peer since the
	// request was begun, as one does that the peer was closing for its age.
	Stale bool
	// Err is the cause, which may be nil.
	Err error
}

// Error returns the fault, the code and the cause.
func (e *Error) Error() string {
	text := e.Fault.String()
	if e.Code != NoError {
		text += " (" + e.Code.String() + ")"
	}
	if e.Err != nil {
		return fmt.Sprintf("h2c: %s: %v", text, e.Err)
	}
	return "h2c: " + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Code is an error code of HTTP/2 (RFC 9113 section 7).
type Code uint32

// The codes of RFC 9113 section 7.
const (
	NoError Code = iota
	ProtocolError
	InternalError
	FlowControlError
	SettingsTimeout
	StreamClosed
	FrameSizeError
	RefusedStream
	Cancel
	CompressionError
	ConnectError
	EnhanceYourCalm
	InadequateSecurity
	HTTP11Required
)

var codeTexts = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
	"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String returns the name that the RFC gives the code, or its number.
func (c Code) String() string {
	if int(c) < len(codeTexts) {
		return codeTexts[c]
	}
	return "code " + strconv.FormatUint(uint64(c), 10)
}

var (
	// ErrNotH2C: the first bytes of the peer are not those of an HTTP/2
	// connection; an HTTP/1.1 server answers like this.
	ErrNotH2C error = errNotH2C
	// ErrNoAnswer: the peer was silent and left a PING unanswered.
	ErrNoAnswer = errors.New("h2c: no answer to a PING")
	// ErrDeaf: the peer has stopped to read.
	ErrDeaf = errors.New("h2c: the peer does not read")
	// ErrClosed: Conn.Close was called.
	ErrClosed = errors.New("h2c: connection closed by its owner")

	errNoConn = errors.New("h2c: no connection")
	errGone   = errors.New("h2c: the peer went away")
)

// wireError is something that the peer did wrong and the code it is told.
type wireError struct {
	code Code
	text string
}

func (e *wireError) Error() string { return "h2c: " + e.text }

// What a peer can do wrong. In the first group it costs the connection, in the
// second the stream.
var (
	errNotH2C       = &wireError{ProtocolError, "the peer does not speak HTTP/2"}
	errFrameSize    = &wireError{FrameSizeError, "frame of a wrong size"}
	errStreamID     = &wireError{ProtocolError, "frame on a stream that cannot have it"}
	errPush         = &wireError{ProtocolError, "PUSH_PROMISE, which was ruled out"}
	errContinuation = &wireError{ProtocolError, "header block interrupted or out of place"}
	errPadding      = &wireError{ProtocolError, "padding longer than its frame"}
	errSetting      = &wireError{ProtocolError, "invalid setting"}
	errWindow       = &wireError{FlowControlError, "window above 2^31-1"}
	errOverrun      = &wireError{FlowControlError, "more data than the window allows"}
	errIncrement    = &wireError{ProtocolError, "WINDOW_UPDATE of 0"}
	errHPACK        = &wireError{CompressionError, "malformed header block"}
	errBlockSize    = &wireError{EnhanceYourCalm, "header block too large"}
	errFlood        = &wireError{EnhanceYourCalm, "too many frames that serve nothing"}

	errHeadSize = &wireError{EnhanceYourCalm, "head of the answer too large"}
	errField    = &wireError{ProtocolError, "malformed field"}
	errHopField = &wireError{ProtocolError, "field of a connection in an answer"}
	errPseudo   = &wireError{ProtocolError, "missing, repeated or misplaced pseudo field"}
	errInterim  = &wireError{ProtocolError, "too many or malformed interim answers"}
	errLength   = &wireError{ProtocolError, "invalid or contradicting content-length"}
	errTrailer  = &wireError{ProtocolError, "trailers that do not end the stream"}
	errNoHead   = &wireError{ProtocolError, "body before the head of the answer"}
	errNoBody   = &wireError{ProtocolError, "body in an answer that has none"}
	errEnded    = &wireError{StreamClosed, "frame after the end of the stream"}
	errMismatch = &wireError{ProtocolError, "body and content-length differ"}
)
