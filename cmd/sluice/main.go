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
	"strings"
	"syscall"
)

// The exit codes of every verb.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while it ran
	exitUsage  = 2 // the command line or the configuration is wrong
)

// verb is one thing that the command does.
type verb struct {
	name, text string
	run        func(*process) int
}

// verbs returns them in the order in which the usage lists them.
func verbs() []verb {
	return []verb{
		{"serve", "route requests (with simulated engines where no pools are configured)", runServe},
		{"check", "validate a configuration and warn of what looks wrong", runCheck},
		{"explain", "tell what becomes of one request", runExplain},
		{"replay", "tell what a configuration makes of recorded requests", runReplay},
		{"convert", "print configuration files in another format", runConvert},
		{"fmt", "print .sluice files in their canonical form", runFmt},
		{"sim", "run simulated engines", runSim},
		{"records", "print what routers have recorded, or sums of it", runRecords},
		{"health", "ask the router on this machine whether it is alive", runHealth},
		{"config", "print the effective configuration, its schema or its reference", runConfig},
		{"completion", "print a script that completes verbs and flags in a shell", runCompletion},
		{"version", "print the version", runVersion},
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("sluice is an edge router for fleets of LLM inference engines.\n\nusage: sluice VERB [flags]\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(&b, "  %-10s %s\n", v.name, v.text)
	}
	b.WriteString("\nEach verb explains itself with -h.\nExit codes: 0 success, 1 failure while running, 2 wrong usage or configuration.\n")
	return b.String()
}

// process is what a verb gets from outside.
type process struct {
	args           []string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	// stop ends at the first SIGINT or SIGTERM, now at the second.
	stop, now context.Context
	// hup is sent to at each SIGHUP.
	hup <-chan os.Signal
}

func main() {
	stop, now := signals()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	os.Exit(run(&process{
		args: os.Args[1:], env: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stop: stop, now: now, hup: hup,
	}))
}

func run(p *process) int {
	if len(p.args) == 0 {
		fmt.Fprint(p.stderr, usage())
		return exitUsage
	}
	name := p.args[0]
	p.args = p.args[1:]
	for _, v := range verbs() {
		if v.name == name {
			return v.run(p)
		}
	}
	switch name {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(p.stdout, usage())
		return exitOK
	}
	fmt.Fprintf(p.stderr, "sluice: unknown verb %q\n\n%s", name, usage())
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
