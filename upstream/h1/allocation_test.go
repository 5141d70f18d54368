//go:build !race

package h1

import (
	"strings"
	"testing"
)

func TestAllocations(t *testing.T) {
	f := func(name string, run func()) {
		t.Helper()
		run() // the buffers grow once
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Fatalf("%s: unexpected allocations; got %v; want 0", name, n)
		}
	}
	var r Response
	feed := func(method, in string) func() {
		post := []byte(method)
		p := make([]byte, len(in))
		return func() {
			copy(p, in)
			r.Reset(post)
			n, done, err := r.FeedHead(p)
			for at := n; done && err == nil && at < len(p); {
				_, n, done, err = r.FeedBody(p[at:min(at+9, len(p))])
				if at += n; done {
					break
				}
				done = true
			}
			_ = r.EOF()
			_ = r.Reusable()
		}
	}
	f("typical answer", feed("POST", typicalHead+"{}"))
	f("chunked", feed("POST", chunkedHead+strings.Repeat("5;a=b\r\nhello\r\n", 20)+"0\r\nT: u\r\n\r\n"))
	f("until EOF", feed("POST", answer("HTTP/1.1 200 OK")+"hello"))
	f("interim", feed("POST", answer("HTTP/1.1 100 Continue")+typicalHead))
	for _, tc := range badHeads {
		if len(tc.in) <= keepHead && strings.Count(tc.in, "\n") <= keepFields {
			f(tc.in, feed("POST", tc.in))
		}
	}
	for _, tc := range badChunks {
		f(tc.in, feed("POST", chunkedHead+tc.in))
	}

	fields := []Field{{[]byte("Content-Type"), []byte("application/json")}}
	dst, method, target, host := make([]byte, 0, 512), []byte("POST"), []byte("/v1/chat/completions"), []byte("w:30000")
	f("request", func() { dst = AppendRequest(dst[:0], method, target, host, fields, 1234) })
	value, name := []byte("X-Foo, close"), []byte("Close")
	f("hop-by-hop", func() {
		if HopByHop(name) || !ConnectionNames(value, name) {
			t.Error("unexpected answer")
		}
	})
}
