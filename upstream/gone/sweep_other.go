//go:build unix && !linux

package gone

func newNotifier(w *Watcher) (notifier, error) { return newSweeper(w, sweepInterval), nil }
