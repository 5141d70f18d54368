package main

import (
	"errors"
	"flag"
	"fmt"

	"sluice/configs"
)

const configUsage = `sluice config prints a configuration, or what may stand in one.

usage: sluice config print [flags]
       sluice config schema
       sluice config reference

print      the effective configuration: files, environment and flags over the
           defaults, as serve would have it. Secrets are shown as ***. With --origin
           each value has the place where it was set: a file with line and column,
           a variable, a flag, or default.
schema     the JSON Schema (draft 2020-12), for editors. A YAML file leads to it
           with the line # yaml-language-server: $schema=schema.json
reference  a page in Markdown on every key: type, unit, default and meaning

Exit codes: 0 printed, 2 wrong usage, or faults of the configuration, each printed
with its place.

flags of print:
`

// configParts are the words after sluice config.
var configParts = []string{"print", "schema", "reference"}

func runConfig(p *process) int {
	fs := flag.NewFlagSet("sluice config", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, configUsage)
		fs.PrintDefaults()
	}
	c := newConfigFlags(fs, p.env)
	origins := fs.Bool("origin", false, "print where each value was set, in YAML as comments, in JSON as a second object")
	format := fs.String("format", "yaml", "`format` of print: yaml or json")
	what, args := "", p.args
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		what, args = args[0], args[1:]
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	fail := func(err error) int {
		fmt.Fprintf(p.stderr, "sluice config: %v\n", err)
		return exitUsage
	}
	if fs.NArg() > 0 {
		return fail(fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	switch what {
	case "schema":
		fmt.Fprint(p.stdout, configs.Schema())
		return exitOK
	case "reference":
		fmt.Fprint(p.stdout, configs.Reference())
		return exitOK
	case "print":
	default:
		return fail(fmt.Errorf("want print, schema or reference, got %q", what))
	}
	cfg, err := c.load()
	if err != nil {
		return fail(fmt.Errorf("wrong configuration:\n%s", configs.Report(err)))
	}
	if err := cfg.Print(p.stdout, *format, *origins); err != nil {
		return fail(err)
	}
	return exitOK
}
