package configs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority signs certificates for one test. All is in PEM.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue returns a certificate, of a server at ips, and its key.
func (a *authority) issue(t *testing.T, ips ...net.IP) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: ips}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, k.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func TestTLSClientConfig(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t)
	inDir(t, "ca.pem", ca.pem+ca.pem, "cert.pem", cert, "key.pem", key)
	if c, err := (&TLS{}).ClientConfig(); c != nil || err != nil {
		t.Errorf("unexpected config of nothing: %v, %v", c, err)
	}
	c, err := (&TLS{CA: "ca.pem", ServerName: "engine", Cert: "cert.pem", Key: "key.pem"}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if c.RootCAs == nil || c.ServerName != "engine" || len(c.Certificates) != 1 || c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify {
		t.Errorf("unexpected config %+v", c)
	}
}

func TestValidateTLS(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t)
	_, other := ca.issue(t)
	inDir(t, "ca.pem", ca.pem, "cert.pem", cert, "key.pem", key, "other.pem", other, "junk", "junk")
	f := validateFaults(t)
	with := func(s TLS, want ...string) {
		t.Helper()
		f(func(c *Config) { c.Pools[0].Workers, c.Pools[0].TLS = []Worker{{URL: "https://h:1"}}, s }, want...)
	}
	with(TLS{CA: "ca.pem", ServerName: "engine-1.test", Cert: "cert.pem", Key: "key.pem"})
	with(TLS{ServerName: "10.0.0.1"})
	with(TLS{ServerName: "::1"})
	f(func(c *Config) { c.Pools[0].TLS.ServerName = "x" }, "pools[0].tls: has no effect: no worker of the pool is https://")
	f(func(c *Config) {
		c.Pools[0].Workers, c.Pools[0].Protocol = []Worker{{URL: "http://h:1"}, {URL: "https://h:2"}}, "h2c"
	},
		"pools[0].protocol: must be auto or http1 where a worker is https://: h2c is without TLS")
	with(TLS{ServerName: "a:1"}, `pools[0].tls.server_name: must be a host name or an IP address, got "a:1"`)
	with(TLS{ServerName: "a..b"}, `pools[0].tls.server_name: must be a host name or an IP address, got "a..b"`)
	with(TLS{CA: "missing"}, `pools[0].tls.ca: file "missing" cannot be read: no such file or directory`)
	with(TLS{CA: "."}, `pools[0].tls.ca: file "." is not a regular file`)
	with(TLS{CA: "junk"}, `pools[0].tls.ca: file "junk" holds no certificate in PEM`)
	with(TLS{Cert: "cert.pem"}, "pools[0].tls.key: must be set beside cert")
	with(TLS{Key: "key.pem"}, "pools[0].tls.cert: must be set beside key")
	with(TLS{Cert: "missing", Key: "key.pem"}, `pools[0].tls.cert: file "missing" cannot be read: no such file or directory`)
	with(TLS{Cert: "cert.pem", Key: "missing"}, `pools[0].tls.key: file "missing" cannot be read: no such file or directory`)
	with(TLS{Cert: "cert.pem", Key: "other.pem"},
		`pools[0].tls.cert: file "cert.pem" and the file of key are no pair: tls: private key does not match public key`)
}

// There is no way to leave a worker's certificate unchecked.
func TestTLSIsAlwaysChecked(t *testing.T) {
	inDir(t, "a.yaml", onePool+"    tls: {insecure_skip_verify: true}\n")
	_, err := Load(Options{Files: []string{"a.yaml"}})
	want := "a.yaml:6:11: pools[0].tls.insecure_skip_verify: unknown key; expected one of ca, server_name, cert, key"
	if err == nil || err.Error() != want {
		t.Errorf("unexpected fault\n got %v\nwant %s", err, want)
	}
}
