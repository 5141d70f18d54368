package h2c

import (
	"errors"
	"io"
	"testing"
)

func TestError(t *testing.T) {
	f := func(e *Error, want string) {
		t.Helper()
		if got := e.Error(); got != want {
			t.Errorf("unexpected text; got %q; want %q", got, want)
		}
		if e.Err != nil && !errors.Is(e, e.Err) {
			t.Errorf("%v does not wrap its cause", e)
		}
	}
	f(&Error{Fault: FaultTimeout}, "h2c: deadline passed")
	f(&Error{Fault: FaultClosed, Err: io.EOF}, "h2c: connection closed before the answer: EOF")
	f(&Error{Fault: FaultReset, Code: RefusedStream}, "h2c: stream reset before the answer (REFUSED_STREAM)")
	f(&Error{Fault: FaultProtocol, Code: ProtocolError, Err: errPush}, "h2c: not an HTTP/2 answer (PROTOCOL_ERROR): h2c: PUSH_PROMISE, which was ruled out")
	f(&Error{Fault: FaultCanceled + 1, Code: HTTP11Required + 1}, "h2c: unknown fault (code 14)")
	f(&Error{Code: HTTP11Required}, "h2c: unknown fault (HTTP_1_1_REQUIRED)")
}
