package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"sluice/configs"
)

const convertUsage = `sluice convert prints configuration files in another format.

usage: sluice convert --to FORMAT FILE…
       sluice convert --from semantic-router --to FORMAT FILE

The formats are yaml, json, toml and sluice; those of the files go by their names.
Several files are merged as serve merges them, and must be valid together. No
defaults are added. Secrets that name a variable or a file stay so, and sizes and
durations keep their text; comments are lost, and templates are written out. TOML
has no null: what holds one cannot be converted to it.

--from semantic-router takes over decisions with their rules, models and plugins
request_params, and back ends as pools, from a YAML file of vllm-project's
semantic-router. What is not the same is listed on standard error. A condition on a
signal that needs a classifier becomes a test of the header field x-signal-TYPE.

Exit codes: 0 printed, 1 it could not be written (or, with --strict, not all was
taken over), 2 faults, each printed with its place.

flags:
`

func runConvert(p *process) int {
	fs := flag.NewFlagSet("sluice convert", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, convertUsage)
		fs.PrintDefaults()
	}
	to := fs.String("to", "", "`format` to print: "+strings.Join(configs.Formats, ", "))
	from := fs.String("from", "", "`program` whose configuration the file is: semantic-router")
	strict := fs.Bool("strict", false, "with --from: exit with 1 when something is not taken over")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	switch {
	case *to == "":
		fmt.Fprintf(p.stderr, "sluice convert: --to is missing: %s\n", strings.Join(configs.Formats, ", "))
		return exitUsage
	case !slices.Contains(configs.Formats, *to):
		fmt.Fprintf(p.stderr, "sluice convert: unknown format %q: %s\n", *to, strings.Join(configs.Formats, ", "))
		return exitUsage
	case fs.NArg() == 0:
		fmt.Fprintln(p.stderr, "sluice convert: no files")
		return exitUsage
	case *from != "" && *from != "semantic-router":
		fmt.Fprintf(p.stderr, "sluice convert: unknown program %q: semantic-router\n", *from)
		return exitUsage
	case *from != "" && fs.NArg() > 1:
		fmt.Fprintln(p.stderr, "sluice convert: --from takes one file")
		return exitUsage
	}
	var out []byte
	var left configs.Faults
	var err error
	if *from == "" {
		out, err = configs.Convert(fs.Args(), p.env, *to)
	} else {
		out, left, err = configs.FromSemanticRouter(fs.Arg(0), *to)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice convert: wrong configuration:\n%s\n", configs.Report(err))
		return exitUsage
	}
	if _, err := p.stdout.Write(out); err != nil {
		fmt.Fprintf(p.stderr, "sluice convert: %v\n", err)
		return exitFailed
	}
	for _, f := range left {
		fmt.Fprintln(p.stderr, f)
	}
	if *strict && len(left) > 0 {
		return exitFailed
	}
	return exitOK
}
