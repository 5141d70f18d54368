package policy

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sluice/probe"
)

// estimate returns the tokens that are estimated for a body.
func estimate(tb testing.TB, body string) int {
	tb.Helper()
	var b probe.Body
	if fault := probe.Scan([]byte(body), probe.SurfaceChat, 0, &b); fault != probe.FaultNone {
		tb.Fatalf("cannot scan %q: %v", body, fault)
	}
	return EstimateTokens([]byte(body), &b)
}

func quoted(tb testing.TB, text string) string {
	tb.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		tb.Fatalf("cannot quote %q: %v", text, err)
	}
	return string(b)
}

// The estimate is held against what a tokenizer said of the texts in testdata,
// which the weights were not fitted to. See EstimateTokens for the table.
func TestTokensError(t *testing.T) {
	const limit = 0.105
	counts, err := os.ReadFile(filepath.Join("testdata", "tokens", "counts.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(counts)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSpace(line), "\t")
		want, err := strconv.Atoi(columns[1])
		if err != nil {
			t.Fatalf("cannot read %q: %v", line, err)
		}
		text, err := os.ReadFile(filepath.Join("testdata", "tokens", columns[0]+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		got := estimate(t, `{"prompt":`+quoted(t, string(text))+`}`)
		off := float64(got)/float64(want) - 1
		t.Logf("%-9s %5d bytes, %4d tokens, %4d estimated, %+.1f%%", columns[0], len(text), want, got, 100*off)
		if math.Abs(off) > limit {
			t.Errorf("unexpected estimate of %s; got %d; want %d within %v", columns[0], got, want, limit)
		}
		seen++
	}
	if seen != 13 {
		t.Fatalf("unexpected number of texts; got %d; want 13", seen)
	}
}

// An escaped text weighs what the text does.
func TestTokensEscapes(t *testing.T) {
	for _, text := range []string{"", "a", "hello world\n\tdo \"it\" \\ now", "Grüße aus 東京, 안녕 привет 😀 ﷺ", "\x01\x7f"} {
		raw := quoted(t, text)
		want := estimate(t, `{"prompt":`+raw+`}`)
		var sb strings.Builder
		sb.WriteString(`{"prompt":"`)
		for _, r := range text {
			if r < 0x10000 {
				sb.WriteString(`\u` + strconv.FormatInt(0x10000+int64(r), 16)[1:])
				continue
			}
			high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			sb.WriteString(`\u` + strconv.FormatInt(int64(high), 16) + `\u` + strconv.FormatInt(int64(low), 16))
		}
		sb.WriteString(`"}`)
		if got := estimate(t, sb.String()); got != want {
			t.Errorf("unexpected estimate of %s; got %d; want %d as of %s", sb.String(), got, want, raw)
		}
	}
}

func TestTokensMembers(t *testing.T) {
	f := func(body string, want int) {
		t.Helper()
		if got := estimate(t, body); got != want {
			t.Errorf("unexpected estimate of %.200s; got %d; want %d", body, got, want)
		}
	}
	// sum is f for a want that is a sum of rounded terms.
	sum := func(body string, want int) {
		t.Helper()
		if got := estimate(t, body); got < want-1 || got > want+1 {
			t.Errorf("unexpected estimate of %.200s; got %d; want about %d", body, got, want)
		}
	}
	words := strings.TrimSpace(strings.Repeat("word ", 100))
	n := estimate(t, `{"prompt":"`+words+`"}`)
	if n < 90 || n > 130 {
		t.Fatalf("unexpected estimate of 100 words: %d", n)
	}
	for _, key := range []string{
		"system", "instructions", "input", "prompt", "suffix", "text", "query", "documents", "items", "text_1", "text_2",
		"pr\\u006fmpt", "\\u0069\\u006e\\u0073\\u0074\\u0072\\u0075\\u0063\\u0074\\u0069\\u006f\\u006e\\u0073",
	} {
		f(`{"`+key+`":"`+words+`"}`, n)
		f(`{"`+key+`" : ["`+words+`"] , "model":"m"}`, n)
	}
	for _, key := range []string{"model", "user", "metadata", "Prompt", "prompt2", "stop", "response_format", strings.Repeat("k", 200), strings.Repeat("\\u0061", 200)} {
		f(`{"`+key+`":"`+words+`"}`, 0)
	}
	f(`{}`, 0)
	f(`{"prompt":null,"messages":[],"text":{}}`, 3)
	f(`{"prompt":"`+words+`","prompt":"`+words+`"}`, n)
	f(`{"prompt":"`+words+`","prompt":""}`, 0)
	sum(`{"prompt":"`+words+`","system":"`+words+`"}`, 2*n)
	// Token ids.
	f(`{"input_ids":[1,22,333,-4, 5.0e3 ]}`, 5)
	f(`{"input_ids":[[1,2],[3]]}`, 3)
	f(`{"prompt":[151644,8948,198]}`, 3)
	f(`{"tokens":[1]}`, 1)
	// Keys do not count, what stands in objects does.
	role := estimate(t, `{"prompt":"user"}`)
	sum(`{"messages":[{"role":"user","content":"`+words+`"}]}`, objectTokens+role+n)
	f(`{"messages":[{"`+words+`" : "user"}]}`, objectTokens+role)
	// Tools are printed as they are.
	tools := estimate(t, `{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`)
	if tools < 15 || tools > 35 {
		t.Errorf("unexpected estimate of tools; got %d; want about 24", tools)
	}
	f(`{"functions":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]}`, tools)
}

func TestTokensBlobs(t *testing.T) {
	base64 := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA+/8=", 400) // 11 KB
	f := func(value string, blob bool) {
		t.Helper()
		got := estimate(t, `{"prompt":["`+value+`"]}`)
		if blob != (got == blobTokens) {
			t.Errorf("unexpected estimate of %.60s; got %d; want blob: %v", value, got, blob)
		}
	}
	f(base64, true)
	f(strings.ReplaceAll(base64, "/", `\/`), true)
	f(strings.ReplaceAll(base64, "=", `=\r\n`), true)
	f(strings.ReplaceAll(base64, "+", `-`), true)
	f(base64[:minBlob], true)
	f(base64[:minBlob-1], false)
	f("data:image/png;base64,"+base64, true)
	f("data:image/png;base64,"+base64[:8], true)
	f("data:text/plain,"+base64, false)
	f("data:image/png;base64;x,"+base64, false)
	f("data: "+strings.Repeat("a word, ", 300), false)
	f("data:", false)
	f(base64+" and a question about it", true) // in the samples it is base64
	f(base64[:4096]+" the text of a question "+base64, false)
	f(base64[:30]+" "+base64, false)
	f(base64+`\"`, false)
	// Two images, one question.
	question := estimate(t, `{"prompt":"What is this?"}`)
	if got := estimate(t, `{"prompt":["`+base64+`","data:a;base64,`+base64+`","What is this?"]}`); got != 2*blobTokens+question {
		t.Errorf("unexpected estimate of two images; got %d; want %d", got, 2*blobTokens+question)
	}
}

func TestTokensParse(t *testing.T) {
	f := func(s string, want int) {
		t.Helper()
		if got, err := ParseTokens(s); err != nil || got != want {
			t.Errorf("unexpected number in %q; got %d, %v; want %d", s, got, err, want)
		}
	}
	f("0", 0)
	f("4096", 4096)
	f("007", 7)
	f("1.0", 1)
	f("32K", 32_000)
	f("32k", 32_000)
	f("1M", 1_000_000)
	f("1.5M", 1_500_000)
	f("1.5m", 1_500_000)
	f("0.001K", 1)
	f("2.50K", 2_500)
	f("1.0485760M", 1_048_576)
	f("9223372036854775807", math.MaxInt)

	bad := func(s, want string) {
		t.Helper()
		if n, err := ParseTokens(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("unexpected error for %q; got %d, %v; want %q", s, n, err, want)
		}
	}
	for _, s := range []string{"", "K", "M", ".5K", "1.K", "-1", "+1", " 1", "1 K", "1KK", "1G", "1e3", "0x10", "1_000", "1,000", "1.2.3K", "NaN"} {
		bad(s, "expected one like 4096, 32K or 1.5M")
	}
	bad("0.5", "not whole")
	bad("1.0005K", "not whole")
	bad("9223372036854775808", "out of range")
	bad("9223372036854775807K", "out of range")
}
