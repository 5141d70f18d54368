package configs

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// watchSettle is how long after a first sign of a change files are read: who
	// writes them in place, or several of them, is done by then.
	watchSettle = 100 * time.Millisecond
	// watchPoll is how often files are looked at without a sign: a change that a
	// symbolic link leads to elsewhere gives none.
	watchPoll = 10 * time.Second
)

// Watch calls changed, from its own goroutine, whenever the content of one of
// files has changed, has gone or has come, until ctx ends. The directories are
// watched, because editors and Kubernetes, whose ConfigMaps are symbolic links to
// links, put another file in the place of the old one. A system that cannot tell
// of changes is polled; the error, which comes at once, says so.
func Watch(ctx context.Context, files []string, changed func()) error {
	watcher, err := fsnotify.NewWatcher()
	w := watch{files: files, seen: make([][sha256.Size]byte, len(files))}
	w.look() // what is there is no change
	go w.run(ctx, watcher, changed)
	return err
}

type watch struct {
	files []string
	seen  [][sha256.Size]byte // of the contents, zero where there is none
}

func (w *watch) run(ctx context.Context, watcher *fsnotify.Watcher, changed func()) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if watcher != nil {
		defer func() { _ = watcher.Close() }() // nothing is lost with it
		events, errs = watcher.Events, watcher.Errors
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	pending := true // a look is due within watchSettle
	for {
		select {
		case <-ctx.Done():
			return
		case <-errs: // events were lost
		case <-events:
		case <-timer.C:
			for _, name := range w.files {
				if watcher != nil { // again: the directory may be another one
					_ = watcher.Add(filepath.Dir(name)) // a missing one shows as a missing file
				}
			}
			if w.look() {
				changed()
			}
			pending = false
			timer.Reset(watchPoll)
			continue
		}
		if !pending {
			pending = true
			timer.Reset(watchSettle)
		}
	}
}

// look reports whether any file is not what it was.
func (w *watch) look() (changed bool) {
	for i, name := range w.files {
		var sum [sha256.Size]byte
		if data, err := os.ReadFile(name); err == nil {
			sum = sha256.Sum256(data)
		}
		changed = changed || sum != w.seen[i]
		w.seen[i] = sum
	}
	return changed
}
