package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sluice/configs"
	"sluice/policy"
)

const checkUsage = `sluice check validates a configuration as serve would read it.

usage: sluice check [flags]

It prints warnings of what is valid and looks wrong, then which sampling contract
holds where. Exit codes: 0 valid, 1 warnings with --strict, 2 faults, each printed
with its place.

flags:
`

func runCheck(p *process) int {
	fs := flag.NewFlagSet("sluice check", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, checkUsage)
		fs.PrintDefaults()
	}
	c := newConfigFlags(fs, p.env)
	strict := fs.Bool("strict", false, "exit with 1 when there are warnings")
	quiet := fs.Bool("quiet", false, "print faults and warnings alone")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(p.stderr, "sluice check: unexpected argument %q; did you mean --config %s?\n", fs.Arg(0), fs.Arg(0))
		return exitUsage
	}
	cfg, err := c.load()
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	}
	warnings := cfg.Warnings()
	for _, w := range warnings {
		fmt.Fprintf(p.stderr, "warning: %s\n", w)
	}
	if !*quiet {
		printContracts(p.stdout, cfg)
		fmt.Fprintf(p.stdout, "valid: %d pools, %d decisions, %d warnings, hash %.12s\n",
			len(cfg.Pools), len(cfg.Routing.Decisions), len(warnings), cfg.Hash())
	}
	if *strict && len(warnings) > 0 {
		return exitFailed
	}
	return exitOK
}

// printContracts prints the contract that holds for each pool, for its models
// with one of their own, and for each decision with one.
func printContracts(w io.Writer, cfg *configs.Config) {
	line := func(d *configs.Decision, pool *configs.Pool, model string) {
		spec, from, err := cfg.ContractOf(d, pool, model)
		if err != nil {
			panic("BUG: a valid configuration has a contract that is none: " + err.Error())
		}
		var who []string
		if d != nil {
			who = append(who, "decision "+d.Name)
		}
		who = append(who, "pool "+pool.Name)
		if model != "" {
			who = append(who, "model "+model)
		}
		fmt.Fprintf(w, "contract of %s: %s\n", strings.Join(who, ", "), contractText(spec, from))
	}
	lines := func(d *configs.Decision, pool *configs.Pool) {
		line(d, pool, "")
		for _, model := range slices.Sorted(maps.Keys(pool.ModelContracts)) {
			line(d, pool, model)
		}
	}
	for i := range cfg.Pools {
		lines(nil, &cfg.Pools[i])
	}
	for i := range cfg.Routing.Decisions {
		d := &cfg.Routing.Decisions[i]
		if d.Contract == nil {
			continue
		}
		for _, pool := range cfg.Destinations(d) {
			lines(d, pool)
		}
	}
}

func contractText(spec policy.ContractSpec, from string) string {
	if from == "" {
		return "none"
	}
	mode := spec.OnConflict
	if mode == "" {
		mode = "reject"
	}
	params := make([]string, 0, len(spec.Params))
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		value := fmt.Sprint(spec.Params[name])
		if band, ok := spec.Params[name].(map[string]any); ok {
			value = fmt.Sprintf("%v to %v", band["min"], band["max"])
		}
		params = append(params, name+" "+value)
	}
	return fmt.Sprintf("%s, %s (%s)", mode, strings.Join(params, ", "), from)
}
