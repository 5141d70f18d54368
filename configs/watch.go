package configs

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// watchSettle is how long after a first sign of a change files are read: who
	// writes them in place, or several of them, is done by then.
	watchSettle = 100 * time.Millisecond
	// watchPoll is how often sources are looked at without a sign: some
	// filesystems give none.
	watchPoll = 10 * time.Second
)

// Watch calls changed, until ctx ends, whenever one of o.Sources is not what the
// last Load has read, has gone or has come: files of the configuration, of
// secrets and of certificates, and keys in etcd. changed is to call Load with the
// same Options. The directories of files are watched, because editors and
// Kubernetes, whose ConfigMaps are symbolic links to links, put another file in
// the place of the old one. Where the system cannot tell of changes, files are
// looked at now and then; trouble is told that, and when a key in etcd cannot be
// read, once each time. Both are called from goroutines that have ended when
// Watch returns.
func Watch(ctx context.Context, o Options, changed func(), trouble func(error)) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		trouble(fmt.Errorf("files are looked at every %v only: %w", watchPoll, err))
	}
	w := watch{sources: o.Sources, watcher: watcher, found: make(chan finding), kept: map[string]digest{}, changed: changed}
	var all sync.WaitGroup
	for _, name := range o.Files {
		if isEtcd(name) {
			all.Go(func() { o.Etcd.follow(ctx, name, w.found, trouble) })
		}
	}
	w.run(ctx)
	all.Wait()
}

// watch is one call of Watch, and belongs to its goroutine.
type watch struct {
	sources *Sources
	watcher *fsnotify.Watcher // nil where there is none
	found   chan finding
	kept    map[string]digest // what etcd holds, by the name of the source
	changed func()
}

// finding is what a key in etcd holds.
type finding struct {
	name string
	now  digest
}

func (w *watch) run(ctx context.Context) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w.watcher != nil {
		defer func() { _ = w.watcher.Close() }() // nothing is lost with it
		events, errs = w.watcher.Events, w.watcher.Errors
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
		case f := <-w.found:
			w.kept[f.name] = f.now
		case <-timer.C:
			next := watchPoll
			if w.look() {
				w.changed()
				next = watchSettle // what the Load has named is watched from then on
			}
			pending = next == watchSettle
			timer.Reset(next)
			continue
		}
		if !pending {
			pending = true
			timer.Reset(watchSettle)
		}
	}
}

// look reports whether any source is not what it was.
func (w *watch) look() (changed bool) {
	w.register() // before the look, so that no change falls between the two
	for _, name := range w.sources.Names() {
		now, ok := w.kept[name]
		if !isEtcd(name) {
			now, ok = look(name)
		}
		changed = ok && w.sources.differs(name, now) || changed
	}
	return changed
}

// register watches the directories of the files, and of those that symbolic links
// lead to. They may be others than before.
func (w *watch) register() {
	if w.watcher == nil {
		return
	}
	for _, name := range w.sources.Names() {
		if isEtcd(name) {
			continue
		}
		_ = w.watcher.Add(filepath.Dir(name)) // a missing one shows as a missing file
		if real, err := filepath.EvalSymlinks(name); err == nil {
			_ = w.watcher.Add(filepath.Dir(real))
		}
	}
}
