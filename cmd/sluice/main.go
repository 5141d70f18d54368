// Sluice is an edge router for fleets of LLM inference engines. Each verb of
// the command has a file of its own; flags, environment, signals and exit codes
// are known here and nowhere else.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes of every verb.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while it ran
	exitUsage  = 2 // the command line or the configuration is wrong
)

const usage = `sluice is an edge router for fleets of LLM inference engines.

usage: sluice VERB [flags]

  serve    route requests (with simulated engines where no pools are configured)
  sim      run simulated engines
  version  print the version

Each verb explains itself with -h.
Exit codes: 0 success, 1 failure while running, 2 wrong usage or configuration.
`

// process is what a verb gets from outside.
type process struct {
	args           []string
	env            []string
	stdout, stderr io.Writer
	// stop ends at the first SIGINT or SIGTERM, now at the second.
	stop, now context.Context
}

func main() {
	stop, now := signals()
	os.Exit(run(&process{
		args: os.Args[1:], env: os.Environ(),
		stdout: os.Stdout, stderr: os.Stderr,
		stop: stop, now: now,
	}))
}

func run(p *process) int {
	if len(p.args) == 0 {
		fmt.Fprint(p.stderr, usage)
		return exitUsage
	}
	verb := p.args[0]
	p.args = p.args[1:]
	switch verb {
	case "serve":
		return runServe(p)
	case "sim":
		return runSim(p.stop, p.args, p.stdout, p.stderr)
	case "version":
		fmt.Fprintln(p.stdout, version())
		return exitOK
	case "help", "-h", "-help", "--help":
		fmt.Fprint(p.stdout, usage)
		return exitOK
	}
	fmt.Fprintf(p.stderr, "sluice: unknown verb %q\n\n%s", verb, usage)
	return exitUsage
}

// signals returns a context that ends at the first signal to stop and one that
// ends at the second.
func signals() (stop, now context.Context) {
	stop, cancelStop := context.WithCancel(context.Background())
	now, cancelNow := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-c
		cancelStop()
		<-c
		cancelNow()
	}()
	return stop, now
}
