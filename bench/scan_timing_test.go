package bench

import (
	"encoding/base64"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"sluice/probe"
)

// BenchmarkScan reads every governed key of a body with probe, and one key of the
// same body with other parsers: sonic, gjson and fastjson as they are made to be
// used, encoding/json into a struct of that one field.
//
// NOTE: the key stands last. sonic and gjson stop at it and say nothing of what is
// behind; so all of them go over the whole body.
func BenchmarkScan(b *testing.B) {
	governed := probe.FieldSet(0)
	for f := probe.FirstSampling; f <= probe.LastSampling; f++ {
		governed = governed.With(f)
	}
	for _, body := range scanBodies() {
		src := []byte(body.text)
		run := func(parser string, found func() bool) {
			b.Run(body.name+"/"+parser, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					if !found() {
						b.Fatal("unexpected result: no seed")
					}
				}
			})
		}
		var dst probe.Body
		run("probe", func() bool {
			return probe.Scan(src, probe.SurfaceChat, governed, &dst) == probe.FaultNone && dst.Last(probe.FieldN) != nil
		})
		run("sonic", func() bool {
			node, err := sonic.Get(src, "seed")
			return err == nil && node.Exists()
		})
		run("gjson", func() bool { return gjson.GetBytes(src, "seed").Exists() })
		var p fastjson.Parser
		run("fastjson", func() bool {
			v, err := p.ParseBytes(src)
			return err == nil && v.Exists("seed")
		})
		run("encoding-json", func() bool {
			var v struct{ Seed *int }
			return json.Unmarshal(src, &v) == nil && v.Seed != nil
		})
	}
}

type scanBody struct{ name, text string }

// scanBodies are chats: text in messages of 2 KB, an image, and text of which every
// ninth byte is a backslash, as in code.
func scanBodies() []scanBody {
	image := make([]byte, 4<<20/4*3)
	rand.New(rand.NewSource(4)).Read(image)
	return []scanBody{
		{"733B", textChat(733)},
		{"19KB", textChat(19_000)},
		{"298KB", textChat(298_000)},
		{"4MB-image", chat(`{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(image) + `"}}]}`)},
		{"escapes", chat(`{"role":"user","content":"` + strings.Repeat(`aaaaaaaa\n`, 30_000) + `"}`)},
	}
}

// chat returns a body with all governed keys and the messages.
func chat(messages ...string) string {
	return `{"model":"meta-llama/Llama-3.1-70B-Instruct","temperature":1,"top_p":0.95,"top_k":-1,"min_p":0.05,` +
		`"repetition_penalty":1.05,"frequency_penalty":0,"presence_penalty":0.5,"n":1,"max_tokens":1024,"stream":true,` +
		`"stream_options":{"include_usage":true},"messages":[` + strings.Join(messages, ",") + `],"seed":7}`
}

// textChat returns a chat of n bytes.
func textChat(n int) string {
	messages := []string{`{"role":"system","content":"You are a helpful assistant."}`}
	const head, tail = `{"role":"user","content":"`, `"}`
	for {
		room := n - len(chat(messages...)) - len(","+head+tail)
		if room <= 0 {
			return chat(messages...)
		}
		messages = append(messages, head+text(min(room, 2000))+tail)
	}
}

// text returns n bytes of a JSON string's content: words, a line end every 80 bytes
// or so, now and then a quoted word.
func text(n int) string {
	words := strings.Fields("the of and to in a is that for it was on are as with his they be at one have this from or had by " +
		"word but not what all were we when your can said there use an each which she do how their if will up other about out")
	rnd := rand.New(rand.NewSource(3))
	var b strings.Builder
	for line := 0; b.Len() < n; {
		word := words[rnd.Intn(len(words))]
		switch {
		case line > 72:
			b.WriteString(word + `.\n`)
			line = 0
			continue
		case rnd.Intn(60) == 0:
			word = `\"` + word + `\"`
		}
		b.WriteString(word + " ")
		line += len(word) + 1
	}
	cut := b.String()[:n]
	return strings.TrimRight(cut, `\`) + strings.Repeat(".", len(cut)-len(strings.TrimRight(cut, `\`)))
}
