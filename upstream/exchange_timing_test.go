package upstream

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/upstream/h1"
)

// answerer serves connections that answer r, again and again, without an
// allocation.
func answerer(tb testing.TB, r *Request, answer string) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	host := ln.Addr().String()
	length := len(h1.AppendRequest(nil, r.Method, r.Target, []byte(host), r.Fields, r.Length)) + int(r.Length)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				in, out := make([]byte, length), []byte(answer)
				for {
					if _, err := io.ReadFull(c, in); err != nil {
						return
					}
					if _, err := c.Write(out); err != nil {
						return
					}
				}
			}()
		}
	}()
	tb.Cleanup(func() { _ = ln.Close(); <-done })
	return "http://" + host
}

// warm returns a function that runs one exchange over a connection that is
// open already.
func warm(tb testing.TB, r *Request, answer string) func() {
	tb.Helper()
	limits := Timeouts{Connect: time.Second, FirstByte: time.Hour, BetweenEvents: time.Minute, Total: 2 * time.Hour}
	p, err := NewPool(PoolSpec{Name: "warm", Workers: []WorkerSpec{{URL: answerer(tb, r, answer)}}, Balance: LeastRequests, Timeouts: limits})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	var x Exchange
	return func() {
		w := p.Pick()
		err := x.Do(w, r)
		for err == nil {
			_, err = x.Next()
		}
		x.Close()
		w.Release()
		if err != io.EOF {
			tb.Error(err)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	answer := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 1000)
	for name, size := range map[string]int{"1KiB": 1 << 10, "16KiB": 16 << 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			run := warm(b, post(strings.Repeat("x", size)), answer)
			b.ReportAllocs()
			b.SetBytes(int64(size + len(answer)))
			for b.Loop() {
				run()
			}
		})
	}
}
