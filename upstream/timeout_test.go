package upstream

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deaf returns the URL of an address whose backlog is full, so that no
// connection to it is ever made.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*unix.SockaddrInet4).Port}).String()
	for range 16 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return "http://" + addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("the system accepts more connections than the backlog holds")
	return ""
}

func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return "http://" + ln.Addr().String()
}

func TestConnect(t *testing.T) {
	f := func(name, url string, limits Timeouts, want Fault) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			w := newTestWorker(t, url, limits)
			var x Exchange
			for range 2 {
				_, _, err := do(&x, w, post("{}"))
				wantFault(t, err, want)
			}
			if n := w.Failures(); n != 2 {
				t.Fatalf("unexpected failures; got %d; want 2", n)
			}
		})
	}
	f("refused", closedPort(t), Timeouts{Connect: time.Hour, Total: time.Hour}, FaultConnect)
	f("timeout", deaf(t), Timeouts{Connect: 50 * time.Millisecond, Total: time.Hour}, FaultConnect)
	f("total", deaf(t), Timeouts{Connect: time.Hour, Total: 50 * time.Millisecond}, FaultTotal)
}

// TestTimeout has each limit name itself, and never before its time: that much
// a clock can say even on a machine that stalls.
func TestTimeout(t *testing.T) {
	const short = 80 * time.Millisecond
	f := func(name string, limits Timeouts, want Fault, s script) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			w := newTestWorker(t, play(t, s).url, limits)
			var x Exchange
			start := time.Now()
			_, _, err := do(&x, w, post("{}"))
			wantFault(t, err, want)
			if !want.Timeout() {
				t.Fatalf("unexpected Timeout of %q; got false", want)
			}
			if d := time.Since(start); d < short {
				t.Fatalf("unexpected end after %v; want not before %v", d, short)
			}
			wantIdle(t, w, 0)
		})
	}
	silent := (*peer).wait
	headOnly := once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
	headAndBody := once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
	f("first byte", Timeouts{FirstByte: short}, FaultFirstByte, silent)
	f("first byte before others", Timeouts{FirstByte: short, BetweenEvents: time.Hour, Total: time.Hour}, FaultFirstByte, silent)
	f("total before the head", Timeouts{Total: short}, FaultTotal, silent)
	f("total, far first byte", Timeouts{FirstByte: time.Hour, Total: short}, FaultTotal, silent)
	f("between, no other", Timeouts{BetweenEvents: short}, FaultBetween, headOnly)
	f("between, longer first byte", Timeouts{FirstByte: time.Hour, BetweenEvents: short, Total: time.Hour}, FaultBetween, headAndBody)
	f("total in the body", Timeouts{FirstByte: time.Hour, BetweenEvents: time.Hour, Total: short}, FaultTotal, headAndBody)
	f("total in the body, no other", Timeouts{Total: short}, FaultTotal, headAndBody)
	f("between, nearer than a total that was nearer than first byte",
		Timeouts{FirstByte: 2 * time.Hour, BetweenEvents: short, Total: time.Hour}, FaultBetween, headAndBody)

	drip := func(prefix, drop string) script {
		return func(p *peer) {
			_, _, _ = p.request()
			p.send(prefix)
			for tick := time.NewTicker(short / 5); ; {
				select {
				case <-tick.C:
					if _, err := p.Write([]byte(drop)); err != nil {
						return
					}
				case <-p.stop:
					return
				}
			}
		}
	}
	f("total of a lively body", Timeouts{FirstByte: time.Hour, BetweenEvents: time.Hour, Total: 4 * short}, FaultTotal,
		drip("HTTP/1.1 200 OK\r\n\r\n", "x"))
	f("head that drips", Timeouts{FirstByte: short}, FaultFirstByte, drip("HTTP/1.1 200 OK\r\nX: ", "x"))
}

// TestTimeout_OfTheHeadEndsWithIt has the first-byte limit pass while the body
// is under way.
func TestTimeout_OfTheHeadEndsWithIt(t *testing.T) {
	for _, between := range []time.Duration{0, time.Hour} {
		more := make(chan struct{})
		e := play(t, func(p *peer) {
			_, _, _ = p.request()
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
			<-more
			p.send("k")
			p.wait()
		})
		w := newTestWorker(t, e.url, Timeouts{FirstByte: time.Hour, BetweenEvents: between})
		var x Exchange
		if err := x.Do(w, post("{}")); err != nil {
			t.Fatal(err)
		}
		if err := x.conn.nc.SetDeadline(past); err != nil { // that of the head
			t.Fatal(err)
		}
		close(more)
		if body, err := readAll(&x); body != "ok" || err != nil {
			t.Fatalf("unexpected body; got %q, %v; want %q", body, err, "ok")
		}
		x.Close()
		wantIdle(t, w, 1)
	}
}

// ETIMEDOUT comes from keep-alive probes that nobody answered. It is a broken
// connection, none of the limits.
func TestTimeout_OfTheKernelIsNone(t *testing.T) {
	if isTimeout(&net.OpError{Op: "read", Err: unix.ETIMEDOUT}) {
		t.Fatal("unexpected timeout; got true for ETIMEDOUT; want false")
	}
}
