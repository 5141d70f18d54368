package h1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// typicalHead is what uvicorn under vLLM answers, with two fields of a proxy.
const typicalHead = "HTTP/1.1 200 OK\r\n" +
	"date: Mon, 30 Nov 2026 23:58:50 GMT\r\n" +
	"server: uvicorn\r\n" +
	"content-type: application/json\r\n" +
	"x-request-id: 0f6d8a52-7f2c-4a53-9b6f-5c1f0a3d2e11\r\n" +
	"cache-control: no-cache\r\n" +
	"vary: Accept-Encoding\r\n" +
	"x-process-time: 0.0123\r\n" +
	"content-length: 2\r\n" +
	"\r\n"

func BenchmarkFeedHead(b *testing.B) {
	p, method := []byte(typicalHead), []byte("POST")
	var r Response
	b.ReportAllocs()
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		r.Reset(method)
		if _, done, err := r.FeedHead(p); !done || err != nil {
			b.Fatalf("unexpected FeedHead; got %v, %v", done, err)
		}
	}
}

func BenchmarkFeedHead_NetHTTP(b *testing.B) {
	in := []byte(typicalHead + "{}")
	src := bytes.NewReader(in)
	br := bufio.NewReader(src)
	b.ReportAllocs()
	b.SetBytes(int64(len(typicalHead)))
	for b.Loop() {
		src.Reset(in)
		br.Reset(src)
		if _, err := http.ReadResponse(br, nil); err != nil {
			b.Fatalf("unexpected error: %v", err)
		}
	}
}

func BenchmarkFeedBody(b *testing.B) {
	event := "data: " + strings.Repeat("x", 190) + "\n\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(event), event)
	for _, chunks := range []int{1, 16} {
		in := []byte(strings.Repeat(chunk, chunks))
		p := make([]byte, len(in))
		begin := func() *Response {
			r := new(Response)
			r.Reset([]byte("POST"))
			if _, done, err := r.FeedHead([]byte(chunkedHead)); !done || err != nil {
				b.Fatalf("unexpected FeedHead; got %v, %v", done, err)
			}
			return r
		}
		b.Run(fmt.Sprintf("chunks=%d", chunks), func(b *testing.B) {
			r := begin()
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				copy(p, in)
				if payload, _, _, err := r.FeedBody(p); err != nil || len(payload) != chunks*len(event) {
					b.Fatalf("unexpected FeedBody; got %d bytes, %v", len(payload), err)
				}
			}
		})
		b.Run(fmt.Sprintf("follow/chunks=%d", chunks), func(b *testing.B) {
			r := begin()
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if n, _, err := r.Follow(in); err != nil || n != len(in) {
					b.Fatalf("unexpected Follow; got %d bytes, %v", n, err)
				}
			}
		})
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	var r Response
	r.Reset([]byte("POST"))
	if _, done, err := r.FeedHead([]byte(typicalHead)); !done || err != nil {
		b.Fatalf("unexpected FeedHead; got %v, %v", done, err)
	}
	dst, method, target, host := []byte(nil), []byte("POST"), []byte("/v1/chat/completions"), []byte("10.0.0.11:30000")
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendRequest(dst[:0], method, target, host, r.Fields, 1234)
	}
	b.SetBytes(int64(len(dst)))
	if _, err := io.Discard.Write(dst); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkHopByHop(b *testing.B) {
	names := [][]byte{[]byte("Content-Type"), []byte("Authorization"), []byte("Connection"), []byte("X-Request-Id"), []byte("User-Agent")}
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range names {
			HopByHop(name)
		}
	}
}
