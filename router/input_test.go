package router

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"sluice/configs"
	"sluice/upstream/sim"
)

func TestB17_B01_B24_BadBodies(t *testing.T) {
	s := startStand(t, nil)
	bad := []string{
		``, ` `, `[]`, `null`, `"hi"`, `42`, `true`, `{oops`, `{`, `}`, `{"a":1}{"b":2}`, `{"a":1} x`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`,
		`{"a":1 "b":2}`, `{'a':1}`, `{"a":tru}`, `{"a":01}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":[}`, `{"a":[1}`, "\xff\xfe{\x00}\x00",
		`{"model":"sim-8b","model":"other"}`, `{"model":null,"model":"sim-8b"}`, `{"model":"sim-8b","mod\u0065l":"x"}`,
		`{"model":"sim-8b","stream":true,"stream":false}`, `{"model":"sim-8b","max_tokens":1,"max_tokens":2}`, `{"model":"sim-8b","n":1,"n":1}`,
		`{"model":"sim-8b","stream":"not-a-bool"}`, `{"model":"sim-8b","stream":1}`, `{"model":7}`, `{"model":["sim-8b"]}`,
		`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
		`{"a":` + strings.Repeat("[", 3_000_000) + strings.Repeat("]", 3_000_000) + `}`,
		`{"messages":"` + strings.Repeat("x", 70_000) + `","model":"sim-8b","model":"other"}`,
	}
	for _, g := range generation {
		for _, body := range bad {
			r := s.send("POST", g.path, body)
			if r.status != 400 || r.header.Get(headerErrorCode) != "bad_request" {
				t.Errorf("%s %.60q: unexpected answer %d %s", g.path, body, r.status, r.body)
			}
			if strings.Contains(r.body, "oops") {
				t.Errorf("%s %.60q: the answer repeats the body: %s", g.path, body, r.body)
			}
		}
	}
	if r := s.chat(`{oops`); !strings.Contains(r.body, `"message":"invalid request: body must be a JSON object","type":"invalid_request_error","code":"bad_request"`) {
		t.Errorf("unexpected text: %s", r.body)
	}
	if r := s.send("POST", "/v1/messages", `{oops`); r.body != `{"type":"error","error":{"type":"invalid_request_error","message":"invalid request: body must be a JSON object"}}` {
		t.Errorf("unexpected text on messages: %s", r.body)
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %d", len(got))
	}
}

func TestB23_ByteOrderMarkIsStripped(t *testing.T) {
	s := startStand(t, contract("reject", map[string]any{"temperature": 1}))
	if r := s.chat("\xef\xbb\xbf" + `{"model":"sim-8b","messages":[]}`); r.status != 200 {
		t.Fatalf("unexpected answer %d %s", r.status, r.body)
	}
	if got := string(s.received()[0].Body); got != `{"temperature":1,"model":"sim-8b","messages":[]}` {
		t.Errorf("unexpected body at the engine: %s", got)
	}
	if r := s.chat("\xef\xbb\xbf\xef\xbb\xbf" + `{"model":"sim-8b","messages":[]}`); r.status != 400 {
		t.Errorf("two marks: unexpected answer %d %s", r.status, r.body)
	}
}

func TestContentTypes(t *testing.T) {
	s := startStand(t, nil)
	f := func(path, contentType string, want int) {
		t.Helper()
		body := generation[0].body
		if path == "/v1/embeddings" {
			body = `{"model":"sim-8b","input":"hi"}`
		}
		r := s.send("POST", path, body, "Content-Type: "+contentType)
		if r.status != want || (want == 415 && r.header.Get(headerErrorCode) != "unsupported_media_type") {
			t.Errorf("%s %q: unexpected answer %d %s", path, contentType, r.status, r.body)
		}
	}
	for _, ok := range []string{"application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json", "text/plain", "application/x-www-form-urlencoded"} {
		f("/v1/chat/completions", ok, 200)
	}
	for _, odd := range []string{"application/xml", "text/html", "image/png", "multipart/form-data; boundary=x", "multipart/mixed; boundary=x"} {
		f("/v1/chat/completions", odd, 415)
	}
	f("/v1/embeddings", "multipart/form-data; boundary=x", 415)
	f("/v1/embeddings", "application/xml", 200)
}

func TestB66_Multipart(t *testing.T) {
	s := startStand(t, nil)
	part := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	file := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n\x00\xff\r\n--y\r\n\r\n"
	const contentType = "Content-Type: multipart/form-data; boundary=x"
	for _, order := range []string{part("model", "small") + file, file + part("model", "small") + part("stream", "true")} {
		body := order + "--x--\r\n"
		if r := s.send("POST", "/v1/audio/transcriptions", body, contentType); r.status != 200 {
			t.Fatalf("unexpected answer %d %s", r.status, r.body)
		}
		got := s.received()
		if want := strings.Replace(body, "small", simModel, 1); len(got) != 1 || string(got[0].Body) != want {
			t.Errorf("unexpected body at the engine: %q; want %q", got[0].Body, want)
		}
	}
	for _, bad := range []string{"", "--x", part("model", "a") + part("model", "b") + "--x--\r\n", "{}"} {
		if r := s.send("POST", "/v1/audio/transcriptions", bad, contentType); r.status != 400 {
			t.Errorf("%q: unexpected answer %d %s", bad, r.status, r.body)
		}
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}

// encode returns body under a content coding.
func encode(t *testing.T, name string, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch name {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare":
		w, err = flate.NewWriter(&b, 6)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestB27_ContentEncodings(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.MaxBody = 1 << 20 })
	plain := generation[0].body
	big := []byte(`{"model":"sim-8b","messages":[],"x":"` + strings.Repeat("a", 2<<20) + `"}`)
	for _, name := range []string{"gzip", "x-gzip", "deflate", "bare", "br", "zstd", "GZIP"} {
		field := "Content-Encoding: " + strings.Replace(name, "bare", "deflate", 1)
		for range 2 { // the second time through a pooled decoder
			coded := encode(t, strings.ToLower(name), []byte(plain))
			if r := s.chat(coded, field); r.status != 200 {
				t.Fatalf("%s: unexpected answer %d %s", name, r.status, r.body)
			}
			got := s.received()
			if len(got) != 1 || string(got[0].Body) != plain || hasField(got[0].Header, "content-encoding") {
				t.Errorf("%s: unexpected request at the engine: %+v", name, got)
			}
			if r := s.chat(encode(t, strings.ToLower(name), big), field); r.status != 413 || r.header.Get(headerErrorCode) != "payload_too_large" {
				t.Errorf("%s bomb: unexpected answer %d %s", name, r.status, r.body)
			}
			if r := s.chat(coded[:len(coded)/2], field); r.status != 400 {
				t.Errorf("%s cut: unexpected answer %d %s", name, r.status, r.body)
			}
			if r := s.chat(plain, field); r.status != 400 {
				t.Errorf("%s not encoded: unexpected answer %d %s", name, r.status, r.body)
			}
		}
	}
	for _, odd := range []string{"gzip, zstd", "compress", "aws-chunked", "gzip;q=1"} {
		if r := s.chat(plain, "Content-Encoding: "+odd); r.status != 415 {
			t.Errorf("%q: unexpected answer %d %s", odd, r.status, r.body)
		}
	}
	if r := s.chat(plain, "Content-Encoding: identity"); r.status != 200 {
		t.Errorf("identity: unexpected answer %d %s", r.status, r.body)
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("unexpected requests at the engine: %d", len(got))
	}
}

func hasField(h []sim.Field, name string) bool {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}

func TestB28_BodyOverTheLimit(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.MaxBody = 1 << 20 })
	body := `{"model":"sim-8b","messages":[],"x":"` + strings.Repeat("a", 20<<20) + `"}`
	for _, chunked := range []bool{false, true} {
		req, err := http.NewRequest("POST", "http://"+s.addr+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if chunked {
			req.ContentLength = -1
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatalf("chunked %v: the client cannot read the answer: %v", chunked, err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 413 || !strings.Contains(string(b), `"code":"payload_too_large"`) {
			t.Errorf("chunked %v: unexpected answer %d %s (%v)", chunked, resp.StatusCode, b, err)
		}
	}
	// The head is enough, and a sign that the body comes.
	c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n{")
	if r := c.read(); r.status != 413 {
		t.Errorf("unexpected answer %d %s to the head", r.status, r.body)
	}
	exact := `{"model":"sim-8b","messages":[],"x":""}`
	exact = exact[:len(exact)-2] + strings.Repeat("a", 1<<20-len(exact)) + `"}`
	if r := s.chat(exact); r.status != 200 {
		t.Errorf("a body of exactly the limit: unexpected answer %d %s", r.status, r.body)
	}
	if r := s.chat(exact[:len(exact)-2] + `a"}`); r.status != 413 {
		t.Errorf("one byte more: unexpected answer %d %s", r.status, r.body)
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("unexpected requests at the engine: %d", len(got))
	}
}

// A refusal reaches a client that is still sending a body nobody will read.
func TestRefusalBeforeTheBodyIsReadable(t *testing.T) {
	s := startStand(t, nil)
	big := strings.Repeat("x", 8<<20)
	for range 5 {
		for path, want := range map[string]int{"/v1/nope": 404, "/v1/models": 405, "/v1/messages/batches": 404} {
			r := s.send("POST", path, big)
			if anthropic := strings.HasPrefix(r.body, `{"type":"error"`); r.status != want || anthropic != (path == "/v1/messages/batches") {
				t.Errorf("%s: unexpected answer %d %s", path, r.status, r.body)
			}
		}
		if r := s.chat(big, "Content-Type: image/png"); r.status != 415 {
			t.Errorf("unexpected answer %d %s", r.status, r.body)
		}
	}
}

func TestB69_Expect(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.MaxBody = 1 << 10 })
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
	c := s.dial().write(head + "2000\r\n\r\n")
	if r := c.read(); r.status != 413 {
		t.Errorf("over the limit: unexpected answer %d %s", r.status, r.body)
	}
	c = s.dial().write(fmt.Sprintf("%s%d\r\n\r\n", head, len(generation[0].body)))
	if r := c.read(); r.status != 100 {
		t.Fatalf("unexpected answer %d before the body", r.status)
	}
	if r := c.write(generation[0].body).read(); r.status != 200 {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if got := s.received(); len(got) != 1 || hasField(got[0].Header, "expect") {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}

// A body of the largest size passes byte for byte, with Content-Length and
// chunked, and so does one that is edited.
func TestLargeBodyPassesIdentical(t *testing.T) {
	s := startStand(t, contract("reject", map[string]any{"temperature": 1}))
	for _, pinned := range []bool{true, false} {
		prefix := `{"model":"sim-8b","messages":[],"x":"`
		if pinned {
			prefix = `{"temperature":1,` + prefix[1:]
		}
		body := prefix + strings.Repeat("0123456789abcde\u00e9", (32<<20-len(prefix)-20)/17) + `"}`
		want := body
		if !pinned {
			want = `{"temperature":1,` + body[1:]
		}
		sum := sha256.Sum256([]byte(want))
		for _, chunked := range []bool{false, true} {
			req, err := http.NewRequest("POST", "http://"+s.addr+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if chunked {
				req.ContentLength = -1
			}
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got := s.received()
			if resp.StatusCode != 200 || len(got) != 1 || got[0].SHA256 != hex.EncodeToString(sum[:]) {
				t.Fatalf("pinned %v, chunked %v: status %d, the engine received another body", pinned, chunked, resp.StatusCode)
			}
		}
	}
}

// 1,000 bodies of every odd spacing pass byte for byte where nothing is edited,
// under a contract that they keep.
func TestB09_B14_UneditedBodiesPassIdentical(t *testing.T) {
	s := startStand(t, contract("reject", map[string]any{"temperature": 1, "top_p": map[string]any{"min": 0.5, "max": 1}}))
	r := rand.New(rand.NewPCG(1, 2))
	members := []string{
		`"temperature":1`, `"temperature" : 1.0`, `"temper\u0061ture":"1"`, `"temperature":1e0`, `"top_p":0.9000`, `"top_p": "0.75"`,
		`"seed":9007199254740993`, `"x":-0`, `"y":1E2`, `"z":0.1000`, `"k":"\ud800\u0041"`, `"a":{"temperature":9,"b":[1,{"}":"{"}]}`, `"q":"\"}{"`,
		`"messages":[{"role":"user","content":"h\u0069 \u00e9 é"}]`, `"tools":[{"type":"function","function":{"name":"f"}}]`, `"":""`,
	}
	space := func() string { return strings.Repeat(string(" \t\r\n"[r.IntN(4)]), r.IntN(3)) }
	for i := range 1000 {
		var b strings.Builder
		b.WriteString(space() + "{" + space() + `"model"` + space() + ":" + space() + `"sim-8b"`)
		if i%2 == 0 {
			b.WriteString(space() + "," + space() + `"temperature":1`)
		} else {
			b.WriteString(space() + "," + space() + `"temperature"` + space() + ":" + space() + `"1.0"`)
		}
		used := map[string]bool{"temp": true}
		for range r.IntN(8) {
			m := members[r.IntN(len(members))]
			if key := m[1:5]; !used[key] {
				used[key] = true
				b.WriteString(space() + "," + space() + m)
			}
		}
		if !used["mess"] {
			b.WriteString(`,"messages":[]`)
		}
		b.WriteString(space() + "}" + space())
		body := b.String()
		if r := s.chat(body); r.status != 200 {
			t.Fatalf("%q: unexpected answer %d %s", body, r.status, r.body)
		}
		if got := s.received(); len(got) != 1 || string(got[0].Body) != body {
			t.Fatalf("the engine received %q; want %q", got[0].Body, body)
		}
	}
}
