package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPool_AnswersNeverMix has many clients share connections that the worker
// closes whenever it likes, and one answer in three left unread. Each answer
// that is read carries the nonce of its request.
func TestPool_AnswersNeverMix(t *testing.T) {
	const clients, requests = 64, 40
	whimsical := func(p *peer) {
		for n := 0; ; n++ {
			_, nonce, ok := p.request()
			if !ok {
				return
			}
			// A request that came over a fresh connection is always answered,
			// so that none may fail.
			if n > 0 && rand.IntN(10) == 0 {
				if rand.IntN(2) == 0 {
					p.reset()
				}
				return
			}
			switch rand.IntN(4) {
			case 0:
				p.send("HTTP/1.1 200 OK\r\n\r\n" + nonce)
				return
			case 1:
				p.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(nonce)), nonce)
				return
			case 2:
				p.send(chunkedHead, fmt.Sprintf("%x\r\n", len(nonce)), nonce, "\r\n0\r\n\r\n")
			default:
				p.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(nonce), nonce))
			}
			if rand.IntN(10) == 0 {
				return
			}
		}
	}
	a, b, c := play(t, whimsical), play(t, whimsical), play(t, whimsical)
	descriptors := openDescriptors(t)
	p := newTestPool(t, PoolSpec{
		Name: "mix", Workers: []WorkerSpec{{URL: a.url}, {URL: b.url}, {URL: c.url}}, Balance: LeastRequests,
		Timeouts: Timeouts{Connect: patience, FirstByte: patience, BetweenEvents: patience, Total: 2 * patience},
	})
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			var x Exchange
			for i := range requests {
				nonce := fmt.Sprintf("<%d.%d>%s", client, i, strings.Repeat("x", rand.IntN(3000)))
				w := p.Pick()
				if err := x.Do(w, post(nonce)); err != nil {
					t.Errorf("request %.9s: %v", nonce, err)
				} else if rand.IntN(3) > 0 {
					if got, err := readAll(&x); err != nil || got != nonce {
						t.Errorf("request %.9s: unexpected answer; got %.9s, %v", nonce, got, err)
					}
				}
				x.Close()
				w.Release()
			}
		})
	}
	all.Wait()
	var picks, failures uint64
	for _, w := range p.Workers() {
		picks += w.Picks()
		failures += w.Failures()
		if open, idle := w.Connections(); open != idle {
			t.Errorf("unexpected connections; got %d open, %d idle", open, idle)
		}
	}
	if picks != clients*requests || failures != 0 {
		t.Errorf("unexpected counts; got %d picks, %d failures; want %d, 0", picks, failures, clients*requests)
	}
	for _, w := range p.Workers() {
		w.reap(time.Now().Add(idleLimit))
	}
	if descriptors >= 0 {
		eventually(t, "the closing of the descriptors", func() bool { return openDescriptors(t) <= descriptors })
	}
}

// openDescriptors returns how many descriptors the process has, −1 where the
// system does not tell.
func openDescriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// TestPool_CloseUnderExchanges closes a pool while answers are read: they go
// on, and their connections do not come to rest.
func TestPool_CloseUnderExchanges(t *testing.T) {
	more := make(chan struct{})
	e := play(t, func(p *peer) {
		_, _, _ = p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
		<-more
		p.send("k")
		p.wait()
	})
	p, err := NewPool(PoolSpec{Name: "closing", Workers: []WorkerSpec{{URL: e.url}}, Balance: Random})
	if err != nil {
		t.Fatal(err)
	}
	var xs [8]Exchange
	for i := range xs {
		if err := xs[i].Do(p.Pick(), post("{}")); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	close(more)
	w := p.Workers()[0]
	for i := range xs {
		if body, err := readAll(&xs[i]); body != "ok" || err != nil {
			t.Fatalf("unexpected body; got %q, %v; want %q", body, err, "ok")
		}
		xs[i].Close()
		w.Release()
	}
	if open, idle := w.Connections(); open != 0 || idle != 0 || w.Load() != 0 {
		t.Fatalf("unexpected rest; got %d open, %d idle, load %d", open, idle, w.Load())
	}
}

func TestPool_RestIsBounded(t *testing.T) {
	a, err := parseAddress("http://w:1")
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{backend: newBackend(a, HTTP1, nil)}
	defer w.end()
	e := play(t, always(okAnswer))
	real := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	mustDo(t, &x, real, "ok")
	c := real.young(time.Now())
	w.idle = make([]*conn, maxIdle)
	w.open = maxIdle + 1
	w.put(c, time.Now())
	if open, idle := w.Connections(); open != maxIdle || idle != maxIdle {
		t.Fatalf("unexpected connections; got %d open, %d idle; want %d", open, idle, maxIdle)
	}
	real.open--
}

func TestNewPool_Refused(t *testing.T) {
	f := func(spec PoolSpec, want string) {
		t.Helper()
		if _, err := NewPool(spec); err == nil || err.Error() != want {
			t.Fatalf("unexpected error; got %v; want %s", err, want)
		}
	}
	f(PoolSpec{Name: "p", Balance: Random}, `pool "p": no workers`)
	f(PoolSpec{Name: "p", Balance: Random, Workers: []WorkerSpec{{URL: "w"}}}, `pool "p": worker url must be http://host:port or https://host:port, got "w"`)
}
