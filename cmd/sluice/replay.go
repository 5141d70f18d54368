package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"sluice/configs"
	"sluice/router"
)

const replayUsage = `sluice replay holds recorded requests against a configuration and tells how many
would be rejected, clamped, replaced, defaulted, blocked, stripped, injected or
left untouched, in all and by decision and parameter; with --against, what changes
from another configuration. Nothing is sent. It runs the code of the data path.

usage: sluice replay --config new.yaml [--against old.yaml] [flags] FILE|-…

  sluice replay --config new.yaml --fail-on 'rejected>0.1%' monday.jsonl.zst
  sluice replay --override-sampling-params '{"temperature":1}' requests.jsonl
  zcat *.gz | sluice replay --config new.yaml --against old.yaml --json -

A line of FILE is one request:
  {"path": "/v1/chat/completions", "method": "POST", "headers": {"x-tier": "free"}, "body": {…}}
method (default POST) and headers may be missing, a header may be a list, body may
be a string, and url is read as path, so that files for OpenAI's batch API are read.
capture in the configuration of serve writes such files. gzip and zstd are read as
such. Without pools in the configuration, every model counts as served. Where chance
shares requests among pools, the hash of the session or body decides here.

A request may have several effects; other is an alias, force, extra_body or
thinking alone. What rules in observe mode would do is counted as observed.

Exit codes: 0 done, 1 a file could not be read, a line is malformed (with --strict)
or a --fail-on holds, 2 wrong usage or configuration.

flags:
`

func runReplay(p *process) int {
	fs := flag.NewFlagSet("sluice replay", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, replayUsage)
		fs.PrintDefaults()
	}
	var o replayOptions
	o.config = newConfigFlags(fs, p.env)
	fs.Func("against", "configuration `file` to compare with, repeatable", func(s string) error {
		o.against = append(o.against, s)
		return nil
	})
	fs.Func("fail-on", "exit with 1 if this `condition` holds, repeatable: rejected>0.1%, observed_rejected>=10, changed>0, malformed>1%", func(s string) error {
		b, err := parseBound(s)
		o.bounds = append(o.bounds, b)
		return err
	})
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.BoolVar(&o.strict, "strict", false, "exit with 1 if a line is malformed")
	fs.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "`number` of goroutines, 1 to 1024")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	o.files = fs.Args()
	r, err := o.replay()
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice replay: %v\n", err)
		return exitUsage
	}
	readErr := readFiles(p, r, o.files)
	rep := r.Report()
	if o.json {
		err = writeJSON(p.stdout, rep)
	} else {
		err = printReplay(p.stdout, rep)
	}
	if err = errors.Join(readErr, err); err != nil {
		fmt.Fprintf(p.stderr, "sluice replay: %v\n", err)
	}
	if o.failed(p.stderr, rep) || err != nil {
		return exitFailed
	}
	return exitOK
}

// replayOptions are what the command line says.
type replayOptions struct {
	config       *configFlags
	against      []string
	bounds       []bound
	json, strict bool
	workers      int
	files        []string
}

// replay checks the options and compiles the configurations.
func (o *replayOptions) replay() (*router.Replay, error) {
	switch {
	case len(o.files) == 0:
		return nil, errors.New("want files with requests, or - for standard input")
	case o.workers < 1 || o.workers > 1024:
		return nil, fmt.Errorf("--workers must be from 1 to 1024, got %d", o.workers)
	case len(o.against) == 0 && slices.ContainsFunc(o.bounds, func(b bound) bool { return b.metric == metricChanged }):
		return nil, errors.New("--fail-on changed needs --against")
	}
	for _, name := range o.files {
		if name == "-" {
			continue
		}
		if info, err := os.Stat(name); err != nil {
			return nil, err
		} else if info.IsDir() {
			return nil, fmt.Errorf("%s is a directory", name)
		}
	}
	cfg, err := o.config.load()
	if err != nil {
		return nil, fmt.Errorf("wrong configuration:\n%w", err)
	}
	var against *configs.Config
	if len(o.against) > 0 {
		if against, err = configs.Load(configs.Options{Files: o.against, Env: o.config.opts.Env}); err != nil {
			return nil, fmt.Errorf("wrong configuration to compare with:\n%w", err)
		}
	}
	for _, c := range []*configs.Config{cfg, against} {
		if c != nil && len(c.Pools) == 0 {
			pool := configs.DefaultPool()
			pool.Name = "any"
			c.Pools = []configs.Pool{pool}
		}
	}
	return router.NewReplay(cfg, against, o.workers)
}

// failed reports whether the requests are not as the options want them, and says
// why.
func (o *replayOptions) failed(w io.Writer, rep *router.ReplayReport) bool {
	failed := false
	if o.strict && rep.Malformed > 0 {
		fmt.Fprintf(w, "sluice replay: %d malformed lines\n", rep.Malformed)
		failed = true
	}
	for _, b := range o.bounds {
		if n, holds := b.holds(rep); holds {
			fmt.Fprintf(w, "sluice replay: failed on %s: %s\n", b.text, n)
			failed = true
		}
	}
	return failed
}

// bound is a condition of --fail-on.
type bound struct {
	text, metric string
	equal        bool // >=
	percent      bool
	value        float64
}

// Metrics of --fail-on beside the effects.
const (
	metricMalformed = "malformed"
	metricChanged   = "changed"
	prefixObserved  = "observed_"
)

// parseBound reads metric>value or metric>=value, where the value may be a
// percentage of the requests.
func parseBound(s string) (bound, error) {
	name, value, ok := strings.Cut(s, ">")
	if !ok {
		return bound{}, errors.New("want a condition such as rejected>0.1% (in quotes, for the shell)")
	}
	b := bound{text: s, metric: strings.TrimSpace(name)}
	value, b.equal = strings.CutPrefix(value, "=")
	value, b.percent = strings.CutSuffix(strings.TrimSpace(value), "%")
	known := append(router.Effects(), metricMalformed, metricChanged)
	if !slices.Contains(known, strings.TrimPrefix(b.metric, prefixObserved)) {
		return bound{}, fmt.Errorf("unknown metric %q; want %s, or one of the effects after %s", b.metric, strings.Join(known, ", "), prefixObserved)
	}
	var err error
	if b.value, err = strconv.ParseFloat(value, 64); err != nil || !(b.value >= 0 && b.value <= 1e18) {
		return bound{}, fmt.Errorf("want a number or a percentage after >, got %q", value)
	}
	return b, nil
}

// holds reports whether rep fulfils the condition, and what it was held against.
func (b *bound) holds(rep *router.ReplayReport) (what string, holds bool) {
	var n uint64
	total := rep.Requests
	switch effect, observed := strings.CutPrefix(b.metric, prefixObserved); {
	case b.metric == metricMalformed:
		n, total = rep.Malformed, rep.Lines
	case b.metric == metricChanged:
		n = rep.Changed.Count
	default:
		n = rep.Totals.Of(effect, observed)
	}
	value := float64(n)
	if b.percent {
		value = 100 * share(n, total)
	}
	return fmt.Sprintf("%d of %d", n, total), value > b.value || b.equal && value == b.value
}

func share(n, of uint64) float64 { return float64(n) / float64(max(of, 1)) }
