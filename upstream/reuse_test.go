package upstream

import (
	"testing"
	"time"
)

// rested returns the connection that would be used next.
func rested(t *testing.T, w *Worker) *conn {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) == 0 {
		t.Fatal("unexpected stack of connections; got none")
	}
	return w.idle[len(w.idle)-1]
}

func TestReuse_LastRestedFirst(t *testing.T) {
	e := play(t, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{})
	var a, b Exchange
	for _, x := range []*Exchange{&a, &b} {
		if err := x.Do(w, post("{}")); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(x); err != nil {
			t.Fatal(err)
		}
	}
	last := b.conn
	a.Close()
	b.Close()
	wantIdle(t, w, 2)
	for range 3 {
		if got := rested(t, w); got != last {
			t.Fatal("unexpected connection on top; got another than the last one that came to rest")
		}
		mustDo(t, &a, w, "ok")
	}
	wantAccepted(t, e, 2)
}

func TestReuse_NotBeyondAge(t *testing.T) {
	e := play(t, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	mustDo(t, &x, w, "ok")
	c := rested(t, w)
	c.rested = c.rested.Add(-idleLimit)
	mustDo(t, &x, w, "ok")
	wantAccepted(t, e, 2)
	w.reap(time.Now())
	if open, idle := w.Connections(); open != 1 || idle != 1 {
		t.Fatalf("unexpected connections; got %d open, %d idle; want the young one", open, idle)
	}
	w.reap(time.Now().Add(idleLimit))
	if open, idle := w.Connections(); open != 0 || idle != 0 {
		t.Fatalf("unexpected connections; got %d open, %d idle; want none", open, idle)
	}
}

// A deadline that passed while a connection rested says nothing about it.
func TestReuse_AfterDeadline(t *testing.T) {
	e := play(t, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour, Total: time.Hour})
	var x Exchange
	mustDo(t, &x, w, "ok")
	c := rested(t, w)
	c.rested = c.rested.Add(-time.Second)
	if err := c.nc.SetDeadline(past); err != nil {
		t.Fatal(err)
	}
	mustDo(t, &x, w, "ok")
	wantAccepted(t, e, 1)
}

func TestReuse_ClosedAtRest(t *testing.T) {
	for name, end := range map[string]func(*peer){
		"FIN":         func(*peer) {},
		"RST":         (*peer).reset,
		"unsolicited": func(p *peer) { p.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"); p.wait() },
	} {
		t.Run(name, func(t *testing.T) {
			leave := make(chan struct{})
			e := play(t, func(p *peer) {
				if _, _, ok := p.request(); ok {
					p.send(okAnswer)
					<-leave
					end(p)
				}
			}, always(okAnswer))
			w := newTestWorker(t, e.url, Timeouts{})
			var x Exchange
			mustDo(t, &x, w, "ok")
			c := rested(t, w)
			close(leave)
			eventually(t, "the worker's move", func() bool { return !c.quiet() })
			mustDo(t, &x, w, "ok")
			wantAccepted(t, e, 2)
			if n := w.Failures(); n != 0 {
				t.Fatalf("unexpected failures; got %d; want none", n)
			}
		})
	}
}

// The answer's end is not the end of what the worker sent, or the other way
// round: nobody may read the rest as another answer.
func TestReuse_OnlyAfterCleanEnd(t *testing.T) {
	f := func(name, answer string, whole bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			e := play(t, once(answer), always(okAnswer))
			w := newTestWorker(t, e.url, Timeouts{})
			var x Exchange
			if err := x.Do(w, post("{}")); err != nil {
				t.Fatal(err)
			}
			if whole {
				if _, err := readAll(&x); err != nil {
					t.Fatal(err)
				}
			}
			x.Close()
			wantIdle(t, w, 0)
			mustDo(t, &x, w, "ok")
			wantAccepted(t, e, 2)
		})
	}
	f("extra bytes after a length", okAnswer+"!", true)
	f("extra bytes after chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n!", true)
	f("extra bytes after no body", "HTTP/1.1 204 No Content\r\n\r\n!", true)
	f("a second answer", okAnswer+okAnswer, true)
	f("Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true)
	f("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true)
	f("body not read", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", false)
	f("end of chunks not read", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", false)
	f("body that ends with the connection", "HTTP/1.1 200 OK\r\n\r\nok", false)
}

// TestB50_ResendOnFreshConnection has the worker close a rested connection in
// the moment in which the next request goes out: after the look at it.
func TestB50_ResendOnFreshConnection(t *testing.T) {
	for name, end := range map[string]func(*peer){"FIN": func(*peer) {}, "RST": (*peer).reset} {
		for size, body := range map[string]string{"small": "{}", "large": string(make([]byte, 1<<20))} {
			t.Run(name+" "+size, func(t *testing.T) {
				stale := func(p *peer) {
					if _, _, ok := p.request(); !ok {
						return
					}
					p.send(okAnswer)
					if _, err := p.in.Peek(1); err == nil {
						end(p)
					}
				}
				got := make(chan string, 1)
				e := play(t, stale, stale, func(p *peer) {
					_, body, _ := p.request()
					got <- body
					p.send(okAnswer)
					p.wait()
				})
				w := newTestWorker(t, e.url, Timeouts{})
				var x, y Exchange
				for _, x := range []*Exchange{&x, &y} {
					if err := x.Do(w, post("{}")); err != nil {
						t.Fatal(err)
					}
					if _, err := readAll(x); err != nil {
						t.Fatal(err)
					}
				}
				x.Close()
				y.Close()
				wantIdle(t, w, 2)
				status, answer, err := do(&x, w, post(body))
				if err != nil || status != 200 || answer != "ok" {
					t.Fatalf("unexpected answer; got %d %q, %v", status, answer, err)
				}
				if b := <-got; b != body {
					t.Fatalf("unexpected body sent again; got %d bytes; want %d", len(b), len(body))
				}
				wantAccepted(t, e, 3)
				if n := w.Failures(); n != 0 {
					t.Fatalf("unexpected failures; got %d; want none, the request was answered", n)
				}
			})
		}
	}
}

func TestB50_NoSecondResend(t *testing.T) {
	closing := func(p *peer) { _, _, _ = p.request() }
	e := play(t, func(p *peer) {
		_, _, _ = p.request()
		p.send(okAnswer)
		closing(p)
	}, closing)
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	mustDo(t, &x, w, "ok")
	_, _, err := do(&x, w, post("{}"))
	wantFault(t, err, FaultClosed)
	wantAccepted(t, e, 2)
	_, _, err = do(&x, w, post("{}")) // a fresh connection from the start
	wantFault(t, err, FaultClosed)
	wantAccepted(t, e, 3)
	if n := w.Failures(); n != 2 {
		t.Fatalf("unexpected failures; got %d; want 2", n)
	}
}

func TestB50_NoResendAfterFirstByteOrTimeout(t *testing.T) {
	f := func(name string, limits Timeouts, want Fault, second script) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			e := play(t, func(p *peer) {
				if _, _, ok := p.request(); ok {
					p.send(okAnswer)
				}
				if _, _, ok := p.request(); ok {
					second(p)
				}
			}, always(okAnswer))
			w := newTestWorker(t, e.url, Timeouts{})
			var x Exchange
			mustDo(t, &x, w, "ok")
			w.timeouts = limits
			_, _, err := do(&x, w, post("{}"))
			wantFault(t, err, want)
			wantAccepted(t, e, 1)
		})
	}
	f("one byte", Timeouts{}, FaultClosed, func(p *peer) { p.send("H") })
	f("interim answer", Timeouts{}, FaultClosed, func(p *peer) { p.send("HTTP/1.1 100 Continue\r\n\r\n") })
	f("first byte", Timeouts{FirstByte: 100 * time.Millisecond}, FaultFirstByte, (*peer).wait)
	f("total", Timeouts{Total: 100 * time.Millisecond}, FaultTotal, (*peer).wait)
}
