package sim

import (
	"net/http"
)

// stream is an answer of server-sent events. Each event goes out by itself.
type stream struct {
	x *exchange
	n int // events written
}

// stream sends the head of a stream.
func (x *exchange) stream() *stream {
	if x.p.framing == framingEOF {
		x.w.Header().Set("Transfer-Encoding", "identity")
	}
	x.head(http.StatusOK, "text/event-stream; charset=utf-8")
	x.flush()
	return &stream{x: x}
}

// data writes an event without a name.
func (s *stream) data(v any) { s.event("", v) }

// event writes v as an event, with an event: line if name is not empty, and
// breaks off before it if the plan says so.
func (s *stream) event(name string, v any) {
	s.failAt()
	s.send(name, marshal(v))
}

// end writes the end of a stream of OpenAI's and ends the answer.
func (s *stream) end() {
	s.failAt()
	s.send("", []byte("[DONE]"))
	s.x.whole = true
}

func (s *stream) failAt() {
	f := s.x.p.Fail
	if s.n < f.After {
		return
	}
	switch f.Kind {
	case FailCut:
		s.x.breakOff()
	case FailError:
		s.x.endWithError(s)
	}
}

func (s *stream) send(name string, data []byte) {
	b := make([]byte, 0, len(data)+len(name)+16)
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(append(b, "data: "...), data...), "\n\n"...)
	s.n++
	s.x.write(b)
	s.x.flush()
}

// endWithError ends s as the engine of the surface does when it fails in the
// midst of a stream: an error event and, where the surface has one, [DONE].
func (x *exchange) endWithError(s *stream) {
	err := &apiError{status: http.StatusInternalServerError, message: simulatedFault}
	switch x.r.URL.Path {
	case "/v1/messages":
		s.send("error", marshal(anthropicError(err)))
	case "/v1/responses":
		s.send("error", marshal(responseErrorEvent{"error", "server_error", err.message, nil, s.n}))
	default:
		s.send("", marshal(x.streamError(err)))
		s.send("", []byte("[DONE]"))
	}
	x.whole = true
	panic(endOfAnswer{})
}

// streamError nests an error, which SGLang too does inside a stream.
func (x *exchange) streamError(err *apiError) any {
	if shape, ok := x.errorShape(err).(flatError); ok {
		return nestedError[flatError]{shape}
	}
	return x.errorShape(err)
}

// responseErrorEvent is the error event of /v1/responses.
type responseErrorEvent struct {
	Type     string  `json:"type"`
	Code     string  `json:"code"`
	Message  string  `json:"message"`
	Param    *string `json:"param"`
	Sequence int     `json:"sequence_number"`
}
