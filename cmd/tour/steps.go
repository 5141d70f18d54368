package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// step is one request of the tour.
type step struct {
	name   string
	about  string
	path   string
	body   string
	stream bool
	// check returns an error unless x is what about promises.
	check func(x *exchange) error
}

// exchange is one request as the client and the engines saw it.
type exchange struct {
	id   string
	sent string

	engine   int // number of the engine that got it, 0: none did
	received string

	status int
	header http.Header
	body   string // of a stream: "" and events
	events []event
}

// event is one event of a stream, with the time since the request was sent.
type event struct {
	at   time.Duration
	data string
}

const oddBody = `{ "model":"sim-8b",   "temperature" : 1.00, "top_p":9.5e-1,
  "seed":9007199254740993,
  "messages":[ {"role":"user","content":"caf\u00e9?"} ] }`

var steps = []step{
	{
		name:  "untouched",
		about: "The request keeps the contract and names the model itself. There is\nnothing to change, so the engine receives the very same bytes.",
		path:  "/v1/chat/completions",
		body:  oddBody,
		check: func(x *exchange) error { return passed(x, oddBody) },
	},
	{
		name: "injected",
		about: "The client sends no temperature, so the router adds the pinned one, and\n" +
			"the alias becomes the model's name. All other bytes are the client's.",
		path: "/v1/chat/completions",
		body: `{"model": "small",  "messages":[{"role":"user","content":"Hello?"}]}`,
		check: func(x *exchange) error {
			return passed(x, `{"temperature":1,"model": "sim-8b",  "messages":[{"role":"user","content":"Hello?"}]}`)
		},
	},
	{
		name:  "refused",
		about: "The temperature is not the pinned one. The client is told which parameter\nand what is allowed; no engine hears of it.",
		path:  "/v1/chat/completions",
		body:  `{"model":"small","temperature":0.5,"messages":[{"role":"user","content":"Hello?"}]}`,
		check: func(x *exchange) error { return refused(x, "got 0.5, expected 1 (or omit the field)") },
	},
	{
		name: "refused, on another surface",
		about: "The same contract holds for every way to generate. Here a top_p outside\n" +
			"of its band, sent to the Anthropic API, is refused in that API's shape.",
		path:  "/v1/messages",
		body:  `{"model":"small","max_tokens":16,"top_p":0.5,"messages":[{"role":"user","content":"Hello?"}]}`,
		check: func(x *exchange) error { return refused(x, "must be between 0.9 and 1, got 0.5") },
	},
	{
		name:   "streamed",
		about:  "Each event is sent on as it comes from the engine.",
		path:   "/v1/chat/completions",
		body:   `{"model":"small","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello?"}]}`,
		stream: true,
		check:  streamed,
	},
}

// passed checks that an engine got want and that its answer came back.
func passed(x *exchange, want string) error {
	switch {
	case x.engine == 0:
		return fmt.Errorf("no engine received the request; the answer was %d %s", x.status, x.body)
	case x.received != want:
		return fmt.Errorf("the engine received %q, not %q", x.received, want)
	case x.status != http.StatusOK:
		return fmt.Errorf("the answer was %d, not 200: %s", x.status, x.body)
	}
	var answer struct{ Object string }
	if err := json.Unmarshal([]byte(x.body), &answer); err != nil || answer.Object != "chat.completion" {
		return fmt.Errorf("the answer is no chat completion: %s", x.body)
	}
	return nil
}

// refused checks that the contract refused the request, with detail, and that
// no engine got it.
func refused(x *exchange, detail string) error {
	const want = "sampling_contract_violation"
	switch code := x.header.Get("X-Router-Error-Code"); {
	case x.engine != 0:
		return fmt.Errorf("engine %d received the request", x.engine)
	case x.status != http.StatusBadRequest:
		return fmt.Errorf("the answer was %d, not 400: %s", x.status, x.body)
	case code != want:
		return fmt.Errorf("x-router-error-code is %q, not %q", code, want)
	}
	var answer struct{ Error struct{ Message string } }
	err := json.Unmarshal([]byte(x.body), &answer)
	if err != nil || !strings.HasSuffix(answer.Error.Message, " violates this deployment's sampling contract: "+detail) {
		return fmt.Errorf("the message does not say %q: %s", detail, x.body)
	}
	return nil
}

// streamed checks that a whole stream came, and not all at once.
func streamed(x *exchange) error {
	n := len(x.events)
	switch {
	case x.engine == 0:
		return fmt.Errorf("no engine received the request; the answer was %d %s", x.status, x.body)
	case x.status != http.StatusOK:
		return fmt.Errorf("the answer was %d, not 200: %s", x.status, x.body)
	case n < 3 || x.events[n-1].data != "[DONE]":
		return fmt.Errorf("the stream did not end with [DONE]; it had %d events", n)
	case x.events[n-1].at-x.events[0].at < pace:
		return fmt.Errorf("all %d events came at once, after %s", n, x.events[0].at)
	}
	return nil
}

// gist is what is shown of an event: the part that differs from event to event.
func (e *event) gist() string {
	var chunk struct {
		Choices []struct {
			Delta  json.RawMessage
			Finish *string `json:"finish_reason"`
		}
		Usage json.RawMessage
	}
	if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
		return e.data
	}
	if len(chunk.Choices) == 0 {
		return "usage " + cmp.Or(string(chunk.Usage), "none")
	}
	c := &chunk.Choices[0]
	if c.Finish != nil {
		return "delta " + string(c.Delta) + " finish_reason " + *c.Finish
	}
	return "delta " + string(c.Delta)
}
