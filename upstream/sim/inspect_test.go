package sim

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestRequests_AsReceived(t *testing.T) {
	e := start(t, Options{Words: 1})
	conn := dial(t, e)
	in := bufio.NewReader(conn)
	// Two requests in one write, then one whose body comes in chunks.
	send(t, conn, "POST /v1/models?x=%2B&y HTTP/1.1\r\nhOsT: a\r\nX-B: 1\r\nx-a:  2 \r\nX-b: 3\r\nContent-Length: 4\r\n\r\n\xff\x00{}"+
		"GET /v1/models/a%2Fb HTTP/1.1\r\nHost: b\r\n\r\n")
	wantEqual(t, "status", receive(t, in).status, 405)
	wantEqual(t, "status", receive(t, in).status, 200)
	send(t, conn, "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nHost: c\r\nTrailer: x\r\n\r\n"+
		"5;ext=1\r\n{\"pro\r\nA\r\nmpt\": \"a\"}\r\n0\r\nx: y\r\n\r\n")
	wantEqual(t, "status", receive(t, in).status, 200)
	send(t, conn, "GET /health HTTP/1.1\r\nHost: d\r\nLast: 1\r\n\r\n")
	wantEqual(t, "status", receive(t, in).status, 200)

	list := e.Requests()
	wantEqual(t, "requests", len(list), 4)
	wantEqual(t, "target", list[0].Target, "/v1/models?x=%2B&y")
	wantEqual(t, "proto", list[0].Proto, "HTTP/1.1")
	wantEqual(t, "body", string(list[0].Body), "\xff\x00{}")
	wantEqual(t, "header", fmt.Sprint(list[0].Header), "[{hOsT a} {X-B 1} {x-a 2} {X-b 3} {Content-Length 4}]")
	wantEqual(t, "Get", list[0].Get("x-B"), "1")
	wantEqual(t, "target", list[1].Target, "/v1/models/a%2Fb")
	wantEqual(t, "header", fmt.Sprint(list[1].Header), "[{Host b}]")
	wantEqual(t, "body", string(list[2].Body), `{"prompt": "a"}`)
	wantEqual(t, "header", fmt.Sprint(list[3].Header), "[{Host d} {Last 1}]")
	wantEqual(t, "status", list[2].Status, 200)
	wantEqual(t, "outcome", list[2].Outcome, Completed)
}

func TestRequests_H2C(t *testing.T) {
	e := start(t, Options{})
	do(t, client(t, H2C), request(t, "GET", e.URL()+"/v1/models/a%2Fb?x", "", "X-B", "2", "X-B", "1", "A", "0"))
	r := e.Requests()[0]
	wantEqual(t, "proto", r.Proto, "HTTP/2.0")
	wantEqual(t, "target", r.Target, "/v1/models/a%2Fb?x")
	wantEqual(t, "header", fmt.Sprint(r.Header[:4]), fmt.Sprintf("[{host %s} {a 0} {user-agent Go-http-client/2.0} {x-b 2}]", r.Get("host")))
}

// TestHeadTap feeds the same bytes in every possible pair of reads.
func TestHeadTap(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		for cut := range len(in) + 1 {
			var tap headTap
			tap.feed([]byte(in[:cut]))
			tap.feed([]byte(in[cut:]))
			var got []string
			for h := tap.take(); h != nil; h = tap.take() {
				got = append(got, string(h))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("unexpected heads of %q cut at %d; got %q; want %q", in, cut, got, want)
			}
		}
	}
	const a, b = "GET / HTTP/1.1\r\nA: b\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"
	const c = "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n"
	f("")
	f(a, a)
	f("\r\n"+a+a, a, a)
	f(b+"\n\n\n"+a, b, a)
	f(c+"2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n"+a, c, a)
	f(c+"0\r\nX: y\r\n\r\n"+b+"123"+a, c, b, a)
	f(c+"nope\r\n"+a, c)
	f("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + a)
	f("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"+a, "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
	var tap headTap
	tap.feed([]byte(strings.Repeat("x", maxTapLine) + "\n\n" + a))
	wantEqual(t, "head behind an endless one", string(tap.take()), "")
}

func TestIntrospection(t *testing.T) {
	e := start(t, Options{History: 2, KeepBody: 8})
	onBoth(t, func(t *testing.T, c *http.Client) {
		e.Reset()
		get := func(method, path string) any {
			a := do(t, c, request(t, method, e.URL()+path, ""))
			if a.status != 200 {
				t.Fatalf("unexpected status of %s; got %d", path, a.status)
			}
			return read(t, a.body)
		}
		for _, body := range []string{"first", `{"a":"ü"}...`, "\xff\x00"} {
			do(t, c, request(t, "POST", e.URL()+"/v1/completions", body))
		}
		v := get("GET", "/sim/requests")
		wantEqual(t, "requests kept", len(at(t, v, "requests").([]any)), 2)
		wantEqual(t, "body", at(t, v, "requests", 0, "body"), `{"a":"ü`)
		wantEqual(t, "body_truncated", at(t, v, "requests", 0, "body_truncated"), true)
		wantEqual(t, "body_size", at(t, v, "requests", 0, "body_size"), 13.0)
		sum := sha256.Sum256([]byte(`{"a":"ü"}...`))
		wantEqual(t, "body_sha256", at(t, v, "requests", 0, "body_sha256"), hex.EncodeToString(sum[:]))
		wantEqual(t, "body_base64", at(t, v, "requests", 1, "body_base64"), base64.StdEncoding.EncodeToString([]byte("\xff\x00")))
		wantEqual(t, "status", at(t, v, "requests", 1, "status"), 400.0)
		wantEqual(t, "outcome", at(t, v, "requests", 1, "outcome"), "completed")
		v = get("GET", "/sim/requests?n=1")
		wantEqual(t, "body of the last one", at(t, v, "requests", 0, "body_size"), 2.0)

		v = get("GET", "/sim/stats")
		wantEqual(t, "requests", at(t, v, "requests"), 3.0)
		wantEqual(t, "completed", at(t, v, "completed"), 3.0)
		wantEqual(t, "by_path", at(t, v, "by_path", "/v1/completions"), 3.0)
		v = get("POST", "/sim/reset")
		wantEqual(t, "requests after reset", at(t, v, "requests"), 0.0)
		wantEqual(t, "list after reset", len(at(t, get("GET", "/sim/requests"), "requests").([]any)), 0)

		get("POST", "/sim/health?status=503")
		wantEqual(t, "health", do(t, c, request(t, "GET", e.URL()+"/health", "")).status, 503)
		get("POST", "/sim/health?status=200")
		wantEqual(t, "status of no health", do(t, c, request(t, "POST", e.URL()+"/sim/health", "")).status, 400)
	})
}

func TestOverrides_Framing(t *testing.T) {
	e := start(t, Options{})
	f := func(c *http.Client, proto, chunking string, length int64, encoding string) {
		t.Helper()
		resp, err := c.Do(request(t, "POST", e.URL()+"/v1/completions", `{"prompt":"a"}`, "x-sim-chunking", chunking, "x-sim-pad", "1MiB"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		if b.Len() < 1<<20 || length > 0 != (resp.ContentLength > 0) {
			t.Errorf("unexpected answer framed as %s; got %d bytes, length %d", chunking, b.Len(), resp.ContentLength)
		}
		wantEqual(t, "proto", resp.Proto, proto)
		wantEqual(t, "encoding as "+chunking, strings.Join(resp.TransferEncoding, ","), encoding)
		wantEqual(t, "close as "+chunking, resp.Close, encoding == "" && length < 0 && proto == "HTTP/1.1")
	}
	h1, h2 := client(t, HTTP1), client(t, H2C)
	f(h1, "HTTP/1.1", "", 1, "")
	f(h1, "HTTP/1.1", "length", 1, "")
	f(h1, "HTTP/1.1", "chunked", -1, "chunked")
	f(h1, "HTTP/1.1", "eof", -1, "")
	f(h2, "HTTP/2.0", "length", 1, "")
	f(h2, "HTTP/2.0", "chunked", -1, "")
	f(h2, "HTTP/2.0", "eof", -1, "")
	a := post200(t, h1, e.URL()+"/v1/completions", streamBody, "x-sim-chunking", "eof", "x-sim-pad", "100KiB")
	list := events(t, a.body)
	wantEqual(t, "size of the last token", len(at(t, read(t, []byte(list[3].data)), "choices", 0, "text").(string)), len(" fox")+100<<10)
	a = post200(t, h1, e.URL()+"/tokenize", `{"prompt":"a"}`, "x-sim-pad", "5KiB")
	wantEqual(t, "padding behind JSON", bytes.HasSuffix(a.body, []byte(strings.Repeat(" ", 5<<10))), true)
}

func TestOverrides(t *testing.T) {
	e := start(t, Options{Text: "fixed"})
	onBoth(t, func(t *testing.T, c *http.Client) {
		url := e.URL() + "/v1/completions"
		f := func(want string, header ...string) {
			t.Helper()
			v := read(t, post200(t, c, url, `{"prompt":"a"}`, header...).body)
			wantEqual(t, "text", at(t, v, "choices", 0, "text"), want)
		}
		f("fixed")
		f(words(2, 0), "x-sim-words", "2")
		f("", "x-sim-words", "0")
		f("other", "x-sim-text", "other", "x-sim-words", "2")
		f("fixed", "x-sim-ttfb", "1us", "x-sim-ttft", "1us", "x-sim-pace", "1us")
		a := post200(t, c, url, `{"prompt":"a"}`, "x-sim-header", "X-One: 1", "x-sim-header", "x-two:2")
		wantEqual(t, "X-One", a.header.Get("X-One"), "1")
		wantEqual(t, "X-Two", a.header.Get("X-Two"), "2")
		for _, bad := range []string{"x-sim-ttfb", "x-sim-words", "x-sim-pad", "x-sim-fail", "x-sim-status", "x-sim-chunking", "x-sim-header"} {
			a := do(t, c, request(t, "POST", url, `{"prompt":"a"}`, bad, "?"))
			wantEqual(t, "status of a bad "+bad, a.status, 400)
			if !strings.Contains(strings.ToLower(string(a.body)), bad) {
				t.Errorf("the answer to a bad %s does not name it: %s", bad, a.body)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	e := start(t, Options{Text: "old"})
	c := client(t, HTTP1)
	e.Update(func(o *Options) { o.Text = "new" })
	v := read(t, post200(t, c, e.URL()+"/v1/completions", `{"prompt":"a"}`).body)
	wantEqual(t, "text", at(t, v, "choices", 0, "text"), "new")
}

func TestProtocols(t *testing.T) {
	h1, h2 := client(t, HTTP1), client(t, H2C)
	f := func(p Protocol, proto string, good, bad *http.Client) {
		t.Helper()
		e := start(t, Options{Protocol: p})
		wantEqual(t, "proto", do(t, good, request(t, "GET", e.URL()+"/health", "")).proto, proto)
		if resp, err := bad.Do(request(t, "GET", e.URL()+"/health", "")); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				t.Errorf("an engine for %s has answered %s", p, resp.Proto)
			}
		}
	}
	f(HTTP1, "HTTP/1.1", h1, h2)
	f(H2C, "HTTP/2.0", h2, h1)
}

// TestHandler serves without the engine's own listener.
func TestHandler(t *testing.T) {
	e := New(Options{Text: "hi"})
	s := httptest.NewServer(e.Handler())
	defer s.Close()
	v := read(t, post200(t, s.Client(), s.URL+"/v1/completions", `{"prompt":"a"}`, "X-B", "1").body)
	wantEqual(t, "text", at(t, v, "choices", 0, "text"), "hi")
	r := e.Requests()[0]
	wantEqual(t, "X-B", r.Get("X-B"), "1")
	for _, fail := range []string{"reset", "garbage", "cut=1"} {
		if _, _, err := partly(t, s.Client(), request(t, "POST", s.URL+"/v1/completions", streamBody, "x-sim-fail", fail)); err == nil {
			t.Errorf("%s ended in good order", fail)
		}
	}
}

func TestTokens_ReadBack(t *testing.T) {
	for _, s := range []string{"", "a", "hello there", "  two  spaces ", "unbelievable", "日本語のテキスト", "a\n\nb\t c", "👩‍👩‍👧 x"} {
		tokens := tokenize(s)
		wantEqual(t, "joined tokens", strings.Join(tokens, ""), s)
		wantEqual(t, "count of "+s, countTokens(s), len(tokens))
		wantEqual(t, "text of the ids", detokenize(tokenIDs(tokens)), s)
		for _, tok := range tokens {
			if len(tok) > maxToken {
				t.Errorf("token %q of %q is longer than %d bytes", tok, s, maxToken)
			}
		}
	}
	for _, w := range vocabulary {
		wantEqual(t, "tokens of "+w, len(tokenize("x "+w)), 2)
	}
	wantEqual(t, "foreign ids", detokenize([]int64{0, 5, -1, 1 << 62}), fmt.Sprintf(" <0> <5> <-1> <%d>", int64(1)<<62))
}
