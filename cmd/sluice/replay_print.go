package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"sluice/router"
)

// printReplay prints a report for people. The last column is the place of the
// first request that a line counts.
func printReplay(w io.Writer, rep *router.ReplayReport) error {
	fmt.Fprintf(w, "%d requests, %s of bodies, %d malformed lines\n", rep.Requests, size(float64(rep.Bytes)), rep.Malformed)
	for _, f := range rep.Faults {
		fmt.Fprintf(w, "  %s: %s\n", f.At, f.Problem)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nall")
	printTotals(t, &rep.Totals, rep.Requests)
	for i := range rep.Decisions {
		printReplayDecision(t, &rep.Decisions[i])
	}
	if rep.Changed != nil {
		printChanges(t, rep)
	}
	return t.Flush()
}

func printTotals(w io.Writer, t *router.ReplayTotals, of uint64) {
	for _, e := range t.Effects {
		printEffect(w, e.Effect, "", &e, of)
	}
	for _, e := range t.Observed {
		printEffect(w, "observed "+e.Effect, "", &e, of)
	}
}

func printEffect(w io.Writer, name, param string, e *router.ReplayEffect, of uint64) {
	fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%s\n", name, param, e.Count, percent(e.Count, of), e.At)
}

func percent(n, of uint64) string { return fmt.Sprintf("%.3g%%", 100*share(n, of)) }

func printReplayDecision(w io.Writer, d *router.ReplayDecision) {
	name := "decision " + d.Name
	switch d.Name {
	case "":
		name = "no decision"
	case router.BeforeRouting:
		name = "before a decision is looked for"
	}
	fmt.Fprintf(w, "\n%s\t\t%d\n", name, d.Requests)
	for _, e := range d.Refusals {
		printEffect(w, "answered "+e.Code, e.Param, &e, d.Requests)
	}
	for _, e := range d.Params {
		name := e.Effect
		if name == "rejected" { // of what is answered, which tells the first one alone
			name = "violated"
		}
		printEffect(w, name, e.Param, &e, d.Requests)
	}
	for _, e := range d.Effects {
		if e.Effect == "stripped" || e.Effect == "other" || e.Effect == "untouched" || e.Effect == "local" { // which have no parameters
			printEffect(w, e.Effect, "", &e, d.Requests)
		}
	}
	for _, e := range d.ObservedParams {
		printEffect(w, "observed "+e.Effect, e.Param, &e, d.Requests)
	}
}

// printChanges prints what becomes otherwise, the totals first.
func printChanges(w io.Writer, rep *router.ReplayReport) {
	fmt.Fprintf(w, "\nchanges\t\t%d\t%s\t%s\n", rep.Changed.Count, percent(rep.Changed.Count, rep.Requests), rep.Changed.At)
	for _, observed := range []bool{false, true} {
		prefix := ""
		if observed {
			prefix = "observed "
		}
		for _, effect := range router.Effects() {
			before, after := rep.Before.Of(effect, observed), rep.Totals.Of(effect, observed)
			if before != after {
				fmt.Fprintf(w, "  %s\t\t%d\t%s\tbefore: %d, %s\n", prefix+effect, after, percent(after, rep.Requests), before, percent(before, rep.Requests))
			}
		}
	}
	for _, c := range rep.Changes {
		text := c.What
		if c.From != "" || c.To != "" {
			text = fmt.Sprintf("%s: %s > %s", c.What, c.From, c.To)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%s\n", text, c.Param, c.Count, percent(c.Count, rep.Requests), c.At)
	}
}
