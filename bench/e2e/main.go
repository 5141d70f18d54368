//go:build linux

// E2e measures the whole router from the outside, as an operator would before a
// release: a simulated engine, the router, its peers and a load generator, each
// a process of its own, on one machine and over loopback. `make bench-e2e` runs
// it; it writes a Markdown report and plots.
//
// One command starts everything, because the kernel gives CPU time to sessions
// of processes first and to the processes within them second: figures of two
// sessions do not compare. Targets take turns (A B C A B C …) and the median of
// the rounds counts, so that a noisy minute hits all of them. Even so only the
// ratios of one run tell something: the cores are shared by load, target and
// engine.
//
// CPU time is that of the target's processes alone, from /proc, in user and
// kernel. What a target adds to the time to first byte and to the gaps between
// events is its figure less that of the load going straight to the engine.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// options are the arguments of the command, as name or name=value.
type options struct {
	out    string         // directory of the report
	sluice string         // a router that is built already
	before string         // an earlier build, measured beside it
	quick  bool           // few, short rounds
	rounds int            // 0: as many as quick says
	only   *regexp.Regexp // scenarios, by name
	beside *regexp.Regexp // targets, by name
}

const usage = `usage: go run ./bench/e2e [name[=value] …]

  out=bench/report   directory that the report is written to
  quick              short rounds: less than two minutes
  rounds=5           rounds of each scenario
  only=REGEXP        scenarios whose name matches
  targets=REGEXP     targets whose name matches; direct is always measured
  sluice=FILE        the router, instead of building cmd/sluice
  before=FILE        an earlier build of the router, measured beside it
`

func parseOptions(args []string) (options, error) {
	all := regexp.MustCompile("")
	o := options{out: "bench/report", only: all, beside: all}
	for _, arg := range args {
		name, value, valued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		var err error
		switch {
		case name == "quick" && !valued:
			o.quick = true
		case name == "out" && value != "":
			o.out = value
		case name == "sluice" && value != "":
			o.sluice = value
		case name == "before" && value != "":
			o.before = value
		case name == "rounds":
			if o.rounds, err = strconv.Atoi(value); err == nil && o.rounds < 1 {
				err = errors.New("rounds must be at least 1")
			}
		case name == "only" && value != "":
			o.only, err = regexp.Compile(value)
		case name == "targets" && value != "":
			o.beside, err = regexp.Compile(value)
		default:
			err = fmt.Errorf("unexpected argument %q", arg)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func main() {
	// Children die with the thread that started them, see command.
	runtime.LockOSThread()
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		os.Exit(1)
	}
}

// The roles of the processes that the command starts of itself. Each gets its
// work as lines of JSON, answers with such, and ends with its input.
const (
	roleEngine = "role:engine"
	roleLoad   = "role:load"
	rolePeer   = "role:reverseproxy"
)

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case roleEngine:
			return serveEngine(in, out)
		case roleLoad:
			return serveLoad(in, out)
		case rolePeer:
			return serveReverseProxy(in, out)
		}
	}
	o, err := parseOptions(args)
	if err != nil {
		fmt.Fprint(os.Stderr, usage)
		return err
	}
	return measureAll(o, out)
}

// serveLines answers each line of in, a value of JSON, by one on out.
func serveLines[Q, A any](in io.Reader, out io.Writer, answer func(*Q) (A, error)) error {
	lines := bufio.NewScanner(in)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var q Q
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return err
		}
		a, err := answer(&q)
		if err != nil {
			return err
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}
