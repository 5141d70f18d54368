package h1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"sort"
	"strings"
	"testing"
)

func addSeeds(f *testing.F) {
	f.Helper()
	for _, method := range []string{"POST", "HEAD"} {
		f.Add(method, []byte(typicalHead+"{}"), uint16(3))
		f.Add(method, []byte(answer("HTTP/1.0 200 OK", "Connection: keep-alive")+"abc"), uint16(7))
		f.Add(method, []byte(answer("HTTP/1.1 100 Continue")+answer("HTTP/1.1 204 x", "A: b")), uint16(1))
		f.Add(method, []byte(chunkedHead+"3;a=\"b\"\r\nabc\r\n10 ;x\r\n0123456789abcdef\r\n0\r\nT: u\r\n\r\nx"), uint16(50))
	}
	for _, tc := range badHeads {
		if len(tc.in) < 1000 {
			f.Add("POST", []byte(tc.in), uint16(len(tc.in)/2))
		}
	}
	for _, tc := range badChunks {
		if len(tc.in) < 1000 {
			f.Add("POST", []byte(chunkedHead+tc.in), uint16(len(tc.in)/2))
		}
	}
}

// FuzzSplits: an answer fed whole, in two pieces and byte by byte has one outcome.
func FuzzSplits(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, method string, in []byte, cut uint16) {
		var r Response
		s := string(in)
		want := drive(&r, method, s)
		at := min(int(cut), len(s))
		checkOutcome(t, "in two", drive(&r, method, s[:at], s[at:]), want)
		checkOutcome(t, "byte by byte", drive(&r, method, singles(s)...), want)
		got := follow(t, &r, method, s[:at], s[at:])
		if got.err != want.err || got.complete != want.complete || got.excess != want.excess {
			t.Fatalf("unexpected outcome of Follow;\n got %+v;\nwant %+v", got, want)
		}
	})
}

// FuzzNetHTTP: what is accepted here, net/http accepts too and reads the same.
//
// The other direction does not hold, on purpose: net/http takes bare LF,
// obs-fold, statuses and versions that do not exist, DEL in values,
// Transfer-Encoding with Content-Length or in HTTP/1.0, white space after a
// chunk size. Where it is the stricter one, toleratedRefusal says why that is
// no fault.
func FuzzNetHTTP(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, method string, in []byte, _ uint16) {
		var r Response
		got := drive(&r, method, string(in))
		if got.status == 0 {
			return // refused, or cut within the head
		}
		resp, body, br, err := readNetHTTP(method, in)
		if resp == nil {
			if !toleratedRefusal(err, in) {
				t.Fatalf("net/http refuses the head: %v;\n got %+v", err, got)
			}
			return
		}
		if got.status != resp.StatusCode {
			t.Fatalf("unexpected status; got %d; want %d", got.status, resp.StatusCode)
		}
		if a, b := fieldsOf(r.Fields), headerOf(resp.Header); a != b {
			t.Fatalf("unexpected fields; got %q; want %q", a, b)
		}
		if got.err != nil {
			return // what net/http makes of a broken body is its own business
		}
		if err != nil {
			if !toleratedRefusal(err, in) {
				t.Fatalf("net/http refuses the body: %v;\n got %+v", err, got)
			}
			return
		}
		if got.body != string(body) {
			t.Fatalf("unexpected body; got %q; want %q", got.body, body)
		}
		if got.reusable == resp.Close {
			t.Fatalf("unexpected reusable; got %v; want %v", got.reusable, !resp.Close)
		}
		excess, err := io.ReadAll(br)
		if err != nil || got.excess != string(excess) {
			t.Fatalf("unexpected excess; got %q; want %q, %v", got.excess, excess, err)
		}
	})
}

// readNetHTTP reads the final answer with net/http. A nil response comes with
// the error of the head, another with that of the body.
func readNetHTTP(method string, in []byte) (resp *http.Response, body []byte, br *bufio.Reader, err error) {
	br = bufio.NewReader(bytes.NewReader(in))
	for {
		resp, err = http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			return nil, nil, br, err
		}
		if resp.StatusCode >= 200 {
			body, err = io.ReadAll(resp.Body)
			return resp, body, br, err
		}
	}
}

// toleratedRefusal tells whether net/http refuses what we accept on purpose.
func toleratedRefusal(err error, in []byte) bool {
	for text, holds := range map[string]bool{
		// One length said twice within a field counts once (RFC 9110 §8.6).
		"bad Content-Length": bytes.Contains(in, []byte(",")),
		// White space before the semicolon of an extension (RFC 9112 §7.1.1).
		"invalid byte in chunk length": bytes.Contains(in, []byte(" ;")) || bytes.Contains(in, []byte("\t;")),
		// An announcement of forbidden trailers does no harm: all are dropped.
		"bad trailer key": true,
		// Its bound on trailers is its buffer, ours a constant.
		"suspiciously long trailer": true,
		// Its bounds on framing are on the sum, ours on each line.
		"chunked encoding contains too much non-data": true,
		// It wants reason phrases and interim heads to hold what ours skip.
		"malformed MIME header": bytes.Contains(in, []byte("HTTP/1.1 1")),
	} {
		if holds && err != nil && strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func fieldsOf(fields []Field) string {
	var all []string
	for _, f := range fields {
		if name := textproto.CanonicalMIMEHeaderKey(string(f.Name)); name != "Trailer" {
			all = append(all, name+"="+string(f.Value))
		}
	}
	sort.Strings(all)
	return strings.Join(all, "|")
}

func headerOf(h http.Header) string {
	var all []string
	for name, values := range h {
		if name == "Content-Length" || name == "Transfer-Encoding" || name == "Trailer" {
			continue
		}
		for _, v := range values {
			all = append(all, name+"="+v)
		}
	}
	sort.Strings(all)
	return strings.Join(all, "|")
}
