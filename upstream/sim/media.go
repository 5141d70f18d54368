package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

func isMultipart(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data"
}

// form is a multipart body: the text of its fields and the sizes of its files.
type form struct {
	fields map[string]string
	files  map[string]int
}

// form reads the multipart body of the request, or refuses it.
func (x *exchange) form() form {
	f, err := parseForm(x.r.Header.Get("Content-Type"), x.body)
	if err != nil {
		x.refuse(badRequest("", "There was an error parsing the body: %v", err))
	}
	return f
}

func parseForm(contentType string, body []byte) (form, error) {
	f := form{fields: map[string]string{}, files: map[string]int{}}
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return f, err
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return f, err
		}
		if part.FileName() != "" {
			f.files[part.FormName()] = len(content)
		} else {
			f.fields[part.FormName()] = string(content)
		}
	}
}

// transcriptions is POST /v1/audio/transcriptions and translations.
func (x *exchange) transcriptions() {
	f := x.form()
	if _, ok := f.files["file"]; !ok {
		x.refuse(badRequest("file", "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required'}"))
	}
	model := x.checkModel(f.fields["model"])
	g := x.generate([]string{f.fields["prompt"]}, 1, 0, nil)
	if f.fields["stream"] == "true" || f.fields["stream"] == "True" {
		x.streamTranscription(g, completionMeta{x.id("trsc-"), "transcription.chunk", time.Now().Unix(), model})
		return
	}
	x.run(g, nil)
	text := g.choices[0].text()
	switch f.fields["response_format"] {
	case "text":
		x.reply(http.StatusOK, "text/plain; charset=utf-8", []byte(text+"\n"))
	case "srt":
		x.reply(http.StatusOK, "text/plain; charset=utf-8", []byte("1\n00:00:00,000 --> 00:00:01,000\n"+text+"\n"))
	case "vtt":
		x.reply(http.StatusOK, "text/plain; charset=utf-8", []byte("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n"+text+"\n"))
	case "verbose_json":
		x.replyJSON(http.StatusOK, map[string]any{
			"task": "transcribe", "language": "en", "duration": 1.0, "text": text, "segments": []json.RawMessage{},
		})
	default:
		x.replyJSON(http.StatusOK, map[string]any{"text": text, "usage": map[string]any{"type": "duration", "seconds": 1}})
	}
}

// streamTranscription writes a transcription as vLLM does.
func (x *exchange) streamTranscription(g *generation, meta completionMeta) {
	s := x.stream()
	chunk := func(d deltaText, e ending) {
		s.data(chatChunk{completionMeta: meta, Choices: []chatDelta{{0, d, e}}})
	}
	x.run(g, func(_, i int) { chunk(deltaText{Content: &g.choices[0].tokens[i]}, x.open()) })
	chunk(deltaText{}, x.ending(&g.choices[0]))
	s.end()
}

// speech is POST /v1/audio/speech: a WAV file of silence, 8 kHz, 8 bit, mono, one
// sample a byte of the input, and the padding.
func (x *exchange) speech() {
	o := x.obj
	o.need("input")
	text := o.text("input")
	x.model()
	x.valid()
	n := len(text) + x.p.pad
	var b bytes.Buffer
	b.WriteString("RIFF")
	b.Write(le32(36 + n))
	b.WriteString("WAVEfmt ")
	b.Write(le32(16))
	b.WriteString("\x01\x00\x01\x00") // PCM, one channel
	b.Write(le32(8000))
	b.Write(le32(8000))
	b.WriteString("\x01\x00\x08\x00data") // one byte a frame, 8 bits a sample
	b.Write(le32(n))
	b.WriteString(strings.Repeat("\x80", n))
	x.reply(http.StatusOK, "audio/wav", b.Bytes())
}

func le32(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }

// pixel is a PNG of one grey pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="

// images is POST /v1/images/generations (JSON) and edits (multipart).
func (x *exchange) images() {
	n, model := 1, ""
	if isMultipart(x.r) {
		model = x.checkModel(x.form().fields["model"])
	} else {
		x.obj.need("prompt")
		x.obj.text("prompt")
		n = max(1, x.obj.positive("n"))
		model = x.model()
		x.valid()
	}
	if n > maxChoices {
		x.refuse(badRequest("n", "n must be between 1 and %d, got %d.", maxChoices, n))
	}
	type image struct {
		Base64 string `json:"b64_json"`
	}
	picture := pixel
	if x.p.pad > 0 {
		// PNG readers stop at IEND and do not mind what follows.
		raw, err := base64.StdEncoding.DecodeString(pixel)
		if err != nil {
			panic("BUG: the pixel is not base64")
		}
		picture = base64.StdEncoding.EncodeToString(append(raw, make([]byte, x.p.pad)...))
	}
	data := make([]image, n)
	for i := range data {
		data[i] = image{picture}
	}
	x.replyJSON(http.StatusOK, struct {
		Created int64   `json:"created"`
		Model   string  `json:"model"`
		Data    []image `json:"data"`
	}{time.Now().Unix(), model, data})
}

// ocr is POST /v1/ocr in Mistral's shape.
func (x *exchange) ocr() {
	type page struct {
		Index    int               `json:"index"`
		Markdown string            `json:"markdown"`
		Images   []json.RawMessage `json:"images"`
	}
	x.obj.need("document")
	model := x.model()
	x.valid()
	g := x.generate([]string{""}, 1, 0, nil)
	x.run(g, nil)
	x.replyJSON(http.StatusOK, struct {
		Pages []page         `json:"pages"`
		Model string         `json:"model"`
		Usage map[string]int `json:"usage_info"`
	}{[]page{{0, g.choices[0].text(), []json.RawMessage{}}}, model, map[string]int{"pages_processed": 1, "doc_size_bytes": len(x.body)}})
}
