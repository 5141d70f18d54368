package cache

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/upstream/h1"
)

// fieldsOf returns the fields of e as text.
func fieldsOf(e *Entry) string {
	var s strings.Builder
	for _, f := range e.AppendFields(nil) {
		s.WriteString(string(f.Name) + ": " + string(f.Value) + "\n")
	}
	return s.String()
}

func header(lines ...string) []h1.Field {
	var list []h1.Field
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		list = append(list, h1.Field{Name: []byte(name), Value: []byte(value)})
	}
	return list
}

func TestCapture_Fields(t *testing.T) {
	f := func(want string, lines ...string) {
		t.Helper()
		var c Capture
		if !c.Begin(200, header(lines...), Shape{MaxEntry: 10}) {
			t.Fatal("not storable")
		}
		if got := fieldsOf(c.entry(time.Now())); got != want {
			t.Errorf("unexpected fields; got %q; want %q", got, want)
		}
	}
	f("")
	f("Content-Type: application/json\n", "content-type: application/json")
	f("Content-Type: a\n", "Content-Type: a", "Content-Type: b")
	f("Content-Type: a\nCache-Control: no-cache\nX-Accel-Buffering: no\nOpenAI-Version: 2020-10-01\n",
		"openai-version: 2020-10-01", "x-accel-buffering: no", "CACHE-CONTROL: no-cache", "content-type: a")
	f("Content-Language: de\nContent-Disposition: attachment\n", "content-disposition: attachment", "content-language: de")
	f("", "Set-Cookie: a=b", "Connection: close", "Transfer-Encoding: chunked", "Content-Length: 5", "Date: now", "Keep-Alive: 5", "X-Request-Id: 1",
		"x-ratelimit-limit: 1", "Server: s", "ETag: x", "Content-Encoding: identity", "Age: 5", "Trailer: x", "Retry-After: 5", "x-router-error-code: x")
	f("", "Content-Type: a\rb", "Content-Language: "+strings.Repeat("x", maxField+1))
	for _, name := range Replayed() {
		if h1.HopByHop([]byte(name)) || strings.EqualFold(name, "set-cookie") {
			t.Errorf("%s must not be replayed", name)
		}
	}
}

func TestStorable(t *testing.T) {
	f := func(want bool, status int, lines ...string) {
		t.Helper()
		if got := Storable(status, header(lines...)); got != want {
			t.Errorf("%d %q: unexpected Storable; got %v; want %v", status, lines, got, want)
		}
	}
	f(true, 200)
	f(true, 200, "Cache-Control: no-cache, private", "Set-Cookie: a=b", "Vary: Accept-Encoding, Origin", "Content-Encoding: identity")
	for _, status := range []int{100, 199, 201, 202, 204, 206, 301, 304, 400, 404, 429, 499, 500, 502, 503, 504} {
		f(false, status)
	}
	f(false, 200, "content-encoding: gzip")
	f(false, 200, "cache-control: max-age=5, No-Store")
	f(false, 200, "vary: *")
}

func TestVaries(t *testing.T) {
	f := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := Varies([]byte(name)); got != want {
				t.Errorf("%s: unexpected Varies; got %v; want %v", name, got, want)
			}
		}
	}
	f(true, "anthropic-version", "Anthropic-Beta", "OPENAI-BETA")
	f(false, "", "accept", "authorization", "x-request-id", "openai-bets", "anthropic-versions", "cookie", "user-agent")
}

func TestCapture_WholeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(NewMemory(1<<20, new(Stats)), new(Stats))
		var cp Capture
		k := testKey(1)
		if !cp.Begin(200, testFields, Shape{MaxEntry: 11, Usage: true}) || !cp.Write([]byte("hello ")) || !cp.Write([]byte("world")) || !cp.Active() {
			t.Fatal("not storable")
		}
		made := time.Now()
		e := c.Commit(&k, &cp, time.Hour)
		if e == nil || cp.Active() {
			t.Fatal("not stored, or still active")
		}
		time.Sleep(90 * time.Second)
		got := c.Get(&k, true)
		if got != e {
			t.Fatalf("unexpected entry; got %p; want %p", got, e)
		}
		if string(e.Body()) != "hello world" || e.Streamed() || !e.Created().Equal(made.Truncate(time.Millisecond)) {
			t.Errorf("unexpected entry %q, streamed %v, made %v", e.Body(), e.Streamed(), e.Created())
		}
		if age := e.Age(time.Now()); age != 90 {
			t.Errorf("unexpected age; got %d; want 90", age)
		}
		if age := e.Age(made.Add(-time.Hour)); age != 0 {
			t.Errorf("unexpected age before it was made; got %d; want 0", age)
		}
		if want := "Content-Type: application/json\n"; fieldsOf(e) != want {
			t.Errorf("unexpected fields; got %q; want %q", fieldsOf(e), want)
		}
		for _, usage := range []bool{true, false} {
			if first, second := e.Stream(usage); string(first) != "hello world" || len(second) != 0 {
				t.Errorf("unexpected pieces %q, %q", first, second)
			}
		}
	})
}

func TestCapture_Stream(t *testing.T) {
	const usage = "data: {\"choices\":[],\"usage\":{}}\n\n"
	f := func(asked, comes bool) {
		t.Helper()
		var cp Capture
		cp.Begin(200, nil, Shape{MaxEntry: 1 << 10, Streamed: true, Usage: asked})
		cp.Write([]byte("data: 1\n\n"))
		if comes {
			cp.WriteUsage([]byte(usage))
		}
		cp.Write([]byte("data: [DONE]\n\n"))
		e := cp.entry(time.Now())
		e, err := Decode(e.Encoded())
		if err != nil || !e.Streamed() {
			t.Fatalf("unexpected entry: %v", err)
		}
		if !e.Serves(false) || e.Serves(true) != asked {
			t.Errorf("asked %v: serves those with usage: %v, without: %v", asked, e.Serves(true), e.Serves(false))
		}
		want := "data: 1\n\ndata: [DONE]\n\n"
		if first, second := e.Stream(false); string(first)+string(second) != want && asked {
			t.Errorf("unexpected stream %q, %q", first, second)
		}
		if comes {
			want = "data: 1\n\n" + usage + "data: [DONE]\n\n"
		}
		if first, second := e.Stream(true); string(first)+string(second) != want || string(e.Body()) != want {
			t.Errorf("unexpected stream with usage %q, %q", first, second)
		}
	}
	f(true, true)
	f(true, false)
	f(false, false)
	f(false, true) // nobody asked, and the engine sent it all the same: it is kept
}

func TestCapture_NotStored(t *testing.T) {
	stats := new(Stats)
	c := New(NewMemory(1<<20, stats), stats)
	var cp Capture
	k := testKey(1)
	f := func(what string, tooLarge uint64, run func()) {
		t.Helper()
		run()
		if e := c.Commit(&k, &cp, time.Hour); e != nil || stats.Stores.Load() != 0 || stats.Entries.Load() != 0 {
			t.Errorf("%s is stored", what)
		}
		if n := stats.TooLarge.Load(); n != tooLarge {
			t.Errorf("%s: unexpected count of what is too large; got %d; want %d", what, n, tooLarge)
		}
	}
	f("nothing", 0, func() {})
	f("an error", 0, func() {
		if cp.Begin(500, nil, Shape{MaxEntry: 5}) || cp.Write([]byte("x")) || cp.WriteUsage(nil) {
			t.Error("an error may be stored")
		}
	})
	f("a dropped answer", 0, func() {
		cp.Begin(200, nil, Shape{MaxEntry: 5})
		cp.Write([]byte("x"))
		cp.Drop()
		cp.Drop()
	})
	f("a large answer", 1, func() {
		cp.Begin(200, nil, Shape{MaxEntry: 5})
		if !cp.Write([]byte("12345")) || cp.Write([]byte("6")) || cp.Active() || cp.Write([]byte("7")) {
			t.Error("6 bytes of 5 may be stored")
		}
	})
	f("a large answer, dropped", 1, func() {
		cp.Begin(200, nil, Shape{MaxEntry: 0})
		cp.Write([]byte("1"))
		cp.Drop()
	})
	f("an answer after a large one", 1, func() {
		cp.Begin(200, nil, Shape{MaxEntry: 0})
		cp.Write([]byte("1"))
		cp.Begin(404, nil, Shape{MaxEntry: 5})
	})
}

// TestCapture_Memory holds what a Capture keeps, and that an entry is its own.
func TestCapture_Memory(t *testing.T) {
	var cp Capture
	for _, size := range []int{10, 1 << 10, 100 << 10, 1 << 20} {
		piece := bytes.Repeat([]byte("p"), 1<<10)
		cp.Begin(200, testFields, Shape{MaxEntry: 1 << 20})
		for n := 0; n < size; n += len(piece) {
			cp.Write(piece[:min(len(piece), size-n)])
		}
		e := cp.entry(time.Now())
		if len(e.Body()) != size {
			t.Fatalf("unexpected length; got %d; want %d", len(e.Body()), size)
		}
		if waste := cap(e.raw) - len(e.raw); waste > len(e.raw)/8+16<<10 {
			t.Errorf("an entry of %d bytes holds %d more", size, waste)
		}
		cp.Begin(200, nil, Shape{MaxEntry: 1 << 20})
		cp.Write(bytes.Repeat([]byte("q"), 100))
		if bytes.IndexByte(e.Body(), 'q') >= 0 {
			t.Error("the next answer is written over an entry")
		}
		cp.Drop()
		if cap(cp.buf) > keepCapture {
			t.Errorf("a Capture keeps %d bytes", cap(cp.buf))
		}
	}
	cp.Begin(200, nil, Shape{MaxEntry: 1 << 20})
	cp.Write(make([]byte, 1<<20))
	if cp.Write([]byte("x")); cap(cp.buf) > keepCapture {
		t.Errorf("a Capture that gave up keeps %d bytes", cap(cp.buf))
	}
}

// streamEntry is an entry with all there is.
func streamEntry() *Entry {
	var cp Capture
	cp.Begin(200, header("Content-Type: text/event-stream", "Cache-Control: no-cache"), Shape{MaxEntry: 1 << 10, Streamed: true, Usage: true})
	cp.Write([]byte("data: 1\n\n"))
	cp.WriteUsage([]byte("data: 2\n\n"))
	cp.Write([]byte("data: [DONE]\n\n"))
	return cp.entry(time.UnixMilli(1_800_000_000_000))
}

func TestDecode_Garbage(t *testing.T) {
	whole := streamEntry().Encoded()
	if _, err := Decode(whole); err != nil {
		t.Fatal(err)
	}
	f := func(what string, raw []byte) {
		t.Helper()
		if e, err := Decode(raw); !errors.Is(err, ErrNoEntry) || e != nil {
			t.Errorf("%s: unexpected error; got %v; want %v", what, err, ErrNoEntry)
		}
	}
	for n := range whole {
		f("cut", whole[:n])
	}
	f("longer", append(bytes.Clone(whole), 'x'))
	set := func(at int, c byte) []byte {
		raw := bytes.Clone(whole)
		raw[at] = c
		return raw
	}
	f("another format", set(0, 'X'))
	f("another version", set(3, 2))
	f("an unknown flag", set(4, flagsEnd))
	f("usage of no stream", set(4, flagUsage))
	f("an event with usage, but no usage", set(4, flagStream))
	f("too few fields", set(5, 1))
	f("too many fields", set(5, 200))
	f("a longer body", set(14, 0xff))
	f("a huge body", set(17, 0xff))
	f("usage that ends before it begins", set(22, 1))
	f("usage that ends after the body", set(22, 0xff))
	f("an unknown field", set(headSize, byte(len(replayed))))
	f("fields out of order", set(headSize, 5))
	f("a long field", set(headSize+2, 0xff))
	f("a line end in a field", set(headSize+4, '\n'))
	f("nothing", nil)
	f("text", []byte(strings.Repeat("hello ", 20)))
}

func TestParseDirectives(t *testing.T) {
	f := func(value string, noStore, noCache bool) {
		t.Helper()
		want := Directives{NoStore: noStore, NoCache: noCache}
		if got := ParseDirectives([]byte(value)); got != want {
			t.Errorf("%q: unexpected directives; got %+v; want %+v", value, got, want)
		}
	}
	f("", false, false)
	f("no-store", true, false)
	f("no-cache", false, true)
	f("No-Cache, NO-STORE", true, true)
	f(" \tno-store\t ,", true, false)
	f(",,no-cache", false, true)
	f("max-age=0", false, true)
	f(`max-age="0"`, false, true)
	f("max-age=00", false, true)
	f("max-age=10", false, false)
	f("max-age=", false, false)
	f("max-age", false, false)
	f("no-storefront, xno-cache", false, false)
	f(`private="no-store, no-cache"`, false, false)
	f(`ext="a\", no-store", no-cache`, false, true)
	f(`ext="no-store`, false, false)
	f(`no-cache="set-cookie"`, false, true)
	f("only-if-cached, max-stale", false, false)
	f("no store", false, false)
	both := ParseDirectives([]byte("no-store")).Or(ParseDirectives([]byte("no-cache")))
	if !both.NoStore || !both.NoCache {
		t.Errorf("unexpected directives of two fields: %+v", both)
	}
}
