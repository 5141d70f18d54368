//go:build unix && !linux

package gone

import "time"

// sweepInterval is how long a client may have gone before it is noticed.
const sweepInterval = 250 * time.Millisecond

func newNotifier(w *Watcher) (notifier, error) { return newSweeper(w, sweepInterval), nil }
