package gone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// failing is a listener that fails a few times first.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

func TestListener_GoesOnWhenExhausted(t *testing.T) {
	b := newTestbed(t, newNotifier)
	b.ln.(*listener).Listener = &failing{b.ln.(*listener).Listener, []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}}
	b.pair()
	if n := b.w.Refused(); n != 3 {
		t.Fatalf("unexpected Refused; got %d; want 3", n)
	}
}

func TestListener_OtherErrorsEndIt(t *testing.T) {
	b := newTestbed(t, newNotifier)
	ln := b.w.Listen(&failing{b.ln, []error{syscall.EBADF}})
	if _, err := ln.Accept(); !errors.Is(err, syscall.EBADF) {
		t.Fatalf("unexpected error; got %v", err)
	}
	if n := b.w.Refused(); n != 0 {
		t.Fatalf("unexpected Refused; got %d", n)
	}
}

func TestListener_ClosedWatcherAcceptsNoMore(t *testing.T) {
	for kind, newNotifier := range notifiers {
		t.Run(kind, func(t *testing.T) {
			w, err := newWatcher(newNotifier)
			must(t, err)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			defer inner.Close()
			ln := w.Listen(inner)
			early, err := net.Dial("tcp", ln.Addr().String())
			must(t, err)
			defer early.Close()
			open, err := ln.Accept()
			must(t, err)
			must(t, w.Close())

			client, err := net.Dial("tcp", ln.Addr().String())
			must(t, err)
			defer client.Close()
			if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Fatalf("unexpected error; got %v; want %v", err, net.ErrClosed)
			}
			// The connection that could not be watched is closed,
			if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Fatalf("unexpected read; got %d, %v", n, err)
			}
			// and the one that was open stays usable.
			write(t, open, "x")
			if _, err := io.ReadFull(early, make([]byte, 1)); err != nil {
				t.Fatalf("cannot read: %v", err)
			}
			must(t, open.Close())
			if n := w.count(); n != 0 {
				t.Fatalf("connections left; got %d", n)
			}
		})
	}
}

func TestListener_OtherConnectionsPassThrough(t *testing.T) {
	b := newTestbed(t, newNotifier)
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	must(t, err)
	defer inner.Close()
	client, err := net.Dial("unix", inner.Addr().String())
	must(t, err)
	defer client.Close()
	c, err := b.w.Listen(inner).Accept()
	must(t, err)
	defer c.Close()
	if _, ok := c.(*net.UnixConn); !ok || Of(c) != nil {
		t.Fatalf("unexpected connection; got %T", c)
	}
}

func TestConn_UnderTLS(t *testing.T) {
	b := newTestbed(t, newNotifier)
	server := tls.NewListener(b.ln, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	dialed := make(chan *tls.Conn, 1)
	go func() {
		c, err := tls.Dial("tcp", b.ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Errorf("cannot connect: %v", err)
		}
		dialed <- c
	}()
	c, err := server.Accept()
	must(t, err)
	defer c.Close()
	must(t, c.(*tls.Conn).Handshake())
	client := <-dialed
	defer client.Close()

	// Records hold LF bytes anywhere: the guard must keep out of it.
	want := make([]byte, 64<<10)
	for i := range want {
		want[i] = byte(i)
	}
	go func() {
		if _, err := client.Write(want); err != nil {
			t.Errorf("cannot write: %v", err)
		}
	}()
	if _, err := io.ReadFull(c, make([]byte, len(want))); err != nil {
		t.Fatalf("cannot read: %v", err)
	}

	gc := Of(c)
	if gc == nil {
		t.Fatalf("no Conn under %T", c)
	}
	canceled := make(signal)
	gc.Arm(canceled)
	must(t, client.Close())
	canceled.wait(t, "client under TLS")
	gc.Disarm()
	must(t, c.Close())
	if n := b.w.count(); n != 0 {
		t.Fatalf("connections left; got %d", n)
	}
}

func TestOf(t *testing.T) {
	server, client := newTestbed(t, newNotifier).pair()
	if Of(server) != server || Of(client) != nil || Of(nil) != nil {
		t.Fatal("unexpected Of")
	}
}

// certificate makes a certificate that nobody needs to trust.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
