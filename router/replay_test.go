package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/configs"
)

const replayConfig = `
server: {max_body: 4KiB, tenant_header: x-tenant}
sampling_contract: {on_conflict: replace, params: {temperature: 1, top_p: {min: 0.5, max: 1}}}
pools:
  - {name: a, models: [m, b], aliases: {alias: m}, workers: [{url: "http://127.0.0.1:1"}]}
  - {name: strict, models: [s], workers: [{url: "http://127.0.0.1:2"}], sampling_contract: {params: {temperature: 0, n: 1}}}
  - {name: watched, models: [w], workers: [{url: "http://127.0.0.1:3"}], sampling_contract: {on_conflict: observe, params: {temperature: 0}}}
routing:
  decisions:
    - name: free
      rules: {type: header, name: x-tier, exact: free}
      pool: a
      plugins: [{type: request_params, configuration: {blocked_params: [logprobs, user], max_tokens_limit: 50, default_max_tokens: 10, max_n: 2, strip_unknown: true}}]
    - name: trial
      rules: {type: tenant, name: t}
      pool: a
      plugins: [{type: request_params, configuration: {blocked_params: [user], max_tokens_limit: 50, on_violation: observe}}]
`

func newReplay(t testing.TB, workers int, texts ...string) *Replay {
	t.Helper()
	cfgs := make([]*configs.Config, 2)
	for i, text := range texts {
		cfgs[i] = loadConfig(t, text)
	}
	p, err := NewReplay(cfgs[0], cfgs[1], workers)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func replayText(t testing.TB, p *Replay, text string) *ReplayReport {
	t.Helper()
	if err := p.Read("f", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return p.Report()
}

// effectsText writes effects as "name param count line", for tables.
func effectsText(list []ReplayEffect) string {
	var all []string
	for _, e := range list {
		name := e.Effect
		if e.Code != "" {
			name = e.Code
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %s %d @%s", name, e.Param, e.Count, strings.TrimPrefix(e.At, "f:"))), " "))
	}
	return strings.Join(all, "; ")
}

func TestReplay_CountsEffects(t *testing.T) {
	chat := func(header, body string) string {
		return `{"path":"/v1/chat/completions","headers":{` + header + `},"body":` + body + "}\n"
	}
	text := strings.Join([]string{
		chat(``, `{"model":"m","temperature":1}`),                                                            // 1 untouched
		chat(``, `{"model":"m"}`),                                                                            // 2 injected
		chat(``, `{"model":"m","temperature":0.5,"top_p":0.1}`),                                              // 3 replaced twice
		chat(``, `{"model":"m","temperature":1,"top_p":"x"}`),                                                // 4 refused
		chat(``, `{"model":"alias","temperature":1}`),                                                        // 5 other
		chat(``, `{"model":"s","temperature":1,"n":2}`),                                                      // 6 refused, two violated
		chat(``, `{"model":"w","temperature":1}`),                                                            // 7 observed
		chat(``, `{"model":"nobody"}`),                                                                       // 8 refused
		chat(`"x-tier":"free"`, `{"model":"m","temperature":1,"max_tokens":100,"n":3,"x":1}`),                // 9
		chat(`"X-Tier":["free"]`, `{"model":"m","temperature":1,"logprobs":true,"max_completion_tokens":1}`), // 10
		chat(`"x-tier":"free"`, `{"model":"m","temperature":1,"max_tokens":"a"}`),                            // 11
		chat(`"x-tier":"free"`, `{"model":"m","temperature":1}`),                                             // 12
		chat(`"x-tenant":"t"`, `{"model":"m","temperature":1,"max_tokens":100,"user":"u"}`),                  // 13
		chat(`"x-tenant":"t"`, `{"model":"m","temperature":1,"max_tokens":0}`),                               // 14
		chat(``, `[]`), // 15
		`{"path":"/v1/models","method":"GET"}` + "\n",         // 16
		`{"path":"/v1/other","body":{}}` + "\n",               // 17
		`{"path":"/v1/chat/completions","method":"GET"}`,      // 18
		"\n\n  \r\n" + `{"path":"/v1/embeddings","body":`,     // 21
		`"{\"model\":\"m\",\"temperature\":5}"}` + "\n" + `}`, // 22 malformed
	}, "")
	rep := replayText(t, newReplay(t, 1, replayConfig), text)
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("unexpected %s\n got %s\nwant %s", what, got, want)
		}
	}
	check("totals", effectsText(rep.Totals.Effects),
		"rejected 7 @4; clamped 1 @9; replaced 1 @3; defaulted 1 @12; blocked 1 @10; stripped 1 @9; injected 1 @2; other 1 @5; untouched 5 @1; local 1 @16")
	check("observed totals", effectsText(rep.Totals.Observed), "rejected 2 @7; clamped 1 @13; blocked 1 @13")
	var free, none, before ReplayDecision
	for _, d := range rep.Decisions {
		switch d.Name {
		case "free":
			free = d
		case "":
			none = d
		case BeforeRouting:
			before = d
		}
	}
	check("refusals of none", effectsText(none.Refusals), "model_not_found model 1 @8; sampling_contract_violation temperature 1 @6; sampling_contract_violation top_p 1 @4")
	check("params of none", effectsText(none.Params),
		"rejected temperature 1 @6; rejected top_p 1 @4; rejected n 1 @6; replaced temperature 1 @3; replaced top_p 1 @3; injected temperature 1 @2")
	check("params of free", effectsText(free.Params),
		"rejected max_tokens 1 @11; clamped n 1 @9; clamped max_tokens 1 @9; defaulted max_tokens 1 @12; blocked logprobs 1 @10")
	check("refusals before routing", effectsText(before.Refusals), "bad_request 1 @15; method_not_allowed 1 @18; not_found 1 @17")
	if free.Requests != 4 || rep.Requests != 19 || rep.Lines != 20 || rep.Malformed != 1 {
		t.Errorf("unexpected counts: %+v", rep)
	}
	if want := []ReplayFault{{"f:22", "is no JSON object"}}; !reflect.DeepEqual(rep.Faults, want) {
		t.Errorf("unexpected faults; got %v; want %v", rep.Faults, want)
	}
}

func TestReplay_MalformedLines(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		rep := replayText(t, newReplay(t, 1, replayConfig), line)
		got := ""
		if len(rep.Faults) > 0 {
			got = rep.Faults[0].Problem
		}
		if got != want {
			t.Errorf("unexpected fault of %s; got %q; want %q", line, got, want)
		}
	}
	f(`{"path":"/v1/chat/completions"}`, "")
	f(`{"url":"/v1/chat/completions","custom_id":"1"}`, "")
	f(`{"path":"/v1/chat/completions","method":null,"headers":null,"body":null,"n":1}`, "")
	f(`{}`, "has no path")
	f(`{"path":""}`, "has no path")
	f(`{"path":1}`, "has a path that is no string")
	f(`{"path":"/","method":1}`, "has a method that is no string")
	f(`{"path":"/","headers":[]}`, "has headers that are no object of strings and lists of strings")
	f(`{"path":"/","headers":{"a":1}}`, "has headers that are no object of strings and lists of strings")
	f(`{"path":"/","headers":{"a":["b",["c"]]}}`, "has headers that are no object of strings and lists of strings")
	f(`{"path":"/"} x`, "is no JSON object")
	f(`{"path":"/","body":{}`, "is no JSON object")
	f(`[]`, "is no JSON object")
	f("\xff", "is no JSON object")
}

// Escapes and lists in headers, and escapes in paths and bodies, are what they
// stand for.
func TestReplay_ReadsLines(t *testing.T) {
	var c recorded
	line := `{"body":"{\"a\":\"\\\"\\u00e9\"}","headers":{"x-a\u0062":["1","\"\\",""],"content-type":"te\u0078t/plain","content-length":"9","Content-Encoding":"gzip"},"method":"P\u0055T","path":"\/v1\u002fx"}`
	if problem := c.read([]byte(line)); problem != "" {
		t.Fatal(problem)
	}
	if got := string(c.target) + " " + string(c.method) + " " + string(c.body); got != `/v1/x PUT {"a":"\"\u00e9"}` {
		t.Errorf("unexpected request: %s", got)
	}
	if got := fmt.Sprintf("%q", c.header.PeekAll("x-ab")); got != `["1" "\"\\" ""]` {
		t.Errorf("unexpected header: %s", got)
	}
	if string(c.header.ContentType()) != "text/plain" || c.header.ContentLength() != 0 || len(c.header.Peek("content-encoding")) > 0 {
		t.Errorf("unexpected header: %s", &c.header)
	}
	if problem := c.read([]byte(`{"path":"/y"}`)); problem != "" || len(c.header.PeekAll("x-ab")) > 0 || c.body != nil || string(c.method) != "POST" {
		t.Errorf("a line has something of the one before: %s %q", problem, c.body)
	}
}

func TestReplay_Against(t *testing.T) {
	const old = `
sampling_contract: {on_conflict: observe, params: {temperature: 1}}
pools:
  - {name: a, models: [m], aliases: {alias: m}, workers: [{url: "http://127.0.0.1:1"}]}
`
	const text = `
{"path":"/v1/chat/completions","body":{"model":"m","temperature":1,"top_p":0.9}}
{"path":"/v1/chat/completions","body":{"model":"alias","temperature":1}}
{"path":"/v1/chat/completions","body":{"model":"m","temperature":0,"top_p":0.1}}
{"path":"/v1/chat/completions","body":{"model":"m","temperature":0,"top_p":"x"}}
{"path":"/v1/chat/completions","headers":{"x-tier":"free"},"body":{"model":"m","temperature":1,"max_tokens":100,"zz":1}}
{"path":"/v1/chat/completions","body":{"model":"s","temperature":0,"n":1}}
{"path":"/generate","body":{"model":"m","text":"","sampling_params":[{"temperature":1},{"temperature":3}]}}
{"path":"/health","method":"GET"}
`
	rep := replayText(t, newReplay(t, 1, replayConfig, old), text)
	var got []string
	for _, c := range rep.Changes {
		got = append(got, strings.Join(strings.Fields(fmt.Sprintf("%s %s: %s > %s %d @%s", c.What, c.Param, c.From, c.To, c.Count, strings.TrimPrefix(c.At, "f:"))), " "))
	}
	want := []string{
		"body max_tokens: as sent > replace 50 1 @6",
		"body sampling_params[].temperature: as sent > replace 1 1 @8",
		"body temperature: as sent > replace 1 1 @4",
		"body top_p: as sent > replace 0.5 1 @4",
		"body zz: as sent > remove 1 @6",
		"decision : none > free 1 @6",
		"outcome : model_not_found model > sent 1 @7",
		"outcome : sent > sampling_contract_violation top_p 1 @5",
		"pool : none > strict 1 @7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("unexpected changes\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if rep.Changed.Count != 5 || rep.Changed.At != "f:4" || rep.Before.Of("rejected", true) != 3 || rep.Before.Of("rejected", false) != 1 {
		t.Errorf("unexpected totals: changed %+v, before %+v", rep.Changed, rep.Before)
	}
}

// The same lines make the same report, however they are cut into blocks, and
// whichever worker comes to them first.
func TestReplay_BlocksAndWorkersDoNotMatter(t *testing.T) {
	text := generatedLines(300)
	var want string
	for _, workers := range []int{1, 2, 5} {
		for _, block := range []int{1, 7, 1000, 1 << 20} {
			p := newReplay(t, workers, replayConfig, strings.Replace(replayConfig, "temperature: 1", "temperature: 0.5", 1))
			for _, w := range p.workers {
				w.block = make([]byte, 0, block)
			}
			if err := p.Read("a", &smallReads{text: text, rand: rand.New(rand.NewPCG(uint64(block), 1))}); err != nil {
				t.Fatal(err)
			}
			if err := p.Read("b", strings.NewReader(text+"oops")); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(p.Report())
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = string(got)
			}
			if string(got) != want {
				t.Fatalf("unexpected report of %d workers and blocks of %d\n got %s\nwant %s", workers, block, got, want)
			}
		}
	}
	if !strings.Contains(want, `"at":"b:301"`) {
		t.Errorf("the malformed line is not told: %s", want)
	}
}

// generatedLines returns requests of all kinds, also malformed ones.
func generatedLines(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, `{"path":%q,"headers":{%s},"body":{"model":%q%s,"messages":[{"role":"user","content":%q}]}}`+"\n",
			pick("/v1/chat/completions", "/generate", "/v1/nothing"), pick(``, `"x-tier":"free"`, `"x-tenant":"t"`),
			pick("m", "alias", "s", "w", "none"),
			pick(``, `,"temperature":1`, `,"temperature":"0.5"`, `,"max_tokens":100,"n":3`, `,"max_tokens":{}`, `,"user":"u","zz":null`),
			strings.Repeat("é", rng.IntN(200)))
	}
	return b.String()
}

// smallReads returns a few bytes at a time.
type smallReads struct {
	text string
	rand *rand.Rand
}

func (r *smallReads) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+r.rand.IntN(300))], r.text)
	r.text = r.text[n:]
	return n, nil
}

// What a replay makes of a request is what explain says, and so the data path.
func TestReplay_AgreesWithExplain(t *testing.T) {
	p := newReplay(t, 1, replayConfig)
	w := p.workers[0]
	for line := range strings.Lines(generatedLines(500)) {
		if problem := w.line.read([]byte(line)); problem != "" {
			t.Fatal(problem)
		}
		var ask Question
		ask.Target, ask.Body = string(w.line.target), slices.Clone(w.line.body)
		for name, value := range w.line.header.All() {
			ask.Header = append(ask.Header, string(name)+": "+string(value))
		}
		x := p.sides[0].rules.Explain(ask)
		d := w.run(0)
		if (d.refused == nil) != (x.Refusal == nil) {
			t.Fatalf("replay refuses %v, explain %v: %s", d.refused, x.Refusal, line)
		}
		if d.refused != nil {
			if string(d.refused.code) != x.Refusal.Code || d.refused.param != x.Refusal.Param {
				t.Fatalf("replay refuses with %v, explain with %v: %s", d.refused, x.Refusal, line)
			}
			continue
		}
		if got := string(slices.Concat(d.ruling.segments...)); got != string(x.Body) || d.ruling.dest.name != x.Pool || d.ruling.route.name != x.Decision {
			t.Fatalf("replay sends %s to %s (%s), explain %s to %s (%s)", got, d.ruling.dest.name, d.ruling.route.name, x.Body, x.Pool, x.Decision)
		}
	}
}

// An error of the reader is not the end of the file.
func TestReplay_ReadError(t *testing.T) {
	p := newReplay(t, 2, replayConfig)
	broken := errors.New("broken")
	err := p.Read("f", io.MultiReader(strings.NewReader("{\"path\":\"/\"}\n"), failingReader{broken}))
	if err != broken {
		t.Errorf("unexpected error %v", err)
	}
	if rep := p.Report(); rep.Requests != 1 {
		t.Errorf("unexpected requests: %+v", rep)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// A line beyond all bounds is passed over, and the lines after it keep their
// numbers.
func TestLineFeed_LongLine(t *testing.T) {
	feed := &lineFeed{r: strings.NewReader("a\n" + strings.Repeat("b", 100) + "\nc\n\nd"), limit: 32, line: 1}
	buf := make([]byte, 0, 8)
	var got []string
	for {
		first, err := feed.next(&buf)
		if err == io.EOF {
			break
		}
		got = append(got, fmt.Sprintf("%d %q %v", first, buf, err))
	}
	want := []string{`1 "a\n" <nil>`, `2 "" is longer than 256 MiB`, `3 "c\n\n" <nil>`, `5 "d" <nil>`}
	if !slices.Equal(got, want) {
		t.Errorf("unexpected blocks\n got %s\nwant %s", got, want)
	}
}

func TestSameBytes(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		cut := func(s string) (list [][]byte) {
			for part := range strings.SplitSeq(s, "|") {
				list = append(list, []byte(part))
			}
			return list
		}
		if got := sameBytes(cut(a), cut(b)); got != want {
			t.Errorf("unexpected answer for %s and %s: %v", a, b, got)
		}
	}
	f("", "", true)
	f("abc", "a|b|c", true)
	f("|ab|||c", "abc|", true)
	f("abc", "ab", false)
	f("ab", "abc", false)
	f("a|x|c", "a|b|c", false)
	f("", "a", false)
}
