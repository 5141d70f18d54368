// Package upstream talks to the workers: pools of them, the choice of one, the
// connections to it and one exchange of request and answer over such a
// connection.
//
// A request walks through it like this: Pool.Acquire chooses a worker and
// counts it as loaded, Exchange.Do sends the request and reads the head of the
// answer, Exchange.Next reads the body piece by piece, Exchange.Close gives
// the connection back or closes it, and Worker.Release ends the load.
//
// A pool changes under traffic: Pool.Apply takes new settings, Pool.SetMembers
// what a source of workers names (see upstream/discover), and Pool.Add, Remove
// and Drain act by hand. Requests under way end as they began.
//
// The wire format lives in packages of its own (h1) which do no I/O; here a
// goroutine drives them. The package knows nothing of request parameters.
package upstream

import (
	"fmt"

	"sluice/upstream/h1"
)

// Request is what one exchange sends. All of it is the caller's memory, which
// must not change until Exchange.Do returns; the same Request may be sent again
// to another worker.
type Request struct {
	// Method and Target are written as they are. Target is the raw request
	// target in origin form.
	Method, Target []byte
	// Fields are the end-to-end header fields, without Host, Content-Length
	// and every hop-by-hop field: those are written by the exchange.
	Fields []h1.Field
	// Body is the request body in pieces, which are never joined when they
	// are large. Length is the sum of their lengths, or −1 where the request
	// has no body at all.
	Body   [][]byte
	Length int64
}

// Fault is the kind of a failed exchange.
type Fault uint8

// The faults. They say what the router may do next: with FaultConnect no engine
// has begun with the request.
const (
	// FaultConnect: no connection to the worker could be made.
	FaultConnect Fault = iota + 1
	// FaultClosed: the worker closed or reset the connection before the head
	// of its answer was complete.
	FaultClosed
	// FaultProtocol: what the worker sent is not an HTTP answer.
	FaultProtocol
	// FaultFirstByte: the head of the answer did not come in time.
	FaultFirstByte
	// FaultBetween: the body paused for longer than allowed.
	FaultBetween
	// FaultTotal: the whole exchange took longer than allowed.
	FaultTotal
	// FaultIncomplete: the worker ended the body before its end.
	FaultIncomplete
	// FaultCanceled: Exchange.Cancel was called.
	FaultCanceled
)

var faultTexts = [...]string{
	FaultConnect:    "cannot connect",
	FaultClosed:     "connection closed before the answer",
	FaultProtocol:   "not an HTTP answer",
	FaultFirstByte:  "no answer in time",
	FaultBetween:    "the answer paused for too long",
	FaultTotal:      "the answer took too long",
	FaultIncomplete: "the answer ended too early",
	FaultCanceled:   "canceled",
}

// String returns a text for logs.
func (f Fault) String() string {
	if int(f) >= len(faultTexts) {
		return "unknown fault"
	}
	return faultTexts[f]
}

// Timeout reports whether f is a deadline that passed.
func (f Fault) Timeout() bool {
	return f == FaultFirstByte || f == FaultBetween || f == FaultTotal
}

// Error is a failed exchange. Its text names the worker and is meant for the
// operator's log; it must not reach a client.
type Error struct {
	Fault  Fault
	Worker string
	// Err is the cause, which may be nil.
	Err error
}

// Error returns the fault, the worker and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("worker %s: %s", e.Worker, e.Fault)
	}
	return fmt.Sprintf("worker %s: %s: %v", e.Worker, e.Fault, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
