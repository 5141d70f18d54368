package sim

import (
	"net/http"
	"strings"
	"testing"
)

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hello there"}]}`

func TestChat(t *testing.T) {
	e := start(t, Options{Text: "one two three"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		a := post200(t, c, e.URL()+"/v1/chat/completions", chatBody)
		v := read(t, a.body)
		wantEqual(t, "object", at(t, v, "object"), "chat.completion")
		wantEqual(t, "model", at(t, v, "model"), "m")
		wantEqual(t, "content", at(t, v, "choices", 0, "message", "content"), "one two three")
		wantEqual(t, "role", at(t, v, "choices", 0, "message", "role"), "assistant")
		wantEqual(t, "finish_reason", at(t, v, "choices", 0, "finish_reason"), "stop")
		wantEqual(t, "stop_reason", at(t, v, "choices", 0, "stop_reason"), nil)
		wantEqual(t, "completion_tokens", at(t, v, "usage", "completion_tokens"), 3.0)
		wantEqual(t, "total_tokens", at(t, v, "usage", "total_tokens"), 3+at(t, v, "usage", "prompt_tokens").(float64))
		wantEqual(t, "content type", a.header.Get("Content-Type"), "application/json")
	})
}

func TestChat_LimitsAndStops(t *testing.T) {
	e := start(t, Options{Text: "one two three four"})
	c := client(t, HTTP1)
	f := func(extra, text, finish string) {
		t.Helper()
		body := strings.Replace(chatBody, `"model":"m"`, `"model":"m",`+extra, 1)
		v := read(t, post200(t, c, e.URL()+"/v1/chat/completions", body).body)
		wantEqual(t, "content with "+extra, at(t, v, "choices", 0, "message", "content"), text)
		wantEqual(t, "finish_reason with "+extra, at(t, v, "choices", 0, "finish_reason"), finish)
	}
	f(`"max_tokens":2`, "one two", "length")
	f(`"max_completion_tokens":3`, "one two three", "length")
	f(`"max_tokens":1,"max_completion_tokens":3`, "one two three", "length")
	f(`"max_tokens":"2"`, "one two", "length")
	f(`"max_tokens":2.0`, "one two", "length")
	f(`"max_tokens":1e30`, "one two three four", "stop")
	f(`"max_tokens":null`, "one two three four", "stop")
	f(`"max_tokens":4`, "one two three four", "stop")
	f(`"stop":" three"`, "one two", "stop")
	f(`"stop":["four","two"]`, "one ", "stop")
	f(`"stop":"four","max_tokens":2`, "one two", "length")
	f(`"max_tokens":9,"max_tokens":1`, "one", "length")
	f(`"temperature":NaN`, "one two three four", "stop")
}

func TestChat_Stream(t *testing.T) {
	e := start(t, Options{Text: "one two three"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		body := strings.Replace(chatBody, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)
		a := post200(t, c, e.URL()+"/v1/chat/completions", body)
		wantEqual(t, "content type", a.header.Get("Content-Type"), "text/event-stream; charset=utf-8")
		list := events(t, a.body)
		wantEqual(t, "number of events", len(list), 1+3+1+1+1)
		wantEqual(t, "last event", list[6].data, "[DONE]")
		var text strings.Builder
		for i, ev := range list[:5] {
			v := read(t, []byte(ev.data))
			wantEqual(t, "object", at(t, v, "object"), "chat.completion.chunk")
			if i == 0 {
				wantEqual(t, "role", at(t, v, "choices", 0, "delta", "role"), "assistant")
			} else if i < 4 {
				text.WriteString(at(t, v, "choices", 0, "delta", "content").(string))
			} else {
				wantEqual(t, "finish_reason", at(t, v, "choices", 0, "finish_reason"), "stop")
			}
		}
		wantEqual(t, "text", text.String(), "one two three")
		v := read(t, []byte(list[5].data))
		wantEqual(t, "choices of the usage event", len(at(t, v, "choices").([]any)), 0)
		wantEqual(t, "completion_tokens", at(t, v, "usage", "completion_tokens"), 3.0)
	})
}

func TestChat_UsageOnlyWhenAsked(t *testing.T) {
	e := start(t, Options{Words: 2})
	c := client(t, HTTP1)
	f := func(options string, withUsage int) {
		t.Helper()
		body := strings.Replace(chatBody, "{", `{"stream":true,`+options, 1)
		n := strings.Count(string(post200(t, c, e.URL()+"/v1/chat/completions", body).body), `"usage":{`)
		wantEqual(t, "events with usage for "+options, n, withUsage)
	}
	f(``, 0)
	f(`"stream_options":null,`, 0)
	f(`"stream_options":{"include_usage":false},`, 0)
	f(`"stream_options":{"include_usage":true},`, 1)
	f(`"stream_options":{"include_usage":true,"continuous_usage_stats":true},`, 1+2+1+1)
}

func TestChat_Choices(t *testing.T) {
	e := start(t, Options{Words: 2})
	c := client(t, HTTP1)
	v := read(t, post200(t, c, e.URL()+"/v1/chat/completions", strings.Replace(chatBody, "{", `{"n":3,`, 1)).body)
	wantEqual(t, "choices", len(at(t, v, "choices").([]any)), 3)
	for i := range 3 {
		wantEqual(t, "index", at(t, v, "choices", i, "index"), float64(i))
		wantEqual(t, "content", at(t, v, "choices", i, "message", "content"), words(2, i))
	}
	wantEqual(t, "completion_tokens", at(t, v, "usage", "completion_tokens"), 6.0)
	body := post200(t, c, e.URL()+"/v1/chat/completions", strings.Replace(chatBody, "{", `{"n":2,"stream":true,`, 1)).body
	wantEqual(t, "events of index 1", strings.Count(string(body), `{"index":1,`), 1+2+1)
}
