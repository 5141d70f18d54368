package discover

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long after a first sign of a change a file is read: most of
	// those who write it in place are done by then. A list that is put in place
	// by a rename is never seen half written.
	settle = 50 * time.Millisecond
	// maxFile bounds a list in bytes, at some hundred thousand workers.
	maxFile = 16 << 20
)

// watchFile is Watch for a file. It watches the directory, because an editor and
// Kubernetes, whose ConfigMaps are symbolic links to links, put another file in
// place of the old one. What happens elsewhere, where such a link leads, is seen
// by looking every MaxInterval.
func watchFile(ctx context.Context, s *Source, tell func([]Member, error)) {
	f := &file{path: s.File, tell: tell}
	events, errs := make(<-chan fsnotify.Event), make(<-chan error)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		tell(nil, fmt.Errorf("cannot be told of changes, and looks every %s: %w", s.MaxInterval, err))
	} else {
		defer func() { _ = watcher.Close() }() // nothing is lost with it
		events, errs = watcher.Events, watcher.Errors
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	pending := true // a look is due within settle
	for {
		select {
		case <-ctx.Done():
			return
		case <-errs: // events were lost
		case <-events:
		case <-timer.C:
			if watcher != nil { // again: the directory may be another one
				_ = watcher.Add(filepath.Dir(f.path)) // a missing one shows as a missing file
			}
			f.look()
			pending = false
			timer.Reset(s.MaxInterval)
			continue
		}
		if !pending {
			pending = true
			timer.Reset(settle)
		}
	}
}

// file is a list as it was read last.
type file struct {
	path    string
	tell    func([]Member, error)
	content []byte
	err     string // that was told last, "" for none
}

// look reads the file, and tells of it where there is anything new. An error
// that lasts is told once.
func (f *file) look() {
	b, err := f.read()
	if err != nil {
		f.fail(err)
		return
	}
	if f.content != nil && bytes.Equal(b, f.content) && f.err == "" {
		return
	}
	f.content = b
	members, err := parseList(b)
	if err != nil {
		f.fail(err)
		return
	}
	f.err = ""
	f.tell(members, nil)
}

func (f *file) fail(err error) {
	if err = fmt.Errorf("file %s: %w", f.path, err); err.Error() == f.err {
		return
	}
	f.err = err.Error()
	f.tell(nil, err)
}

func (f *file) read() ([]byte, error) {
	r, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("is longer than %d bytes", maxFile)
	}
	return b, nil
}
