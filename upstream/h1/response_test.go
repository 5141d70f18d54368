package h1

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestResponse_GoodHeads(t *testing.T) {
	for _, tc := range []struct {
		name, method, in string
		want             outcome
	}{
		{
			"typical", "POST",
			answer("HTTP/1.1 200 OK", "date: Mon, 30 Nov 2026 23:58:50 GMT", "Content-Type: application/json", "Content-Length: 2") + "{}",
			outcome{status: 200, fields: "date=Mon, 30 Nov 2026 23:58:50 GMT|Content-Type=application/json|", length: 2, framing: "length", body: "{}", complete: true, reusable: true},
		},
		{
			"no reason phrase", "POST", answer("HTTP/1.1 500 ", "Content-Length: 0"),
			outcome{status: 500, length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"no reason phrase, no space", "POST", answer("HTTP/1.1 599", "Content-Length: 0"),
			outcome{status: 599, length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"reason phrase with tab and obs-text", "POST", answer("HTTP/1.1 404 \tNicht\tgefunden \xe4", "Content-Length: 0"),
			outcome{status: 404, length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"no fields at all", "POST", answer("HTTP/1.1 200 OK") + "till the end",
			outcome{status: 200, length: -1, framing: "eof", body: "till the end", complete: true},
		},
		{
			"white space around values, empty value, obs-text", "POST",
			answer("HTTP/1.1 200 OK", "a: \t b c\t ", "b:", "c:  ", "d:x", "e: \xff\x80\tz", "Content-Length:\t0 "),
			outcome{status: 200, fields: "a=b c|b=|c=|d=x|e=\xff\x80\tz|", length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"every token character in a name", "POST", answer("HTTP/1.1 200 OK", "!#$%&'*+-.^_`|~09azAZ: 1", "Content-Length: 0"),
			outcome{status: 200, fields: "!#$%&'*+-.^_`|~09azAZ=1|", length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"names in any case", "POST", answer("HTTP/1.1 200 OK", "tRANSFER-eNCODING: ChunkeD") + "0\r\n\r\n",
			outcome{status: 200, length: -1, framing: "chunked", complete: true, reusable: true},
		},
		{
			"repeated fields stay", "POST", answer("HTTP/1.1 200 OK", "Set-Cookie: a", "set-cookie: b", "CONTENT-LENGTH: 0"),
			outcome{status: 200, fields: "Set-Cookie=a|set-cookie=b|", length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"equal lengths", "POST", answer("HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 02, 2") + "ok",
			outcome{status: 200, length: 2, framing: "length", body: "ok", complete: true, reusable: true},
		},
		{
			"largest length", "HEAD", answer("HTTP/1.1 200 OK", "Content-Length: 9223372036854775807"),
			outcome{status: 200, length: 9223372036854775807, framing: "none", complete: true, reusable: true},
		},
		{
			"HEAD with a length", "HEAD", answer("HTTP/1.1 200 OK", "Content-Length: 10"),
			outcome{status: 200, length: 10, framing: "none", complete: true, reusable: true},
		},
		{
			"HEAD chunked", "HEAD", answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"),
			outcome{status: 200, length: -1, framing: "none", complete: true, reusable: true},
		},
		{
			"HEAD without framing", "HEAD", answer("HTTP/1.1 200 OK"),
			outcome{status: 200, length: -1, framing: "none", complete: true, reusable: true},
		},
		{
			"204 never has a body", "POST", answer("HTTP/1.1 204 No Content", "Content-Length: 3") + "abc",
			outcome{status: 204, length: 0, framing: "none", excess: "abc", complete: true, reusable: true},
		},
		{
			"304 never has a body", "GET", answer("HTTP/1.1 304 Not Modified", "Content-Length: 3"),
			outcome{status: 304, length: 3, framing: "none", complete: true, reusable: true},
		},
		{
			"interim answers", "POST",
			answer("HTTP/1.1 100 Continue") + answer("HTTP/1.1 103 Early Hints", "Link: </x>", "Content-Length: 7", "Connection: close") +
				answer("HTTP/1.1 200 OK", "X: y", "Content-Length: 1") + "z",
			outcome{status: 200, fields: "X=y|", length: 1, framing: "length", body: "z", complete: true, reusable: true},
		},
		{
			"as many interim answers as may be", "POST",
			strings.Repeat(answer("HTTP/1.1 102 Processing"), MaxInterim) + answer("HTTP/1.1 200 OK", "Content-Length: 0"),
			outcome{status: 200, length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"HTTP/1.0", "POST", answer("HTTP/1.0 200 OK", "Content-Length: 1") + "x",
			outcome{status: 200, length: 1, framing: "length", body: "x", complete: true},
		},
		{
			"HTTP/1.0 kept alive", "POST", answer("HTTP/1.0 200 OK", "Content-Length: 1", "Connection: Keep-Alive") + "x",
			outcome{status: 200, fields: "Connection=Keep-Alive|", length: 1, framing: "length", body: "x", complete: true, reusable: true},
		},
		{
			"close", "POST", answer("HTTP/1.1 200 OK", "Content-Length: 1", "connection: foo , CLOSE") + "x",
			outcome{status: 200, fields: "connection=foo , CLOSE|", length: 1, framing: "length", body: "x", complete: true},
		},
		{
			"close beats keep-alive", "POST", answer("HTTP/1.0 200 OK", "Connection: close", "Content-Length: 0", "Connection: keep-alive"),
			outcome{status: 200, fields: "Connection=close|Connection=keep-alive|", length: 0, framing: "none", complete: true},
		},
		{
			"not quite close", "POST", answer("HTTP/1.1 200 OK", "Content-Length: 0", "Connection: closed, clos", "Xonnection: close"),
			outcome{status: 200, fields: "Connection=closed, clos|Xonnection=close|", length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"names as long as the ones that matter", "POST",
			answer("HTTP/1.1 200 OK", "Content-Lengt_: x", "Transfer-Encodin_: gzip", "Content-Length: 0"),
			outcome{status: 200, fields: "Content-Lengt_=x|Transfer-Encodin_=gzip|", length: 0, framing: "none", complete: true, reusable: true},
		},
		{
			"the next answer is excess", "POST", answer("HTTP/1.1 200 OK", "Content-Length: 1") + "xHTTP/1.1 200 OK",
			outcome{status: 200, length: 1, framing: "length", body: "x", excess: "HTTP/1.1 200 OK", complete: true, reusable: true},
		},
	} {
		var r Response
		checkOutcome(t, tc.name, drive(&r, tc.method, tc.in), tc.want)
		checkOutcome(t, tc.name+", byte by byte", drive(&r, tc.method, singles(tc.in)...), tc.want)
	}
}

// badHeads are whole heads, each with the fault it has.
var badHeads = []struct {
	in  string
	err error
}{
	{"", eof},
	{"HTTP/1.1 200 OK\r\n", eof},
	{"HTTP/1.1 200 OK\r\n\r", eof},
	{"\r\n" + answer("HTTP/1.1 200 OK"), ErrStatusLine},
	{answer(""), ErrStatusLine},
	{answer("HTTP/1.1"), ErrStatusLine},
	{answer("HTTP/1.1 "), ErrStatusLine},
	{answer("HTTP/1.1 20"), ErrStatusLine},
	{answer("HTTP/1.1 20 OK"), ErrStatusLine},
	{answer("HTTP/1.1  200 OK"), ErrStatusLine},
	{answer("HTTP/1.1\t200 OK"), ErrStatusLine},
	{answer("HTTP/1.1 2000 OK"), ErrStatusLine},
	{answer("HTTP/1.1 200\tOK"), ErrStatusLine},
	{answer("HTTP/1.1 200 O\x00K"), ErrStatusLine},
	{answer("HTTP/1.1 200 O\rK"), ErrStatusLine},
	{answer("HTTP/1.1 200 O\x7fK"), ErrStatusLine},
	{answer("HTTP/1.1 099 Low"), ErrStatusLine},
	{answer("HTTP/1.1 000 Low"), ErrStatusLine},
	{answer("HTTP/1.1 600 High"), ErrStatusLine},
	{answer("HTTP/1.1 999 High"), ErrStatusLine},
	{answer("HTTP/1.1 +20 Sign"), ErrStatusLine},
	{answer("HTTP/1.1 2x0 OK"), ErrStatusLine},
	{answer("HTTP/1.2 200 OK"), ErrStatusLine},
	{answer("HTTP/0.9 200 OK"), ErrStatusLine},
	{answer("HTTP/2.0 200 OK"), ErrStatusLine},
	{answer("HTTP/2 200 OK"), ErrStatusLine},
	{answer("HTTP/1.10 200 OK"), ErrStatusLine},
	{answer("HTTP/9.9 200 OK"), ErrStatusLine},
	{answer("http/1.1 200 OK"), ErrStatusLine},
	{answer(" HTTP/1.1 200 OK"), ErrStatusLine},
	{answer("SSH-2.0-OpenSSH_9.2"), ErrStatusLine},
	{answer("HTTP/1.1 200 OK\n"), ErrBareLF},
	{"HTTP/1.1 200 OK\n\n", ErrBareLF},
	{"\n", ErrBareLF},
	{"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", ErrBareLF},
	{"HTTP/1.1 200 OK\r\nA: b\r\n\n", ErrBareLF},
	{answer("HTTP/1.1 200 OK", "no colon"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "nocolon"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", ": no name"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "Content-Length : 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "Content-Length\t: 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "X Y: 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "X\x00Y: 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "X(Y): 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "\xc3\xa4: 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", "\r: 2"), ErrFieldName},
	{answer("HTTP/1.1 200 OK", " X: before the first field"), ErrFold},
	{answer("HTTP/1.1 200 OK", "X: a", " folded"), ErrFold},
	{answer("HTTP/1.1 200 OK", "X: a", "\tfolded"), ErrFold},
	{answer("HTTP/1.1 200 OK", "X: a", " "), ErrFold},
	{answer("HTTP/1.1 200 OK", "X: a\x00b"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: a\rb"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: a\r"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: \x01"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: \x1f"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: 0123456\x7f89"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "X: 012345678901234\x0b"), ErrFieldValue},
	{answer("HTTP/1.1 200 OK", "Content-Length:"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: +2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: -2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 0x2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2.0"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2 2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: two"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2,"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: ,2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2, 3"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2", "content-length: 3"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 9223372036854775808"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 18446744073709551618"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: 99999999999999999999999999"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Content-Length: \xd9\xa2"), ErrContentLength},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding:"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: identity"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: gzip"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked, chunked"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked;q=1"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: xchunked"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked,"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), ErrTransferEncoding},
	{answer("HTTP/1.0 200 OK", "Transfer-Encoding: chunked"), ErrTransferEncoding},
	{answer("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 2"), ErrBothLengths},
	{answer("HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"), ErrBothLengths},
	{answer("HTTP/1.1 204 No Content", "Content-Length: 2", "Transfer-Encoding: chunked"), ErrBothLengths},
	{answer("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: upgrade"), ErrUpgrade},
	{answer("HTTP/1.1 100 Continue"), eof},
	{answer("HTTP/1.1 100 Continue") + answer("HTTP/1.1 101 Switching Protocols"), ErrUpgrade},
	{answer("HTTP/1.1 100 Continue", "X : y") + answer("HTTP/1.1 200 OK"), ErrFieldName},
	{strings.Repeat(answer("HTTP/1.1 100 Continue"), MaxInterim+1), ErrTooManyInterim},
	{answer("HTTP/1.1 200 OK", strings.Repeat("a:\r\n", MaxFields)+"b:"), ErrTooManyFields},
	{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", MaxHead), ErrHeadTooLarge},
	{strings.Repeat("a", MaxHead+1), ErrHeadTooLarge},
}

func TestResponse_BadHeads(t *testing.T) {
	for _, tc := range badHeads {
		want := outcome{err: tc.err}
		name := fmt.Sprintf("%.80q", tc.in)
		var r Response
		checkOutcome(t, name, drive(&r, "POST", tc.in), want)
		checkOutcome(t, name+", byte by byte", drive(&r, "POST", singles(tc.in)...), want)
	}
}

func TestResponse_HeadOfExactlyTheLimit(t *testing.T) {
	// The interim answer counts: what is bounded is what a worker can make us read.
	start := answer("HTTP/1.1 100 Continue") + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
	fill := strings.Repeat("a", MaxHead-len(start)-4)
	var r Response
	checkOutcome(t, "exactly", drive(&r, "POST", start+fill+"\r\n\r\n"),
		outcome{status: 200, fields: "X=" + fill + "|", length: 0, framing: "none", complete: true, reusable: true})
	checkOutcome(t, "one more", drive(&r, "POST", start+fill+"a\r\n\r\n"), outcome{err: ErrHeadTooLarge})

	// As many fields as may be.
	in := answer("HTTP/1.1 200 OK", "Content-Length: 0\r\n"+strings.Repeat("a:\r\n", MaxFields-1)+"a:")
	checkOutcome(t, "fields", drive(&r, "POST", in),
		outcome{status: 200, fields: strings.Repeat("a=|", MaxFields), length: 0, framing: "none", complete: true, reusable: true})
}

func TestResponse_FaultIsFinal(t *testing.T) {
	var r Response
	r.Reset([]byte("POST"))
	if _, _, err := r.FeedHead([]byte("HTTP/1.1 999 Odd\r\n")); err != ErrStatusLine {
		t.Fatalf("unexpected error; got %v; want %v", err, ErrStatusLine)
	}
	if n, done, err := r.FeedHead([]byte(answer("HTTP/1.1 200 OK"))); n != 0 || done || err != ErrStatusLine {
		t.Fatalf("unexpected FeedHead after a fault; got %d, %v, %v", n, done, err)
	}
	if _, n, done, err := r.FeedBody([]byte("x")); n != 0 || done || err != ErrStatusLine {
		t.Fatalf("unexpected FeedBody after a fault; got %d, %v, %v", n, done, err)
	}
	if n, done, err := r.Follow([]byte("x")); n != 0 || done || err != ErrStatusLine {
		t.Fatalf("unexpected Follow after a fault; got %d, %v, %v", n, done, err)
	}
	if err := r.EOF(); err != ErrStatusLine {
		t.Fatalf("unexpected EOF after a fault; got %v", err)
	}
	if r.Reusable() {
		t.Fatal("reusable after a fault")
	}
	// Reset makes it as new.
	checkOutcome(t, "after Reset", drive(&r, "POST", answer("HTTP/1.1 200 OK", "Content-Length: 0")),
		outcome{status: 200, length: 0, framing: "none", complete: true, reusable: true})
}

func TestResponse_NothingIsConsumedAfterTheEnd(t *testing.T) {
	var r Response
	r.Reset([]byte("POST"))
	head := []byte(answer("HTTP/1.1 200 OK", "Content-Length: 0"))
	if n, done, err := r.FeedHead(append(head, "more"...)); n != len(head) || !done || err != nil {
		t.Fatalf("unexpected FeedHead; got %d, %v, %v", n, done, err)
	}
	if n, done, err := r.FeedHead([]byte("more")); n != 0 || !done || err != nil {
		t.Fatalf("unexpected second FeedHead; got %d, %v, %v", n, done, err)
	}
	if payload, n, done, err := r.FeedBody([]byte("more")); len(payload) != 0 || n != 0 || !done || err != nil {
		t.Fatalf("unexpected FeedBody; got %q, %d, %v, %v", payload, n, done, err)
	}
	if n, done, err := r.Follow([]byte("more")); n != 0 || !done || err != nil {
		t.Fatalf("unexpected Follow; got %d, %v, %v", n, done, err)
	}
}

func TestResponse_BodyBeforeHeadPanics(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.HasPrefix(fmt.Sprint(v), "BUG: ") {
			t.Fatalf("unexpected panic value; got %v", v)
		}
	}()
	var r Response
	r.Reset([]byte("POST"))
	r.FeedBody([]byte("x"))
}

func TestResponse_ResetDropsLargeBuffers(t *testing.T) {
	var r Response
	fat := answer("HTTP/1.1 200 OK", "Content-Length: 0", "X: "+strings.Repeat("a", 2*keepHead), strings.Repeat("b:\r\n", 2*keepFields)+"c:")
	if o := drive(&r, "POST", fat); o.err != nil {
		t.Fatalf("unexpected error: %v", o.err)
	}
	r.Reset([]byte("POST"))
	if cap(r.head) != 0 || cap(r.spans) != 0 || cap(r.Fields) != 0 {
		t.Fatalf("large buffers kept; caps %d, %d, %d", cap(r.head), cap(r.spans), cap(r.Fields))
	}
	if o := drive(&r, "POST", answer("HTTP/1.1 200 OK", "a: b", "Content-Length: 0")); o.err != nil {
		t.Fatalf("unexpected error: %v", o.err)
	}
	r.Reset([]byte("POST"))
	if cap(r.head) == 0 || cap(r.spans) == 0 || cap(r.Fields) == 0 {
		t.Fatal("small buffers dropped")
	}
}

func TestIsText(t *testing.T) {
	// Every byte at every place of a value that is long enough for both loops.
	for c := range 256 {
		for at := range 19 {
			b := bytes.Repeat([]byte{'~'}, 19)
			b[at] = byte(c)
			want := c == '\t' || c >= ' ' && c != 0x7f
			if got := isText(b); got != want {
				t.Fatalf("isText with %#x at %d; got %v; want %v", c, at, got, want)
			}
		}
	}
	if !isText([]byte("\t\t\t\t\t\t\t\t\t \x80\xff ~ \x80")) {
		t.Fatal("HTAB and obs-text refused")
	}
}

func TestB29_ErrorAnswersPassWithTypeAndBytes(t *testing.T) {
	f := func(in string, status int, contentType, body string) {
		t.Helper()
		var r Response
		o := drive(&r, "POST", in)
		if o.err != nil || !o.complete {
			t.Fatalf("unexpected error; got %v", o.err)
		}
		if o.status != status || o.body != body || o.fields != contentType {
			t.Fatalf("unexpected answer; got %d %q %q; want %d %q %q", o.status, o.fields, o.body, status, contentType, body)
		}
	}
	f(answer("HTTP/1.1 400 Bad Request", "Content-Type: text/plain", "Content-Length: 4")+"nope", 400, "Content-Type=text/plain|", "nope")
	f(answer("HTTP/1.1 502 Bad Gateway", "Content-Type: text/html", "Transfer-Encoding: chunked")+"6\r\n<html>\r\n0\r\n\r\n", 502, "Content-Type=text/html|", "<html>")
	f(answer("HTTP/1.1 502 Bad Gateway", "Content-Length: 0"), 502, "", "")
	f(answer("HTTP/1.0 500 x")+`{"error":"str"}`, 500, "", `{"error":"str"}`)
	f(answer("HTTP/1.1 404 Not Found", "content-type: application/json", "Content-Length: 22")+`{"detail":"Not Found"}`, 404, "content-type=application/json|", `{"detail":"Not Found"}`)
}

func TestB50_EndBeforeTheFirstByte(t *testing.T) {
	var r Response
	r.Reset([]byte("POST"))
	if err := r.EOF(); err != eof || r.Begun() {
		t.Fatalf("unexpected end of a silent connection; got %v, begun %v", err, r.Begun())
	}
	r.Reset([]byte("POST"))
	if n, done, err := r.FeedHead([]byte("H")); n != 1 || done || err != nil {
		t.Fatalf("unexpected FeedHead; got %d, %v, %v", n, done, err)
	}
	if err := r.EOF(); err != eof || !r.Begun() {
		t.Fatalf("unexpected end after one byte; got %v, begun %v", err, r.Begun())
	}
	r.Reset([]byte("POST"))
	if r.Begun() {
		t.Fatal("begun after Reset")
	}
	// An interim answer is an answer: the worker has seen the request.
	drive(&r, "POST", answer("HTTP/1.1 100 Continue"))
	if !r.Begun() {
		t.Fatal("not begun after an interim answer")
	}
}

func TestB62_LengthOfTheWorkerIsNoField(t *testing.T) {
	var r Response
	o := drive(&r, "POST", answer("HTTP/1.1 200 OK", "content-length: 3", "A: b", "CONTENT-length: 3")+"abc")
	if o.fields != "A=b|" || o.length != 3 {
		t.Fatalf("unexpected fields; got %q, length %d", o.fields, o.length)
	}
	o = drive(&r, "POST", answer("HTTP/1.1 200 OK", "transfer-encoding: chunked", "A: b")+"0\r\n\r\n")
	if o.fields != "A=b|" || o.length != -1 {
		t.Fatalf("unexpected fields; got %q, length %d", o.fields, o.length)
	}
}
