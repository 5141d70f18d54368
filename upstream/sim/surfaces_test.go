package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

func TestCompletions(t *testing.T) {
	e := start(t, Options{})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/completions"
		v := read(t, post200(t, c, url, `{"prompt":["a b","c"],"n":2,"max_tokens":3}`).body)
		wantEqual(t, "object", at(t, v, "object"), "text_completion")
		wantEqual(t, "model", at(t, v, "model"), DefaultModel)
		wantEqual(t, "choices", len(at(t, v, "choices").([]any)), 4)
		wantEqual(t, "text", at(t, v, "choices", 3, "text"), words(3, 3))
		wantEqual(t, "finish_reason", at(t, v, "choices", 3, "finish_reason"), "length")
		wantEqual(t, "prompt_tokens", at(t, v, "usage", "prompt_tokens"), 3.0)
		wantEqual(t, "completion_tokens", at(t, v, "usage", "completion_tokens"), 12.0)

		v = read(t, post200(t, c, url, fmt.Sprintf(`{"prompt":[%d]}`, tokenID("hi"))).body)
		wantEqual(t, "prompt_tokens of ids", at(t, v, "usage", "prompt_tokens"), 1.0)

		list := events(t, post200(t, c, url, `{"prompt":"a","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`).body)
		wantEqual(t, "events", len(list), 5)
		wantEqual(t, "text", at(t, read(t, []byte(list[1].data)), "choices", 0, "text"), " quick")
		wantEqual(t, "finish_reason", at(t, read(t, []byte(list[2].data)), "choices", 0, "finish_reason"), "length")
		wantEqual(t, "completion_tokens", at(t, read(t, []byte(list[3].data)), "usage", "completion_tokens"), 2.0)
		wantEqual(t, "end", list[4].data, "[DONE]")
	})
}

func TestResponses(t *testing.T) {
	e := start(t, Options{Text: "one two three"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/responses"
		v := read(t, post200(t, c, url, `{"model":"m","input":"hi"}`).body)
		wantEqual(t, "status", at(t, v, "status"), "completed")
		wantEqual(t, "text", at(t, v, "output", 0, "content", 0, "text"), "one two three")
		wantEqual(t, "output_tokens", at(t, v, "usage", "output_tokens"), 3.0)

		v = read(t, post200(t, c, url, `{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}],"max_output_tokens":2}`).body)
		wantEqual(t, "status", at(t, v, "status"), "incomplete")
		wantEqual(t, "reason", at(t, v, "incomplete_details", "reason"), "max_output_tokens")

		list := events(t, post200(t, c, url, `{"input":"hi","stream":true}`).body)
		var names []string
		for i, ev := range list {
			v := read(t, []byte(ev.data))
			wantEqual(t, "type", at(t, v, "type"), ev.name)
			wantEqual(t, "sequence_number", at(t, v, "sequence_number"), float64(i))
			names = append(names, strings.TrimPrefix(ev.name, "response."))
		}
		wantEqual(t, "events", strings.Join(names, " "), "created in_progress output_item.added content_part.added "+
			"output_text.delta output_text.delta output_text.delta output_text.done content_part.done output_item.done completed")
		last := read(t, []byte(list[len(list)-1].data))
		wantEqual(t, "text", at(t, last, "response", "output", 0, "content", 0, "text"), "one two three")
	})
}

func TestMessages(t *testing.T) {
	e := start(t, Options{Text: "one two three"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/messages"
		f := func(extra, text, reason string) {
			t.Helper()
			v := read(t, post200(t, c, url, `{"model":"m","messages":[{"role":"user","content":"hi"}]`+extra+`}`).body)
			wantEqual(t, "type", at(t, v, "type"), "message")
			wantEqual(t, "text with "+extra, at(t, v, "content", 0, "text"), text)
			wantEqual(t, "stop_reason with "+extra, at(t, v, "stop_reason"), reason)
		}
		f(`,"max_tokens":9,"system":"be good"`, "one two three", "end_turn")
		f(`,"max_tokens":2`, "one two", "max_tokens")
		f(`,"max_tokens":9,"stop_sequences":["two"]`, "one ", "stop_sequence")

		list := events(t, post200(t, c, url, `{"model":"m","max_tokens":2,"stream":true,"messages":[{"role":"user","content":"hi"}]}`).body)
		var names []string
		for _, ev := range list {
			wantEqual(t, "type", at(t, read(t, []byte(ev.data)), "type"), ev.name)
			names = append(names, ev.name)
		}
		wantEqual(t, "events", strings.Join(names, " "), "message_start content_block_start ping content_block_delta "+
			"content_block_delta content_block_stop message_delta message_stop")
		v := read(t, []byte(list[6].data))
		wantEqual(t, "stop_reason", at(t, v, "delta", "stop_reason"), "max_tokens")
		wantEqual(t, "output_tokens", at(t, v, "usage", "output_tokens"), 2.0)
		wantEqual(t, "text", at(t, read(t, []byte(list[4].data)), "delta", "text"), " two")
	})
}

func TestGenerate(t *testing.T) {
	e := start(t, Options{Text: "one two three", Flavour: SGLang})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/generate"
		v := read(t, post200(t, c, url, `{"text":"hi you","rid":"r1","sampling_params":{"max_new_tokens":2}}`).body)
		wantEqual(t, "text", at(t, v, "text"), "one two")
		wantEqual(t, "output_ids", at(t, v, "output_ids", 0), float64(tokenID("one")))
		wantEqual(t, "id", at(t, v, "meta_info", "id"), "r1")
		wantEqual(t, "finish", at(t, v, "meta_info", "finish_reason", "type"), "length")
		wantEqual(t, "length", at(t, v, "meta_info", "finish_reason", "length"), 2.0)
		wantEqual(t, "prompt_tokens", at(t, v, "meta_info", "prompt_tokens"), 2.0)
		wantEqual(t, "completion_tokens", at(t, v, "meta_info", "completion_tokens"), 2.0)
		wantEqual(t, "cached_tokens", at(t, v, "meta_info", "cached_tokens"), 0.0)

		put := do(t, c, request(t, "PUT", url, `{"input_ids":[5],"sampling_params":{"stop":" two"}}`))
		v = read(t, put.body)
		wantEqual(t, "text", at(t, v, "text"), "one")
		wantEqual(t, "matched", at(t, v, "meta_info", "finish_reason", "matched"), " two")
	})
}

func TestGenerate_Batches(t *testing.T) {
	e := start(t, Options{Flavour: SGLang})
	c := client(t, HTTP1)
	f := func(body string, limits ...float64) {
		t.Helper()
		v := read(t, post200(t, c, e.URL()+"/generate", body).body)
		wantEqual(t, "answers to "+body, len(v.([]any)), len(limits))
		for i, n := range limits {
			wantEqual(t, "completion_tokens of "+body, at(t, v, i, "meta_info", "completion_tokens"), n)
		}
	}
	f(`{"text":["a","b"],"sampling_params":{"max_new_tokens":2}}`, 2, 2)
	f(`{"text":["a","b"],"sampling_params":[{"max_new_tokens":2},{"max_new_tokens":3}],"rid":["x","y"]}`, 2, 3)
	f(`{"text":["a"]}`, 16)
	f(`{"text":"a","sampling_params":{"n":3,"max_new_tokens":1}}`, 1, 1, 1)
	f(`{"input_ids":[[1,2],[3]],"sampling_params":{"max_new_tokens":1}}`, 1, 1)
}

func TestGenerate_Stream(t *testing.T) {
	e := start(t, Options{Flavour: SGLang, Text: "one two"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		list := events(t, post200(t, c, e.URL()+"/generate", `{"text":"a","stream":true}`).body)
		wantEqual(t, "events", len(list), 3)
		for i, text := range []string{"one", "one two"} {
			v := read(t, []byte(list[i].data))
			wantEqual(t, "text", at(t, v, "text"), text)
			wantEqual(t, "finished", at(t, v, "meta_info", "finish_reason") != nil, i == 1)
		}
		wantEqual(t, "end", list[2].data, "[DONE]")

		list = events(t, post200(t, c, e.URL()+"/generate", `{"text":["a","b"],"stream":true}`).body)
		wantEqual(t, "events of a batch", len(list), 5)
		wantEqual(t, "index", at(t, read(t, []byte(list[3].data)), "index"), 1.0)
	})
}

func TestEmbeddings(t *testing.T) {
	e := start(t, Options{Dimensions: 3})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/embeddings"
		v := read(t, post200(t, c, url, `{"input":["a","b c"]}`).body)
		wantEqual(t, "items", len(at(t, v, "data").([]any)), 2)
		floats := at(t, v, "data", 0, "embedding").([]any)
		wantEqual(t, "dimensions", len(floats), 3)
		wantEqual(t, "prompt_tokens", at(t, v, "usage", "prompt_tokens"), 3.0)

		v = read(t, post200(t, c, url, `{"input":"a","encoding_format":"base64"}`).body)
		raw, err := base64.StdEncoding.DecodeString(at(t, v, "data", 0, "embedding").(string))
		if err != nil || len(raw) != 12 {
			t.Fatalf("unexpected embedding; got %d bytes, %v; want 12", len(raw), err)
		}
		for i, want := range floats {
			got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			wantEqual(t, "number", got, float32(want.(float64)))
		}
		v = read(t, post200(t, c, url, `{"input":"a","dimensions":5}`).body)
		wantEqual(t, "dimensions", len(at(t, v, "data", 0, "embedding").([]any)), 5)
	})
}

// TestOthers covers the surfaces whose answers have little to look at: a path in
// the answer and the value there.
func TestOthers(t *testing.T) {
	vllm, sglang := start(t, Options{Text: "one two"}), start(t, Options{Flavour: SGLang})
	cases := []struct {
		engine     *Engine
		path, body string
		at         []any
		want       any
	}{
		{vllm, "/v1/rerank", `{"query":"q","documents":["a","b","c"],"top_n":2}`, []any{"results", 1, "document", "text"}, "c"},
		{sglang, "/v1/rerank", `{"query":"q","documents":["a","b","c"],"top_n":2}`, []any{1, "index"}, 2.0},
		{vllm, "/v1/score", `{"text_1":"q","text_2":["a","b"]}`, []any{"data", 1, "object"}, "score"},
		{sglang, "/v1/score", `{"query":"q","items":["a","b"],"label_token_ids":[1,2]}`, []any{"object"}, "scoring"},
		{vllm, "/v1/classify", `{"input":["a","b"]}`, []any{"data", 1, "num_classes"}, 2.0},
		{vllm, "/v1/moderations", `{"input":["a","b"]}`, []any{"results", 1, "categories", "hate/threatening"}, false},
		{vllm, "/v1/images/generations", `{"prompt":"a","n":2}`, []any{"data", 1, "b64_json"}, pixel},
		{vllm, "/v1/ocr", `{"document":{"type":"document_url","document_url":"data:,"}}`, []any{"pages", 0, "markdown"}, "one two"},
		{vllm, "/tokenize", `{"prompt":"hi you","return_token_strs":true}`, []any{"token_strs", 1}, " you"},
		{vllm, "/tokenize", `{"messages":[{"role":"user","content":"hi"}]}`, []any{"count"}, 5.0},
		{vllm, "/detokenize", fmt.Sprintf(`{"tokens":[%d,%d]}`, tokenID("hi"), tokenID(" you")), []any{"prompt"}, "hi you"},
		{sglang, "/v1/tokenize", `{"prompt":"hi you"}`, []any{"count"}, 2.0},
		{sglang, "/v1/tokenize", `{"prompt":["hi you","x"]}`, []any{"count", 1}, 1.0},
		{sglang, "/v1/detokenize", fmt.Sprintf(`{"tokens":[%d]}`, tokenID("hi")), []any{"text"}, "hi"},
		{sglang, "/v1/detokenize", fmt.Sprintf(`{"tokens":[[%d],[]]}`, tokenID("hi")), []any{"text", 0}, "hi"},
	}
	onBoth(t, func(t *testing.T, c *http.Client) {
		for _, tc := range cases {
			a := post200(t, c, tc.engine.URL()+tc.path, tc.body)
			wantEqual(t, tc.path+" "+tc.body, at(t, read(t, a.body), tc.at...), tc.want)
		}
	})
}

func TestAudio(t *testing.T) {
	e := start(t, Options{Text: "one two", Models: []string{"whisper"}})
	multi := func(t *testing.T, fields ...string) *http.Request {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == "file" {
				part, err := w.CreateFormFile("file", "a.wav")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprint(part, fields[i+1])
			} else if err := w.WriteField(fields[i], fields[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return request(t, "POST", e.URL()+"/v1/audio/transcriptions", b.String(), "Content-Type", w.FormDataContentType())
	}
	onBoth(t, func(t *testing.T, c *http.Client) {
		a := do(t, c, multi(t, "file", "\x00\xff", "model", "whisper"))
		wantEqual(t, "text", at(t, read(t, a.body), "text"), "one two")
		a = do(t, c, multi(t, "file", "x", "model", "whisper", "response_format", "text"))
		wantEqual(t, "plain text", string(a.body), "one two\n")
		a = do(t, c, multi(t, "model", "whisper", "file", "x", "stream", "true"))
		list := events(t, a.body)
		wantEqual(t, "delta", at(t, read(t, []byte(list[1].data)), "choices", 0, "delta", "content"), " two")
		wantEqual(t, "end", list[len(list)-1].data, "[DONE]")
		wantEqual(t, "status without a file", do(t, c, multi(t, "model", "whisper")).status, 400)
		wantEqual(t, "status of another model", do(t, c, multi(t, "file", "x", "model", "other")).status, 404)

		a = post200(t, c, e.URL()+"/v1/audio/speech", `{"input":"hello","model":"whisper","voice":"x"}`)
		wantEqual(t, "content type", a.header.Get("Content-Type"), "audio/wav")
		wantEqual(t, "size of the sound", len(a.body), 44+len("hello"))
	})
}

func TestModelsAndProbes(t *testing.T) {
	e := start(t, Options{Models: []string{"a", "org/b"}, MaxModelLen: 100})
	onBoth(t, func(t *testing.T, c *http.Client) {
		get := func(path string) answer { return do(t, c, request(t, "GET", e.URL()+path, "")) }
		v := read(t, get("/v1/models").body)
		wantEqual(t, "id", at(t, v, "data", 1, "id"), "org/b")
		wantEqual(t, "max_model_len", at(t, v, "data", 1, "max_model_len"), 100.0)
		for _, path := range []string{"/v1/models/org/b", "/v1/models/org%2Fb"} {
			wantEqual(t, "id at "+path, at(t, read(t, get(path).body), "id"), "org/b")
		}
		wantEqual(t, "status of another model", get("/v1/models/c").status, 404)
		wantEqual(t, "model_path", at(t, read(t, get("/get_model_info").body), "model_path"), "a")
		wantEqual(t, "status of /version", get("/version").status, 200)
		for _, path := range []string{"/health", "/health_generate"} {
			e.SetHealth(http.StatusOK)
			wantEqual(t, "status of "+path, get(path).status, 200)
			e.SetHealth(http.StatusServiceUnavailable)
			wantEqual(t, "status of sick "+path, get(path).status, 503)
		}
	})
}

func TestUsage_CachedPrefix(t *testing.T) {
	e := start(t, Options{})
	c := client(t, HTTP1)
	f := func(prompt string, tokens, cached float64) {
		t.Helper()
		v := read(t, post200(t, c, e.URL()+"/v1/completions", `{"prompt":"`+prompt+`"}`).body)
		wantEqual(t, "prompt_tokens", at(t, v, "usage", "prompt_tokens"), tokens)
		wantEqual(t, "cached_tokens", at(t, v, "usage", "prompt_tokens_details", "cached_tokens"), cached)
	}
	f(words(40, 0), 40, 0)
	f(words(40, 0), 40, 32)
	f(words(20, 0), 20, 16)
	f(words(32, 0), 32, 16) // the last token is always computed
	f("other "+words(40, 0), 41, 0)
}
