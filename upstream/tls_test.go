package upstream

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/upstream/h1"
)

// authority signs certificates for one test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for a name or an IP address, good for both ends.
func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS starts a worker that answers with handle, which may be nil.
func serveTLS(t *testing.T, c *tls.Config, handle http.HandlerFunc) (url string) {
	t.Helper()
	if handle == nil {
		handle = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
	}
	s := httptest.NewUnstartedServer(handle)
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func newTLSWorker(t *testing.T, url string, c *tls.Config, limits Timeouts) *Worker {
	t.Helper()
	spec := PoolSpec{Name: "test", Workers: []WorkerSpec{{URL: url}}, Timeouts: limits, TLS: c}
	return newTestPool(t, spec).Workers()[0]
}

func TestTLS_Exchange(t *testing.T) {
	ca := newAuthority(t)
	var conns sync.Map
	url := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1")}, NextProtos: []string{"h2", "http/1.1"}},
		func(w http.ResponseWriter, r *http.Request) {
			conns.Store(r.RemoteAddr, true)
			if p := r.TLS.NegotiatedProtocol; p != "http/1.1" || r.TLS.Version < tls.VersionTLS12 {
				t.Errorf("unexpected protocol %q, version %x", p, r.TLS.Version)
			}
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("cannot read the body: %v", err)
			}
			_, _ = w.Write(b)
		})
	w := newTLSWorker(t, url, &tls.Config{RootCAs: ca.pool}, Timeouts{Connect: patience, FirstByte: patience, BetweenEvents: patience})
	if w.URL() != url {
		t.Errorf("unexpected url %q; want %q", w.URL(), url)
	}
	var x Exchange
	for _, size := range []int{0, 1, bufSize, inlineBody + 1, 8 << 20} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		status, got, err := do(&x, w, post(body))
		if err != nil || status != 200 || got != body {
			t.Fatalf("%d bytes: unexpected answer %d of %d bytes, %v", size, status, len(got), err)
		}
		wantIdle(t, w, 1)
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("unexpected number of connections %d; want 1", n)
	}
}

// A worker that cannot prove who it is gets nothing, and the request may go to
// another one.
func TestTLS_Refused(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	var served atomic.Int64
	start := func(name string, change func(*tls.Config)) string {
		c := &tls.Config{Certificates: []tls.Certificate{ca.issue(name)}}
		if change != nil {
			change(c)
		}
		return serveTLS(t, c, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	}
	f := func(what, url string, c *tls.Config, want any) {
		t.Helper()
		w := newTLSWorker(t, url, c, Timeouts{Connect: patience})
		var x Exchange
		_, _, err := do(&x, w, post("{}"))
		wantFault(t, err, FaultConnect)
		if want != nil && !errors.As(err, want) {
			t.Errorf("%s: unexpected cause: %v", what, err)
		}
		var e *Error
		if errors.As(err, &e) && !e.Retriable() {
			t.Errorf("%s: may not be sent to another worker", what)
		}
	}
	f("another CA", start("127.0.0.1", nil), &tls.Config{RootCAs: other.pool}, new(x509.UnknownAuthorityError))
	f("the roots of the system", start("127.0.0.1", nil), nil, new(x509.UnknownAuthorityError))
	f("another name", start("engine.test", nil), &tls.Config{RootCAs: ca.pool}, new(x509.HostnameError))
	f("another server name", start("127.0.0.1", nil), &tls.Config{RootCAs: ca.pool, ServerName: "engine.test"}, new(x509.HostnameError))
	f("TLS 1.1", start("127.0.0.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
		&tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS10}, nil)
	f("no TLS", strings.Replace(play(t, func(p *peer) { p.send(okAnswer); p.wait() }).url, "http://", "https://", 1), nil, nil)
	if n := served.Load(); n != 0 {
		t.Errorf("unexpected requests at workers that were refused: %d", n)
	}
}

func TestTLS_ServerName(t *testing.T) {
	ca := newAuthority(t)
	url := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("engine.test")}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Host)
	})
	w := newTLSWorker(t, url, &tls.Config{RootCAs: ca.pool, ServerName: "engine.test"}, Timeouts{})
	var x Exchange
	mustDo(t, &x, w, "engine.test "+strings.TrimPrefix(url, "https://"))
}

func TestTLS_ClientCertificate(t *testing.T) {
	ca := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		url := serveTLS(t, &tls.Config{
			Certificates: []tls.Certificate{ca.issue("127.0.0.1")},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.pool, MaxVersion: version,
		}, nil)
		var x Exchange
		mustDo(t, &x, newTLSWorker(t, url, &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue("router")}}, Timeouts{}), "ok")

		// In TLS 1.3 a client learns that it was refused from its first read.
		w := newTLSWorker(t, url, &tls.Config{RootCAs: ca.pool}, Timeouts{})
		_, _, err := do(&x, w, post("{}"))
		var e *Error
		if !errors.As(err, &e) || e.Fault != FaultConnect && e.Fault != FaultClosed {
			t.Errorf("version %x: unexpected error without a certificate: %v", version, err)
		}
		if n := w.Failures(); n != 1 {
			t.Errorf("version %x: unexpected failures; got %d; want 1", version, n)
		}
	}
}

// Each worker's sessions are taken up again, also where one name stands for all.
func TestTLS_Resumption(t *testing.T) {
	ca := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		var urls [2]WorkerSpec
		for i := range urls {
			urls[i].URL = serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("engine.test")}, MaxVersion: version},
				func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Connection", "close")
					answer := "full"
					if r.TLS.DidResume {
						answer = "resumed"
					}
					_, _ = io.WriteString(w, answer)
				})
		}
		p := newTestPool(t, PoolSpec{Name: "test", Workers: urls[:], TLS: &tls.Config{RootCAs: ca.pool, ServerName: "engine.test"}})
		var x Exchange
		for i, want := range []string{"full", "resumed", "resumed"} {
			for _, w := range p.Workers() {
				if _, got, err := do(&x, w, post("{}")); err != nil || got != want {
					t.Errorf("version %x: unexpected session %d of %s; got %q, %v; want %q", version, i, w.URL(), got, err, want)
				}
			}
		}
	}
}

// mute takes connections and says nothing.
func mute(t *testing.T) (e *engine, accepted chan struct{}) {
	t.Helper()
	accepted = make(chan struct{}, 16)
	e = play(t, func(p *peer) { accepted <- struct{}{}; p.wait() })
	e.url = strings.Replace(e.url, "http://", "https://", 1)
	return e, accepted
}

func TestTLS_CancelInHandshake(t *testing.T) {
	e, accepted := mute(t)
	w := newTLSWorker(t, e.url, nil, Timeouts{Connect: time.Hour, Total: time.Hour})
	var x Exchange
	done := make(chan error)
	go func() {
		_, _, err := do(&x, w, post("{}"))
		done <- err
	}()
	<-accepted
	x.Cancel()
	wantFault(t, <-done, FaultCanceled)
	if n := w.Failures(); n != 0 {
		t.Errorf("unexpected failures; got %d; want none", n)
	}
}

func TestTLS_Timeouts(t *testing.T) {
	e, _ := mute(t)
	var x Exchange
	_, _, err := do(&x, newTLSWorker(t, e.url, nil, Timeouts{Connect: 20 * time.Millisecond}), post("{}"))
	wantFault(t, err, FaultConnect)
	_, _, err = do(&x, newTLSWorker(t, e.url, nil, Timeouts{Connect: time.Hour, Total: 20 * time.Millisecond}), post("{}"))
	wantFault(t, err, FaultTotal)

	ca := newAuthority(t)
	stop := make(chan struct{})
	url := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1")}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/chat/completions" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
		}
		<-stop
	})
	t.Cleanup(func() { close(stop) })
	c := &tls.Config{RootCAs: ca.pool}
	_, _, err = do(&x, newTLSWorker(t, url, c, Timeouts{BetweenEvents: 20 * time.Millisecond}), post("{}"))
	wantFault(t, err, FaultBetween)
	silent := post("{}")
	silent.Target = []byte("/silent")
	_, _, err = do(&x, newTLSWorker(t, url, c, Timeouts{FirstByte: 20 * time.Millisecond}), silent)
	wantFault(t, err, FaultFirstByte)
}

// heldConn keeps what is written until release.
type heldConn struct {
	net.Conn
	held *bytes.Buffer // nil: nothing is kept
}

func (c *heldConn) Write(p []byte) (int, error) {
	if c.held != nil {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

// A session that ended at rest, and one that holds bytes which came behind the
// answer in records of their own, are not used again: the latter have left the
// socket and would be read as the answer to the next request.
func TestTLS_NotQuietAtRest(t *testing.T) {
	ca := newAuthority(t)
	const unsolicited = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for name, answer := range map[string]func(*tls.Conn, *heldConn){
		"ends": func(s *tls.Conn, _ *heldConn) {
			_, _ = io.WriteString(s, okAnswer)
			_ = s.CloseWrite()
		},
		"answers twice": func(s *tls.Conn, c *heldConn) {
			c.held = &bytes.Buffer{}
			_, _ = io.WriteString(s, okAnswer)
			_, _ = io.WriteString(s, unsolicited)
			both := c.held.Bytes()
			c.held = nil
			_, _ = c.Write(both)
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1")}}
			serve := func(answer func(*tls.Conn, *heldConn)) script {
				return func(p *peer) {
					c := &heldConn{Conn: p.TCPConn}
					s := tls.Server(c, config)
					q := &peer{p.TCPConn, bufio.NewReader(s), p.stop}
					if _, _, ok := q.request(); ok {
						answer(s, c)
						q.wait()
					}
				}
			}
			e := play(t, serve(answer), serve(func(s *tls.Conn, _ *heldConn) { _, _ = io.WriteString(s, okAnswer) }))
			w := newTLSWorker(t, strings.Replace(e.url, "http://", "https://", 1), &tls.Config{RootCAs: ca.pool}, Timeouts{})
			var x Exchange
			mustDo(t, &x, w, "ok")
			c := rested(t, w)
			eventually(t, "the end of quiet", func() bool { return !c.quiet() })
			mustDo(t, &x, w, "ok")
			wantAccepted(t, e, 2)
			if n := w.Failures(); n != 0 {
				t.Fatalf("unexpected failures; got %d; want none", n)
			}
		})
	}
}

// B76: what traffic needs to reach a worker (a CA of one's own, a client
// certificate, a key) probes need as well.
func TestB76_ProbesLikeTraffic(t *testing.T) {
	ca := newAuthority(t)
	url := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue("127.0.0.1")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" || r.Header.Get("User-Agent") != "" {
			w.WriteHeader(500)
		}
	})
	good := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue("router")}}
	key := FieldEdits{
		Set:    []h1.Field{{Name: []byte("authorization"), Value: []byte("Bearer k")}},
		Remove: [][]byte{[]byte("user-agent")},
	}
	f := func(c *tls.Config, edits FieldEdits, healthy bool) {
		t.Helper()
		p := newTestPool(t, PoolSpec{
			Name: "test", Workers: []WorkerSpec{{URL: url}}, TLS: c, Fields: edits,
			Health: Health{Path: "/health", Interval: 5 * time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1},
		})
		w := p.Workers()[0]
		eventually(t, "two probes", func() bool { return w.probes.Load() >= 2 })
		if w.Healthy() != healthy {
			t.Errorf("unexpected health %v; want %v", w.Healthy(), healthy)
		}
	}
	f(good, key, true)
	f(good, FieldEdits{}, false)
	f(&tls.Config{RootCAs: ca.pool}, key, false)
	f(nil, key, false)
}
