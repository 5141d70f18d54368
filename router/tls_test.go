package router

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// authority issues certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	dir  string
	n    int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.cert, a.key = a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.pool.AddCert(a.cert)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) make(template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	a.n++
	template.SerialNumber = big.NewInt(a.n)
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	name = filepath.Join(a.dir, name)
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return name
}

// issue writes a new certificate and its key to the files of name.
func (a *authority) issue(name string) (serial *big.Int, files configs.ServerTLS) {
	a.t.Helper()
	cert, key := a.make(&x509.Certificate{}, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert.SerialNumber, configs.ServerTLS{Cert: a.write(name+".pem", "CERTIFICATE", cert.Raw), Key: a.write(name+"-key.pem", "PRIVATE KEY", der)}
}

// client returns what a client of a needs, with the certificate in files, if any.
func (a *authority) client(files configs.ServerTLS) *tls.Config {
	a.t.Helper()
	c := &tls.Config{RootCAs: a.pool}
	if files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// dialTLS opens a connection to addr, closed with the test.
func dialTLS(t *testing.T, addr string, c *tls.Config) (*rawConn, *tls.Conn) {
	t.Helper()
	tc, err := tls.Dial("tcp", addr, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tc.Close() })
	return &rawConn{t: t, Conn: tc, r: bufio.NewReader(tc)}, tc
}

// The data listener speaks TLS 1.2 and 1.3 with HTTP/1.1 inside: whole answers,
// streams, bodies of any size, again and again.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	_, files := a.issue("data")
	s := startStand(t, func(c *configs.Config) { c.Server.TLS = files })
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: a.pool, MaxVersion: version}}}
		defer client.CloseIdleConnections()
		for _, body := range []string{
			chatBody, `{"model":"sim-8b","stream":true,"messages":[]}`, `{"model":"sim-8b","messages":[],"pad":"` + strings.Repeat("x", 500<<10) + `"}`,
		} {
			resp, err := client.Post("https://"+s.addr+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 1 || resp.TLS.Version != version || resp.TLS.NegotiatedProtocol != "http/1.1" {
				t.Fatalf("unexpected answer %s %s %s, %v", resp.Proto, resp.Status, b, err)
			}
			if got := s.received(); len(got) != 1 || string(got[0].Body) != body || field(got[0], "X-Forwarded-Proto") != "https" {
				t.Errorf("unexpected requests at the engine: %d", len(got))
			}
		}
	}
	for _, c := range []*tls.Config{{RootCAs: a.pool, MaxVersion: tls.VersionTLS11}, {RootCAs: a.pool, NextProtos: []string{"h2"}}} {
		if tc, err := tls.Dial("tcp", s.addr, c); err == nil {
			_ = tc.Close()
			t.Errorf("a handshake succeeded with version %x and protocol %q", c.MaxVersion, c.NextProtos)
		}
	}
	if got := s.metric(`sluice_tls_certificate_expiry_timestamp_seconds{listener="data"}`); got == "" {
		t.Error("there is no metric of the end of the certificate")
	}
}

// A client under TLS that leaves is seen to: the engine is free within a second.
func TestTLSClientGone(t *testing.T) {
	a := newAuthority(t)
	_, files := a.issue("data")
	s := startStandWith(t, sim.Options{Models: []string{simModel}, Words: 1000, Pace: 20 * time.Millisecond}, func(c *configs.Config) { c.Server.TLS = files })
	const body = `{"model":"sim-8b","stream":true,"messages":[]}`
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 46\r\n"
	f := func(fields string, leave func(c *tls.Conn) error) {
		t.Helper()
		before := s.engine.Stats().Cancelled
		c, tc := dialTLS(t, s.addr, a.client(configs.ServerTLS{}))
		c.write(head + fields + "\r\n" + body)
		eventually(t, "the engine has the request", func() bool { return s.engine.Stats().InFlight == 1 })
		if err := leave(tc); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the engine is free", func() bool { return s.engine.Stats().Cancelled == before+1 && s.engine.Stats().InFlight == 0 })
	}
	f("", (*tls.Conn).Close)
	f("x-sim-ttfb: 1h\r\n", (*tls.Conn).Close) // while the worker is silent
	f("", func(c *tls.Conn) error { return c.NetConn().Close() })
	f("x-sim-ttfb: 1h\r\n", func(c *tls.Conn) error { return c.NetConn().Close() })
}

// Heads are looked at as on a plain connection.
func TestTLSFraming(t *testing.T) {
	a := newAuthority(t)
	_, files := a.issue("data")
	s := startStand(t, func(c *configs.Config) { c.Server.TLS = files })
	for _, head := range []string{
		"POST /v1/chat/completions HTTP/1.1\nHost: a\n\n",
		"GET /health HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		c, _ := dialTLS(t, s.addr, a.client(configs.ServerTLS{}))
		c.write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
		if r := c.read(); r.status != 200 {
			t.Fatalf("unexpected answer %d", r.status)
		}
		c.write(head)
		if r := c.read(); r.status != 400 || !r.close {
			t.Errorf("%q: unexpected answer %d %s", head, r.status, r.body)
		}
		c.closed()
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("%d requests reached the engine", len(got))
	}
}

// With a client CA no client gets in without a certificate that it has signed.
func TestTLSClientCertificate(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	_, files := a.issue("data")
	files.ClientCA = filepath.Join(a.dir, "ca.pem")
	s := startStand(t, func(c *configs.Config) { c.Server.TLS = files })
	get := func(c *tls.Config) error {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + s.addr + "/health")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	_, mine := a.issue("client")
	_, foreign := other.issue("client")
	if err := get(a.client(mine)); err != nil {
		t.Errorf("unexpected error %v", err)
	}
	if err := get(a.client(configs.ServerTLS{})); err == nil {
		t.Error("a client without a certificate got in")
	}
	// Whoever has another authority's does not offer it, unless made to.
	c := a.client(configs.ServerTLS{})
	pair, err := tls.LoadX509KeyPair(foreign.Cert, foreign.Key)
	if err != nil {
		t.Fatal(err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	if err := get(c); err == nil {
		t.Error("a client with a foreign certificate got in")
	}
}

// A reload takes the files as they are; where they are no pair, the last good one
// stays, and the operator is told.
func TestTLSReload(t *testing.T) {
	a := newAuthority(t)
	first, files := a.issue("data")
	s := startStand(t, func(c *configs.Config) { c.Server.TLS = files })
	serial := func() *big.Int {
		t.Helper()
		_, tc := dialTLS(t, s.addr, a.client(configs.ServerTLS{}))
		return tc.ConnectionState().PeerCertificates[0].SerialNumber
	}
	open, _ := dialTLS(t, s.addr, a.client(configs.ServerTLS{}))
	if got := serial(); got.Cmp(first) != 0 {
		t.Fatalf("unexpected certificate %v", got)
	}
	cfg := s.router.snap.Load().cfg
	second, _ := a.issue("data")
	if restart, err := s.router.Reload(cfg); err != nil || len(restart) != 0 {
		t.Fatalf("unexpected end of a reload: %v %v", restart, err)
	}
	if got := serial(); got.Cmp(second) != 0 {
		t.Errorf("unexpected certificate %v after a reload; want %v", got, second)
	}
	if err := os.WriteFile(files.Key, []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.router.Reload(cfg); err == nil || !strings.Contains(err.Error(), "TLS of the data listener: cert: file") {
		t.Errorf("unexpected error %v", err)
	}
	if got := serial(); got.Cmp(second) != 0 {
		t.Errorf("unexpected certificate %v after a faulty reload; want %v", got, second)
	}
	for metric, want := range map[string]string{
		`sluice_tls_reloads_total{listener="data",result="success"}`:  "1",
		`sluice_tls_reloads_total{listener="data",result="failure"}`:  "1",
		`sluice_tls_reloads_total{listener="admin",result="success"}`: "0",
		`sluice_config_last_reload_successful`:                        "0",
	} {
		if got := s.metric(metric); got != want {
			t.Errorf("unexpected %s %q; want %s", metric, got, want)
		}
	}
	if r := open.write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n").read(); r.status != 200 {
		t.Errorf("a connection that was open: unexpected answer %d", r.status)
	}
	off := *cfg
	off.Server.TLS = configs.ServerTLS{}
	if restart, err := s.router.Reload(&off); err != nil || len(restart) != 1 || restart[0] != "server.tls" {
		t.Errorf("unexpected end of a reload that turns TLS off: %v %v", restart, err)
	}
	if got := serial(); got.Cmp(second) != 0 {
		t.Errorf("unexpected certificate %v; want %v until a restart", got, second)
	}
}

// A connection that has only shaken hands does not hold up the end, nor does one
// that has not.
func TestTLSShutdown(t *testing.T) {
	a := newAuthority(t)
	_, files := a.issue("data")
	s := startStand(t, func(c *configs.Config) { c.Server.TLS = files })
	silent, _ := dialTLS(t, s.addr, a.client(configs.ServerTLS{}))
	raw := s.dial()
	if err := s.router.Shutdown(t.Context()); err != nil {
		t.Errorf("cannot shut down: %v", err)
	}
	silent.closed()
	raw.closed()
}

// The admin listener under TLS lets in who has the token or a certificate.
func TestTLSAdmin(t *testing.T) {
	a := newAuthority(t)
	_, files := a.issue("admin")
	_, mine := a.issue("operator")
	files.ClientCA = filepath.Join(a.dir, "ca.pem")
	const token = "0123456789abcdef"
	s := startStand(t, func(c *configs.Config) { c.Server.Admin = configs.Admin{Token: token, TLS: files} })
	get := func(path string, c *tls.Config, token string) int {
		t.Helper()
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		req, err := http.NewRequest("GET", "https://"+s.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		path   string
		files  configs.ServerTLS
		token  string
		status int
	}{
		{"/workers", mine, "", 200},
		{"/workers", configs.ServerTLS{}, token, 200},
		{"/workers", configs.ServerTLS{}, "fedcba9876543210", 401},
		{"/", configs.ServerTLS{}, "", 200},
	} {
		if got := get(c.path, a.client(c.files), c.token); got != c.status {
			t.Errorf("%+v: unexpected answer %d", c, got)
		}
	}
}
