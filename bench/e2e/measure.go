//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procStat is what /proc/PID/stat tells of a process (proc_pid_stat(5)).
type procStat struct {
	parent, session int
}

// parseStat reads a line of /proc/PID/stat. The name of the program, which stands
// in parentheses, may hold anything.
func parseStat(line string) (s procStat, err error) {
	i := strings.LastIndexByte(line, ')')
	if i < 0 {
		return s, fmt.Errorf("malformed stat %q", line)
	}
	f := strings.Fields(line[i+1:]) // state, ppid, pgrp, session, …
	if len(f) < 4 {
		return s, fmt.Errorf("malformed stat %q", line)
	}
	if s.parent, err = strconv.Atoi(f[1]); err != nil {
		return s, err
	}
	s.session, err = strconv.Atoi(f[3])
	return s, err
}

// parseSchedstat reads the CPU time from /proc/PID/task/TID/schedstat, in ns,
// where stat has it in hundredths of a second.
func parseSchedstat(line string) (time.Duration, error) {
	first, _, _ := strings.Cut(line, " ")
	n, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	return time.Duration(n), err
}

// parsePss reads the memory from /proc/PID/smaps_rollup in bytes: the pages of
// the process, those that it shares in shares.
func parsePss(text []byte) (int64, error) {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n * kib, err
		}
	}
	return 0, errors.New("no Pss in smaps_rollup")
}

// family returns pid and the processes that descend from it.
func family(pid int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, name := range entries {
		text, err := os.ReadFile(name)
		if ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s, err := parseStat(string(text))
		if err != nil {
			return nil, err
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return nil, err
		}
		parents[id] = s.parent
	}
	return descendants(pid, parents), nil
}

func descendants(pid int, parents map[int]int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		for id, parent := range parents {
			if parent == list[i] && !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// ended reports that the process is gone.
func ended(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// cpuTime returns the CPU time that all threads of pids have used. Threads that
// have ended are not in it; none of the targets ends any under load.
func cpuTime(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, err
		}
		for _, name := range tasks {
			text, err := os.ReadFile(name)
			if ended(err) {
				continue
			}
			if err != nil {
				return 0, err
			}
			d, err := parseSchedstat(string(text))
			if err != nil {
				return 0, err
			}
			total += d
		}
	}
	return total, nil
}

// memory returns the resident memory of pids in bytes.
func memory(pids []int) (total int64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		n, err := parsePss(text)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// inOurSession returns an error where pid is not of the session of this process.
func inOurSession(pid int) error {
	theirs, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	ours, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	a, errA := parseStat(string(theirs))
	b, errB := parseStat(string(ours))
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if a.session != b.session {
		return fmt.Errorf("process %d is of session %d, not %d: its figures would not compare", pid, a.session, b.session)
	}
	return nil
}
