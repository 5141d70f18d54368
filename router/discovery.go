package router

import (
	"context"
	"log/slog"

	"sluice/configs"
	"sluice/upstream"
	"sluice/upstream/discover"
)

// discovery keeps the members of a pool as its source names them. It goes from
// one snapshot to the next with the pool, as long as the source is the same.
type discovery struct {
	source discover.Source
	stop   context.CancelFunc
	done   chan struct{}
}

// sourceOf returns where the workers of a pool are discovered. Its name is that
// of the key, and empty where there is none.
func sourceOf(d *configs.Discover) (name string, s discover.Source) {
	s = discover.Source{
		File: d.File, DNS: d.DNS.Name, Port: d.DNS.Port, SRV: d.SRV,
		Scheme: d.Scheme, Resolver: d.Resolver,
		MinInterval: d.MinInterval, MaxInterval: d.MaxInterval,
	}
	switch {
	case d.File != "":
		name = "file"
	case d.DNS.Name != "":
		name = "dns"
	case d.SRV != "":
		name = "srv"
	}
	return name, s
}

// discover starts to watch the source of the pool, or goes on with what before,
// the pool of the last snapshot, which may be nil, watches.
func (p *pool) discover(dc *configs.Discover, before *pool, log *slog.Logger) {
	name, source := sourceOf(dc)
	if before != nil && before.discovery != nil {
		if name != "" && before.discovery.source == source {
			p.discovery = before.discovery
			return
		}
		before.discovery.end()
	}
	if name == "" {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &discovery{source: source, stop: stop, done: make(chan struct{})}
	p.discovery = d
	log = log.With("pool", p.spec.Name, "source", name)
	go func() {
		defer close(d.done)
		discover.Watch(ctx, source, func(members []discover.Member, err error) {
			if err == nil {
				specs := make([]upstream.WorkerSpec, len(members))
				for i, m := range members {
					specs[i] = upstream.WorkerSpec{URL: m.URL, Weight: m.Weight}
				}
				err = p.up.SetMembers(name, specs)
			}
			if err != nil {
				p.up.SourceFailed(name, err)
				log.Warn("cannot discover workers; those that are known stay", "error", err.Error())
				return
			}
			log.Info("discovered workers", "workers", len(members))
		})
	}()
}

// end stops the watch and waits for it. A nil discovery has none.
func (d *discovery) end() {
	if d != nil {
		d.stop()
		<-d.done
	}
}
