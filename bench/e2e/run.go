//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// figure is one number that is measured in a round.
type figure int

const (
	figRate      figure                = iota // requests or events a second
	figCPU                                    // µs of the target for each of them
	figFirstByte                              // µs, one for each of quantiles
	figGap       = figFirstByte + len3        // µs, likewise
	figWhole     = figGap + len3              // µs, likewise
	figMemory    = figWhole + len3            // bytes a stream
	figOpening   = figMemory + 1              // µs of the target for each stream that is opened
	numFigures   = figOpening + 1
	len3         = figure(len(quantiles))
)

// measurement is what a round, or the median of the rounds, has brought.
type measurement [numFigures]float64

// suite is one run of the whole.
type suite struct {
	out    io.Writer
	engine *process
	load   *process
	addr   string // of the engine
	list   []*target
}

// outcome is what was measured in one scenario, by target.
type outcome struct {
	scenario scenario
	figures  map[string]measurement
}

// measureAll is the whole command.
func measureAll(o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "bench-e2e")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.sluice == "" {
		o.sluice = filepath.Join(dir, "sluice")
		if err := build(o.sluice); err != nil {
			return err
		}
	}
	// nginx runs its workers as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	list, missing := targets(dir, o.sluice, o.before)
	list = chosen(list, o.beside)
	for _, text := range missing {
		fmt.Fprintln(out, text)
	}
	s := &suite{out: out, list: list}
	defer s.stop()
	if err := s.start(); err != nil {
		return err
	}
	began := time.Now()
	var outcomes []outcome
	for _, sc := range scenarios(o.quick) {
		if !o.only.MatchString(sc.Name) {
			continue
		}
		got, err := s.measure(&sc, roundsOf(&sc, &o))
		if err != nil {
			return err
		}
		outcomes = append(outcomes, got)
	}
	r := &report{
		machine: describeMachine(), targets: list, missing: missing, outcomes: outcomes,
		took: time.Since(began), args: os.Args[1:],
	}
	if err := r.write(o.out); err != nil {
		return err
	}
	fmt.Fprintf(out, "report: %s\n", filepath.Join(o.out, reportFile))
	return nil
}

// build builds the router with the vector code, as make does.
func build(file string) error {
	cmd := exec.Command("go", "build", "-o", file, "sluice/cmd/sluice")
	cmd.Env = append(os.Environ(), "GOEXPERIMENT=simd")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the router: %w\n%s", err, text)
	}
	return nil
}

// chosen returns direct and the targets whose name matches.
func chosen(list []*target, names *regexp.Regexp) []*target {
	return slices.DeleteFunc(list, func(t *target) bool {
		return t.name != nameDirect && !names.MatchString(t.name)
	})
}

// roundsOf returns how many rounds of sc there are. Those of kindHold take long
// and vary little.
func roundsOf(sc *scenario, o *options) int {
	switch {
	case o.rounds > 0:
		return o.rounds
	case o.quick:
		return 1
	case sc.Kind == kindHold:
		return 2
	}
	return 5
}

// start starts engine and load.
func (s *suite) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.engine, err = startProcess([]string{self, roleEngine}, true); err != nil {
		return err
	}
	var h hello
	if err := s.engine.read(&h); err != nil {
		return err
	}
	s.addr = h.Addr
	s.load, err = startProcess([]string{self, roleLoad}, true)
	return err
}

func (s *suite) stop() {
	for _, t := range s.list {
		t.stop()
	}
	for _, p := range []*process{s.load, s.engine} {
		if p != nil {
			p.stop()
		}
	}
}

// measure puts all targets under sc in turn, for the given number of rounds.
func (s *suite) measure(sc *scenario, rounds int) (outcome, error) {
	fmt.Fprintf(s.out, "%s\n", sc.Title)
	all := map[string][]measurement{}
	round := s.runRound
	if sc.Kind == kindHold {
		round = s.holdRound
	} else {
		for _, t := range s.list {
			if err := t.start(s.addr); err != nil {
				return outcome{}, err
			}
			defer t.stop()
			// What comes first warms caches and pools up and is not counted.
			short := *sc
			short.Each /= 4
			if _, err := s.runRound(t, &short); err != nil {
				return outcome{}, fmt.Errorf("%s: %s: %w", sc.Name, t.name, err)
			}
		}
	}
	for range rounds {
		for _, t := range s.list {
			m, err := round(t, sc)
			if err != nil {
				return outcome{}, fmt.Errorf("%s: %s: %w", sc.Name, t.name, err)
			}
			all[t.name] = append(all[t.name], m)
		}
	}
	got := outcome{*sc, map[string]measurement{}}
	for name, list := range all {
		m := medians(list)
		got.figures[name] = m
	}
	for _, t := range s.list {
		m := got.figures[t.name]
		fmt.Fprintf(s.out, "  %-24s %9.0f/s %8.2f µs CPU\n", t.name, m[figRate], m[figCPU])
	}
	return got, nil
}

func medians(list []measurement) (m measurement) {
	for i := range m {
		var values []float64
		for j := range list {
			values = append(values, list[j][i])
		}
		m[i] = median(values)
	}
	return m
}

// runRound puts t under sc for its time.
func (s *suite) runRound(t *target, sc *scenario) (m measurement, err error) {
	got, cpu, err := s.loaded(t, &job{Do: actRun, Addr: t.addr, Scenario: *sc, For: sc.Each})
	if err != nil {
		return m, err
	}
	units := got.Requests
	if sc.Kind != kindPost {
		units = got.Events
	}
	m[figRate] = float64(units) / got.Elapsed.Seconds()
	m[figCPU] = micros(cpu) / float64(max(units, 1))
	for i, q := range quantiles {
		m[figFirstByte+figure(i)] = micros(got.FirstByte.quantile(q.q))
		m[figGap+figure(i)] = micros(got.Gaps.quantile(q.q))
		m[figWhole+figure(i)] = micros(got.Whole.quantile(q.q))
	}
	return m, nil
}

// holdRound opens the streams of sc through a target that was just started, and
// watches them.
func (s *suite) holdRound(t *target, sc *scenario) (m measurement, err error) {
	if err := t.start(s.addr); err != nil {
		return m, err
	}
	defer t.stop()
	// A few streams first, so that what every target needs once is not counted.
	few := *sc
	few.Conns, few.Want = 16, want{Events: 10}
	if _, _, err := s.loaded(t, &job{Do: actRun, Addr: t.addr, Scenario: few, For: sc.Each / 10}); err != nil {
		return m, err
	}
	before, err := t.memory()
	if err != nil {
		return m, err
	}
	opened, opening, err := s.loaded(t, &job{Do: actOpen, Addr: t.addr, Scenario: *sc})
	if err != nil {
		return m, err
	}
	watched, cpu, err := s.loaded(t, &job{Do: actWatch, For: sc.Each})
	if err != nil {
		return m, err
	}
	after, err := t.memory()
	if err != nil {
		return m, err
	}
	m[figRate] = float64(watched.Events) / watched.Elapsed.Seconds()
	m[figCPU] = micros(cpu) / float64(max(watched.Events, 1))
	m[figMemory] = float64(after-before) / float64(sc.Conns)
	m[figOpening] = micros(opening) / float64(max(opened.Requests, 1))
	return m, s.load.do(&job{Do: actClose}, &tally{})
}

// loaded has the load generator do j, and returns what it saw and the CPU time
// that t took meanwhile.
func (s *suite) loaded(t *target, j *job) (*tally, time.Duration, error) {
	pids, err := t.pids()
	if err != nil {
		return nil, 0, err
	}
	before, err := cpuTime(pids)
	if err != nil {
		return nil, 0, err
	}
	got := &tally{}
	if err := s.load.do(j, got); err != nil {
		return nil, 0, err
	}
	if got.Failed != "" {
		return nil, 0, errors.New(got.Failed)
	}
	after, err := cpuTime(pids)
	return got, after - before, err
}

// memory returns the resident memory of t in bytes.
func (t *target) memory() (int64, error) {
	pids, err := t.pids()
	if err != nil {
		return 0, err
	}
	return memory(pids)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
