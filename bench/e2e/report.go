//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const reportFile = "report.md"

// report is what is written at the end.
type report struct {
	machine  []string // lines of a list
	targets  []*target
	missing  []string
	outcomes []outcome
	took     time.Duration
	args     []string
}

// describeMachine returns what the figures depend on beside the programs.
func describeMachine() []string {
	return []string{
		"machine: " + cpuModel() + fmt.Sprintf(", %d cores", runtime.NumCPU()),
		"kernel: " + version("uname", "-sr"),
		"router: " + version("git", "describe", "--always", "--dirty") + ", " + runtime.Version(),
	}
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// write writes the report, the plots and the configurations into dir.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	plots := map[string][]byte{}
	r.render(&text, plots)
	plots[reportFile] = text.Bytes()
	for name, p := range plots {
		if err := os.WriteFile(filepath.Join(dir, name), p, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// render writes the Markdown to w and puts the plots, by file name, into plots.
func (r *report) render(w *bytes.Buffer, plots map[string][]byte) {
	fmt.Fprintf(w, "# Router, end to end\n\n")
	for _, line := range append(r.machine, r.missing...) {
		fmt.Fprintf(w, "- %s\n", line)
	}
	for _, t := range r.targets {
		switch t.name {
		case nameNginx:
			fmt.Fprintf(w, "- %s\n", version("nginx", "-v"))
		case nameHAProxy:
			fmt.Fprintf(w, "- %s\n", version("haproxy", "-v"))
		}
	}
	fmt.Fprintf(w, "- command: `go run ./bench/e2e %s`, took %s\n\n", strings.Join(r.args, " "), r.took.Round(time.Second))
	fmt.Fprintf(w, `Medians of interleaved rounds. CPU is µs of the target's processes, × its ratio to nginx. Added is the
figure less that of the load going straight to the engine. "No rules" is the router without contract and
access log; the others hold every request against a contract that edits it, and write a line for it. Only
ratios of one run compare.

`)
	for _, o := range r.outcomes {
		fmt.Fprintf(w, "## %s\n\n", o.scenario.Title)
		r.table(w, &o)
		name := o.scenario.Name + ".svg"
		fmt.Fprintf(w, "\n![CPU](%s)\n\n", name)
		plots[name] = r.plot(&o)
	}
	fmt.Fprintf(w, "## Commands\n\n")
	for _, t := range r.targets {
		t.describe(w)
	}
}

// column is one of a table.
type column struct {
	title string
	value func(m measurement) string
}

func (r *report) table(w io.Writer, o *outcome) {
	columns := columnsOf(o)
	fmt.Fprintf(w, "| target |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", len(columns)))
	for _, t := range r.targets {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, c := range columns {
			fmt.Fprintf(w, " %s |", c.value(o.figures[t.name]))
		}
		fmt.Fprintln(w)
	}
}

// columnsOf returns what the table of a scenario shows.
func columnsOf(o *outcome) []column {
	direct, nginx := o.figures[nameDirect], o.figures[nameNginx]
	show := func(f figure, format string) func(measurement) string {
		return func(m measurement) string { return fmt.Sprintf(format, m[f]) }
	}
	ratio := func(f figure, to measurement) func(measurement) string {
		return func(m measurement) string {
			if to[f] == 0 || m[f] == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f", m[f]/to[f])
		}
	}
	spread := func(first figure, less measurement) func(measurement) string {
		return func(m measurement) string {
			var list []string
			for i := range len3 {
				list = append(list, fmt.Sprintf("%.0f", m[first+i]-less[first+i]))
			}
			return strings.Join(list, " / ")
		}
	}
	unit, each := "events/s", "an event"
	if o.scenario.Kind == kindPost {
		unit, each = "requests/s", "a request"
	}
	list := []column{
		{unit, show(figRate, "%.0f")},
		{"CPU " + each + ", µs", show(figCPU, "%.2f")},
		{"× nginx", ratio(figCPU, nginx)},
	}
	const marks = ", p50 / p99 / p99.9 µs"
	switch o.scenario.Kind {
	case kindPost:
		// The load is all that a target can take: less direct would tell nothing.
		return append(list, column{"× direct", ratio(figRate, direct)}, column{"answer" + marks, spread(figWhole, measurement{})})
	case kindStream:
		list = append(list, column{"added first byte" + marks, spread(figFirstByte, direct)})
		if o.scenario.Want.Pace > 0 {
			list = append(list, column{"added gap" + marks, spread(figGap, direct)})
		}
		return list
	}
	return append(list,
		column{"CPU an opening, µs", show(figOpening, "%.0f")},
		column{"× nginx", ratio(figOpening, nginx)},
		column{"KiB a stream", func(m measurement) string { return fmt.Sprintf("%.1f", m[figMemory]/kib) }})
}

// plot draws the CPU time of each target but direct, which has none.
func (r *report) plot(o *outcome) []byte {
	c := chart{title: o.scenario.Title, unit: "µs CPU an event"}
	if o.scenario.Kind == kindPost {
		c.unit = "µs CPU a request"
	}
	for _, t := range r.targets {
		if t.name != nameDirect {
			c.bars = append(c.bars, bar{t.name, o.figures[t.name][figCPU]})
		}
	}
	return c.svg()
}

// describe tells how t was started, with addresses left open.
func (t *target) describe(w io.Writer) {
	if t.program == nil {
		return
	}
	p, err := t.program("ENGINE", "LISTEN")
	if err != nil {
		fmt.Fprintf(w, "%s: %v\n\n", t.name, err)
		return
	}
	args := append([]string{filepath.Base(p.args[0])}, p.args[1:]...)
	for i, arg := range args {
		if filepath.IsAbs(arg) {
			args[i] = filepath.Base(arg)
		}
	}
	fmt.Fprintf(w, "%s: `%s`\n\n", t.name, strings.Join(args, " "))
	if p.text != "" {
		fmt.Fprintf(w, "```\n%s```\n\n", p.text)
	}
}
