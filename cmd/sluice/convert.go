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

The formats are yaml, json, toml and sluice; those of the files go by their names.
Several files are merged as serve merges them, and must be valid together. No
defaults are added. Secrets that name a variable or a file stay so, and sizes and
durations keep their text; comments are lost, and templates are written out. TOML
has no null: what holds one cannot be converted to it.

Exit codes: 0 printed, 1 it could not be written, 2 faults, each printed with its
place.

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
	}
	out, err := configs.Convert(fs.Args(), p.env, *to)
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice convert: wrong configuration:\n%s\n", configs.Report(err))
		return exitUsage
	}
	if _, err := p.stdout.Write(out); err != nil {
		fmt.Fprintf(p.stderr, "sluice convert: %v\n", err)
		return exitFailed
	}
	return exitOK
}
