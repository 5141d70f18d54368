package upstream

import (
	"fmt"
	"strings"
	"testing"
)

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestAnswer(t *testing.T) {
	f := func(name, method, answer string, status int, length int64, body string, idle int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			// Each byte on its own, then all at once.
			for _, pieces := range [][]string{strings.Split(answer, ""), {answer}} {
				s := once(pieces...)
				if idle == 0 {
					s = last(pieces...)
				}
				w := newTestWorker(t, play(t, s).url, Timeouts{})
				var x Exchange
				req := post("{}")
				req.Method = []byte(method)
				if err := x.Do(w, req); err != nil {
					t.Fatal(err)
				}
				gotStatus, gotLength := x.Status(), x.Length()
				if n := len(x.Fields()); n != 0 {
					t.Fatalf("unexpected fields; got %d; want none", n)
				}
				gotBody, err := readAll(&x)
				x.Close()
				if err != nil || gotStatus != status || gotLength != length || gotBody != body {
					t.Fatalf("unexpected answer; got %d, length %d, %q, %v; want %d, %d, %q",
						gotStatus, gotLength, gotBody, err, status, length, body)
				}
				wantIdle(t, w, idle)
			}
		})
	}
	f("length", "POST", okAnswer, 200, 2, "ok", 1)
	f("empty", "POST", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0, "", 1)
	f("chunked", "POST", chunkedHead+"2;x=y\r\nok\r\n3\r\nay!\r\n0\r\nA: b\r\n\r\n", 200, -1, "okay!", 1)
	f("until EOF", "POST", "HTTP/1.1 200 OK\r\n\r\nokay", 200, -1, "okay", 0)
	f("until EOF, empty", "POST", "HTTP/1.1 200 OK\r\n\r\n", 200, -1, "", 0)
	f("interim", "POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+okAnswer, 200, 2, "ok", 1)
	f("HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", 200, 0, "", 1)
	f("204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", 204, 0, "", 1)
	f("304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, 0, "", 1)
	f("error", "POST", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", 503, 4, "busy", 1)
	f("HTTP/1.0", "POST", "HTTP/1.0 200 OK\r\n\r\nokay", 200, -1, "okay", 0)
}

// An answer without a body is over when Do returns.
func TestAnswer_WithoutBodyIsClean(t *testing.T) {
	e := play(t, always("HTTP/1.1 204 No Content\r\n\r\n"))
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	for range 3 {
		if err := x.Do(w, post("{}")); err != nil {
			t.Fatal(err)
		}
		if !x.Buffered() {
			t.Fatal("unexpected Buffered; got false; want true")
		}
		x.Close()
	}
	wantAccepted(t, e, 1)
}

// TestAnswer_Buffered has a chunk size come in half: Next would wait.
func TestAnswer_Buffered(t *testing.T) {
	more := make(chan struct{})
	e := play(t, func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send(chunkedHead + "2\r")
			<-more
			p.send("\nok\r\n0\r\n\r\n")
			p.wait()
		}
	})
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	defer x.Close()
	if err := x.Do(w, post("{}")); err != nil {
		t.Fatal(err)
	}
	if x.Buffered() {
		t.Error("unexpected Buffered; got true; want false")
	}
	close(more)
	if got, err := readAll(&x); got != "ok" || err != nil {
		t.Fatalf("unexpected body; got %q, %v; want %q", got, err, "ok")
	}
	if !x.Buffered() {
		t.Error("unexpected Buffered; got false; want true")
	}
}

func TestAnswer_Broken(t *testing.T) {
	f := func(name string, s script, want Fault, body string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			e := play(t, s)
			w := newTestWorker(t, e.url, Timeouts{})
			var x Exchange
			_, got, err := do(&x, w, post("{}"))
			wantFault(t, err, want)
			if got != body {
				t.Fatalf("unexpected body before the fault; got %q; want %q", got, body)
			}
			wantIdle(t, w, 0)
			wantAccepted(t, e, 1)
			if n := w.Failures(); n != 1 {
				t.Fatalf("unexpected failures; got %d; want 1", n)
			}
			if !strings.Contains(err.Error(), w.URL()) {
				t.Fatalf("unexpected error; got %q; want one that names the worker", err)
			}
		})
	}
	f("truncated length", last("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), FaultIncomplete, "ok")
	f("truncated chunk", last(chunkedHead+"9\r\nok"), FaultIncomplete, "ok")
	f("truncated chunk size", last(chunkedHead+"2\r\nok\r\n1"), FaultIncomplete, "ok")
	f("no last chunk", last(chunkedHead+"2\r\nok\r\n"), FaultIncomplete, "ok")
	f("truncated trailer", last(chunkedHead+"2\r\nok\r\n0\r\n"), FaultIncomplete, "ok")
	f("reset until EOF", func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send("HTTP/1.1 200 OK\r\n\r\n")
			p.reset()
		}
	}, FaultIncomplete, "")
	f("garbage", once("SSH-2.0-OpenSSH_9.6\r\n"), FaultProtocol, "")
	f("garbage after interim", once("HTTP/1.1 100 Continue\r\n\r\nnonsense\r\n"), FaultProtocol, "")
	f("garbage in chunks", once(chunkedHead+"2\r\nok\r\nzz\r\n"), FaultProtocol, "ok")
	f("two lengths", once("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"), FaultProtocol, "")
	f("endless head", once("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 70<<10)), FaultProtocol, "")
	f("closed at once", func(*peer) {}, FaultClosed, "")
	f("closed after the request", last(), FaultClosed, "")
	f("reset after the request", func(p *peer) { _, _, _ = p.request(); p.reset() }, FaultClosed, "")
	f("closed in the head", last("HTTP/1.1 200 OK\r\nConte"), FaultClosed, "")
}

// TestAnswer_Large has bodies that need many reads arrive whole.
func TestAnswer_Large(t *testing.T) {
	var body strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&body, "%d,", i)
	}
	want := body.String()
	var chunks strings.Builder
	for s, n := want, 1; len(s) > 0; n = n*3 + 1 {
		n = min(n%50_000+1, len(s))
		fmt.Fprintf(&chunks, "%x\r\n%s\r\n", n, s[:n])
		s = s[n:]
	}
	for name, answer := range map[string]string{
		"length":  fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(want), want),
		"chunked": chunkedHead + chunks.String() + "0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := play(t, always(answer))
			w := newTestWorker(t, e.url, Timeouts{})
			var x Exchange
			for range 3 {
				mustDo(t, &x, w, want)
			}
			wantAccepted(t, e, 1)
		})
	}
}
