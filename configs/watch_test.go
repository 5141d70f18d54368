package configs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each way in which a file is replaced is one change, however it was done.
func TestB83_Watch(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write("plain.yaml", "1")
	// As Kubernetes mounts a ConfigMap.
	write("map/..v1/c.yaml", "1")
	do(os.Symlink("..v1", "map/..data"))
	do(os.Symlink("..data/c.yaml", "map/c.yaml"))

	changes := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := Options{Files: []string{"plain.yaml", "map/c.yaml"}, Sources: new(Sources)}
	load := func() { _, _ = Load(o) } // which notes what is there, good or not
	load()
	done := make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, o, func() { load(); changes <- struct{}{} }, func(err error) { t.Error(err) })
	}()
	defer func() { cancel(); <-done }()
	changed := func(what string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(9 * time.Second): // before the poll
			t.Fatalf("no change is told of after %s", what)
		}
	}
	time.Sleep(2 * watchSettle) // the directories are watched by now
	write("plain.yaml", "2")
	changed("a write in place")
	write("new.yaml", "3")
	do(os.Rename("new.yaml", "plain.yaml"))
	changed("a rename")
	do(os.Remove("plain.yaml"))
	changed("a removal")
	write("plain.yaml", "4")
	changed("its return")
	write("map/..v2/c.yaml", "2")
	do(os.Symlink("..v2", "map/..tmp"))
	do(os.Rename("map/..tmp", "map/..data"))
	changed("a swap of the symbolic link")
	write("other.yaml", "5")
	write("plain.yaml", "4")
	time.Sleep(3 * watchSettle)
	select {
	case <-changes:
		t.Error("a change is told of where nothing has changed")
	default:
	}
}
