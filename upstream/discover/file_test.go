package discover

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lazy is told of changes, or waits for the end of the test.
func lazy(path string) Source {
	return Source{File: path, MinInterval: time.Hour, MaxInterval: time.Hour}
}

func TestFile_WrittenRenamedRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workers")
	reports := watch(t, lazy(path))
	wantError(t, reports, "no such file")
	write(t, path, "http://a:1\n")
	wantMembers(t, reports, "http://a:1")
	write(t, path, "http://b:1 weight=3\nhttp://a:1\n")
	wantMembers(t, reports, "http://a:1", "http://b:1 weight=3")
	write(t, path+".new", "http://c:1\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	wantMembers(t, reports, "http://c:1")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantError(t, reports, "no such file")
	write(t, path, "http://c:1\n")
	wantMembers(t, reports, "http://c:1") // the trouble is over
}

// An empty or faulty list is told once and changes nothing.
func TestFile_FaultKeepsTheLastList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workers")
	write(t, path, "http://a:1\n")
	reports := watch(t, lazy(path))
	wantMembers(t, reports, "http://a:1")
	for _, v := range [][2]string{
		{"", "the list names no workers"},
		{"# none\n\n", "(not told)"},
		{"http://b:1\nnonsense ", "line 2: a worker's url must be"},
		{"- url: http://b:1\n", ""},
	} {
		want := v[1]
		write(t, path+".new", v[0])
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		switch want {
		case "(not told)":
		case "":
			wantMembers(t, reports, "http://b:1")
		default:
			wantError(t, reports, "file "+path+": "+want)
		}
	}
}

// Kubernetes puts a ConfigMap in place by renaming a link to a directory of it.
func TestFile_ConfigMap(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "workers")
	version := func(name, content string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "workers"), content)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", "http://a:1\n")
	if err := os.Symlink(filepath.Join("..data", "workers"), path); err != nil {
		t.Fatal(err)
	}
	reports := watch(t, lazy(path))
	wantMembers(t, reports, "http://a:1")
	version("..2", "http://b:1\n")
	wantMembers(t, reports, "http://b:1")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	version("..3", "http://c:1\n")
	wantMembers(t, reports, "http://c:1")
}

// What nobody tells of is found by looking: the file lies elsewhere.
func TestFile_LooksFromTimeToTime(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "real")
	path := filepath.Join(t.TempDir(), "workers")
	write(t, elsewhere, "http://a:1\n")
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	reports := watch(t, quick(Source{File: path}))
	wantMembers(t, reports, "http://a:1")
	write(t, elsewhere, "http://b:1\n")
	wantMembers(t, reports, "http://b:1")
}

// The directory may be missing, or go and come back.
func TestFile_DirectoryComesAndGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	path := filepath.Join(dir, "workers")
	reports := watch(t, quick(Source{File: path}))
	wantError(t, reports, "no such file")
	for _, u := range []string{"http://a:1", "http://b:1"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, u)
		wantMembers(t, reports, u)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		wantError(t, reports, "no such file")
	}
}

func TestFile_TooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workers")
	write(t, path, "")
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	wantError(t, watch(t, lazy(path)), "is longer than 16777216 bytes")
}
