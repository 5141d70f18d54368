package upstream

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice/upstream/h1"
)

func TestRequest_Head(t *testing.T) {
	got := make(chan string, 1)
	e := play(t, func(p *peer) {
		for {
			head, _, ok := p.request()
			if !ok {
				return
			}
			got <- head
			p.send(okAnswer)
		}
	})
	w := newTestWorker(t, e.url, Timeouts{})
	f := func(r *Request, want string) {
		t.Helper()
		var x Exchange
		if _, _, err := do(&x, w, r); err != nil {
			t.Fatal(err)
		}
		if head := <-got; head != strings.ReplaceAll(want, "HOST", w.addr) {
			t.Fatalf("unexpected head; got %q; want %q", head, want)
		}
	}
	f(post("{}"), "POST /v1/chat/completions HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n")
	f(post(), "POST /v1/chat/completions HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")
	f(&Request{Method: []byte("GET"), Target: []byte("/v1/models/a%2Fb?x=%2B"), Length: -1}, "GET /v1/models/a%2Fb?x=%2B HTTP/1.1\r\nHost: HOST\r\n\r\n")
	long := strings.Repeat("v", 3*bufSize)
	f(&Request{Method: []byte("GET"), Target: []byte("/"), Fields: []h1.Field{{Name: []byte("X"), Value: []byte(long)}}, Length: -1},
		"GET / HTTP/1.1\r\nHost: HOST\r\nX: "+long+"\r\n\r\n")
}

// echo answers with the body of the request.
func echo(p *peer) {
	for {
		_, body, ok := p.request()
		if !ok {
			return
		}
		p.send(chunkedHead)
		for len(body) > 0 {
			n := min(len(body), 40_000)
			p.send(hex(n), "\r\n", body[:n], "\r\n")
			body = body[n:]
		}
		p.send("0\r\n\r\n")
	}
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	if n < 16 {
		return digits[n : n+1]
	}
	return hex(n/16) + digits[n%16:n%16+1]
}

// TestRequest_Segments has bodies of every size around the buffers' arrive as
// they are, wherever they are cut.
func TestRequest_Segments(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	all := make([]byte, 2*inlineBody)
	for i := range all {
		all[i] = byte(rnd.Uint32())
	}
	w := newTestWorker(t, play(t, echo).url, Timeouts{})
	var x Exchange
	f := func(size int, cuts ...int) {
		t.Helper()
		req := post()
		body := all[:size]
		for at := 0; ; {
			n := len(body) - at
			if len(cuts) > 0 {
				n, cuts = min(n, cuts[0]), cuts[1:]
			}
			req.Body = append(req.Body, body[at:at+n])
			if at += n; at == size && len(cuts) == 0 {
				break
			}
		}
		req.Length = int64(size)
		_, got, err := do(&x, w, req)
		if err != nil || got != string(body) {
			t.Fatalf("unexpected echo of %d bytes; got %d, %v", size, len(got), err)
		}
	}
	for _, edge := range []int{0, bufSize, 2 * bufSize, inlineBody, inlineBody + bufSize} {
		for d := -160; d <= 3; d++ { // the head takes about 130 bytes of the buffer
			if size := edge + d; size >= 0 {
				f(size)
				f(size, 1)
				f(size, 0, size/2, 0)
			}
		}
	}
	for range 600 {
		size := rnd.IntN(len(all) + 1)
		if rnd.IntN(3) == 0 {
			size = rnd.IntN(2 * bufSize)
		}
		cuts := make([]int, rnd.IntN(12))
		for i := range cuts {
			switch rnd.IntN(4) {
			case 0: // empty
			case 1:
				cuts[i] = rnd.IntN(200)
			case 2:
				cuts[i] = bufSize - 100 + rnd.IntN(200)
			case 3:
				cuts[i] = rnd.IntN(size + 1)
			}
		}
		f(size, cuts...)
	}
}

// TestRequest_Huge sends a body as large as a router takes, without a copy.
func TestRequest_Huge(t *testing.T) {
	const size, slack = 32 << 20, 1 << 20
	sums := make(chan [sha256.Size]byte, 1)
	e := play(t, func(p *peer) {
		for {
			_, n, ok := p.head()
			if !ok {
				return
			}
			h := sha256.New()
			if _, err := io.CopyN(h, p.in, int64(n)); err != nil {
				return
			}
			sums <- [sha256.Size]byte(h.Sum(nil))
			p.send(okAnswer)
		}
	})
	w := newTestWorker(t, e.url, Timeouts{})
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * i >> 8)
	}
	req := post()
	req.Body = [][]byte{body[:100], nil, body[100 : 3<<20], {}, body[3<<20:]}
	req.Length = size
	want := sha256.Sum256(body)
	var x Exchange
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := do(&x, w, req); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if <-sums != want {
			t.Fatal("unexpected body; got other bytes than were sent")
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > slack {
			t.Fatalf("unexpected memory; got %d bytes; want at most %d", n, slack)
		}
	}
	wantAccepted(t, e, 1)
}

// TestRequest_Refused has a worker answer before it has read the body.
func TestRequest_Refused(t *testing.T) {
	const answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large"
	for name, then := range map[string]func(*peer){
		"closes":           func(*peer) {},
		"closes its side":  func(p *peer) { _ = p.CloseWrite(); <-p.stop },
		"reads no further": func(p *peer) { <-p.stop },
		"reads on":         (*peer).wait,
	} {
		t.Run(name, func(t *testing.T) {
			e := play(t, func(p *peer) {
				_, _, _ = p.head()
				p.send(answer)
				then(p)
			})
			w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Minute})
			var x Exchange
			status, body, err := do(&x, w, post(string(make([]byte, 32<<20))))
			if err != nil || status != 413 || body != "too large" {
				t.Fatalf("unexpected answer; got %d %q, %v; want 413", status, body, err)
			}
			if name != "reads on" { // which may have read all of it
				wantIdle(t, w, 0)
			}
			wantAccepted(t, e, 1)
		})
	}
}

// A worker may begin a good answer early and read on.
func TestRequest_EarlyAnswer(t *testing.T) {
	const size = 32 << 20
	read := make(chan int64, 1)
	e := play(t, func(p *peer) {
		_, length, _ := p.head()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		n, _ := io.CopyN(io.Discard, p.in, int64(length))
		read <- n
		p.send("ok")
		p.wait()
	})
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Minute})
	var x Exchange
	status, body, err := do(&x, w, post(string(bytes.Repeat([]byte("x"), size))))
	if n := <-read; err != nil || status != 200 || body != "ok" || n != size {
		t.Fatalf("unexpected answer; got %d %q, %v after %d bytes; want 200 after %d", status, body, err, n, size)
	}
	wantIdle(t, w, 1)
}
