//go:build linux

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// origin is a moment on both clocks: that of the machine, which all processes
// share, and Go's, which needs no system call to be read.
var origin = func() (o struct {
	machine int64
	process time.Time
},
) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no monotonic clock: " + err.Error())
	}
	o.machine, o.process = ts.Nano(), time.Now()
	return o
}()

// monotonic returns the monotonic clock of the machine in ns.
func monotonic() int64 { return origin.machine + int64(time.Since(origin.process)) }
