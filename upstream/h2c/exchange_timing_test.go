package h2c

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"sluice/upstream/h1"
)

// answerer serves HTTP/2 connections, and HTTP/1.1 ones that send requests of
// the given length, and answers each request with size bytes. It costs little
// and allocates nothing per request, so that what is measured is the client.
func answerer(tb testing.TB, length, size int) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		answerAll(ln, length, strings.Repeat("y", size))
	}()
	tb.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}

// answerAll returns when ln and all its connections are closed.
func answerAll(ln net.Listener, length int, body string) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer func() { _ = nc.Close() }()
			in := bufio.NewReaderSize(nc, 64<<10)
			if first, err := in.Peek(3); err != nil || string(first) == "PRI" {
				answerH2(nc, in, body)
				return
			}
			answerH1(nc, in, length, body)
		})
	}
}

// answererEnv makes the test binary an answerer with the two numbers in it,
// which prints its address and ends with its input.
const answererEnv = "H2C_TEST_ANSWERER"

func serveAnswerer(env string) error {
	var length, size int
	if _, err := fmt.Sscan(env, &length, &size); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go answerAll(ln, length, strings.Repeat("y", size))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// answererApart is an answerer in a process of its own.
func answererApart(b *testing.B, length, size int) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", answererEnv, length, size))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func answerH1(nc net.Conn, in *bufio.Reader, length int, body string) {
	out := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for {
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

// answerH2 writes when it has read all that there is.
func answerH2(nc net.Conn, in *bufio.Reader, body string) {
	size := strconv.Itoa(len(body))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encode := func() []byte {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/json"}, {Name: "content-length", Value: size},
		} {
			_ = encoder.WriteField(f) // a bytes.Buffer takes all
		}
		return block.Bytes()
	}
	out := appendHeader(nil, header{0, frameSettings, 0, 0})
	out = appendWindow(out, 0, 1<<30)
	_, _ = in.Discard(len(preface))
	var raw [headerLen]byte
	owed := 0 // of the connection's window
	for {
		if in.Buffered() < headerLen && len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
		if _, err := io.ReadFull(in, raw[:]); err != nil {
			return
		}
		h := parseHeader(&raw)
		if _, err := in.Discard(h.length); err != nil {
			return
		}
		switch h.kind {
		case frameSettings:
			if !h.has(flagAck) {
				out = appendHeader(out, header{0, frameSettings, flagAck, 0})
			}
		case frameData:
			if owed += h.length; owed > 16<<10 {
				out = appendWindow(out, 0, owed)
				owed = 0
			}
			if !h.has(flagEndStream) {
				out = appendWindow(out, h.id, h.length)
			}
		}
		if h.kind <= frameHeaders && h.has(flagEndStream) {
			out = appendBlock(out, h.id, 0, encode())
			for rest := body; ; {
				n := min(len(rest), maxFrame)
				flags := uint8(0)
				if n == len(rest) {
					flags = flagEndStream
				}
				out = append(appendHeader(out, header{n, frameData, flags, h.id}), rest[:n]...)
				if rest = rest[n:]; rest == "" {
					break
				}
			}
		}
	}
}

// rawH1 runs one exchange on a connection of its own.
func rawH1(tb testing.TB, addr string, r *Request) func() {
	nc, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = nc.Close() })
	var answer h1.Response
	in, out := make([]byte, 16<<10), []byte(nil)
	return func() {
		out = h1.AppendRequest(out[:0], r.Method, r.Path, r.Authority, r.Fields, r.Length)
		for _, p := range r.Body {
			out = append(out, p...)
		}
		if _, err := nc.Write(out); err != nil {
			tb.Error(err)
			return
		}
		answer.Reset(r.Method)
		head := false
		for done := false; !done; {
			n, err := nc.Read(in)
			if err != nil {
				tb.Error(err)
				return
			}
			p, m := in[:n], 0
			if !head {
				if m, head, err = answer.FeedHead(p); err != nil || !head {
					continue
				}
			}
			if _, _, done, err = answer.FeedBody(p[m:]); err != nil {
				tb.Error(err)
				return
			}
		}
	}
}

// h2 runs one exchange on a stream of c.
func h2(tb testing.TB, c *Conn, r *Request) func() {
	return func() {
		s, ok := c.Reserve()
		if !ok {
			tb.Error("no stream")
			return
		}
		s.SetDeadline(time.Now().Add(time.Minute))
		err := s.Do(r)
		for err == nil {
			_, err = s.Next()
		}
		if s.Close(); err != io.EOF {
			tb.Error(err)
		}
	}
}

// netHTTP runs one exchange with net/http's transport.
func netHTTP(tb testing.TB, client *http.Client, addr string, r *Request) func() {
	body := bytes.Join(r.Body, nil)
	return func() {
		req, err := http.NewRequestWithContext(context.Background(), "POST", "http://"+addr+string(r.Path), bytes.NewReader(body))
		if err != nil {
			tb.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			tb.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

// BenchmarkExchange compares one exchange of 1 KiB with 1 KiB, alone and 64 at
// a time, over this client, the parts of the HTTP/1.1 one, and net/http's. The
// peer is a process of its own; cpu-ns/op is what the client costs.
func BenchmarkExchange(b *testing.B) {
	r := post(strings.Repeat("x", 1<<10))
	const answer = 1 << 10
	addr := answererApart(b, len(h1.AppendRequest(nil, r.Method, r.Path, r.Authority, r.Fields, r.Length))+int(r.Length), answer)
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &p}}
	defer client.CloseIdleConnections()
	for _, n := range []int{1, 64} {
		f := func(name string, run func() func()) {
			b.Run(fmt.Sprintf("%s/c=%d", name, n), func(b *testing.B) {
				b.SetBytes(r.Length + answer)
				inParallel(b, n, run)
			})
		}
		f("h1", func() func() { return rawH1(b, addr, r) })
		c := dial(b, addr, Config{})
		f("h2c", func() func() { return h2(b, c, r) })
		f("nethttp", func() func() { return netHTTP(b, client, addr, r) })
	}
}

// BenchmarkUpload sends a large body.
func BenchmarkUpload(b *testing.B) {
	r := post(strings.Repeat("x", 1<<20))
	addr := answererApart(b, 0, 2)
	c := dial(b, addr, Config{})
	run := h2(b, c, r)
	b.ReportAllocs()
	b.SetBytes(r.Length)
	for b.Loop() {
		run()
	}
}

// inParallel shares the iterations of b out to n goroutines.
func inParallel(b *testing.B, n int, worker func() func()) {
	runs := make([]func(), n)
	for i := range runs {
		runs[i] = worker()
		runs[i]()
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	var all sync.WaitGroup
	for i, run := range runs {
		share := b.N / n
		if i < b.N%n {
			share++
		}
		all.Go(func() {
			for range share {
				run()
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}
