// Tour shows the router at work: it starts `sluice sim` with two engines and
// `sluice serve` in front of them, sends a handful of requests and prints for
// each what the client sent, what an engine received and what came back. Then
// it serves until it is interrupted. `make run` runs it.
//
// It is a smoke test, too: a step that does not turn out as promised ends it
// with exit code 1 and the reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const usage = `tour shows a router with two simulated engines at work, then serves until it is
interrupted.

usage: tour [flags]

ONCE=1 in the environment ends it after the last step. Exit codes: 0 all went as
promised, 1 something did not, 2 wrong usage.

flags:
`

// options are what the command line and the environment say.
type options struct {
	sluice        string // path of the binary
	listen, admin string
	verbose       bool
	once          bool
}

func main() {
	// Children die with the thread that started them, see childAttr: this one
	// lives as long as the process.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal ends the tour at once
	once := os.Getenv("ONCE")
	o, err := parse(os.Args[1:], once != "" && once != "0", os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		os.Exit(2)
	}
	os.Exit(run(ctx, o, os.Stdout, os.Stderr))
}

// parse reads the command line. It has told of an error already.
func parse(args []string, once bool, stderr io.Writer) (options, error) {
	o := options{once: once}
	fs := flag.NewFlagSet("tour", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&o.sluice, "sluice", "", "`path` of the sluice binary (default: sluice beside tour)")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:30000", "`address` of the router's data listener")
	fs.StringVar(&o.admin, "admin", "127.0.0.1:29000", "`address` of its admin listener")
	fs.BoolVar(&o.verbose, "v", false, "show the logs of router and engines on standard error")
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
		fmt.Fprintf(stderr, "tour: %v\n", err)
	}
	if err != nil || o.sluice != "" {
		return o, err
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(stderr, "tour: cannot find the sluice binary (use -sluice): %v\n", err)
		return o, err
	}
	o.sluice = filepath.Join(filepath.Dir(self), "sluice")
	return o, nil
}

// run is the tour from the first process to the last. It returns the exit code.
func run(ctx context.Context, o options, stdout, stderr io.Writer) int {
	st := &stage{}
	err := st.play(ctx, o, page{stdout}, stderr)
	err = errors.Join(err, st.strike())
	if err == nil {
		if err = st.clean(); err == nil {
			return 0
		}
	}
	fmt.Fprintf(stderr, "\ntour: %v\n", err)
	if st.logPath != "" {
		fmt.Fprintf(stderr, "tour: the logs of router and engines are in %s\n", st.logPath)
	}
	return 1
}

// play sets the stage, walks through the steps and then serves.
func (st *stage) play(ctx context.Context, o options, p page, stderr io.Writer) error {
	if err := st.tour(ctx, o, p, stderr); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if o.once {
		p.text("\nAll went as promised.\n")
		return nil
	}
	p.invite(st.data, st.admin)
	select {
	case <-ctx.Done():
		p.text("\nstopping\n")
		return nil
	case <-st.router.done:
		return st.router.ended()
	case <-st.sims.done:
		return st.sims.ended()
	}
}

// tour starts everything and walks through the steps.
func (st *stage) tour(ctx context.Context, o options, p page, stderr io.Writer) error {
	if err := st.set(ctx, o, p, stderr); err != nil {
		return err
	}
	for i := range steps {
		if err := st.step(ctx, p, i+1, &steps[i]); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, steps[i].name, err)
		}
	}
	return st.accounts(ctx, p)
}

var errInterrupted = errors.New("interrupted before the end of the tour")
