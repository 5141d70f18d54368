package main

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

const versionUsage = `sluice version prints the version of the module with the commit that it was built
from, and the Go release and system that it was built for.

usage: sluice version [flags]

The word modified says that the files were not those of the commit. Exit code: 0.

flags:
`

// version returns what sluice version prints in its first line.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionLine(info)
}

// versionLine returns the module version and the commit, as far as they are known,
// and what built them.
func versionLine(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	if commit := setting(info, "vcs.revision"); commit != "" {
		v += " " + commit
	}
	if setting(info, "vcs.modified") == "true" {
		v += " modified"
	}
	return "sluice " + v + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func runVersion(p *process) int {
	fs := flag.NewFlagSet("sluice version", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, versionUsage)
		fs.PrintDefaults()
	}
	build := fs.Bool("build", false, "print the settings of the build as well: GOEXPERIMENT, -compiler, tags, …")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	fmt.Fprintln(p.stdout, version())
	if info, ok := debug.ReadBuildInfo(); ok && *build {
		for _, s := range info.Settings {
			fmt.Fprintf(p.stdout, "  %s=%s\n", s.Key, s.Value)
		}
	}
	return exitOK
}
