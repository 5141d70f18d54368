package router

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/configs"
)

// Reload makes a valid configuration the one that serves. Requests under way
// keep the one they began with; workers that both have keep their state. It
// returns the keys whose new values need a restart. On an error the old
// configuration serves on. It is safe for concurrent use: the calls take turns.
func (r *Router) Reload(cfg *configs.Config) (restart []string, err error) {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	old := r.snap.Load()
	secure, err := r.secure.prepare(&cfg.Server)
	var next *snapshot
	if err == nil {
		next, err = newSnapshot(cfg, r, old)
	}
	r.noteReload(next, err)
	if err != nil {
		return nil, err
	}
	r.secure.use(secure)
	r.live.add(next)
	r.snap.Store(next)
	before, after := r.retired, make(chan struct{})
	r.retired = after
	go func() {
		old.retire()
		<-old.drained
		r.live.remove(old)
		// A request of an older one may still be at a pool that old has passed on.
		<-before
		old.closePools(next)
		close(after)
	}()
	return needRestart(old.cfg, cfg), nil
}

// ReloadFailed notes that there is a new configuration and that it is faulty, for
// metrics and for the admin listener.
func (r *Router) ReloadFailed(err error) { r.noteReload(nil, err) }

// reloads is what became of the configurations that were to serve.
type reloads struct {
	good, bad atomic.Uint64
	last      atomic.Pointer[reload]
}

// reload is one of them.
type reload struct {
	at   time.Time
	err  error // nil: it serves
	hash string
	// since is when the one that serves began to.
	since time.Time
}

func (r *Router) noteReload(next *snapshot, err error) {
	last := r.reloads.last.Load()
	now := &reload{at: time.Now(), err: err, hash: last.hash, since: last.since}
	if err != nil {
		r.reloads.bad.Add(1)
	} else {
		r.reloads.good.Add(1)
		now.hash, now.since = next.cfg.Hash(), now.at
	}
	r.reloads.last.Store(now)
}

// liveSnapshots are those that requests hold, for the count of these.
type liveSnapshots struct {
	mu   sync.Mutex
	list []*snapshot
}

func (l *liveSnapshots) add(s *snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, s)
}

func (l *liveSnapshots) remove(s *snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(e *snapshot) bool { return e == s })
}

// requests returns how many are under way.
func (l *liveSnapshots) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(0)
	for _, s := range l.list {
		n += s.requests.Load()
	}
	return int(n)
}

// needRestart returns the keys that only a start reads and that differ.
func needRestart(old, cfg *configs.Config) []string {
	var keys []string
	add := func(key string, same bool) {
		if !same {
			keys = append(keys, key)
		}
	}
	o, n := &old.Server, &cfg.Server
	add("server.listen", o.Listen == n.Listen)
	add("server.admin_listen", o.AdminListen == n.AdminListen)
	add("server.tls", o.TLS.On() == n.TLS.On())
	add("server.admin.tls", o.Admin.TLS.On() == n.Admin.TLS.On())
	add("log.format", old.Log.Format == cfg.Log.Format)
	add("server.read_timeout", o.ReadTimeout == n.ReadTimeout)
	add("server.idle_timeout", o.IdleTimeout == n.IdleTimeout)
	add("cache", old.Cache == cfg.Cache)
	add("records", old.Records == cfg.Records)
	return keys
}

// hold returns the snapshot that serves, for one request, which releases it.
func (r *Router) hold() *snapshot {
	for {
		s := r.snap.Load()
		s.requests.Add(1)
		if s == r.snap.Load() {
			return s
		}
		s.release() // it was retired meanwhile, and may be drained by now
	}
}
