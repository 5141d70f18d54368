package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"sluice/configs"
)

// etcd is a real server.
type etcd struct {
	addr   string
	stop   func()
	client *clientv3.Client
}

// startEtcd starts a server that answers. It skips the test where there is none.
func startEtcd(t *testing.T) *etcd {
	t.Helper()
	bin, err := exec.LookPath("etcd")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("skipped: there is no etcd (Debian: etcd-server)")
	} else if err != nil {
		t.Fatal(err)
	}
	addr, peer := freeAddr(t), freeAddr(t)
	cmd := exec.Command(bin, "--name", "t", "--data-dir", filepath.Join(t.TempDir(), "data"), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+addr, "--advertise-client-urls", "http://"+addr,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "t=http://"+peer)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &etcd{addr: addr, stop: func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // which says that it was killed
	}}
	t.Cleanup(e.stop)
	if e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.client.Close() })
	for end := time.Now().Add(60 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := e.client.Get(ctx, "ready")
		cancel()
		if err == nil {
			return e
		}
		if time.Now().After(end) {
			t.Fatalf("etcd does not answer: %v", err)
		}
	}
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

func (e *etcd) put(t *testing.T, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := e.client.Put(ctx, key, value); err != nil {
		t.Fatal(err)
	}
}

// One write to etcd and the whole fleet has reloaded; a faulty one is refused by
// each; without etcd all go on, and start again from their copies.
func TestFleet(t *testing.T) {
	e := startEtcd(t)
	opts := configs.Options{Files: []string{"etcd://" + e.addr + "/fleet/c.yaml"}}
	e.put(t, "fleet/c.yaml", withDrain(1))
	fleet := make([]*fleetOne, 3)
	caches := make([]string, len(fleet))
	router := func(i int) *fleetOne {
		return startIn(t, "", nil, append(anyPort, "--config", opts.Files[0], "--config-cache", caches[i])...)
	}
	for i := range fleet {
		caches[i] = t.TempDir()
		fleet[i] = router(i)
	}
	for round := 2; round < 5; round++ {
		begin := time.Now()
		e.put(t, "fleet/c.yaml", withDrain(round))
		for _, f := range fleet {
			f.serves("a write", opts)
		}
		t.Logf("all %d routers have the new configuration %v after the write", len(fleet), time.Since(begin).Round(time.Millisecond))
	}
	before := fleet[0].hash().Hash
	e.put(t, "fleet/c.yaml", "pools: {}\n")
	for _, f := range fleet {
		f.becomes("a faulty write", badReloads, "1")
		f.logged("etcd://" + e.addr + "/fleet/c.yaml:1:8: pools: must be a list")
		if v := f.hash(); v.Hash != before || v.LastError == "" {
			t.Errorf("unexpected state after a faulty write: %+v", v)
		}
	}
	e.stop()
	for i, f := range fleet {
		f.logged("cannot watch the configuration")
		if got := f.hash().Hash; got != before {
			t.Errorf("%s serves without etcd; want %s", got, before)
		}
		if i > 0 {
			continue
		}
		again := router(i)
		again.logged("the configuration is a copy")
		if got := again.hash().Hash; got != before {
			t.Errorf("%s serves after a start without etcd; want %s", got, before)
		}
	}
}
