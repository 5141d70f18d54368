package configs

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Origin is the place a value came from. The zero Origin is the built-in
// default.
type Origin struct {
	// Name is a file, an environment variable or a flag with its dashes.
	Name string
	// Line and Column count from 1, the column in characters. Both are 0
	// where the place has no lines (a variable, a flag, a whole file).
	Line, Column int

	// rank orders the sources as they override each other: files as given,
	// then the environment, then flags.
	rank int
}

// String returns name:line:column, the name alone, or "default".
func (o Origin) String() string {
	if o.Name == "" {
		return "default"
	}
	if o.Line == 0 {
		return o.Name
	}
	return o.Name + ":" + strconv.Itoa(o.Line) + ":" + strconv.Itoa(o.Column)
}

// Fault is one thing wrong with a configuration.
type Fault struct {
	// Origin is where the faulty value was set; the zero Origin when nobody
	// set it (a missing value).
	Origin Origin
	// Path names the key, such as pools[0].balance. It is empty when a whole
	// source is at fault.
	Path string
	// Msg says what is wrong and what is allowed.
	Msg string
}

// Error returns origin: path: message, without the parts that are empty.
func (f Fault) Error() string {
	parts := make([]string, 0, 3)
	if f.Origin.Name != "" {
		parts = append(parts, f.Origin.String())
	}
	if f.Path != "" {
		parts = append(parts, f.Path)
	}
	return strings.Join(append(parts, f.Msg), ": ")
}

// Faults are all faults of one configuration, in the order of the sources and
// of the lines in them. Load and Validate return them as their error;
// errors.As finds each Fault too.
type Faults []Fault

// Error returns one line a fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each fault as an error.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// err returns fs sorted and without repetitions, or nil when there are none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, compareFaults)
	return slices.Compact(fs)
}

func compareFaults(a, b Fault) int {
	return cmp.Or(
		cmp.Compare(sourceRank(a.Origin), sourceRank(b.Origin)),
		cmp.Compare(a.Origin.Line, b.Origin.Line),
		cmp.Compare(a.Origin.Column, b.Origin.Column),
		cmp.Compare(a.Origin.Name, b.Origin.Name),
	)
}

// sourceRank puts what nobody wrote behind everything somebody did.
func sourceRank(o Origin) int {
	if o.Name == "" {
		return math.MaxInt
	}
	return o.rank
}

// add appends a fault.
func (fs *Faults) add(o Origin, path, msg string) {
	*fs = append(*fs, Fault{Origin: o, Path: path, Msg: msg})
}

// without returns the faults of fs that are not explained by one of known: a
// value that could not be read was not given to the later checks, so what
// they say about it, about a part of it or about what holds it means nothing.
func (fs Faults) without(known Faults) Faults {
	at := make(map[string]bool, len(known)) // paths of known
	above := map[string]bool{}              // and what holds them
	for _, k := range known {
		at[k.Path] = true
		for path := holder(k.Path); path != "" && !above[path]; path = holder(path) {
			above[path] = true
		}
	}
	delete(at, "")
	return slices.DeleteFunc(fs, func(f Fault) bool {
		if above[f.Path] {
			return true
		}
		for path := f.Path; path != ""; path = holder(path) {
			if at[path] {
				return true
			}
		}
		return false
	})
}

// holder returns the path of what holds the value at path, or "".
func holder(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// within reports whether path is parent or lies below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// childPath returns the path of a key below parent. A key that is not a plain
// word is quoted: models and aliases hold dots, slashes and colons.
func childPath(parent, key string) string {
	switch {
	case !plainWord(key):
		return parent + "[" + strconv.Quote(key) + "]"
	case parent == "":
		return key
	}
	return parent + "." + key
}

// itemPath returns the path of the i-th item of the list at parent.
func itemPath(parent string, i int) string {
	return parent + "[" + strconv.Itoa(i) + "]"
}

func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && !isAlphanumeric(c) {
			return false
		}
	}
	return s != ""
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// origins says where the value at each path was set last.
type origins map[string]place

type place struct {
	origin Origin
	// holds is true for a list or mapping: there may be places below.
	holds bool
}

// forget removes path and everything below it.
func (o origins) forget(path string) {
	if !o[path].holds {
		delete(o, path)
		return
	}
	for p := range o {
		if within(p, path) {
			delete(o, p)
		}
	}
}

// of returns the origin of path, or of the nearest value that holds it.
func (o origins) of(path string) Origin {
	for path != "" {
		if p, ok := o[path]; ok {
			return p.origin
		}
		path = holder(path)
	}
	return Origin{}
}
