package gone

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// tlsPair opens a connection through ListenTLS and returns both ends of it, after
// the handshake.
func tlsPair(t *testing.T) (w *Watcher, server *TLSConn, client *tls.Conn) {
	t.Helper()
	w, err := New()
	must(t, err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ln := w.ListenTLS(plain, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	raw, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	client = tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- client.Handshake() }()
	c, err := ln.Accept()
	must(t, err)
	server = c.(*TLSConn)
	must(t, server.Handshake())
	must(t, <-shaken)
	t.Cleanup(func() {
		_, _ = server.Close(), client.Close()
		must(t, ln.Close())
		must(t, w.Close())
	})
	return w, server, client
}

// A client that leaves without a word of TLS is seen to go.
func TestTLSConn_Gone(t *testing.T) {
	_, server, client := tlsPair(t)
	canceled := make(signal)
	Of(server).Arm(canceled)
	must(t, client.NetConn().Close())
	canceled.wait(t, "client under TLS")
	if !Of(server).Gone() {
		t.Error("the client is not gone")
	}
}

// The guard sees the heads that TLS is around, each of them.
func TestTLSConn_BareLF(t *testing.T) {
	_, server, client := tlsPair(t)
	b := make([]byte, 256)
	send := func(text string) (string, error) {
		t.Helper()
		_, err := io.WriteString(client, text)
		must(t, err)
		must(t, server.SetReadDeadline(time.Now().Add(patience)))
		n, err := server.Read(b)
		ConnState(server, fasthttp.StateActive)
		return string(b[:n]), err
	}
	const good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	if got, err := send(good); got != good || err != nil {
		t.Fatalf("unexpected first head %q, %v", got, err)
	}
	ConnState(server, fasthttp.StateIdle)
	if got, err := send("GET / HTTP/1.1\nHost: a\r\n\r\n"); got != "GET / HTTP/1.1" || !errors.Is(err, ErrBareLF) {
		t.Errorf("unexpected second head %q, %v", got, err)
	}
	if n, err := server.Read(b); n != 0 || !errors.Is(err, ErrBareLF) {
		t.Errorf("unexpected bytes behind it: %d, %v", n, err)
	}
}

// A client that has only shaken hands has not sent a byte.
func TestTLSConn_CloseSilent(t *testing.T) {
	w, server, _ := tlsPair(t)
	w.CloseSilent()
	if _, err := server.Read(make([]byte, 1)); err == nil {
		t.Error("a silent connection was not closed")
	}
	w, server, client := tlsPair(t)
	_, err := io.WriteString(client, "G")
	must(t, err)
	_, err = server.Read(make([]byte, 1))
	must(t, err)
	w.CloseSilent()
	_, err = io.WriteString(client, "ET")
	must(t, err)
	if n, err := server.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Errorf("a connection that is in use was closed: %d, %v", n, err)
	}
}
