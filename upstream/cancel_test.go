package upstream

import (
	"strings"
	"testing"
	"time"
)

// TestCancel cancels an exchange in each of its stages.
func TestCancel(t *testing.T) {
	limits := Timeouts{Connect: time.Hour, FirstByte: time.Hour, BetweenEvents: time.Hour, Total: time.Hour}

	f := func(name, url string, req *Request, reached func(x *Exchange)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			w := newTestWorker(t, url, limits)
			var x Exchange
			done := make(chan error)
			go func() {
				_, _, err := do(&x, w, req)
				done <- err
			}()
			reached(&x)
			x.Cancel()
			x.Cancel()
			wantFault(t, <-done, FaultCanceled)
			wantIdle(t, w, 0)
			if n := w.Failures(); n != 0 {
				t.Fatalf("unexpected failures; got %d; want 0", n)
			}
		})
	}
	f("dialing", deaf(t), post("{}"), func(x *Exchange) {
		eventually(t, "the dial", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.stopDial != nil
		})
	})

	at := make(chan struct{})
	e := play(t, func(p *peer) { _, _, _ = p.head(); at <- struct{}{}; <-p.stop })
	f("writing a large body", e.url, post(string(make([]byte, 32<<20))), func(*Exchange) { <-at })
	f("waiting for the head", e.url, post("{}"), func(*Exchange) { <-at })

	e = play(t, func(p *peer) { _, _, _ = p.request(); p.send("HTTP/1.1 200"); at <- struct{}{}; <-p.stop })
	f("in the head", e.url, post("{}"), func(*Exchange) { <-at })
	e = play(t, func(p *peer) { _, _, _ = p.request(); p.send(chunkedHead + "2\r\nok\r\n"); at <- struct{}{}; <-p.stop })
	f("between events", e.url, post("{}"), func(*Exchange) { <-at })
	e = play(t, func(p *peer) {
		_, _, _ = p.request()
		p.send("HTTP/1.1 200 OK\r\n\r\n")
		at <- struct{}{}
		for {
			if _, err := p.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	f("in an endless stream", e.url, post("{}"), func(*Exchange) { <-at })
}

func TestCancel_BeforeDoAndAfterEnd(t *testing.T) {
	e := play(t, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	x.Cancel()
	_, _, err := do(&x, w, post("{}"))
	wantFault(t, err, FaultCanceled)
	wantAccepted(t, e, 0)

	mustDo(t, &x, w, "ok") // Close ended the cancellation
	wantIdle(t, w, 1)

	// A rested connection is not the price of a request that was canceled
	// before it was sent.
	x.Cancel()
	_, _, err = do(&x, w, post("{}"))
	wantFault(t, err, FaultCanceled)
	wantIdle(t, w, 1)

	if err := x.Do(w, post("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(&x); err != nil {
		t.Fatal(err)
	}
	x.Cancel()
	x.Close()
	wantIdle(t, w, 0)
	mustDo(t, &x, w, "ok")
	wantAccepted(t, e, 2)
}

// TestCancel_Race cancels at no particular time.
func TestCancel_Race(t *testing.T) {
	e := play(t, always(chunkedHead+strings.Repeat("2\r\nok\r\n", 10)+"0\r\n\r\n"))
	w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour, BetweenEvents: 2 * time.Hour, Total: 3 * time.Hour})
	var x Exchange
	for i := range 500 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range i % 50 * 100 {
				_ = x.isCanceled()
			}
			x.Cancel()
		}()
		err := x.Do(w, post("{}"))
		if err == nil {
			_, err = readAll(&x)
		}
		if err != nil {
			wantFault(t, err, FaultCanceled)
		}
		<-ended
		x.Close()
	}
}
