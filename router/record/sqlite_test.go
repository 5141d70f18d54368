package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A directory that is missing, or something else than a file in the way, is
// waited for.
func TestSQLite_ComesLater(t *testing.T) {
	f := func(name string, spoil func(path string) error, mend func(path string) error) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "x.db")
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Options{Store: SQLite, DSN: path, Required: true}); err == nil {
				t.Fatal("the store is required and cannot be opened, but there is no error")
			}
			var log testLog
			db := &testDB{store: SQLite, dsn: path}
			r := db.open(t, Options{Queue: 4, Flush: 5 * time.Millisecond, Log: log.logger()})
			for range 6 {
				add(r, "a")
			}
			eventually(t, "a warning", func() bool { return log.count("records cannot be written") == 1 })
			checkStats(t, r, Stats{DroppedQueueFull: 2, Queued: 4})
			if err := mend(path); err != nil {
				t.Fatal(err)
			}
			eventually(t, "rows", func() bool { return r.Stats().Written == 4 })
			closeRecorder(t, r)
			if n := len(db.ids(t)); n != 4 {
				t.Errorf("%d rows; want 4", n)
			}
		})
	}
	mkdir := func(path string) error { return os.MkdirAll(filepath.Dir(path), 0o750) }
	f("no directory", func(string) error { return nil }, mkdir)
	f("a directory", func(path string) error { return os.MkdirAll(path, 0o750) }, os.Remove)
	f("not a database", func(path string) error {
		if err := mkdir(path); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600)
	}, os.Remove)
	f("read-only", func(path string) error {
		if err := mkdir(path); err != nil {
			return err
		}
		// Permissions do not stop root. What does not end in a link to a
		// read-only file system does nobody.
		return os.Symlink("/proc/version", path)
	}, os.Remove)
}

// A file that is moved or exchanged under the writer does not swallow rows.
func TestSQLite_FileMoved(t *testing.T) {
	f := func(name string, then func(path string) error) {
		t.Run(name, func(t *testing.T) {
			db := sqliteDB(t)
			r := db.open(t, Options{Flush: 5 * time.Millisecond, Required: true})
			add(r, "a")
			eventually(t, "a row", func() bool { return r.Stats().Written == 1 })
			moved := db.dsn + ".old"
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Rename(db.dsn+suffix, moved+suffix); err != nil {
					t.Fatal(err)
				}
			}
			if err := then(db.dsn); err != nil {
				t.Fatal(err)
			}
			add(r, "b")
			eventually(t, "a row in a new file", func() bool { return r.Stats().Written == 2 })
			closeRecorder(t, r)
			if ids := db.ids(t); !slices.Equal(ids, []string{"b"}) {
				t.Errorf("unexpected rows %v", ids)
			}
			old := &testDB{store: SQLite, dsn: moved}
			if ids := old.ids(t); !slices.Equal(ids, []string{"a"}) {
				t.Errorf("unexpected rows of the old file %v", ids)
			}
		})
	}
	f("moved", func(string) error { return nil })
	f("exchanged", func(path string) error { return os.WriteFile(path, nil, 0o600) })
}

// Only the user and the group of the router may read what it records.
func TestSQLite_Mode(t *testing.T) {
	db := sqliteDB(t)
	r := db.open(t, Options{Flush: 5 * time.Millisecond, Required: true})
	defer closeRecorder(t, r)
	add(r, "a")
	eventually(t, "a row", func() bool { return r.Stats().Written == 1 })
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(db.dsn + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode())
		}
	}
}
