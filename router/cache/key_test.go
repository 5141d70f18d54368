package cache

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sluice/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bodyKey returns the key of a body alone.
func bodyKey(t testing.TB, surface probe.Surface, src string) Key {
	t.Helper()
	var b Builder
	return keyWith(t, &b, surface, src)
}

func keyWith(t testing.TB, b *Builder, surface probe.Surface, src string) Key {
	t.Helper()
	var body probe.Body
	if f := probe.Scan([]byte(src), surface, 0, &body); f != probe.FaultNone {
		t.Fatalf("cannot scan %q: %v", src, f)
	}
	b.Reset()
	b.Body(surface, []byte(src), &body)
	return b.Sum()
}

func TestKey_Equal(t *testing.T) {
	f := func(surface probe.Surface, x, y string) {
		t.Helper()
		if bodyKey(t, surface, x) != bodyKey(t, surface, y) {
			t.Errorf("%s: different keys of\n%s\n%s", surface, x, y)
		}
	}
	chat := probe.SurfaceChat
	f(chat, `{"model":"m","seed":1}`, `{"seed":1,"model":"m"}`)
	f(chat, `{"model":"m","seed":1}`, "\xEF\xBB\xBF {\n \"model\" : \"m\" ,\t\"seed\":\r1 } \n")
	f(chat, `{"messages":[{"role":"user","content":"a b\" c"}]}`, `{"messages": [ { "role" : "user" , "content": "a b\" c" } ] }`)
	f(chat, `{"a":[1,-2.5e+3,true,null]}`, "{\"a\":[ 1\n,\t-2.5e+3 , true,null ]}")
	f(chat, `{"a":{},"b":[]}`, `{"b":[ ],"a":{  }}`)
	f(chat, `{"seed":1}`, `{"s\u0065ed":1}`)
	f(chat, `{"seed":1,"\/":2}`, `{"/":2,"se\u0065d":1}`)
	f(chat, `{"a":["\\"," \\\" ","\\\\"]}`, `{"a": ["\\", " \\\" " ,"\\\\"]}`)
	f(chat, `{"model":"m"}`, `{"model":"m","stream":false}`)
	f(chat, `{"model":"m"}`, `{"model":"m","stream":null}`)
	// White space that no JSON has: two requests that every engine refuses.
	f(chat, `{"a":[1  2]}`, "{\"a\":[1\n2]}")

	plain := `{"model":"m","messages":[]}`
	with := func(surface probe.Surface, members ...string) {
		t.Helper()
		for _, m := range members {
			f(surface, plain, `{"model":"m",`+m+`,"messages":[]}`)
			f(surface, plain, `{"model":"m","messages":[],`+m+`}`)
		}
	}
	with(chat, `"user":"u"`, `"metadata":{"a":"b"}`, `"safety_identifier":"s"`, `"prompt_cache_key":"k"`, `"prompt_cache_retention":"24h"`,
		`"\u0075ser":"u"`, `"user":"u","user":"v"`,
		`"stream_options":null`, `"stream_options":{}`, `"stream_options":{"include_usage":true}`, `"stream_options":{"include_usag\u0065":false}`,
		`"stream_options": { "include_usage" : null }`)
	with(probe.SurfaceCompletions, `"user":"u"`, `"stream_options":{"include_usage":true}`)
	with(probe.SurfaceMessages, `"metadata":{"user_id":"u"}`)
	for _, surface := range []probe.Surface{probe.SurfaceEmbeddings, probe.SurfaceRerank, probe.SurfaceScore, probe.SurfaceClassify} {
		with(surface, `"user":"u"`)
	}
}

func TestKey_Different(t *testing.T) {
	f := func(surface probe.Surface, bodies ...string) {
		t.Helper()
		seen := map[Key]string{}
		for _, body := range bodies {
			k := bodyKey(t, surface, body)
			if other, ok := seen[k]; ok {
				t.Errorf("%s: one key of\n%s\n%s", surface, body, other)
			}
			seen[k] = body
		}
	}
	chat := probe.SurfaceChat
	f(chat, `{"seed":1}`, `{"seed":2}`, `{"seed":1.0}`, `{"seed":"1"}`, `{"seed":null}`, `{}`, `{"Seed":1}`, `{"seed":[1]}`, `{"seed":{"1":1}}`)
	f(chat, `{"a":"x y"}`, `{"a":"xy"}`, `{"a":"x  y"}`, `{"a":"x\ty"}`, `{"a":"x\u0020y"}`)
	f(chat, `{"a":["x y"]}`, `{"a":["xy"]}`, `{"a":["x","y"]}`, `{"a":["x",["y"]]}`, `{"a":["x\" ,\"y"]}`, `{"a":["x\\" ,"y"]}`)
	f(chat, `{"a":[12]}`, `{"a":[1 2]}`, `{"a":[1,2]}`)
	f(chat, `{"a":[true]}`, `{"a":[tr ue]}`, `{"a":[1.5]}`, `{"a":[1. 5]}`, `{"a":[1 .5]}`, `{"a":[-1]}`, `{"a":[- 1]}`)
	f(chat, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"ab":12}`, `{"a":1}`, `{"b":2}`, `{"a":1,"a":1,"b":2}`, `{"a":1,"b":2,"b":2}`)
	f(chat, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `{"a":1}`)
	f(chat, `{"":1}`, `{"\u0000":1}`, `{" ":1}`, `{"\"":1}`)
	// Lone surrogates all decode to U+FFFD.
	f(chat, `{"\ud800":1}`, `{"\ud801":1}`, `{"\uDC00":1}`, `{"\ufffd":1}`, `{"\\ud800":1}`, `{"\"\\ud800\"":1}`, `{"\ud83d\ude00":1}`)
	f(chat, `{"model":"m"}`, `{"model":"m","stream":true}`, `{"model":"m","stream":"false"}`, `{"model":"m","stream":0}`)
	f(chat, `{"stream":true}`, `{"stream":true,"stream_options":{"include_obfuscation":false}}`, `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`,
		`{"stream":true,"stream_options":{"include_usage":1}}`, `{"stream":true,"stream_options":7}`, `{"stream":true,"stream_options":[]}`)
	f(chat, `{}`, `{"store":true}`, `{"service_tier":"flex"}`, `{"rid":"a"}`, `{"request_id":"a"}`, `{"cache_salt":"a"}`, `{"priority":1}`, `{"User":"u"}`, `{"n":2}`, `{"tools":[]}`)
	f(probe.SurfaceResponses, `{}`, `{"user":"u"}`, `{"metadata":{}}`, `{"safety_identifier":"s"}`, `{"prompt_cache_key":"k"}`, `{"stream_options":{"include_usage":true}}`, `{"store":false}`)
	f(probe.SurfaceGenerate, `{}`, `{"user":"u"}`, `{"rid":"a"}`, `{"stream_options":{}}`, `{"sampling_params":{"seed":1}}`, `{"sampling_params":{"seed":2}}`, `{"sampling_params":[{"seed":1}]}`)
	f(probe.SurfaceMessages, `{}`, `{"user":"u"}`, `{"stream_options":{}}`)
	f(probe.SurfaceAudio, `{}`, `{"user":"u"}`, `{"stream":false}`)
}

func TestKey_SurfacesDiffer(t *testing.T) {
	seen := map[Key]probe.Surface{}
	for s := probe.SurfaceNone; s < probe.NumSurfaces; s++ {
		k := bodyKey(t, s, `{"model":"m"}`)
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s share a key", s, other)
		}
		seen[k] = s
	}
}

// TestKey_Property makes bodies at random and changes one thing of each: what
// counts changes the key, what does not count does not.
func TestKey_Property(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b Builder
	for range 2000 {
		members := randomMembers(rnd)
		want := keyWith(t, &b, probe.SurfaceChat, assemble(rnd, members, false))
		rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		spaced := assemble(rnd, members, true)
		if keyWith(t, &b, probe.SurfaceChat, spaced) != want {
			t.Fatalf("order or white space changes the key of %s", spaced)
		}
		i := rnd.IntN(len(members))
		old := members[i]
		switch rnd.IntN(3) {
		case 0:
			members[i].value = mutate(rnd, old.value)
		case 1:
			members[i].key += "x"
		default:
			members = append(members[:i:i], members[i+1:]...)
		}
		changed := assemble(rnd, members, true)
		if keyWith(t, &b, probe.SurfaceChat, changed) == want {
			t.Fatalf("one key of\n%s\n%s", spaced, changed)
		}
	}
}

type testMember struct{ key, value string }

func randomMembers(rnd *rand.Rand) []testMember {
	var list []testMember
	for i := range 1 + rnd.IntN(14) {
		list = append(list, testMember{fmt.Sprintf("k%d%s", i, strings.Repeat("é", rnd.IntN(3))), randomValue(rnd, 0)})
	}
	return list
}

func randomValue(rnd *rand.Rand, depth int) string {
	n := rnd.IntN(7)
	if depth > 3 {
		n = rnd.IntN(4)
	}
	switch n {
	case 0:
		return [...]string{"true", "false", "null"}[rnd.IntN(3)]
	case 1:
		return fmt.Sprint(rnd.IntN(2000) - 1000)
	case 2, 3:
		pieces := [...]string{"a", " ", `\"`, `\\`, `\n`, "é", ",", "{", "]", ":", `\u0041`, strings.Repeat("long ", 200)}
		var s strings.Builder
		for range rnd.IntN(9) {
			s.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return `"` + s.String() + `"`
	case 4, 5:
		var list []string
		for range rnd.IntN(4) {
			list = append(list, randomValue(rnd, depth+1))
		}
		return "[" + strings.Join(list, "\x00,\x00") + "]"
	default:
		var list []string
		for i := range rnd.IntN(4) {
			list = append(list, fmt.Sprintf("\"k%d\"\x00:\x00%s", i, randomValue(rnd, depth+1)))
		}
		return "{\x00" + strings.Join(list, "\x00,\x00") + "\x00}"
	}
}

// mutate changes something in value that is no white space.
func mutate(rnd *rand.Rand, value string) string {
	switch value[0] {
	case '"':
		return value[:len(value)-1] + string("xyz \t"[rnd.IntN(4)]) + `"`
	case '[':
		return value[:len(value)-1] + map[bool]string{true: "", false: ","}[len(value) == 2] + `7]`
	case '{':
		return "[" + value + "]"
	}
	return `"` + value + `"`
}

// assemble writes a body; NULs in values are places for white space.
func assemble(rnd *rand.Rand, members []testMember, spaced bool) string {
	space := func() string {
		if !spaced {
			return ""
		}
		return [...]string{"", "", " ", "\n\t ", "\r\n                    "}[rnd.IntN(5)]
	}
	var s strings.Builder
	s.WriteString("{" + space())
	for i, m := range members {
		if i > 0 {
			s.WriteString("," + space())
		}
		s.WriteString(`"` + m.key + `"` + space() + ":" + space())
		for j, piece := range strings.Split(m.value, "\x00") {
			if j > 0 {
				s.WriteString(space())
			}
			s.WriteString(piece)
		}
		s.WriteString(space())
	}
	return s.String() + "}"
}

func TestKey_Parts(t *testing.T) {
	sum := func(feed ...func(b *Builder)) Key {
		var b Builder
		b.Reset()
		for _, f := range feed {
			f(&b)
		}
		return b.Sum()
	}
	part := func(p Part, values ...string) func(b *Builder) {
		return func(b *Builder) {
			var list [][]byte
			for _, v := range values {
				list = append(list, []byte(v))
			}
			b.Part(p, list...)
		}
	}
	base := part(PartPool, "m")
	want := sum(base)
	for p := PartPool; p < numParts; p++ {
		if sum(base, part(p)) != want || sum(base, part(p, "")) != want || sum(base, part(p, "", "")) != want {
			t.Errorf("part %d takes part although it is empty", p)
		}
	}
	seen := map[Key]int{}
	for i, k := range []Key{
		want, sum(), sum(part(PartPool, "m", "")), sum(part(PartPool, "", "m")), sum(part(PartPool, "m"), part(PartPool, "m")),
		sum(base, part(PartNamespace, "a")), sum(base, part(PartSalt, "a")), sum(base, part(PartSampling, "a")), sum(base, part(PartPolicy, "a")),
		sum(base, part(PartThinking, "a")), sum(base, part(PartTarget, "a")), sum(base, part(PartSurface, "a")), sum(base, part(PartBody, "a")),
		sum(base, part(PartField, "a", "b")), sum(base, part(PartField, "ab")), sum(base, part(PartField, "a"), part(PartField, "b")), sum(base, part(PartField, "b", "a")),
		sum(base, part(PartNamespace, "a"), part(PartSalt, "b")), sum(base, part(PartNamespace, "b"), part(PartSalt, "a")), sum(base, part(PartNamespace, "ab")),
	} {
		if j, ok := seen[k]; ok {
			t.Errorf("feeds %d and %d share a key", i, j)
		}
		seen[k] = i
	}
	if sum(part(PartSalt, "s"), part(PartNamespace, "n")) != sum(part(PartNamespace, "n"), part(PartSalt, "s")) {
		t.Error("the order of parts changes the key")
	}
}

// TestKey_KeepsNothing changes the body after it was fed.
func TestKey_KeepsNothing(t *testing.T) {
	src := []byte(`{"model":"m","a\u0062":{"b": [1, 2]}}`)
	var body probe.Body
	if f := probe.Scan(src, probe.SurfaceChat, 0, &body); f != probe.FaultNone {
		t.Fatal(f)
	}
	var b Builder
	b.Reset()
	b.Body(probe.SurfaceChat, src, &body)
	namespace := []byte("ns")
	b.Part(PartNamespace, namespace)
	want := b.Sum()
	clear(src)
	clear(namespace)
	if got := b.Sum(); got != want {
		t.Error("the key depends on bytes that were fed and then changed")
	}
	for _, o := range b.order[:cap(b.order)] {
		if o.key != nil {
			t.Errorf("the builder keeps the key %q of the body", o.key)
		}
	}
}

func TestFingerprint(t *testing.T) {
	type src = Source
	extra := []byte(`{"a":1}`)
	same := func(x, y []byte) {
		t.Helper()
		if !bytes.Equal(x, y) {
			t.Errorf("different fingerprints: %q, %q", x, y)
		}
	}
	same(Fingerprint(src{Models: []string{"a", "b"}}), Fingerprint(src{Models: []string{"b", "a"}}))
	same(Fingerprint(src{Models: []string{"a", "b"}}), Fingerprint(src{Models: []string{"b"}}, src{Models: []string{"a", "b"}}))
	same(Fingerprint(src{Models: []string{"a"}}), Fingerprint(src{Models: []string{"a"}, ExtraBody: []byte{}}))
	same(Fingerprint(src{[]string{"a"}, extra}, src{[]string{"b"}, nil}), Fingerprint(src{[]string{"b"}, nil}, src{[]string{"a"}, extra}))
	models := []string{"b", "a"}
	Fingerprint(src{Models: models})
	if models[0] != "b" {
		t.Error("Fingerprint changes its argument")
	}
	seen := map[string]int{}
	for i, fp := range [][]byte{
		Fingerprint(), Fingerprint(src{Models: []string{"a"}}), Fingerprint(src{Models: []string{"ab"}}), Fingerprint(src{Models: []string{"a", "b"}}),
		Fingerprint(src{[]string{"a"}, extra}), Fingerprint(src{[]string{"a"}, []byte(`{"a":2}`)}), Fingerprint(src{nil, extra}),
		Fingerprint(src{[]string{"a"}, extra}, src{[]string{"b"}, nil}), Fingerprint(src{[]string{"a"}, nil}, src{[]string{"b"}, extra}),
		Fingerprint(src{[]string{"a", "b"}, extra}),
	} {
		if j, ok := seen[string(fp)]; ok {
			t.Errorf("fingerprints %d and %d are equal", i, j)
		}
		seen[string(fp)] = i
	}
}

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/keys.golden")

// TestKey_Golden holds the keys: a change of one empties every cache there is.
func TestKey_Golden(t *testing.T) {
	const file = "testdata/keys.golden"
	var got strings.Builder
	for _, c := range goldenCases {
		var body probe.Body
		if f := probe.Scan([]byte(c.body), c.surface, 0, &body); f != probe.FaultNone {
			t.Fatalf("cannot scan %q: %v", c.body, f)
		}
		var b Builder
		b.Reset()
		b.Body(c.surface, []byte(c.body), &body)
		for p, v := range c.parts {
			b.Part(p, []byte(v))
		}
		k := b.Sum()
		fmt.Fprintf(&got, "%s %s %s\n", hex.EncodeToString(k[:]), c.surface, c.name)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	if len(goldenCases) < 30 || len(lines) != len(goldenCases)+1 {
		t.Fatalf("%d cases and %d golden keys", len(goldenCases), len(lines)-1)
	}
	for i, line := range strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n") {
		if line != lines[i] {
			t.Errorf("unexpected key; got %q; want %q", line, lines[i])
		}
	}
}

var goldenCases = func() []struct {
	name    string
	surface probe.Surface
	body    string
	parts   map[Part]string
} {
	type golden = struct {
		name    string
		surface probe.Surface
		body    string
		parts   map[Part]string
	}
	const hi = `{"model":"llama","messages":[{"role":"user","content":"hi"}]}`
	fp := string(Fingerprint(Source{Models: []string{"llama"}}))
	list := []golden{
		{"empty", probe.SurfaceChat, `{}`, nil},
		{"hi", probe.SurfaceChat, hi, nil},
		{"hi, spaced", probe.SurfaceChat, `{ "messages": [ {"role": "user", "content": "hi"} ], "model": "llama" }`, nil},
		{"hi, by a user", probe.SurfaceChat, `{"user":"u","metadata":{"a":1},"model":"llama","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"hi, streamed", probe.SurfaceChat, `{"stream":true,"model":"llama","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"hi, streamed with usage", probe.SurfaceChat, `{"stream":true,"stream_options":{"include_usage":true},"model":"llama","messages":[{"role":"user","content":"hi"}]}`, nil},
		{"seed 1", probe.SurfaceChat, `{"model":"llama","seed":1}`, nil},
		{"seed 2", probe.SurfaceChat, `{"model":"llama","seed":2}`, nil},
		{"seed 1.0", probe.SurfaceChat, `{"model":"llama","seed":1.0}`, nil},
		{"null", probe.SurfaceChat, `{"model":"llama","seed":null}`, nil},
		{"escaped key", probe.SurfaceChat, `{"model":"llama","s\u0065ed":1}`, nil},
		{"surrogate key", probe.SurfaceChat, `{"\ud800":1}`, nil},
		{"twice", probe.SurfaceChat, `{"temperature":1,"temperature":0}`, nil},
		{"nested", probe.SurfaceChat, `{"tools":[{"type":"function","function":{"name":"f","parameters":{"a": [1, 2, {"b": null}]}}}]}`, nil},
		{"words", probe.SurfaceChat, `{"a":[1 2]}`, nil},
		{"text", probe.SurfaceChat, `{"a":"` + strings.Repeat("some words\\n and \\\"more\\\" ", 400) + `"}`, nil},
		{"list of texts", probe.SurfaceChat, `{"a":[` + strings.Repeat(`"text \\", `, 900) + `1]}`, nil},
		{"fingerprint", probe.SurfaceChat, hi, map[Part]string{PartPool: fp}},
		{"fingerprint with extra body", probe.SurfaceChat, hi, map[Part]string{PartPool: string(Fingerprint(Source{[]string{"llama"}, []byte(`{"temperature":0}`)}))}},
		{"fingerprint of two", probe.SurfaceChat, hi, map[Part]string{PartPool: string(Fingerprint(Source{[]string{"llama"}, []byte(`{"temperature":0}`)}, Source{[]string{"qwen", "llama"}, nil}))}},
		{"namespace", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartNamespace: "tenant-a"}},
		{"other namespace", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartNamespace: "tenant-b"}},
		{"namespace and salt", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartNamespace: "tenant-a", PartSalt: "1"}},
		{"salt", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartSalt: "1"}},
		{"empty optional parts", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartSalt: "", PartSampling: "", PartPolicy: "", PartThinking: "", PartTarget: "", PartField: ""}},
		{"sampling", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartSampling: `{"temperature":1}`}},
		{"policy", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartPolicy: "edits"}},
		{"thinking", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartThinking: "off"}},
		{"target", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartTarget: "/v1/chat/completions?beta=true"}},
		{"field", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartField: "anthropic-beta: tools"}},
		{"all", probe.SurfaceChat, hi, map[Part]string{PartPool: fp, PartNamespace: "n", PartSalt: "s", PartSampling: "p", PartPolicy: "e", PartThinking: "on", PartTarget: "/x", PartField: "f"}},
	}
	for s := probe.SurfaceCompletions; s < probe.NumSurfaces; s++ {
		list = append(list, golden{"model alone", s, `{"model":"m","user":"u","metadata":{},"input":"x"}`, nil})
	}
	return append(list, golden{"sampling params", probe.SurfaceGenerate, `{"text":"x","sampling_params":{"temperature": 1, "max_new_tokens":5},"rid":"r","stream":true}`, nil})
}()
