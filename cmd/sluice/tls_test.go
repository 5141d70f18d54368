package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writePair writes a certificate with the serial number, and its key, to
// cert.pem and key.pem in dir.
func writePair(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Certificates are read anew when their files change; a pair that does not fit
// changes nothing.
func TestServeNewCertificate(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, 1)
	r := start(t, "serve", "--set", "server.listen=127.0.0.1:0", "--set", "server.admin_listen=127.0.0.1:0",
		"--set", "server.tls.cert="+filepath.Join(dir, "cert.pem"), "--set", "server.tls.key="+filepath.Join(dir, "key.pem"))
	listen, _ := r.serving(t)
	served := func(want int64) bool {
		c, err := tls.Dial("tcp", listen, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64() == want
	}
	if !served(1) {
		t.Fatal("another certificate is served")
	}
	writePair(t, dir, 2)
	for end := time.Now().Add(20 * time.Second); !served(2); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the new certificate is not served: %s", r.stderr.String())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.logged(t, "the new configuration is faulty; the old one serves on")
	if !served(2) {
		t.Error("the last good certificate is not kept")
	}
	r.stop()
	if code := r.exit(t); code != exitOK {
		t.Errorf("unexpected exit code %d", code)
	}
}
