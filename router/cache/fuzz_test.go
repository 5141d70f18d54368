package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"sluice/probe"
	"sluice/upstream/h1"
)

// FuzzKey holds keys against a slow, obvious twin: two bodies share a key iff the
// twin writes the same text for both.
func FuzzKey(f *testing.F) {
	for _, c := range goldenCases {
		f.Add([]byte(c.body), []byte(`{"model":"m", "user":1}`), uint8(c.surface))
	}
	f.Add([]byte(`{"a":[1 2, "x\\" ,"\ud800"],"\ud800":1,"b":2,"b":3}`), []byte(`{"b":2,"a":[1  2,"x\\","\ud800"],"b":3,"\ud800":1}`), uint8(1))
	f.Add([]byte(`{"stream_options":{"include_usage":true},"stream":false}`), []byte(`{"stream_options":{"include_usage":7},"stream":null}`), uint8(2))
	var kx, ky Builder
	f.Fuzz(func(t *testing.T, x, y []byte, surface uint8) {
		s := probe.Surface(surface) % probe.NumSurfaces
		var bx, by probe.Body
		if probe.Scan(x, s, 0, &bx) != probe.FaultNone {
			return
		}
		kx.Reset()
		kx.Body(s, x, &bx)
		want := kx.Sum()
		spaced := respace(x, &bx)
		for _, other := range [][]byte{spaced, y} {
			if probe.Scan(other, s, 0, &by) != probe.FaultNone {
				continue
			}
			ky.Reset()
			ky.Body(s, other, &by)
			same := canonical(x, &bx, s) == canonical(other, &by, s)
			if got := ky.Sum() == want; got != same {
				t.Fatalf("%s: share a key: %v; want %v\n%q\n%q", s, got, same, x, other)
			}
		}
	})
}

// respace writes the members of a body in reverse order, copies of a key as well,
// with white space where it may be.
func respace(src []byte, body *probe.Body) []byte {
	members := slices.Clone(body.Members)
	slices.Reverse(members)
	out := []byte("\n{ ")
	for i, m := range members {
		if i > 0 {
			out = append(out, " ,\t"...)
		}
		out = append(append(out, m.Key.Of(src)...), "\r: "...)
		out = append(out, m.Val.Of(src)...)
	}
	return append(out, " }  "...)
}

// canonical writes what counts of a body.
func canonical(src []byte, body *probe.Body, s probe.Surface) string {
	var list []string
	copies := map[string]int{}
	for i := range body.Members {
		m := &body.Members[i]
		raw := string(m.Key.Of(src))
		key := "written " + raw
		if low := strings.ToLower(raw); !strings.Contains(low, `\ud8`) && !strings.Contains(low, `\ud9`) && !strings.Contains(low, `\uda`) &&
			!strings.Contains(low, `\udb`) && !strings.Contains(low, `\udc`) && !strings.Contains(low, `\udd`) && !strings.Contains(low, `\ude`) && !strings.Contains(low, `\udf`) {
			var text string
			if err := json.Unmarshal([]byte(raw), &text); err != nil {
				panic(err)
			}
			if idleTwin(s, text, string(m.Val.Of(src))) {
				continue
			}
			key = "read " + text
		}
		copies[key]++
		list = append(list, fmt.Sprintf("%q %d %q", key, copies[key], stripped(string(m.Val.Of(src)))))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// idleTwin is idle from the table of the package comment.
func idleTwin(s probe.Surface, key, value string) bool {
	none := map[string]string{
		"chat": "user metadata safety_identifier prompt_cache_key prompt_cache_retention", "completions": "user", "messages": "metadata",
		"embeddings": "user", "rerank": "user", "score": "user", "classify": "user",
	}
	switch {
	case key == "stream" && s.Generative():
		return value == "false" || value == "null"
	case key == "stream_options" && (s == probe.SurfaceChat || s == probe.SurfaceCompletions):
		if value == "null" {
			return true
		}
		return value[0] == '{' && plainUsage(value)
	}
	return slices.Contains(strings.Fields(none[s.String()]), key)
}

// plainUsage reports an object of nothing but copies of include_usage that are
// true, false or null, read token by token.
func plainUsage(value string) bool {
	d := json.NewDecoder(strings.NewReader(value))
	for n := 0; ; n++ {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		_, isBool := token.(bool)
		switch {
		case n == 0, token == json.Delim('}'):
		case n%2 == 1 && token != "include_usage", n%2 == 0 && token != nil && !isBool:
			return false
		}
	}
}

// stripped removes white space outside strings, byte by byte.
func stripped(v string) string {
	var out []byte
	in, gap := false, false
	for i := 0; i < len(v); i++ {
		c := v[i]
		if !in && strings.IndexByte(" \t\r\n", c) >= 0 {
			gap = true
			continue
		}
		if gap && len(out) > 0 && isWord(out[len(out)-1]) && isWord(c) {
			out = append(out, ' ')
		}
		gap = false
		out = append(out, c)
		switch {
		case c == '"':
			in = !in
		case c == '\\' && in:
			i++
			out = append(out, v[i])
		}
	}
	return string(out)
}

func isWord(c byte) bool {
	return strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.", c) >= 0
}

// FuzzDecode has garbage decoded. What is an entry reads as one, is all of its
// bytes, and makes an answer that no field of it can split.
func FuzzDecode(f *testing.F) {
	f.Add(streamEntry().Encoded())
	f.Add(testEntry("body").Encoded())
	f.Add([]byte(entryMagic))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			return
		}
		size := headSize + len(e.Body())
		for _, field := range e.AppendFields(nil) {
			size += 3 + len(field.Value)
			if bytes.ContainsAny(field.Value, "\r\n\x00") || h1.HopByHop(field.Name) {
				t.Fatalf("unexpected field %s: %q", field.Name, field.Value)
			}
		}
		if size != len(raw) {
			t.Fatalf("%d bytes of %d are read", size, len(raw))
		}
		first, second := e.Stream(false)
		if n := len(first) + len(second); n > len(e.Body()) || !bytes.HasPrefix(e.Body(), first) || !bytes.HasSuffix(e.Body(), second) {
			t.Fatalf("a stream of %d bytes out of %d", n, len(e.Body()))
		}
		if whole, rest := e.Stream(true); !bytes.Equal(whole, e.Body()) || len(rest) != 0 {
			t.Fatal("the whole stream is not the body")
		}
		if again, err := Decode(e.Encoded()); err != nil || again.Streamed() != e.Streamed() {
			t.Fatal("an entry does not read a second time")
		}
	})
}

// FuzzDirectives holds that a directive is found only where its name stands.
func FuzzDirectives(f *testing.F) {
	f.Add("no-store, no-cache")
	f.Add(`a="no-store\", ", max-age=0`)
	f.Fuzz(func(t *testing.T, value string) {
		d := ParseDirectives([]byte(value))
		low := strings.ToLower(value)
		if d.NoStore && !strings.Contains(low, "no-store") {
			t.Errorf("no-store found in %q", value)
		}
		if d.NoCache && !strings.Contains(low, "no-cache") && !strings.Contains(low, "max-age") {
			t.Errorf("no-cache found in %q", value)
		}
		if more := ParseDirectives([]byte(value + `x", no-store`)); !more.NoStore && !ParseDirectives([]byte(value+", no-store")).NoStore {
			t.Errorf("no-store not found behind %q", value)
		}
	})
}
