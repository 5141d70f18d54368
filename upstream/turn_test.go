package upstream

import (
	"strings"
	"testing"
	"time"
)

// TestTurn_WriteInPieces has the socket take less than the whole request at once.
func TestTurn_WriteInPieces(t *testing.T) {
	e := play(t, func(p *peer) {
		for {
			_, body, ok := p.request()
			if !ok {
				return
			}
			if len(body) > 2 && strings.Trim(string(body), "x") != "" {
				t.Error("the body was not what was sent")
			}
			p.send(okAnswer)
		}
	})
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour})
	var x Exchange
	mustDo(t, &x, w, "ok")
	if err := rested(t, w).socket.SetWriteBuffer(1); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := x.Do(w, post(strings.Repeat("x", 20<<10))); err != nil {
			t.Fatal(err)
		}
		if body, err := readAll(&x); body != "ok" || err != nil {
			t.Fatalf("unexpected body; got %q, %v", body, err)
		}
		x.Close()
	}
	wantAccepted(t, e, 1)
}

// TestTurn_AnswerBeforeTheRequest: what a worker says at once on a new connection
// is read, although nothing that it does later tells of it.
func TestTurn_AnswerBeforeTheRequest(t *testing.T) {
	e := play(t, func(p *peer) {
		p.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		p.wait()
	})
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour})
	var x Exchange
	for range 20 {
		mustDo(t, &x, w, "ok")
	}
}

// TestTurn_StaleOnes: all connections at rest that were closed are passed over,
// without a failure.
func TestTurn_StaleOnes(t *testing.T) {
	leave := make(chan struct{})
	first := func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send(okAnswer)
			<-leave
		}
	}
	e := play(t, first, first, first, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{})
	var all [3]Exchange
	for i := range all {
		if err := all[i].Do(w, post("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		if body, err := readAll(&all[i]); body != "ok" || err != nil {
			t.Fatalf("unexpected body; got %q, %v", body, err)
		}
		all[i].Close()
	}
	close(leave)
	for _, c := range w.idle {
		eventually(t, "the worker's move", func() bool { return !c.quiet() })
	}
	mustDo(t, &all[0], w, "ok")
	wantAccepted(t, e, 4)
	if open, idle := w.Connections(); open != 1 || idle != 1 || w.Failures() != 0 {
		t.Fatalf("unexpected rest; got %d open, %d idle, %d failures", open, idle, w.Failures())
	}
}

// TestTurn_HoldsNoBuffers: the write buffer goes back as soon as the request is
// written, and both are gone at the end.
func TestTurn_HoldsNoBuffers(t *testing.T) {
	more := make(chan struct{})
	e := play(t, func(p *peer) {
		_, _, _ = p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		<-more
		p.send("k")
		p.wait()
	})
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour})
	var x Exchange
	if err := x.Do(w, post("{}")); err != nil {
		t.Fatal(err)
	}
	c := x.conn
	if p, err := x.Next(); string(p) != "o" || err != nil {
		t.Fatalf("unexpected piece; got %q, %v", p, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if p, err := x.Next(); string(p) != "k" || err != nil {
			t.Errorf("unexpected piece; got %q, %v", p, err)
		}
	}()
	close(more)
	<-done
	if c.out != nil || c.outBuf != nil {
		t.Error("the write buffer is still there")
	}
	x.Close()
	if c.in != nil {
		t.Error("the read buffer is still there")
	}
}
