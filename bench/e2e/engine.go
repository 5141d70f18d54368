//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// hello is what a process that serves says when it does.
type hello struct{ Addr string }

// serveEngine is the role of the simulated engine. It speaks HTTP/1.1 and h2c on
// one port and does nothing but read requests and answer, so that it leaves the
// cores to what is measured: an engine on net/http would be the bottleneck.
func serveEngine(in io.Reader, out io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- acceptAll(ln) }()
	err = serveLines(io.MultiReader(bytes.NewReader([]byte("{}\n")), in), out,
		func(*struct{}) (hello, error) { return hello{ln.Addr().String()}, nil })
	return errors.Join(err, ln.Close(), <-done)
}

// acceptAll serves the connections of ln until it is closed.
func acceptAll(ln net.Listener) error {
	for {
		nc, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = nc.Close() }()
			in := bufio.NewReaderSize(nc, 4*kib)
			if first, err := in.Peek(3); err == nil && string(first) == "PRI" {
				serveH2(nc)(in)
			} else {
				serveH1(nc, in)
			}
		}()
	}
}

// serveH1 answers the requests of one connection until one of them, or the
// connection, ends it.
func serveH1(nc net.Conn, in *bufio.Reader) {
	answers := map[want][]byte{}
	for {
		target, length, err := readHead(in)
		if err != nil {
			return
		}
		if err := skip(nc, in, length); err != nil {
			return
		}
		w, err := parseWant(target)
		switch {
		case err != nil: // a probe of the router's
			_, err = nc.Write(jsonAnswer(2))
		case w.Events > 0:
			err = streamH1(nc, w)
		default:
			if answers[w] == nil {
				answers[w] = jsonAnswer(w.Size)
			}
			_, err = nc.Write(answers[w])
		}
		if err != nil {
			return
		}
	}
}

// readHead reads the head of a request.
func readHead(in *bufio.Reader) (target string, length int, err error) {
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			if f := bytes.Fields(line); len(f) == 3 {
				target = string(f[1])
			}
			continue
		}
		if len(line) == 0 {
			return target, length, nil
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return "", 0, err
			}
		}
	}
}

var scratch = sync.Pool{New: func() any { return new([256 * kib]byte) }}

// skip reads n bytes of a body, what in has not got straight from nc.
func skip(nc net.Conn, in *bufio.Reader, n int) error {
	buffered, err := in.Discard(min(n, in.Buffered()))
	if n -= buffered; n == 0 || err != nil {
		return err
	}
	p := scratch.Get().(*[256 * kib]byte)
	defer scratch.Put(p)
	for n > 0 && err == nil {
		var m int
		m, err = nc.Read(p[:min(n, len(p))])
		n -= m
	}
	return err
}

func jsonAnswer(size int) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: engine\r\nContent-Length: %d\r\n\r\n%s",
		size, jsonBody(size))
}

func jsonBody(size int) []byte {
	body := bytes.Repeat([]byte("x"), size)
	copy(body, `{"x":"`)
	copy(body[max(size-2, 0):], `"}`)
	return body
}

// streamH1 sends each event in a write and a chunk of its own, as engines do.
func streamH1(nc net.Conn, w want) error {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nServer: engine\r\nTransfer-Encoding: chunked\r\n\r\n"
	out := append(make([]byte, 0, 512), head...)
	clock := newPacer(w.Pace)
	for i := range w.Events {
		clock.wait(i)
		out = fmt.Appendf(out, "%x\r\n", eventSize)
		out = append(appendEvent(out, monotonic()), "\r\n"...)
		if _, err := nc.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
	out = fmt.Appendf(out, "%x\r\n%s\r\n0\r\n\r\n", len(lastEvent), lastEvent)
	_, err := nc.Write(out)
	return err
}

// pacer spaces events evenly from a first one that comes at once. The second
// comes at a time by chance, so that streams opened together spread out.
type pacer struct {
	pace  time.Duration
	start time.Time
}

func newPacer(pace time.Duration) pacer {
	p := pacer{pace: pace, start: time.Now()}
	if pace > 0 {
		p.start = p.start.Add(-time.Duration(rand.Int64N(int64(pace))))
	}
	return p
}

func (p *pacer) wait(i int) {
	if p.pace > 0 && i > 0 {
		time.Sleep(time.Until(p.start.Add(time.Duration(i) * p.pace)))
	}
}
