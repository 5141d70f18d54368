package upstream

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/upstream/h1"
)

// answerer serves connections, with TLS where c is not nil, that answer r, again
// and again, without an allocation of its own.
func answerer(tb testing.TB, r *Request, answer string, c *tls.Config) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	scheme := "http://"
	if c != nil {
		ln, scheme = tls.NewListener(ln, c), "https://"
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
	return scheme + host
}

// warm returns a function that runs one exchange over a connection that is
// open already.
func warm(tb testing.TB, r *Request, answer string) func() {
	tb.Helper()
	return warmAt(tb, answerer(tb, r, answer, nil), nil, r)
}

func warmAt(tb testing.TB, url string, c *tls.Config, r *Request) func() {
	tb.Helper()
	limits := Timeouts{Connect: time.Second, FirstByte: time.Hour, BetweenEvents: time.Minute, Total: 2 * time.Hour}
	p, err := NewPool(PoolSpec{Name: "warm", Workers: []WorkerSpec{{URL: url}}, Balance: LeastRequests, Timeouts: limits, TLS: c})
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
	ca := newAuthority(b)
	server := &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1")}}
	for name, size := range map[string]int{"1KiB": 1 << 10, "16KiB": 16 << 10, "1MiB": 1 << 20} {
		r := post(strings.Repeat("x", size))
		run := func(name string, once func()) {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size + len(answer)))
				for b.Loop() {
					once()
				}
			})
		}
		run(name, warm(b, r, answer))
		run(name+"/TLS", warmAt(b, answerer(b, r, answer, server), &tls.Config{RootCAs: ca.pool}, r))
	}
}
