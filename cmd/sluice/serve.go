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

SIGTERM or SIGINT: not ready at once, streams finish within server.drain, exit 0.
A second signal ends at once.

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
	cfg, err := configs.Load(opts)
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice serve: wrong configuration:\n%v\n", err)
		return exitUsage
	}
	out := newLogBuffer(p.stderr)
	defer out.Close()
	handler := slog.NewJSONHandler(out, &slog.HandlerOptions{Level: logLevel(cfg.Log.Level)})
	log := slog.New(handler)
	if err := serve(p, cfg, handler); err != nil {
		log.Error("cannot serve", "error", err.Error())
		return exitFailed
	}
	log.Info("stopped")
	return exitOK
}

// serve runs the router until p is told to stop and its requests have ended.
func serve(p *process, cfg *configs.Config, handler slog.Handler) error {
	log := slog.New(handler)
	if len(cfg.Pools) == 0 {
		stop, err := simulate(cfg)
		if err != nil {
			return err
		}
		defer stop()
		log.Info("no pools are configured: simulated engines serve", "engines", cfg.Sim.Engines, "model", simModel)
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
	ro := router.Options{Log: log, Version: version()}
	if cfg.Log.Access {
		ro.Access = handler
	}
	r, err := router.New(cfg, ro)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- r.Serve(data, admin) }()
	log.Info("serving", "listen", data.Addr().String(), "admin", admin.Addr().String())

	select {
	case err := <-failed:
		return err
	case <-p.stop.Done():
	}
	log.Info("draining", "in_flight", r.InFlight(), "drain", cfg.Server.Drain.String())
	if err := drain(p.now, r, cfg.Server); err != nil {
		log.Warn("requests were cut at the end of the drain", "error", err.Error())
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

// simulate starts the engines of cfg.Sim in this process and makes them a pool.
func simulate(cfg *configs.Config) (stop func(), err error) {
	var engines []*sim.Engine
	stop = func() {
		for _, e := range engines {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()         // nothing waits for an answer anymore
			_ = e.Close(ctx) // and the process ends
		}
	}
	pool := configs.DefaultPool()
	pool.Name = "sim"
	pool.Models = []string{simModel}
	pool.Aliases = map[string]string{simAlias: simModel}
	for range cfg.Sim.Engines {
		e := sim.New(sim.Options{
			Models: []string{simModel},
			Words:  cfg.Sim.Words,
			Pace:   cfg.Sim.Pace,
			TTFB:   cfg.Sim.TTFB,
		})
		url, err := e.Start("127.0.0.1:0")
		if err != nil {
			stop()
			return nil, err
		}
		engines = append(engines, e)
		pool.Workers = append(pool.Workers, configs.Worker{URL: url})
	}
	cfg.Pools = []configs.Pool{pool}
	return stop, nil
}

func logLevel(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		panic("BUG: a validated log level does not parse: " + name)
	}
	return l
}
