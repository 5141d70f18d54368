package sim

import (
	"net/http"
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	e := start(t, Options{Models: []string{"m"}, MaxModelLen: 64, MaxBody: 4096})
	chat := func(extra string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + extra + `}`
	}
	cases := []struct {
		path, body string
		status     int
		message    string // a part of it
	}{
		{"/v1/chat/completions", ``, 400, "JSON decode error"},
		{"/v1/chat/completions", `{oops`, 400, "JSON decode error"},
		{"/v1/chat/completions", `{"a":1}{"b":2}`, 400, "JSON decode error"},
		{"/v1/chat/completions", `[]`, 400, "JSON decode error"},
		{"/v1/chat/completions", `null`, 400, "Field required"},
		{"/v1/chat/completions", "{\"a\":\"\xff\"}", 400, "not UTF-8"},
		{"/v1/chat/completions", `{}`, 400, "'messages'"},
		{"/v1/chat/completions", `{"messages":"x"}`, 400, "valid list"},
		{"/v1/chat/completions", `{"messages":[1]}`, 400, "valid dictionary"},
		{"/v1/chat/completions", `{"messages":[{"content":"x"}]}`, 400, "'role'"},
		{"/v1/chat/completions", chat(`,"stream":"maybe"`), 400, "valid boolean"},
		{"/v1/chat/completions", chat(`,"temperature":-1`), 400, "temperature must be non-negative, got -1."},
		{"/v1/chat/completions", chat(`,"temperature":"hot"`), 400, "valid number"},
		{"/v1/chat/completions", chat(`,"temperature":{}`), 400, "valid number"},
		{"/v1/chat/completions", chat(`,"temperature":"0x1p3"`), 400, "valid number"},
		{"/v1/chat/completions", chat(`,"top_p":0`), 400, "top_p must be in (0, 1], got 0."},
		{"/v1/chat/completions", chat(`,"top_k":-2`), 400, "top_k must be"},
		{"/v1/chat/completions", chat(`,"min_p":2`), 400, "min_p must be"},
		{"/v1/chat/completions", chat(`,"repetition_penalty":0`), 400, "repetition_penalty must be"},
		{"/v1/chat/completions", chat(`,"presence_penalty":3`), 400, "presence_penalty must be"},
		{"/v1/chat/completions", chat(`,"max_tokens":0`), 400, "max_tokens must be at least 1, got 0."},
		{"/v1/chat/completions", chat(`,"max_tokens":1.5`), 400, "fractional part"},
		{"/v1/chat/completions", chat(`,"n":0`), 400, "n must be between"},
		{"/v1/chat/completions", chat(`,"n":1000`), 400, "n must be between"},
		{"/v1/chat/completions", chat(`,"stop":7`), 400, "list of strings"},
		{"/v1/chat/completions", chat(`,"stream_options":{"include_usage":true}`), 400, "Stream options can only"},
		{"/v1/chat/completions", `{"model":"x","messages":[]}`, 404, "The model `x` does not exist."},
		{"/v1/completions", `{}`, 400, "'prompt'"},
		{"/v1/completions", `{"prompt":[]}`, 400, "at least one"},
		{"/v1/completions", `{"prompt":"` + words(64, 0) + `"}`, 400, "maximum context length is 64 tokens"},
		{"/v1/responses", `{}`, 400, "'input'"},
		{"/v1/messages", `{"model":"m","messages":[]}`, 400, "'max_tokens'"},
		{"/generate", `{}`, 400, "Either text"},
		{"/generate", `{"text":["a","b"],"sampling_params":[{}]}`, 400, "number of sampling_params"},
		{"/generate", `{"text":"a","sampling_params":7}`, 400, "valid dictionary"},
		{"/generate", `{"text":"a","sampling_params":{"max_new_tokens":0}}`, 400, "max_new_tokens must be"},
		{"/v1/embeddings", `{"input":"a","encoding_format":"hex"}`, 400, "'float' or 'base64'"},
		{"/tokenize", `{"model":"m"}`, 400, "'prompt'"},
		{"/detokenize", `{"tokens":"a"}`, 400, "list of integers"},
		{"/v1/chat/completions", strings.Repeat(" ", 5000), 413, "Request Entity Too Large"},
	}
	onBoth(t, func(t *testing.T, c *http.Client) {
		for _, tc := range cases {
			a := do(t, c, request(t, "POST", e.URL()+tc.path, tc.body))
			if a.status != tc.status {
				t.Errorf("unexpected status for %s %.80s; got %d %s; want %d", tc.path, tc.body, a.status, a.body, tc.status)
				continue
			}
			message := at(t, read(t, a.body), "error", "message").(string)
			if !strings.Contains(message, tc.message) {
				t.Errorf("unexpected message for %s %.80s; got %q; want %q in it", tc.path, tc.body, message, tc.message)
			}
		}
	})
}

func TestErrorShapes(t *testing.T) {
	c := client(t, HTTP1)
	f := func(flavour Flavour, path, status string, want string) {
		t.Helper()
		e := start(t, Options{Flavour: flavour})
		a := do(t, c, request(t, "POST", e.URL()+path, `{}`, "x-sim-status", status))
		wantEqual(t, "body of "+path+" of "+string(flavour), string(a.body), want)
	}
	f(VLLM, "/v1/completions", "400", `{"error":{"message":"simulated failure: Bad Request","type":"BadRequestError","param":null,"code":400}}`)
	f(SGLang, "/v1/completions", "503", `{"object":"error","message":"simulated failure: Service Unavailable","type":"ServiceUnavailableError","param":null,"code":503}`)
	f(OpenAI, "/v1/completions", "429", `{"error":{"message":"simulated failure: Too Many Requests","type":"rate_limit_error","param":null,"code":null}}`)
	f(SGLang, "/generate", "500", `{"error":{"message":"simulated failure: Internal Server Error"}}`)
	f(VLLM, "/v1/messages", "429", `{"type":"error","error":{"type":"rate_limit_error","message":"simulated failure: Too Many Requests"}}`)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	e := start(t, Options{})
	onBoth(t, func(t *testing.T, c *http.Client) {
		f := func(method, path string, status int, allow string) {
			t.Helper()
			a := do(t, c, request(t, method, e.URL()+path, ""))
			wantEqual(t, "status of "+method+" "+path, a.status, status)
			wantEqual(t, "Allow of "+method+" "+path, a.header.Get("Allow"), allow)
		}
		f("GET", "/nothing", 404, "")
		f("GET", "/v1//models", 404, "")
		f("GET", "/v1/chat/completions", 405, "POST")
		f("DELETE", "/generate", 405, "POST, PUT")
		f("POST", "/v1/models", 405, "GET")
		f("GET", "/sim/nothing", 404, "")
	})
}

func TestBodies_PythonTakesThem(t *testing.T) {
	e := start(t, Options{})
	c := client(t, HTTP1)
	for _, body := range []string{
		"\xef\xbb\xbf" + chatBody,
		strings.Replace(chatBody, "{", `{"temperature":NaN,"seed":Infinity,"x":[-Infinity,"NaN \"Infinity\\"],`, 1),
		strings.Replace(chatBody, "{", `{"temperature":"1_0.5","top_k":true,"max_tokens":" 5 ",`, 1),
		strings.Replace(chatBody, "{", `{"x":"\ud800","unknown":{"a":[]},`, 1),
	} {
		post200(t, c, e.URL()+"/v1/chat/completions", body)
	}
}
