package configs

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdServer is a real server with a directory and ports of its own.
type etcdServer struct {
	t         *testing.T
	dir, peer string
	flags     []string
	addr      string // host:port for clients
	cmd       *exec.Cmd
	client    *clientv3.Client
}

// startEtcd starts a server. It skips the test where there is none to start.
func startEtcd(t *testing.T) *etcdServer {
	t.Helper()
	s := &etcdServer{t: t, dir: t.TempDir(), addr: freeAddr(t), peer: freeAddr(t)}
	s.start()
	t.Cleanup(s.stop)
	s.connect()
	return s
}

// connect waits until the server answers.
func (s *etcdServer) connect() *clientv3.Client {
	s.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	s.client = c
	s.ready()
	return c
}

// freeAddr returns an address that nobody listened at just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (s *etcdServer) start() {
	s.t.Helper()
	bin, err := exec.LookPath("etcd")
	if err != nil && os.Getenv("CI") == "" {
		s.t.Skip("skipped: there is no etcd (Debian: etcd-server)")
	} else if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(bin, append([]string{
		"--name", "t", "--data-dir", filepath.Join(s.dir, "data"), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", "http://" + s.addr, "--advertise-client-urls", "http://" + s.addr,
		"--listen-peer-urls", "http://" + s.peer, "--initial-advertise-peer-urls", "http://" + s.peer,
		"--initial-cluster", "t=http://" + s.peer,
	}, s.flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, io.Discard
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *etcdServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // which says that it was killed
}

// ready waits until the server answers.
func (s *etcdServer) ready() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		_, err := s.client.Get(ask, "ready")
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("etcd does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *etcdServer) put(key, value string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := s.client.Put(ctx, key, value); err != nil {
		s.t.Fatal(err)
	}
}

// A key in etcd is a file like any other: merged in order, strict, with places.
func TestEtcdLoad(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	base, over := "etcd://"+s.addr+"/sluice/base", "etcd://127.0.0.1:1,"+s.addr+"//sluice/over.json"
	s.put("sluice/base", onePool+"log: {level: warn}\n")
	s.put("/sluice/over.json", `{"server": {"drain": "7s"}}`)
	c := mustLoad(t, Options{Files: []string{base, over}})
	if c.Server.Drain != 7*time.Second || c.Log.Level != "warn" || len(c.Pools) != 1 {
		t.Errorf("unexpected configuration %+v", c)
	}
	if got, want := c.Origin("server.drain").String(), over+":1:22"; got != want {
		t.Errorf("unexpected origin; got %s; want %s", got, want)
	}
	f := func(want string, files ...string) {
		t.Helper()
		if _, err := Load(Options{Files: files}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: unexpected error; got %v; want %s", files, err, want)
		}
	}
	s.put("bad.toml", "[server]\nlisten = \"\"\nlisen = \"x\"\n")
	f("etcd://"+s.addr+"/bad.toml:3:1: server.lisen: unknown key; did you mean listen?", base, "etcd://"+s.addr+"/bad.toml")
	f(`etcd://`+s.addr+`/none: there is no key "none" (one that begins with a slash`, base, "etcd://"+s.addr+"/none")
	s.put("bad.ini", "x")
	f("cannot tell the format", "etcd://"+s.addr+"/bad.ini")
	s.put("big", "# "+strings.Repeat("x", maxSourceBytes))
	f("is larger than 1MiB", "etcd://"+s.addr+"/big")
}

func TestEtcdNames(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if _, err := Load(Options{Files: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: unexpected error; got %v; want %s", name, err, want)
		}
		if _, err := Load(Options{Files: []string{name}}); err != nil && strings.Contains(err.Error(), "s3cr3t: ") {
			t.Errorf("%s: the error shows a password: %v", name, err)
		}
	}
	f("etcd://127.0.0.1:2379", "must name a key")
	f("etcd://127.0.0.1:2379/", "must name a key")
	f("etcd://127.0.0.1/key", "as host:port")
	f("etcd://127.0.0.1:2379,/key", "as host:port")
	f("etcd:///key", "as host:port")
	f("etcds://u:p@127.0.0.1:2379/key", "must not hold a user or password")
	_, err := Load(Options{Files: []string{"etcd://127.0.0.1:1/key"}, Etcd: Etcd{UserFile: "user"}})
	if err == nil || !strings.Contains(err.Error(), "use etcds://") {
		t.Errorf("unexpected error of a password without TLS: %v", err)
	}
	inDir(t, "user", "s3cr3t\n")
	_, err = Load(Options{Files: []string{"etcds://127.0.0.1:1/key"}, Etcd: Etcd{UserFile: "user"}})
	if err == nil || !strings.Contains(err.Error(), "must hold user:password") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("unexpected error of a user without a password: %v", err)
	}
}

// Where etcd is down, what it gave last is there for a start, and for that alone.
func TestEtcdCopies(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	o := Options{Files: []string{"etcd://" + s.addr + "/c.yaml"}, Etcd: Etcd{Copies: filepath.Join(t.TempDir(), "a", "b")}}
	s.put("c.yaml", onePool)
	good := mustLoad(t, o)
	if err := good.KeepCopies(); err != nil {
		t.Fatal(err)
	}
	s.put("c.yaml", "pools: 1\n")
	if _, err := Load(o); err == nil {
		t.Fatal("a faulty value is taken")
	}
	s.stop()
	o.Etcd.Timeout = 100 * time.Millisecond
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("unexpected error without etcd: %v", err)
	}
	start := o
	start.Etcd.LastGood = true
	c := mustLoad(t, start)
	if c.Hash() != good.Hash() {
		t.Error("the copy is not the last good configuration")
	}
	if stale := c.Stale(); len(stale) != 1 || !strings.Contains(stale[0].Error(), "its last good copy") {
		t.Errorf("unexpected word of the copy: %v", stale)
	}
	if err := c.KeepCopies(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(o.Etcd.Copies)
	if err != nil || len(entries) != 1 {
		t.Fatalf("unexpected copies %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("unexpected mode of the copy: %v, %v", info.Mode(), err)
	}
	start.Etcd.Copies = t.TempDir()
	if _, err := Load(start); err == nil || !strings.Contains(err.Error(), "the copy") {
		t.Errorf("unexpected error without etcd and copy: %v", err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Config{copies: []etcdCopy{{file: filepath.Join(blocked, "c"), data: []byte("x")}}}).KeepCopies(); err == nil {
		t.Error("a copy is kept in a file that is no directory")
	}
}

// A write is told at once; so are a removal and a return of the key, and what was
// written while etcd was away from us.
func TestEtcdWatch(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	s.put("c.yaml", onePool)
	o := Options{Files: []string{"etcd://" + s.addr + "/c.yaml"}, Etcd: Etcd{Timeout: 300 * time.Millisecond}, Sources: new(Sources)}
	mustLoad(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	changes, troubles := make(chan error, 100), make(chan error, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, o, func() { _, err := Load(o); changes <- err }, func(err error) { troubles <- err })
	}()
	defer func() { cancel(); <-done }()
	next := func(what string, from chan error) error {
		t.Helper()
		select {
		case err := <-from:
			return err
		case <-time.After(60 * time.Second):
			t.Fatalf("nothing is told of after %s", what)
			return nil
		}
	}
	s.put("c.yaml", onePool+"log: {level: warn}\n")
	if err := next("a write", changes); err != nil {
		t.Errorf("unexpected error after a write: %v", err)
	}
	if _, err := s.client.Delete(context.Background(), "c.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := next("a removal", changes); err == nil || !strings.Contains(err.Error(), errNoKey.Error()) {
		t.Errorf("unexpected error after a removal: %v", err)
	}
	s.put("c.yaml", onePool)
	if err := next("a return", changes); err != nil {
		t.Errorf("unexpected error after a return: %v", err)
	}
	s.stop()
	if err := next("an end of etcd", troubles); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("unexpected trouble: %v", err)
	}
	s.start()
	s.ready()
	s.put("c.yaml", onePool+"log: {level: error}\n")
	if err := next("etcd is back", changes); err != nil {
		t.Errorf("unexpected error after etcd is back: %v", err)
	}
}

// etcds:// is TLS with certificates checked on both sides.
func TestEtcdTLS(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, net.IPv4(127, 0, 0, 1))
	inDir(t, "ca.pem", ca.pem, "cert.pem", cert, "key.pem", key, "user", "root:s3cr3t:x\n")
	s := &etcdServer{t: t, dir: t.TempDir(), addr: freeAddr(t), peer: freeAddr(t)}
	secure := freeAddr(t)
	s.flags = []string{
		"--listen-client-urls", "http://" + s.addr + ",https://" + secure, "--cert-file", "cert.pem", "--key-file", "key.pem",
		"--trusted-ca-file", "ca.pem", "--client-cert-auth",
	}
	s.start()
	t.Cleanup(s.stop)
	c := s.connect()
	s.put("c.yaml", onePool)
	o := Options{Files: []string{"etcds://" + secure + "/c.yaml"}, Etcd: Etcd{TLS: TLS{CA: "ca.pem", Cert: "cert.pem", Key: "key.pem"}}}
	mustLoad(t, o)
	ctx := context.Background()
	_, addErr := c.UserAdd(ctx, "root", "s3cr3t:x")
	_, grantErr := c.UserGrantRole(ctx, "root", "root")
	_, authErr := c.AuthEnable(ctx)
	if err := errors.Join(addErr, grantErr, authErr); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil {
		t.Error("the key is read without a user")
	}
	o.Etcd.UserFile = "user"
	mustLoad(t, o)
	o.Etcd.TLS.CA = ""
	if _, err := Load(o); err == nil {
		t.Error("a server is trusted that nobody vouches for")
	}
}
