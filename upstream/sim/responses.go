package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// response is the object of /v1/responses.
type response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	Status             string            `json:"status"`
	Error              json.RawMessage   `json:"error"`
	IncompleteDetails  *incompleteReason `json:"incomplete_details"`
	Instructions       json.RawMessage   `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Model              string            `json:"model"`
	Output             []outputItem      `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID json.RawMessage   `json:"previous_response_id"`
	Temperature        float64           `json:"temperature"`
	ToolChoice         string            `json:"tool_choice"`
	Tools              []json.RawMessage `json:"tools"`
	TopP               float64           `json:"top_p"`
	Background         bool              `json:"background"`
	ServiceTier        string            `json:"service_tier"`
	Truncation         string            `json:"truncation"`
	Metadata           json.RawMessage   `json:"metadata"`
	Usage              *responseUsage    `json:"usage"`
}

type incompleteReason struct {
	Reason string `json:"reason"`
}

type outputItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
	Logprobs    []json.RawMessage `json:"logprobs"`
}

type responseUsage struct {
	Input         int           `json:"input_tokens"`
	InputDetails  inputDetails  `json:"input_tokens_details"`
	Output        int           `json:"output_tokens"`
	OutputDetails reasoningUsed `json:"output_tokens_details"`
	Total         int           `json:"total_tokens"`
}

type inputDetails struct {
	Cached     int `json:"cached_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
}

// responses is POST /v1/responses.
func (x *exchange) responses() {
	o := x.obj
	prompt := o.text("instructions") + "\n" + o.responseInput()
	o.sampling()
	limit, stream := o.positive("max_output_tokens"), o.flag("stream", false)
	r := x.newResponse()
	x.valid()
	g := x.generate([]string{prompt}, 1, limit, o.texts("stop"))
	if stream {
		x.streamResponse(g, r)
		return
	}
	x.run(g, nil)
	r.finish(g, x.id("msg_"))
	x.replyJSON(http.StatusOK, r)
}

func (x *exchange) newResponse() *response {
	o := x.obj
	r := &response{
		ID: x.id("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Error: null,
		Instructions: null, Model: x.model(), Output: []outputItem{}, ParallelToolCalls: true, PreviousResponseID: null,
		Temperature: o.number("temperature", 1), ToolChoice: "auto", Tools: []json.RawMessage{}, TopP: o.number("top_p", 1),
		ServiceTier: "auto", Truncation: "disabled", Metadata: null,
	}
	if o.has("instructions") {
		r.Instructions = o.members["instructions"]
	}
	if o.has("max_output_tokens") {
		n := o.integer("max_output_tokens", 0)
		r.MaxOutputTokens = &n
	}
	if o.has("tools") && !o.decode("tools", &r.Tools) {
		o.fail("tools", "list_type", "Input should be a valid list")
	}
	if o.has("metadata") {
		r.Metadata = o.members["metadata"]
	}
	return r
}

// responseInput renders input: a string or a list of items.
func (o *object) responseInput() string {
	const key = "input"
	o.need(key)
	var text string
	var items []json.RawMessage
	switch {
	case !o.has(key), o.decode(key, &text):
		return text
	case !o.decode(key, &items):
		o.fail(key, "string_type", "Input should be a valid string or list of items")
	}
	var s strings.Builder
	for _, raw := range items {
		item := &object{}
		if json.Unmarshal(raw, &item.members) != nil {
			o.fail(key, "dict_type", "Input should be a valid dictionary")
			continue
		}
		s.WriteString(item.text("role"))
		s.WriteByte('\n')
		s.WriteString(item.content("content"))
		s.WriteByte('\n')
		o.adopt(item)
	}
	return s.String()
}

// finish fills in what is known when g is done.
func (r *response) finish(g *generation, itemID string) {
	c := &g.choices[0]
	r.Status = "completed"
	switch c.finish {
	case finishLength:
		r.Status, r.IncompleteDetails = "incomplete", &incompleteReason{"max_output_tokens"}
	case finishAbort:
		r.Status = "cancelled"
	}
	item := "completed"
	if r.Status != "completed" {
		item = "incomplete"
	}
	r.Output = []outputItem{{itemID, "message", item, "assistant", []outputText{newOutputText(c.text())}}}
	r.Usage = &responseUsage{
		Input: g.prompt, InputDetails: inputDetails{Cached: g.cached}, Output: g.completion(), Total: g.prompt + g.completion(),
	}
}

func newOutputText(text string) outputText {
	return outputText{"output_text", text, []json.RawMessage{}, []json.RawMessage{}}
}

// responseEvent is any event of a streamed response; each type has some of the
// members.
type responseEvent struct {
	Type         string             `json:"type"`
	Sequence     int                `json:"sequence_number"`
	Response     *response          `json:"response,omitempty"`
	ItemID       string             `json:"item_id,omitempty"`
	OutputIndex  *int               `json:"output_index,omitempty"`
	ContentIndex *int               `json:"content_index,omitempty"`
	Item         *outputItem        `json:"item,omitempty"`
	Part         *outputText        `json:"part,omitempty"`
	Delta        *string            `json:"delta,omitempty"`
	Text         *string            `json:"text,omitempty"`
	Logprobs     *[]json.RawMessage `json:"logprobs,omitempty"`
}

func (x *exchange) streamResponse(g *generation, r *response) {
	s := x.stream()
	send := func(kind string, e responseEvent) {
		e.Type, e.Sequence = kind, s.n
		s.event(kind, e)
	}
	id, zero, noLogprobs := x.id("msg_"), 0, []json.RawMessage{}
	send("response.created", responseEvent{Response: r})
	send("response.in_progress", responseEvent{Response: r})
	item := outputItem{id, "message", "in_progress", "assistant", []outputText{}}
	send("response.output_item.added", responseEvent{OutputIndex: &zero, Item: &item})
	part := newOutputText("")
	send("response.content_part.added", responseEvent{ItemID: id, OutputIndex: &zero, ContentIndex: &zero, Part: &part})
	x.run(g, func(_, i int) {
		send("response.output_text.delta", responseEvent{
			ItemID: id, OutputIndex: &zero, ContentIndex: &zero, Delta: &g.choices[0].tokens[i], Logprobs: &noLogprobs,
		})
	})
	r.finish(g, id)
	item = r.Output[0]
	part = item.Content[0]
	send("response.output_text.done", responseEvent{
		ItemID: id, OutputIndex: &zero, ContentIndex: &zero, Text: &part.Text, Logprobs: &noLogprobs,
	})
	send("response.content_part.done", responseEvent{ItemID: id, OutputIndex: &zero, ContentIndex: &zero, Part: &part})
	send("response.output_item.done", responseEvent{OutputIndex: &zero, Item: &item})
	last := "response.completed"
	if r.Status != "completed" {
		last = "response.incomplete"
	}
	send(last, responseEvent{Response: r})
	x.whole = true
}
