package probe

import "testing"

// benchmarkEvent feeds one event at a time.
func benchmarkEvent(b *testing.B, surface Surface, text string) {
	event := []byte(text)
	var s Stream
	s.Reset(surface)
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		s.Feed(event)
	}
	if s.Events == 0 {
		b.Fatal("unexpected number of events: 0")
	}
}

const (
	chatEvent = `data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,` +
		`"model":"llama","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	usageEvent = `data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,` +
		`"model":"llama","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\n"
	messagesEvent = "event: content_block_delta\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" hello"}}` + "\n\n"
	responsesEvent = "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","item_id":"msg_0123456789abcdef",` +
		`"output_index":0,"content_index":0,"delta":" hello","sequence_number":12}` + "\n\n"
	generateEvent = `data: {"text":" hello world","output_ids":[1,2,3],"meta_info":{"id":"0123456789abcdef","finish_reason":null,` +
		`"prompt_tokens":12,"weight_version":"default","completion_tokens":3,"cached_tokens":1}}` + "\n\n"
)

func BenchmarkStreamFeed(b *testing.B) {
	b.Run("chat", func(b *testing.B) { benchmarkEvent(b, SurfaceChat, chatEvent) })
	b.Run("chat-usage", func(b *testing.B) { benchmarkEvent(b, SurfaceChat, usageEvent) })
	b.Run("messages", func(b *testing.B) { benchmarkEvent(b, SurfaceMessages, messagesEvent) })
	b.Run("responses", func(b *testing.B) { benchmarkEvent(b, SurfaceResponses, responsesEvent) })
	b.Run("generate", func(b *testing.B) { benchmarkEvent(b, SurfaceGenerate, generateEvent) })
}
