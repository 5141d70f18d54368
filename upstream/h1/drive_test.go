package h1

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// outcome is all that a driver can learn from one answer.
type outcome struct {
	status   int
	fields   string // "Name=Value|" for each
	length   int64
	framing  string
	body     string
	excess   string // bytes that were left over after the end
	complete bool
	reusable bool
	err      error
}

// drive feeds the pieces of an answer to r and then the end of the connection.
// Each piece is a copy that is spoilt after the call, so that a parser that
// kept an alias would be found out.
func drive(r *Response, method string, pieces ...string) outcome {
	r.Reset([]byte(method))
	var o outcome
	var body, excess strings.Builder
	headDone, done := false, false
	for _, piece := range pieces {
		p := []byte(piece)
		rest := p
		if !headDone && o.err == nil {
			var n int
			n, headDone, o.err = r.FeedHead(rest)
			rest = rest[n:]
		}
		if headDone && !done && o.err == nil {
			var payload []byte
			var n int
			payload, n, done, o.err = r.FeedBody(rest)
			body.Write(payload)
			rest = rest[n:]
		}
		if done {
			excess.Write(rest)
		}
		for i := range p {
			p[i] = '#'
		}
	}
	if !done && o.err == nil {
		o.err = r.EOF()
		done = o.err == nil
	}
	o.body, o.excess, o.complete, o.reusable = body.String(), excess.String(), done, r.Reusable()
	if headDone {
		o.status, o.length, o.framing = r.Status, r.ContentLength, framingName(r)
		for _, f := range r.Fields {
			o.fields += fmt.Sprintf("%s=%s|", f.Name, f.Value)
		}
	}
	return o
}

// follow is drive with Follow in place of FeedBody; body is what it consumed.
func follow(t *testing.T, r *Response, method string, pieces ...string) outcome {
	t.Helper()
	r.Reset([]byte(method))
	var o outcome
	var body, excess strings.Builder
	headDone, done := false, false
	for _, piece := range pieces {
		rest := []byte(piece)
		if !headDone && o.err == nil {
			var n int
			n, headDone, o.err = r.FeedHead(rest)
			rest = rest[n:]
		}
		if headDone && !done && o.err == nil {
			var n int
			before := string(rest)
			n, done, o.err = r.Follow(rest)
			if string(rest) != before {
				t.Fatalf("Follow changed its input; got %q; want %q", rest, before)
			}
			body.Write(rest[:n])
			rest = rest[n:]
		}
		if done {
			excess.Write(rest)
		}
	}
	if !done && o.err == nil {
		o.err = r.EOF()
		done = o.err == nil
	}
	o.body, o.excess, o.complete, o.reusable = body.String(), excess.String(), done, r.Reusable()
	return o
}

func framingName(r *Response) string {
	switch {
	case r.Chunked():
		return "chunked"
	case r.UntilEOF():
		return "eof"
	case r.HasBody():
		return "length"
	}
	return "none"
}

// answer joins lines with CRLF, and ends the head.
func answer(lines ...string) string {
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// singles cuts s into pieces of one byte.
func singles(s string) []string {
	return strings.Split(s, "")
}

func checkOutcome(t *testing.T, what string, got, want outcome) {
	t.Helper()
	if !errors.Is(got.err, want.err) {
		t.Fatalf("%s: unexpected error; got %v; want %v", what, got.err, want.err)
	}
	if got != want {
		t.Fatalf("%s: unexpected outcome;\n got %+v;\nwant %+v", what, got, want)
	}
}

// eof is the error of an answer that ended too early.
var eof = io.ErrUnexpectedEOF
