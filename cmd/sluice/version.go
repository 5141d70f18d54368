package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version returns the module version, or the commit where there is none, and
// the Go release that built it.
func version() string {
	v := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
				v = s.Value
			}
		}
	}
	return "sluice " + v + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

func runVersion(p *process) int {
	fmt.Fprintln(p.stdout, version())
	return exitOK
}
