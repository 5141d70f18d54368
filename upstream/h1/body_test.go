package h1

import (
	"fmt"
	"strings"
	"testing"
)

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestFeedBody_GoodChunks(t *testing.T) {
	f := func(in, body string) {
		t.Helper()
		want := outcome{status: 200, length: -1, framing: "chunked", body: body, excess: "HTTP", complete: true, reusable: true}
		var r Response
		whole := chunkedHead + in + "HTTP"
		checkOutcome(t, in, drive(&r, "POST", whole), want)
		checkOutcome(t, in+", byte by byte", drive(&r, "POST", singles(whole)...), want)
	}
	f("0\r\n\r\n", "")
	f("0000000000000000\r\n\r\n", "")
	f("5\r\nhello\r\n0\r\n\r\n", "hello")
	f("5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n", "hello, world")
	f("a\r\n0123456789\r\nA\r\n0123456789\r\n000000000000000a\r\n0123456789\r\n0\r\n\r\n", strings.Repeat("0123456789", 3))
	f("4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n")
	f("5;name=value\r\nhello\r\n0;x\r\n\r\n", "hello")
	f("5 \t ; a ; b = \"c;\\\"\t\xff\" \r\nhello\r\n0\r\n\r\n", "hello")
	f("2;"+strings.Repeat("x", maxChunkExtension)+"\r\nok\r\n0\r\n\r\n", "ok")
	f("2\r\nok\r\n0\r\nA: b\r\nx-checksum:\t\xff 1:2\r\nempty:\r\n\r\n", "ok")
	f("2\r\nok\r\n0\r\nContent-Length: 99\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n\r\n", "ok")
}

// badChunks are bodies with the payload before the fault and the fault.
var badChunks = []struct {
	in, body string
	err      error
}{
	{"", "", eof},
	{"5", "", eof},
	{"5\r\n", "", eof},
	{"5\r\nhel", "hel", eof},
	{"5\r\nhello", "hello", eof},
	{"5\r\nhello\r\n", "hello", eof},
	{"5\r\nhello\r\n0\r\n", "hello", eof},
	{"5\r\nhello\r\n0\r\n\r", "hello", eof},
	{"5\r\nhello\r\n0\r\nA: b\r\n", "hello", eof},
	{"\r\n", "", ErrChunkSize},
	{"\n", "", ErrChunkSize},
	{" 5\r\nhello\r\n", "", ErrChunkSize},
	{"5 \r\nhello\r\n", "", ErrChunkSize},
	{"5\nhello\r\n", "", ErrChunkSize},
	{"5\rhello\r\n", "", ErrChunkSize},
	{"5\r\rhello\r\n", "", ErrChunkSize},
	{"0x5\r\nhello\r\n", "", ErrChunkSize},
	{"+5\r\nhello\r\n", "", ErrChunkSize},
	{"-5\r\nhello\r\n", "", ErrChunkSize},
	{"5,\r\nhello\r\n", "", ErrChunkSize},
	{"g\r\n", "", ErrChunkSize},
	{";ext\r\n", "", ErrChunkSize},
	{"5 5\r\n", "", ErrChunkSize},
	{"00000000000000005\r\nhello\r\n", "", ErrChunkSize},
	{"8000000000000000\r\n", "", ErrChunkSize},
	{"ffffffffffffffff\r\n", "", ErrChunkSize},
	{"10000000000000000\r\n", "", ErrChunkSize},
	{"5;a\nhello\r\n", "", ErrChunkExtension},
	{"5;a\x00\r\nhello\r\n", "", ErrChunkExtension},
	{"5;a\x7f\r\nhello\r\n", "", ErrChunkExtension},
	{"5;a\rb\r\nhello\r\n", "", ErrChunkSize},
	{"5;" + strings.Repeat("a", maxChunkExtension+1), "", ErrChunkExtension},
	{"5" + strings.Repeat(" ", maxChunkExtension+1), "", ErrChunkExtension},
	{"5\r\nhello5\r\n", "hello", ErrChunkEnd},
	{"5\r\nhello\n", "hello", ErrChunkEnd},
	{"5\r\nhello\rx", "hello", ErrChunkEnd},
	{"5\r\nhellos\r\n", "hello", ErrChunkEnd},
	{"1\r\na\r\n0\r\n\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\n\rx", "a", ErrTrailer},
	{"1\r\na\r\n0\r\n:\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\n folded\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA : b\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA: b\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA: b\x00\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA: b\rc\r\n", "a", ErrTrailer},
	{"1\r\na\r\n0\r\nA: " + strings.Repeat("b", maxTrailer), "a", ErrTrailer},
	{"1\r\na\r\n0\r\n" + strings.Repeat("a:\r\n", maxTrailer), "a", ErrTrailer},
	{"1\r\na\r\n0\r\n" + strings.Repeat("a", maxTrailer+1), "a", ErrTrailer},
}

func TestFeedBody_BadChunks(t *testing.T) {
	for _, tc := range badChunks {
		want := outcome{status: 200, length: -1, framing: "chunked", body: tc.body, err: tc.err}
		name := fmt.Sprintf("%.80q", tc.in)
		var r Response
		checkOutcome(t, name, drive(&r, "POST", chunkedHead+tc.in), want)
		checkOutcome(t, name+", byte by byte", drive(&r, "POST", singles(chunkedHead+tc.in)...), want)
	}
}

func TestFeedBody_LargestChunkIsNotRead(t *testing.T) {
	// A size is a promise, not memory: nothing is reserved for it.
	var r Response
	o := drive(&r, "POST", chunkedHead+"7fffffffffffffff\r\nab", "cd")
	checkOutcome(t, "largest chunk", o, outcome{status: 200, length: -1, framing: "chunked", body: "abcd", err: eof})
}

func TestFeedBody_FirstChunkStaysInPlace(t *testing.T) {
	var r Response
	r.Reset([]byte("POST"))
	if _, done, err := r.FeedHead([]byte(chunkedHead)); !done || err != nil {
		t.Fatalf("unexpected FeedHead; got %v, %v", done, err)
	}
	p := []byte("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nx")
	payload, n, done, err := r.FeedBody(p)
	if string(payload) != "hello world" || n != len(p)-1 || !done || err != nil {
		t.Fatalf("unexpected FeedBody; got %q, %d, %v, %v", payload, n, done, err)
	}
	if &payload[0] != &p[3] {
		t.Fatal("the first chunk was moved")
	}
	if cap(payload) != len(payload) {
		t.Fatal("an append to payload would overwrite what follows")
	}
	if p[n] != 'x' {
		t.Fatalf("the excess was overwritten; got %q", p[n:])
	}
}

func TestB39_BrokenBodiesAreErrors(t *testing.T) {
	f := func(in, body string) {
		t.Helper()
		var r Response
		o := drive(&r, "POST", in)
		if o.err != eof || o.complete || o.reusable || o.body != body {
			t.Fatalf("unexpected outcome; got %+v", o)
		}
	}
	event := "data: {\"a\":1}\n\n"
	f(chunkedHead+"f\r\n"+event+"\r\n", event)
	f(chunkedHead+"ff\r\n"+event, event)
	f(answer("HTTP/1.1 200 OK", "Content-Length: 16")+event, event)
}

func TestFollow_SameEndAsFeedBody(t *testing.T) {
	var r Response
	for _, in := range []string{
		chunkedHead + "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nA: b\r\n\r\nHTTP",
		answer("HTTP/1.1 200 OK", "Content-Length: 5") + "helloHTTP",
		answer("HTTP/1.1 200 OK") + "hello",
		answer("HTTP/1.1 204 No Content") + "HTTP",
		chunkedHead + "5\r\nhello",
	} {
		head := in[:strings.Index(in, "\r\n\r\n")+4]
		want := drive(&r, "POST", in)
		for _, pieces := range [][]string{{in}, singles(in), {in[:len(in)/2], in[len(in)/2:]}} {
			got := follow(t, &r, "POST", pieces...)
			if got.err != want.err || got.complete != want.complete || got.reusable != want.reusable || got.excess != want.excess {
				t.Fatalf("%q: unexpected outcome;\n got %+v;\nwant %+v", in, got, want)
			}
			if all := head + got.body + got.excess; all != in {
				t.Fatalf("unexpected bytes followed; got %q; want %q", all, in)
			}
		}
	}
	for _, tc := range badChunks {
		if got := follow(t, &r, "POST", chunkedHead+tc.in); got.err != tc.err {
			t.Fatalf("%.80q: unexpected error; got %v; want %v", tc.in, got.err, tc.err)
		}
	}
}

// TestSplits: wherever an answer is divided, in two or in three, the outcome
// is that of the whole.
func TestSplits(t *testing.T) {
	for _, tc := range []struct{ method, in string }{
		{"POST", answer("HTTP/1.1 100 Continue") + answer("HTTP/1.1 103 Early Hints", "Link: x") + answer("HTTP/1.1 200 OK", "A: b", "Content-Length: 3") + "abcHTTP"},
		{"POST", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=\"y\"\r\n0123456789abcdef\r\n0\r\nT: u\r\nV:\r\n\r\nHTTP"},
		{"POST", answer("HTTP/1.1 200 OK", "Connection: close") + "to the end"},
		{"HEAD", answer("HTTP/1.1 200 OK", "Content-Length: 3") + "HTTP"},
		{"POST", answer("HTTP/1.0 200 OK", "Connection: keep-alive", "Content-Length: 2") + "ok"},
		{"POST", answer("HTTP/1.1 200 OK", "A: b", "C : d")},
		{"POST", chunkedHead + "3\r\nabc\r\n3\r\ndefg"},
		{"POST", chunkedHead + "3\r\nabc\r\n0\r\nT : u\r\n\r\n"},
		{"POST", chunkedHead + "3\r\nabc\r\n"},
	} {
		var r Response
		want := drive(&r, tc.method, tc.in)
		for i := 0; i <= len(tc.in); i++ {
			for j := i; j <= len(tc.in); j++ {
				got := drive(&r, tc.method, tc.in[:i], tc.in[i:j], tc.in[j:])
				checkOutcome(t, fmt.Sprintf("%q cut at %d and %d", tc.in, i, j), got, want)
			}
		}
		checkOutcome(t, tc.in+", byte by byte", drive(&r, tc.method, singles(tc.in)...), want)
	}
}
