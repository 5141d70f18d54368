package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"sluice/upstream/sim"
)

const simUsage = `sluice sim runs simulated engines until it is interrupted.

usage: sluice sim [flags]

Each engine speaks HTTP/1.1 and h2c on one port and serves every surface that the
router serves. One line with the URL is printed for each when it listens.

What an engine has seen:
  GET  /sim/requests[?n=N]   the latest requests as they were received
  GET  /sim/stats            counts: requests, in flight, completed, cancelled, ...
  POST /sim/reset            forget both
  POST /sim/health?status=N  what /health answers from now on

A request can change its own answer with headers:
  x-sim-ttfb, x-sim-ttft, x-sim-pace: 200ms
  x-sim-words: 20, x-sim-text: some text, x-sim-pad: 1MiB
  x-sim-fail: a failure as for --fail
  x-sim-status: 503, with x-sim-retry-after: 7 and x-sim-body: some text
  x-sim-chunking: length, chunked or eof (how a buffered answer is framed)
  x-sim-header: name: value (a header of the answer)

Exit codes: 0 stopped as told, 1 it cannot listen, 2 wrong flags.

flags:
`

// simConfig is what the flags of sim say.
type simConfig struct {
	listen string
	count  int
	opts   sim.Options
}

// parseSim reads the flags of sim. It has told of an error already.
func parseSim(args []string, stderr io.Writer) (simConfig, error) {
	var c simConfig
	fs := flag.NewFlagSet("sluice sim", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, simUsage)
		fs.PrintDefaults()
	}
	fs.StringVar(&c.listen, "listen", "127.0.0.1:8000", "`address` of the first engine; the others get the ports that follow, or free ones for port 0")
	fs.IntVar(&c.count, "count", 1, "`number` of engines")
	o := &c.opts
	fs.Func("model", "`name` of a model that is served, repeatable (default: every name is)", func(s string) error {
		o.Models = append(o.Models, s)
		return nil
	})
	fs.TextVar(&o.Flavour, "engine", sim.VLLM, "whose shapes the answers have: vllm, sglang or openai")
	fs.TextVar(&o.Protocol, "protocol", sim.Both, "what the port speaks: both, http1 or h2c")
	fs.IntVar(&o.MaxModelLen, "max-model-len", 0, "context window in `tokens` (0: no limit)")
	fs.IntVar(&o.Words, "words", 16, "length of an answer in `words`, each one token")
	fs.StringVar(&o.Text, "text", "", "the answer itself, instead of words")
	fs.DurationVar(&o.TTFB, "ttfb", 0, "time before the first byte of an answer")
	fs.DurationVar(&o.TTFT, "ttft", 0, "further time before the first token")
	fs.DurationVar(&o.Pace, "pace", 0, "time between two tokens")
	fs.Float64Var(&o.Jitter, "jitter", 0, "share by which times vary, `0..1`")
	fs.Uint64Var(&o.Seed, "seed", 0, "`number` that fixes jitter and failures; the k-th engine has seed+k")
	fs.TextVar(&o.Fail, "fail", sim.Failure{}, "what fails: status=N, reset, cut=N (events, or bytes of a buffered body),\n"+
		"silence, garbage, slow-head=DURATION (between two bytes), error=N (an error after N events)")
	fs.StringVar(&o.Fail.RetryAfter, "fail-retry-after", "", "`value` of Retry-After for --fail status=N")
	fs.StringVar(&o.Fail.Body, "fail-body", "", "`text` that --fail status=N answers (default: an error in the surface's shape)")
	fs.IntVar(&o.FailEvery, "fail-every", 0, "let only every `k`-th request fail")
	fs.Float64Var(&o.FailRate, "fail-rate", 0, "let only this share of requests fail, `0..1` (0: all)")
	fs.IntVar(&o.History, "history", 128, "`number` of requests kept for /sim/requests")
	fs.IntVar(&o.KeepBody, "keep-body", 1<<20, "`bytes` of each body kept there")
	fs.Int64Var(&o.MaxBody, "max-body", 64<<20, "longest body taken, in `bytes`")
	fs.DurationVar(&o.IdleTimeout, "idle-timeout", 0, "time after which an idle connection is closed (0: never)")
	fs.IntVar(&o.MaxStreams, "max-streams", 0, "concurrent `streams` on one h2c connection (0: 250)")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	err := c.check(fs.Args())
	if err != nil {
		fmt.Fprintf(stderr, "sluice sim: %v\n", err)
	}
	return c, err
}

func (c *simConfig) check(rest []string) error {
	switch o := &c.opts; {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case c.count < 1 || c.count > 1000:
		return fmt.Errorf("--count must be between 1 and 1000, got %d", c.count)
	case !(o.Jitter >= 0 && o.Jitter <= 1):
		return fmt.Errorf("--jitter must be between 0 and 1, got %v", o.Jitter)
	case !(o.FailRate >= 0 && o.FailRate <= 1):
		return fmt.Errorf("--fail-rate must be between 0 and 1, got %v", o.FailRate)
	}
	return nil
}

// runSim is the verb sim: it serves until p is told to stop.
func runSim(p *process) int {
	c, err := parseSim(p.args, p.stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	engines, err := startEngines(c, p.stdout)
	code := exitOK
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice sim: %v\n", err)
		code = exitFailed
	} else {
		<-p.stop.Done()
	}
	// The engines get a moment of their own.
	closing, cancel := context.WithTimeout(context.WithoutCancel(p.stop), 5*time.Second)
	defer cancel()
	for _, e := range engines {
		if err := e.Close(closing); err != nil {
			fmt.Fprintf(p.stderr, "sluice sim: %v\n", err)
			code = exitFailed
		}
	}
	return code
}

// startEngines starts the engines and prints the URL of each. Those that it
// returns are running, also when there is an error.
func startEngines(c simConfig, stdout io.Writer) ([]*sim.Engine, error) {
	var engines []*sim.Engine
	for i := range c.count {
		addr, err := nextAddr(c.listen, i)
		if err != nil {
			return engines, err
		}
		o := c.opts
		o.Seed += uint64(i)
		e := sim.New(o)
		url, err := e.Start(addr)
		if err != nil {
			return engines, err
		}
		engines = append(engines, e)
		fmt.Fprintln(stdout, url)
	}
	return engines, nil
}

// nextAddr returns listen with its port moved up by i, unless the port is 0.
func nextAddr(listen string, i int) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("cannot read --listen: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n > 0 && n+uint64(i) > 65535 {
		return "", fmt.Errorf("cannot read --listen: port %s (and the %d after it) is not between 0 and 65535", port, i)
	}
	if n > 0 {
		n += uint64(i)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
