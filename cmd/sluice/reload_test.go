package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// fleetOne is a running serve whose files a test changes as an operator does.
type fleetOne struct {
	*running
	t           *testing.T
	dir         string
	data, admin string // addresses
}

// startIn starts serve in dir, where it is to run, with an environment.
func startIn(t *testing.T, dir string, env []string, args ...string) *fleetOne {
	t.Helper()
	r := &running{code: make(chan int, 1), hup: make(chan os.Signal, 1)}
	p := &process{args: args, env: env, stdout: io.Discard, stderr: &r.stderr, hup: r.hup}
	p.stop, r.stop = context.WithCancel(context.Background())
	p.now, r.now = context.WithCancel(context.Background())
	go func() { r.code <- run(p) }()
	data, admin := r.serving(t)
	f := &fleetOne{running: r, t: t, dir: dir, data: data, admin: admin}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		r.stop()
		if code := r.exit(t); code != exitOK {
			t.Errorf("unexpected exit code %d: %s", code, r.stderr.String())
		}
		r.now()
	})
	return f
}

func (f *fleetOne) write(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// do is for what must succeed.
func (f *fleetOne) do(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// hashView is the answer to GET /config/hash.
type hashView struct {
	Hash      string
	LastError string `json:"last_error"`
}

func (f *fleetOne) hash() (v hashView) {
	f.t.Helper()
	resp, err := http.Get("http://" + f.admin + "/config/hash")
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *fleetOne) metric(name string) string {
	f.t.Helper()
	resp, err := http.Get("http://" + f.admin + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	f.t.Fatalf("there is no metric %s", name)
	return ""
}

const (
	goodReloads = `sluice_config_reloads_total{result="success"}`
	badReloads  = `sluice_config_reloads_total{result="failure"}`
	lastGood    = "sluice_config_last_reload_successful"
	lastGoodAt  = "sluice_config_last_reload_success_timestamp_seconds"
)

// becomes waits until a metric has a value.
func (f *fleetOne) becomes(what, name, value string) {
	f.t.Helper()
	for end := time.Now().Add(30 * time.Second); f.metric(name) != value; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("after %s: %s is %s; want %s: %s", what, name, f.metric(name), value, f.stderr.String())
		}
	}
}

// serves waits until the configuration that serves is the one of opts.
func (f *fleetOne) serves(what string, opts configs.Options) {
	f.t.Helper()
	opts.Flags = append(opts.Flags,
		configs.Override{Flag: "--listen", Path: "server.listen", Value: "127.0.0.1:0"},
		configs.Override{Flag: "--admin-listen", Path: "server.admin_listen", Value: "127.0.0.1:0"})
	cfg, err := configs.Load(opts)
	if err != nil {
		f.t.Fatal(err)
	}
	want := cfg.Hash()
	for end := time.Now().Add(30 * time.Second); f.hash().Hash != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("after %s: %+v serves; want %s: %s", what, f.hash(), want, f.stderr.String())
		}
	}
}

func (f *fleetOne) logged(text string) {
	f.t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(f.stderr.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("the log lacks %q: %s", text, f.stderr.String())
		}
	}
}

// onePool is a configuration that needs no simulated engines.
const onePool = "pools: [{name: p, models: [m], health: {interval: 0s}, workers: [{url: 'http://127.0.0.1:1'}]}]\n"

func withDrain(seconds int) string { return fmt.Sprintf("%sserver: {drain: %ds}\n", onePool, seconds) }

func withListen(addr string) string {
	return fmt.Sprintf("%sserver: {listen: '%s', admin_listen: '127.0.0.1:0'}\n", onePool, addr)
}

// B83: the old configuration serves on while a faulty one is there, in answer,
// log and metrics, and the next good one is picked up; however the file changes.
func TestB83_Reload(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "c.yaml")
	opts := configs.Options{Files: []string{name}}
	if err := os.WriteFile(name, []byte(withDrain(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := startIn(t, dir, nil, append(anyPort, "--config", name)...)
	f.serves("the start", opts)
	at := f.metric(lastGoodAt)

	f.write("c.yaml", withDrain(2))
	f.serves("a write in place", opts)
	f.write("new.yaml", withDrain(3))
	f.do(os.Rename(filepath.Join(dir, "new.yaml"), name))
	f.serves("a rename", opts)
	if f.metric(lastGoodAt) == at {
		t.Error("the time of the last good reload stands still")
	}

	before := f.hash()
	f.write("c.yaml", withDrain(4)[:len(withDrain(4))-6]) // half of it
	f.becomes("half a file", lastGood, "0")
	if v := f.hash(); v.Hash != before.Hash || !strings.Contains(v.LastError, "c.yaml") {
		t.Errorf("unexpected state after half a file: %+v", v)
	}
	f.logged("the new configuration is faulty; the old one serves on")
	at = f.metric(lastGoodAt)
	f.do(os.Remove(name))
	f.becomes("a removal", badReloads, "2")
	f.write("c.yaml", "")
	f.becomes("an empty file", badReloads, "3")
	if got := f.metric(lastGoodAt); got != at {
		t.Errorf("a faulty configuration changed the time of the last good one from %s to %s", at, got)
	}
	f.write("c.yaml", withDrain(4))
	f.serves("the whole file", opts)
	f.becomes("the whole file", lastGood, "1")
	if v := f.hash(); v.LastError != "" {
		t.Errorf("unexpected error after the whole file: %s", v.LastError)
	}
}

// Both ways to ask for a reload are answered, in the log and in the answer.
func TestB83_ReloadOnDemand(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(name, []byte(withListen("127.0.0.1:0")), 0o600); err != nil {
		t.Fatal(err)
	}
	f := startIn(t, dir, nil, "serve", "--config", name)
	post := func() (int, string) {
		t.Helper()
		resp, err := http.Post("http://"+f.admin+"/-/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if status, body := post(); status != 200 || !strings.Contains(body, f.hash().Hash) {
		t.Errorf("unexpected answer %d %s", status, body)
	}
	f.hup <- syscall.SIGHUP
	f.logged(`"why":"SIGHUP"`)
	f.write("c.yaml", "server: {drain: 1}\n")
	if status, body := post(); status != 422 || !strings.Contains(body, "c.yaml:1:") || !strings.Contains(body, "server.drain") {
		t.Errorf("unexpected answer %d %s", status, body)
	}
	f.write("c.yaml", withListen("localhost:0"))
	if status, _ := post(); status != 200 {
		t.Errorf("unexpected status %d", status)
	}
	f.logged("some keys have new values that only a restart will take")
	f.logged(`"keys":"server.listen"`)
}

// A ConfigMap's files are symbolic links to links, of which one is swapped.
func TestB83_ReloadConfigMap(t *testing.T) {
	dir := t.TempDir()
	for v, text := range map[string]string{"..v1": withDrain(1), "..v2": withDrain(2)} {
		if err := os.MkdirAll(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, v, "c.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..v1", "..data")
	link("..data/c.yaml", "c.yaml")
	name := filepath.Join(dir, "c.yaml")
	f := startIn(t, dir, nil, append(anyPort, "--config", name)...)
	link("..v2", "..tmp")
	f.do(os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	f.do(os.RemoveAll(filepath.Join(dir, "..v1")))
	f.serves("a swap of the link", configs.Options{Files: []string{name}})
	if got := f.metric(badReloads); got != "0" {
		t.Errorf("%s faulty reloads", got)
	}
	// What a link leads to may be written as well.
	f.write("..v2/c.yaml", withDrain(3))
	f.serves("a write behind the link", configs.Options{Files: []string{name}})
}

// Of several files one changes; the environment is that of the start.
func TestB83_ReloadSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	opts := configs.Options{
		Files: []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.json")},
		Env:   []string{"SLUICE_LOG__LEVEL=warn"},
	}
	for i, text := range []string{withDrain(1), `{"server": {"idle_timeout": "3s"}}`} {
		if err := os.WriteFile(opts.Files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := startIn(t, dir, []string{"SLUICE_LOG__LEVEL=info"}, append(anyPort, "--config", opts.Files[0], "--config", opts.Files[1])...)
	opts.Env[0] = "SLUICE_LOG__LEVEL=info"
	f.write("b.json", `{"server": {"idle_timeout": "4s"}}`)
	f.serves("a change of the second file", opts)
	f.write("a.yaml", withDrain(5))
	f.serves("a change of the first file", opts)
	f.logged("server.idle_timeout")
}

// Secrets and certificates are parts of the configuration in files of their own.
// The hash says nothing of them.
func TestB83_ReloadSecretsAndCertificates(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	text := fmt.Sprintf(`pools:
  - name: p
    models: [m]
    health: {interval: 0s}
    workers: [{url: 'https://127.0.0.1:1'}]
    headers: {set: {authorization: {file: '%s'}}}
    tls: {ca: '%s'}
`, path("secret"), path("ca.pem"))
	for name, text := range map[string]string{"c.yaml": text, "secret": "one", "ca.pem": authority(t)} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := startIn(t, dir, nil, append(anyPort, "--config", path("c.yaml"))...)
	f.write("secret", "two")
	f.becomes("a new secret", goodReloads, "1")
	f.write("ca.pem", authority(t))
	f.becomes("a new certificate", goodReloads, "2")
	f.write("ca.pem", "no certificate")
	f.becomes("a broken certificate", badReloads, "1")
	f.write("ca.pem", authority(t))
	f.becomes("a good certificate", goodReloads, "3")
	// A file that is missing at first counts when it comes.
	f.write("c.yaml", strings.Replace(text, path("secret"), path("later"), 1))
	f.becomes("a name of a missing secret", badReloads, "2")
	f.write("later", "three")
	f.becomes("the missing secret", goodReloads, "4")
}

// What is read anew reaches the workers.
func TestB83_NewSecretReachesWorkers(t *testing.T) {
	e := sim.New(sim.Options{})
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret, name := filepath.Join(dir, "secret"), filepath.Join(dir, "c.yaml")
	text := fmt.Sprintf("pools: [{name: p, models: [m], health: {interval: 0s}, workers: [{url: '%s'}], headers: {set: {authorization: {file: '%s'}}}}]\n", url, secret)
	for name, text := range map[string]string{name: text, secret: "Bearer one\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := startIn(t, dir, nil, append(anyPort, "--config", name)...)
	sent := func() string {
		t.Helper()
		resp, err := http.Post("http://"+f.data+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		all := e.Requests()
		if resp.StatusCode != 200 || len(all) == 0 {
			t.Fatalf("unexpected answer %d after %d requests", resp.StatusCode, len(all))
		}
		return all[len(all)-1].Get("authorization")
	}
	if got := sent(); got != "Bearer one" {
		t.Errorf("unexpected secret %q", got)
	}
	f.write("secret", "Bearer two\n")
	f.becomes("a new secret", goodReloads, "1")
	if got := sent(); got != "Bearer two" {
		t.Errorf("unexpected secret %q after the change", got)
	}
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Close(closing); err != nil {
		t.Error(err)
	}
}

// authority returns a new certificate that signs itself, in PEM.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
