package gone

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// departures are the ways in which a client goes.
var departures = []struct {
	name  string
	queue bool // the end comes behind bytes that nobody reads
	leave func(t *testing.T, client *net.TCPConn)
}{
	{"close", false, func(t *testing.T, client *net.TCPConn) { must(t, client.Close()) }},
	{"reset", false, func(t *testing.T, client *net.TCPConn) { must(t, client.SetLinger(0)); must(t, client.Close()) }},
	{"half-close", false, func(t *testing.T, client *net.TCPConn) { must(t, client.CloseWrite()) }},
	{"close behind a pipelined request", true, func(t *testing.T, client *net.TCPConn) {
		write(t, client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		must(t, client.Close())
	}},
	{"reset behind a pipelined request", true, func(t *testing.T, client *net.TCPConn) {
		write(t, client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		must(t, client.SetLinger(0))
		must(t, client.Close())
	}},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatalf("cannot write: %v", err)
	}
}

func TestB47_ClientGoesWhileArmed(t *testing.T) {
	for kind, newNotifier := range notifiers {
		for _, d := range departures {
			if d.queue && kind == "sweep" {
				continue // documented
			}
			t.Run(kind+"/"+d.name, func(t *testing.T) {
				server, client := newTestbed(t, newNotifier).pair()
				canceled := make(signal)
				server.Arm(canceled)
				d.leave(t, client)
				canceled.wait(t, d.name)
				if !server.Gone() {
					t.Fatal("cancelled but not gone")
				}
				// Cancel comes once; a second one would close a closed channel.
				server.hangUp()
				server.Disarm()
			})
		}
	}
}

func TestB47_ClientWentBeforeArm(t *testing.T) {
	for _, d := range departures {
		t.Run(d.name, func(t *testing.T) {
			server, client := newTestbed(t, newNotifier).pair()
			d.leave(t, client)
			eventually(t, "gone", server.Gone)
			canceled := make(signal)
			server.Arm(canceled)
			select {
			case <-canceled:
			default:
				t.Fatal("Arm returned without having cancelled")
			}
			server.Disarm()
		})
	}
}

func TestConn_ClientThatTalksIsNotGone(t *testing.T) {
	for kind, newNotifier := range notifiers {
		t.Run(kind, func(t *testing.T) {
			b := newTestbed(t, newNotifier)
			server, client := b.pair()
			server.Arm(make(signal))
			for range 100 {
				write(t, client, "more")
			}
			// Another client's end shows that events have been handled since.
			other, otherClient := b.pair()
			canceled := make(signal)
			other.Arm(canceled)
			must(t, otherClient.Close())
			canceled.wait(t, "the other")
			if server.Gone() {
				t.Fatal("a client that sends is taken for gone")
			}
			server.Disarm()
		})
	}
}

func TestConn_DisarmedIsNotCancelled(t *testing.T) {
	server, client := newTestbed(t, newNotifier).pair()
	canceled := make(signal)
	server.Arm(canceled)
	server.Disarm()
	server.Disarm()
	must(t, client.Close())
	eventually(t, "gone", server.Gone)
	select {
	case <-canceled:
		t.Fatal("cancelled after Disarm")
	default:
	}
}

func TestConn_ArmReplaces(t *testing.T) {
	server, client := newTestbed(t, newNotifier).pair()
	first, second := make(signal), make(signal)
	server.Arm(first)
	server.Arm(second)
	must(t, client.Close())
	second.wait(t, "the second")
	select {
	case <-first:
		t.Fatal("the first canceler was called")
	default:
	}
}

// work is a Canceler that must not be cancelled after its end.
type work struct {
	t     *testing.T
	ended atomic.Bool
	calls atomic.Int32
}

func (w *work) Cancel() {
	if w.ended.Load() {
		w.t.Error("cancelled after Disarm had returned")
	}
	if w.calls.Add(1) > 1 {
		w.t.Error("cancelled twice")
	}
	if w.ended.Load() {
		w.t.Error("Disarm returned while Cancel was running")
	}
}

func TestConn_ConcurrentArmDisarmAndDeparture(t *testing.T) {
	for kind, newNotifier := range notifiers {
		t.Run(kind, func(t *testing.T) {
			b := newTestbed(t, newNotifier)
			var wg sync.WaitGroup
			for range 64 {
				server, client := b.pair()
				wg.Add(2)
				go func() {
					defer wg.Done()
					for end := time.Now().Add(patience); !server.Gone(); {
						if time.Now().After(end) {
							t.Error("the client's end was not noticed")
							return
						}
						w := &work{t: t}
						server.Arm(w)
						server.Disarm()
						w.ended.Store(true)
						if w.calls.Load() == 0 && kind == "sweep" {
							// Only what is armed is looked at, and it was armed for a moment.
							server.hangUp()
						}
					}
				}()
				go func() {
					defer wg.Done()
					if err := client.Close(); err != nil {
						t.Errorf("cannot close: %v", err)
					}
				}()
			}
			wg.Wait()
		})
	}
}

func TestWatcher_NothingIsLeft(t *testing.T) {
	for kind, newNotifier := range notifiers {
		t.Run(kind, func(t *testing.T) {
			filesBefore, goroutinesBefore := openFiles(t), goroutines()
			w, err := newWatcher(newNotifier)
			must(t, err)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			ln := w.Listen(inner)
			const rounds, each = 20, 100
			for round := range rounds {
				var servers [each]*Conn
				var clients [each]net.Conn
				for i := range each {
					clients[i], err = net.Dial("tcp", ln.Addr().String())
					must(t, err)
					c, err := ln.Accept()
					must(t, err)
					servers[i] = c.(*Conn)
					servers[i].Arm(make(signal))
				}
				if n := w.count(); n != each {
					t.Fatalf("unexpected connections; got %d; want %d", n, each)
				}
				for i := range each {
					// Either side goes first, turn and turn about.
					if (i+round)%2 == 0 {
						must(t, clients[i].Close())
						must(t, servers[i].Close())
					} else {
						must(t, servers[i].Close())
						must(t, clients[i].Close())
					}
				}
				if n := w.count(); n != 0 {
					t.Fatalf("connections left; got %d", n)
				}
			}
			must(t, ln.Close())
			must(t, w.Close())
			eventually(t, "descriptors closed", func() bool { return openFiles(t) <= filesBefore+1 }) // the poller of Go may be new
			eventually(t, "goroutines ended", func() bool { return goroutines() <= goroutinesBefore })
		})
	}
}

func TestConn_CloseIsOnce(t *testing.T) {
	server, _ := newTestbed(t, newNotifier).pair()
	var ok atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch err := server.Close(); err {
			case nil:
				ok.Add(1)
			case net.ErrClosed:
			default:
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
	wg.Wait()
	if n := ok.Load(); n != 1 {
		t.Fatalf("unexpected closes; got %d; want 1", n)
	}
}
