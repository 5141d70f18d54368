package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// health runs the verb and returns its exit code and what it printed.
func health(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(&process{
		args: append([]string{"health"}, args...), env: env,
		stdout: &out, stderr: &errs, stop: context.Background(),
	})
	return code, out.String(), errs.String()
}

func TestHealth(t *testing.T) {
	r := start(t, anyPort...)
	listen, _ := r.serving(t)
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--listen", listen}, {"--listen", ":" + port}, {"--listen", "0.0.0.0:" + port, "--ready"}} {
		if code, out, errs := health(t, nil, args...); code != exitOK || out != "ok\n" || errs != "" {
			t.Errorf("unexpected end of health %q: %d %q %q", args, code, out, errs)
		}
	}
	if code, _, errs := health(t, []string{"SLUICE_SERVER__LISTEN=:" + port}); code != exitOK {
		t.Errorf("the address of the environment is not used: %d %q", code, errs)
	}
	if code, _, errs := health(t, nil, "--listen", listen, "--tls"); code != exitFailed || errs == "" {
		t.Errorf("unexpected end where the router speaks no TLS: %d %q", code, errs)
	}
	r.stop()
	r.exit(t)
	if code, out, errs := health(t, nil, "--listen", listen); code != exitFailed || out != "" || !strings.Contains(errs, "refused") {
		t.Errorf("unexpected end without a router: %d %q %q", code, out, errs)
	}
}

// A router none of whose workers is usable is alive, and not ready.
func TestHealth_NotReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := start(t, append(anyPort, "--set", `pools=[{"name":"a","workers":[{"url":"http://`+nobody+`"}],`+
		`"health":{"interval":"10ms","unhealthy_after":1}}]`)...)
	listen, _ := r.serving(t)
	code, errs := exitOK, ""
	for end := time.Now().Add(10 * time.Second); code == exitOK && time.Now().Before(end); {
		code, _, errs = health(t, nil, "--listen", listen, "--ready")
	}
	if code != exitFailed || !strings.Contains(errs, "503 ") {
		t.Errorf("a router without workers is ready: %d %q", code, errs)
	}
	if code, _, errs := health(t, nil, "--listen", listen); code != exitOK {
		t.Errorf("a router without workers is not alive: %d %q", code, errs)
	}
}

// Where clients need a certificate, health shows one.
func TestHealth_TLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeNamed(t, cert, key, "sluice.test")
	r := start(t, append(anyPort, "--set", "server.tls.cert="+cert, "--set", "server.tls.key="+key, "--set", "server.tls.client_ca="+cert)...)
	listen, _ := r.serving(t)
	f := func(code int, args ...string) {
		t.Helper()
		if got, _, errs := health(t, nil, append([]string{"--listen", listen}, args...)...); got != code {
			t.Errorf("unexpected exit code of health %q: %d %q; want %d", args, got, errs, code)
		}
	}
	f(exitOK, "--ca", cert, "--server-name", "sluice.test", "--cert", cert, "--key", key)
	f(exitFailed, "--ca", cert, "--server-name", "sluice.test")
	f(exitFailed, "--ca", cert, "--server-name", "other.test", "--cert", cert, "--key", key)
	f(exitFailed, "--tls", "--cert", cert, "--key", key)
	f(exitFailed, "--ca", filepath.Join(dir, "none.pem"))
	f(exitFailed)
}

// writeNamed writes a certificate for the name that has signed itself.
func writeNamed(t *testing.T, cert, key, name string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHealth_Usage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if code, _, errs := health(t, nil, args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("unexpected end of health %q: %d %q; want %q", args, code, errs, want)
		}
	}
	f("not defined", "--path", "/x")
	f(`unexpected argument "now"`, "now")
	f(`the address must be host:port, got "30000"`, "--listen", "30000")
}

func TestLoopbackOf(t *testing.T) {
	f := func(listen, want string) {
		t.Helper()
		if got, err := loopbackOf(listen); err != nil || got != want {
			t.Errorf("unexpected address for %q; got %q, %v; want %q", listen, got, err, want)
		}
	}
	f(":30000", "127.0.0.1:30000")
	f("0.0.0.0:1", "127.0.0.1:1")
	f("[::]:1", "[::1]:1")
	f("10.0.0.1:1", "10.0.0.1:1")
	f("router.example:1", "router.example:1")
}
