package cache

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a Redis or Valkey of the test's own, on a loopback port, with a
// directory of its own and nothing saved.
type server struct {
	t    testing.TB
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
}

// newServer starts a server. Without the program the test is skipped, and fails in
// CI.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), dir: t.TempDir(), args: args}
	t.Cleanup(s.kill)
	s.start()
	return s
}

func serverProgram(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "neither redis-server nor valkey-server is installed (Debian: redis-server)"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// freePort returns a port that nobody listens at, outside of the range from which
// systems take the ports of outgoing connections: the server may go and come back.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20_000 + mrand.IntN(12_000)
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return 0
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// start starts the server and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", filepath.Join(s.dir, "log"),
	}, s.args...)
	s.cmd = exec.Command(serverProgram(s.t), args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("cannot start a server: %v", err)
	}
	eventually(s.t, "a server that listens", func() bool {
		c, err := net.Dial("tcp", s.addr())
		if err == nil {
			err = c.Close()
		}
		return err == nil
	})
}

// kill ends the server at once and waits for it.
func (s *server) kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	// Both fail once it has ended, and a killed process is no success.
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// signal sends sig to the server.
func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// do sends a command over a connection of its own and returns the first line of
// the answer.
func (s *server) do(args ...string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, a := range args {
		b.WriteString("$" + strconv.Itoa(len(a)) + "\r\n" + a + "\r\n")
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Write(b.Bytes()); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 1<<10)
	n, err := c.Read(buf)
	if err != nil {
		s.t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(buf[:n]), "\r\n")
	return line
}

// logs is what was logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) count(text string) int { return strings.Count(l.String(), text) }

// newRedis returns a store on the server at addr and what it logs.
func newRedis(t testing.TB, o RedisOptions) (*Redis, *logs) {
	t.Helper()
	l := new(logs)
	if o.Timeout == 0 {
		o.Timeout = time.Second // not what is measured here, on a busy machine
	}
	r, err := NewRedis(o, new(Stats), slog.New(slog.NewTextHandler(l, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, l
}

// putAndSee puts an entry until it can be got.
func putAndSee(t testing.TB, r *Redis, k *Key, e *Entry) {
	t.Helper()
	eventually(t, "an entry on the server", func() bool {
		r.Put(k, e, time.Hour)
		got := r.Get(k)
		return got != nil && bytes.Equal(got.Encoded(), e.Encoded())
	})
}

// certificate makes a certificate for 127.0.0.1 and returns its files and a
// configuration that trusts it.
func certificate(t testing.TB) (certFile, keyFile string, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
