package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"sluice/configs"
	"sluice/router"
)

// reloader reads the configuration anew and has the router serve it. It is safe
// for concurrent use.
type reloader struct {
	log   *slog.Logger
	level *slog.LevelVar
	load  func() (*configs.Config, error)

	mu     sync.Mutex
	router *router.Router
	cfg    *configs.Config // that serves
}

// serving returns the configuration that serves.
func (l *reloader) serving() *configs.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg
}

// watch reloads when what the configuration was read from changes, until the
// function that it returns is called, which waits for the last reload.
func (l *reloader) watch(opts configs.Options) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		configs.Watch(ctx, opts, func() { _ = l.reload("change") }, func(err error) { // reload logs
			l.log.Warn("cannot watch the configuration", "error", err.Error())
		})
	}()
	return func() { cancel(); <-done }
}

// reload makes the configuration as it is now the one that serves. The error, of
// which the log has been told, says why it does not; then the old one serves on.
func (l *reloader) reload(why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	cfg, err := l.load()
	if err != nil {
		l.router.ReloadFailed(err)
		l.log.Error("the new configuration is faulty; the old one serves on", "why", why, "error", err.Error())
		return err
	}
	restart, err := l.router.Reload(cfg)
	if err != nil {
		l.log.Error("the new configuration cannot serve; the old one does", "why", why, "error", err.Error())
		return err
	}
	l.log.Info("reloaded", "why", why, "hash", cfg.Hash())
	l.took(cfg)
	if len(restart) > 0 {
		l.log.Warn("some keys have new values that only a restart will take", "keys", strings.Join(restart, ", "))
	}
	return nil
}

// took does what is due when a configuration has begun to serve.
func (l *reloader) took(cfg *configs.Config) {
	l.cfg = cfg
	l.level.Set(logLevel(cfg.Log.Level))
	for _, w := range cfg.Warnings() {
		l.log.Warn("check the configuration", "warning", w.String())
	}
	for _, err := range cfg.Stale() {
		l.log.Warn("the configuration is a copy", "error", err.Error())
	}
	if err := cfg.KeepCopies(); err != nil {
		l.log.Warn("a start without etcd would fail", "error", err.Error())
	}
}
