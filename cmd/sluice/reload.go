package main

import (
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
	l.level.Set(logLevel(cfg.Log.Level))
	l.log.Info("reloaded", "why", why, "hash", cfg.Hash())
	if len(restart) > 0 {
		l.log.Warn("some keys have new values that only a restart will take", "keys", strings.Join(restart, ", "))
	}
	for _, w := range cfg.Warnings() {
		l.log.Warn("check the configuration", "warning", w.String())
	}
	return nil
}
