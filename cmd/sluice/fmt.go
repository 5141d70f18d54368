package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sluice/configs"
)

const fmtUsage = `sluice fmt prints .sluice files in their canonical form.

usage: sluice fmt [-w] [-l] [-d] FILE…

Comments, templates and order are kept; whether the words make a configuration is
for sluice check. The file - is standard input.

Exit codes: 0 done, 1 with -l or -d a file is not in canonical form (or it could not
be written), 2 a file cannot be read or has errors, each printed with its line; it
is left as it is, and so is no other.

flags:
`

// fmtFlags are what fmt does with what it has formatted.
type fmtFlags struct{ write, list, diff bool }

func runFmt(p *process) int {
	var f fmtFlags
	fs := flag.NewFlagSet("sluice fmt", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, fmtUsage)
		fs.PrintDefaults()
	}
	fs.BoolVar(&f.write, "w", false, "write to the file instead of printing, if it changes")
	fs.BoolVar(&f.list, "l", false, "list files that change instead of printing")
	fs.BoolVar(&f.diff, "d", false, "print what changes instead of all")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	if fs.NArg() == 0 {
		fmt.Fprintln(p.stderr, "sluice fmt: no files; - is standard input")
		return exitUsage
	}
	code := exitOK
	for _, name := range fs.Args() {
		code = max(code, f.file(p, name))
	}
	return code
}

// file formats one file and returns the exit code.
func (f *fmtFlags) file(p *process, name string) int {
	source, err := readInput(p, name)
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice fmt: %v\n", err)
		return exitUsage
	}
	out, err := configs.Format(name, source)
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	}
	changed := string(out) != string(source)
	code := exitOK
	if f.list && changed {
		fmt.Fprintln(p.stdout, name)
		code = exitFailed
	}
	if f.diff && changed {
		fmt.Fprint(p.stdout, diff(name, string(source), string(out)))
		code = exitFailed
	}
	switch {
	case f.write && changed && name != "-":
		if err := replaceFile(name, out); err != nil {
			fmt.Fprintf(p.stderr, "sluice fmt: %v\n", err)
			return exitFailed
		}
	case !f.list && !f.diff && (!f.write || name == "-"):
		if _, err := p.stdout.Write(out); err != nil {
			return exitFailed
		}
	}
	return code
}

// maxInput is how much of a file is read: more than any configuration may have.
const maxInput = 1 << 20

// readInput returns a file, or standard input for the name -.
func readInput(p *process, name string) ([]byte, error) {
	from := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxInput:
		return nil, fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return b, nil
}

// replaceFile gives a file new content at once: who reads it gets the old or the
// new one, whole, also after a crash. A symbolic link stays, its target changes.
func replaceFile(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
