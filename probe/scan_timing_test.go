package probe

import (
	"encoding/base64"
	"math/rand"
	"strings"
	"testing"
)

// sampling are the governed fields, which every benchmark wants.
const sampling = FieldSet(1<<(LastSampling+1)-1) &^ 1

const bodyHead = `{"model":"meta-llama/Llama-3.1-70B-Instruct","temperature":1,"top_p":0.95,"top_k":-1,"min_p":0.05,` +
	`"repetition_penalty":1.05,"frequency_penalty":0,"presence_penalty":0.5,"n":1,"max_tokens":1024,"stream":true,` +
	`"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are a helpful assistant."}`

// prose returns about n bytes of English-like text as a JSON string's content:
// a line end every 80 bytes or so, now and then a quoted word.
func prose(n int) string {
	words := strings.Fields("the of and to in a is that for it was on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know")
	rnd := rand.New(rand.NewSource(3))
	var b strings.Builder
	line := 0
	for b.Len() < n {
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
	return b.String()[:n]
}

// textBody returns a chat of about n bytes, its text in messages of 2 KB.
func textBody(n int) string {
	var b strings.Builder
	b.WriteString(bodyHead)
	for i := 0; b.Len() < n-70; i++ {
		size := min(2000, n-b.Len()-40)
		text := prose(size)
		text = strings.TrimRight(text, `\`)
		b.WriteString(`,{"role":"` + []string{"user", "assistant"}[i%2] + `","content":"` + text + `"}`)
	}
	b.WriteString(`]}`)
	return b.String()
}

// single returns a chat with one message of the content.
func single(content string) string {
	return bodyHead + `,{"role":"user","content":` + content + `}]}`
}

func imageBody(n int) string {
	raw := make([]byte, n/4*3)
	rand.New(rand.NewSource(4)).Read(raw)
	return single(`[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(raw) + `"}}]`)
}

type timedBody struct{ name, text string }

// timedBodies are the bodies whose speed is promised.
func timedBodies() []timedBody {
	code := strings.Repeat(`if (a[i] == \"x\\n\") {\n\t`, 1<<20/27)
	return []timedBody{
		{"733B", textBody(733)},
		{"19KB", textBody(19_000)},
		{"298KB", textBody(298_000)},
		{"4MB-image", imageBody(4 << 20)},
		{"escapes", single(`"` + strings.Repeat(`aaaaaaaa\n`, 30_000) + `"`)},
		{"code", single(`"` + code[:300_000/27*27] + `"`)},
	}
}

// hostileBodies are bodies made to be slow. Each is a valid body of its size.
func hostileBodies() []timedBody {
	return []timedBody{
		{"quotes", single(`[` + strings.Repeat(`"",`, 100_000) + `""]`)},
		{"backslashes", single(`"` + strings.Repeat(`\\`, 150_000) + `"`)},
		{"escaped-quotes", single(`"` + strings.Repeat(`\"`, 150_000) + `"`)},
		{"unicode-escapes", single(`"` + strings.Repeat(`\u4e2d`, 50_000) + `"`)},
		{"brackets", single(`[` + strings.Repeat(`[],`, 100_000) + `[]]`)},
		{"brackets-deep", single(`[` + strings.Repeat(strings.Repeat("[", 400)+strings.Repeat("]", 400), 375) + `]`)},
		{"brackets-bare", single(`[` + strings.Repeat(`[]`, 150_000) + `]`)},
		{"brackets-runs", single(`[` + strings.Repeat(strings.Repeat("[", 13)+strings.Repeat("]", 13), 12_000) + `]`)},
		{"brackets-mixed", single(`[` + strings.Repeat(`[{[{{[]}}]}]`, 25_000) + `]`)},
		{"brackets-random", single(`[` + randomBrackets(300_000) + `]`)},
		{"members-below", single(`{` + strings.Repeat(`"a":1,`, 50_000) + `"a":1}`)},
		{"numbers", single(`[` + strings.Repeat(`12345,`, 50_000) + `1]`)},
		{"chinese", single(`"` + strings.Repeat("中文字符", 25_000) + `"`)},
		{"accents", single(`"` + strings.Repeat("aéiou", 50_000) + `"`)},
		{"spaces", single(`[` + strings.Repeat(" ", 300_000) + `]`)},
		{"top-spaces", bodyHead + `],` + strings.Repeat(" ", 300_000) + `"a":1}`},
		{"top-members", `{` + strings.Repeat(`"a":1,`, MaxMembers-1) + `"a":1}`},
		{"top-number", `{"temperature":` + strings.Repeat(`1`, 300_000) + `}`},
		{"inner-members", `{"stream_options":{` + strings.Repeat(`"a":1,`, MaxMembers-1) + `"a":1}}`},
		{"inner-objects", `{"stream_options":{"x":[` + strings.Repeat(`{},`, MaxObjects-1) + `{}]}}`},
	}
}

// randomBrackets returns about n bytes of brackets that fit together, nested up to
// 60 deep, without any pattern to foretell.
func randomBrackets(n int) string {
	rnd := rand.New(rand.NewSource(7))
	var b, open []byte
	for len(b)+len(open) < n {
		if len(open) == 0 || len(open) < 60 && rnd.Intn(2) == 0 {
			kind := "[{"[rnd.Intn(2)]
			b, open = append(b, kind), append(open, kind)
			continue
		}
		b, open = append(b, open[len(open)-1]+2), open[:len(open)-1]
	}
	for ; len(open) > 0; open = open[:len(open)-1] {
		b = append(b, open[len(open)-1]+2)
	}
	return string(b)
}

func benchmarkScan(b *testing.B, bodies []timedBody) {
	for _, body := range bodies {
		b.Run(body.name, func(b *testing.B) {
			src := []byte(body.text)
			var dst Body
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if f := Scan(src, SurfaceChat, sampling, &dst); f != FaultNone {
					b.Fatal(f)
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) { benchmarkScan(b, timedBodies()) }

func BenchmarkScanHostile(b *testing.B) { benchmarkScan(b, hostileBodies()) }
