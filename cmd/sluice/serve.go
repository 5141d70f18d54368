package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"

	"sluice/configs"
	"sluice/router"
	"sluice/upstream/sim"
)

const serveUsage = `sluice serve routes requests to the workers that the configuration names.

usage: sluice serve [flags]

The configuration is read from the files in their order, then from the
environment (SLUICE_SERVER__LISTEN=…: two underscores between the levels of a
key), then from the flags; the later wins. Without pools, simulated engines
serve the model sim-8b.

The configuration is read anew on SIGHUP, on POST /-/reload to the admin listener,
and when something changes that it was read from: its files, those of secrets and
certificates that it names, and keys in etcd. A faulty one is told of and changes
nothing. The environment and the flags stay as they were at the start. Where etcd
does not answer, what it gave last serves on, and a start takes the last good copy
from --config-cache.

SIGTERM or SIGINT: not ready at once, streams finish within server.drain, exit 0.
A second signal ends at once.

Exit codes: 0 stopped as told, 1 it cannot listen or serve, 2 wrong flags or
configuration, each fault printed with its place.

flags:
`

// parseServe reads the flags of serve. It has told of an error already.
func parseServe(p *process) (configs.Options, error) {
	fs := flag.NewFlagSet("sluice serve", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, serveUsage)
		fs.PrintDefaults()
	}
	c := newConfigFlags(fs, p.env)
	c.serveFlags()
	if err := fs.Parse(p.args); err != nil {
		return configs.Options{}, err
	}
	if fs.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", fs.Arg(0))
		fmt.Fprintf(p.stderr, "sluice serve: %v\n", err)
		return configs.Options{}, err
	}
	o, err := c.options()
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice serve: wrong configuration:\n%v\n", err)
	}
	return o, err
}

func runServe(p *process) int {
	opts, err := parseServe(p)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage
	}
	opts.Sources = new(configs.Sources)
	s := &server{process: p, opts: opts, level: new(slog.LevelVar)}
	defer s.end()
	first := opts
	first.Etcd.LastGood = true // later, what etcd gave last serves already
	cfg, err := s.load(first)
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice serve: %v\n", err)
		return exitUsage
	}
	out := newLogBuffer(p.stderr)
	defer out.Close()
	s.level.Set(logLevel(cfg.Log.Level))
	s.handler = logHandler(out, cfg.Log.Format, s.level)
	s.log = slog.New(s.handler)
	if err := s.serve(cfg); err != nil {
		s.log.Error("cannot serve", "error", err.Error())
		return exitFailed
	}
	s.log.Info("stopped")
	return exitOK
}

// server is one run of the verb serve.
type server struct {
	*process
	opts    configs.Options
	level   *slog.LevelVar
	handler slog.Handler
	log     *slog.Logger
	sims    *simPool // nil until a configuration without pools was read
}

// errNoPools keeps a file that somebody is just writing, or has emptied, from
// putting simulated engines in the place of real ones.
var errNoPools = errors.New("there are no pools any more: simulated engines take their place at a start alone")

// load reads the configuration. One without pools gets that of simulated
// engines, which are started at the first time, and then alone.
func (s *server) load(opts configs.Options) (*configs.Config, error) {
	cfg, err := loadConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("wrong configuration:\n%w", err)
	}
	if len(cfg.Pools) > 0 {
		return cfg, nil
	}
	if s.log != nil && s.sims == nil {
		return nil, errNoPools
	}
	if s.sims == nil {
		if s.sims, err = simulate(cfg); err != nil {
			return nil, err
		}
	}
	cfg.Pools = []configs.Pool{s.sims.pool}
	return cfg, nil
}

// end stops what load has started.
func (s *server) end() {
	if s.sims != nil {
		s.sims.stop()
	}
}

// serve runs the router until the process is told to stop and its requests have
// ended.
func (s *server) serve(cfg *configs.Config) error {
	if s.sims != nil {
		s.log.Info("no pools are configured: simulated engines serve", "engines", cfg.Sim.Engines, "model", simModel)
	}
	data, err := net.Listen("tcp", cfg.Server.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }() // the router has closed it, or never served
	admin, err := net.Listen("tcp", cfg.Server.AdminListen)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	again := &reloader{log: s.log, level: s.level, load: func() (*configs.Config, error) { return s.load(s.opts) }}
	ro := router.Options{
		Log: s.log, Level: s.level, Access: s.handler, Version: version(),
		Reload: func() error { return again.reload("POST /-/reload") },
	}
	if again.router, err = router.New(cfg, ro); err != nil {
		return err
	}
	again.took(cfg)
	failed := make(chan error, 1)
	go func() { failed <- again.router.Serve(data, admin) }()
	s.log.Info("serving", "listen", data.Addr().String(), "admin", admin.Addr().String())
	unwatch := again.watch(s.opts)
	defer unwatch()
	for {
		select {
		case err := <-failed:
			return err
		case <-s.hup:
			_ = again.reload("SIGHUP") // which logs
			continue
		case <-s.stop.Done():
		}
		break
	}
	unwatch()
	last := again.serving()
	s.log.Info("draining", "in_flight", again.router.InFlight(), "drain", last.Server.Drain.String())
	if err := drain(s.now, again.router, last.Server); err != nil {
		s.log.Warn("requests were cut at the end of the drain", "error", err.Error())
	}
	return <-failed
}

// drain ends the router within the time that the configuration gives, or at
// once when now ends.
func drain(now context.Context, r *router.Router, cfg configs.Server) error {
	ctx, cancel := context.WithTimeout(now, cfg.Drain)
	defer cancel()
	r.BeginDrain()
	wait, cancel := context.WithTimeout(ctx, cfg.DrainDelay)
	defer cancel()
	<-wait.Done()
	return r.Shutdown(ctx)
}

const (
	simModel = "sim-8b"
	simAlias = "sim"
)

// simPool are simulated engines in this process, and the pool that they make.
type simPool struct {
	engines []*sim.Engine
	pool    configs.Pool
}

// stop ends the engines. Nothing waits for an answer of theirs any more.
func (p *simPool) stop() {
	for _, e := range p.engines {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(ctx) // what is left of its connections is cut
	}
}

// simulate starts the engines of cfg.Sim.
func simulate(cfg *configs.Config) (*simPool, error) {
	p := &simPool{pool: configs.DefaultPool()}
	p.pool.Name = "sim"
	p.pool.Models = []string{simModel}
	p.pool.Aliases = map[string]string{simAlias: simModel}
	for range cfg.Sim.Engines {
		e := sim.New(sim.Options{
			Models: []string{simModel},
			Words:  cfg.Sim.Words,
			Pace:   cfg.Sim.Pace,
			TTFB:   cfg.Sim.TTFB,
		})
		url, err := e.Start("127.0.0.1:0")
		if err != nil {
			p.stop()
			return nil, err
		}
		p.engines = append(p.engines, e)
		p.pool.Workers = append(p.pool.Workers, configs.Worker{URL: url})
	}
	return p, nil
}

func logLevel(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		panic("BUG: a validated log level does not parse: " + name)
	}
	return l
}
