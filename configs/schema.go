package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The types that are read in their own way.
var (
	configType   = reflect.TypeFor[Config]()
	durationType = reflect.TypeFor[time.Duration]()
	bytesType    = reflect.TypeFor[Bytes]()
)

// field is a key of the configuration: a field of one of its structs.
type field struct {
	key   string
	typ   reflect.Type
	index []int // for reflect.Value.FieldByIndex
}

// fieldsOf returns the keys of a struct, in the order of its fields.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		if key := f.Tag.Get("koanf"); key != "" {
			fields = append(fields, field{key, f.Type, f.Index})
		}
	}
	return fields
}

// reader reads the nodes of one source as the types of Config say. It is
// strict: no value is turned into another type, and a key that no field has is
// a fault.
type reader struct {
	// origins gets the place of every value that was read.
	origins origins
	faults  *Faults
	// env is the environment that secrets are taken from.
	env []string
	// sources is told of the files that secrets are taken from. It may be nil.
	sources *Sources
}

// value returns n as koanf shall hold it: string, bool, int, time.Duration or
// Bytes for a scalar, []any for a list, map[string]any for structs and maps.
// It is false after a fault of the value as a whole.
func (r *reader) value(n *node, t reflect.Type, path string) (v any, ok bool) {
	switch {
	case n.kind == kindBad:
		return nil, false
	case t.Kind() == reflect.Interface:
		return r.free(n, path)
	case n.kind == kindNull:
		return r.fail(n, path, "has no value: give it one or remove the key")
	case t == durationType:
		return r.duration(n, path)
	case t == bytesType:
		return r.size(n, path)
	case t == secretType:
		return r.secret(n, path)
	case t == objectType:
		return r.jsonObject(n, path)
	case t == tokensType:
		return r.tokens(n, path)
	case t == shareType:
		return r.share(n, path)
	case t == limitType:
		return r.limit(n, path)
	case t == thinkingType:
		return r.thinking(n, path)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.value(n, t.Elem(), path)
	case reflect.Struct:
		return r.object(n, t, path)
	case reflect.Map:
		return r.mapping(n, t, path)
	case reflect.Slice:
		return r.list(n, t, path)
	case reflect.String:
		return r.text(n, path)
	case reflect.Bool:
		return r.boolean(n, path)
	case reflect.Int:
		return r.integer(n, path)
	case reflect.Float64:
		return r.number(n, path)
	}
	panic("BUG: the configuration has a field of type " + t.String())
}

func (r *reader) fail(n *node, path, msg string) (any, bool) {
	r.faults.add(n.origin, path, msg)
	return nil, false
}

// set records where the value at path is from. What an earlier source set
// below it is gone, unless both are mappings: those are merged.
func (r *reader) set(n *node, path string) {
	if n.kind != kindMap {
		r.origins.forget(path)
	}
	r.origins[path] = place{n.origin, n.kind == kindMap || n.kind == kindList}
}

// object reads a struct. A key with a fault is left out; the rest stands.
func (r *reader) object(n *node, t reflect.Type, path string) (any, bool) {
	if n.kind != kindMap {
		return r.fail(n, path, "must be a mapping, got "+n.describe())
	}
	r.set(n, path)
	fields := fieldsOf(t)
	out := make(map[string]any, len(n.members))
	for _, m := range n.members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == m.key })
		if i < 0 {
			r.faults.add(m.origin, childPath(path, m.key), unknownKey(m.key, fields))
			continue
		}
		if v, ok := r.value(m.value, fields[i].typ, childPath(path, m.key)); ok {
			out[m.key] = v
		}
	}
	return out, true
}

func unknownKey(key string, fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if near := nearest(key, keys); near != "" {
		return "unknown key; did you mean " + near + "?"
	}
	return "unknown key; expected one of " + strings.Join(keys, ", ")
}

func (r *reader) mapping(n *node, t reflect.Type, path string) (any, bool) {
	if n.kind != kindMap && t.Elem() == secretType {
		return r.fail(n, path, "must be a mapping") // what it is may be a secret
	}
	if n.kind != kindMap {
		return r.fail(n, path, "must be a mapping, got "+n.describe())
	}
	r.set(n, path)
	out := make(map[string]any, len(n.members))
	for _, m := range n.members {
		if v, ok := r.value(m.value, t.Elem(), childPath(path, m.key)); ok {
			out[m.key] = v
		}
	}
	return out, true
}

// list reads a list. An item with a fault keeps its place, as nil, so that the
// paths of the others stay right.
func (r *reader) list(n *node, t reflect.Type, path string) (any, bool) {
	if n.kind != kindList {
		return r.fail(n, path, "must be a list, got "+n.describe())
	}
	r.set(n, path)
	out := make([]any, len(n.items))
	for i, item := range n.items {
		if v, ok := r.value(item, t.Elem(), itemPath(path, i)); ok {
			out[i] = v
		}
	}
	return out, true
}

// free reads a value whose type its user checks.
func (r *reader) free(n *node, path string) (any, bool) {
	r.set(n, path)
	ok := n.kind != kindBad
	for i, item := range n.items {
		_, good := r.free(item, itemPath(path, i))
		ok = ok && good
	}
	for _, m := range n.members {
		_, good := r.free(m.value, childPath(path, m.key))
		ok = ok && good
	}
	return n.plain(), ok
}

func (r *reader) text(n *node, path string) (any, bool) {
	switch n.kind {
	case kindString:
	case kindList, kindMap:
		return r.fail(n, path, "must be a string, got "+n.describe())
	default:
		return r.fail(n, path, "must be a string, got "+n.describe()+": put it in quotes")
	}
	if n.text == "" {
		return r.fail(n, path, "must not be empty")
	}
	if !utf8.ValidString(n.text) {
		return r.fail(n, path, "must be UTF-8, got "+quote(n.text))
	}
	if strings.ContainsFunc(n.text, isControl) {
		return r.fail(n, path, "must not hold control characters, got "+quote(n.text))
	}
	r.set(n, path)
	return n.text, true
}

func (r *reader) boolean(n *node, path string) (any, bool) {
	if n.kind == kindString && (n.text == "true" || n.text == "false") {
		return r.fail(n, path, "must be true or false, got the string "+quote(n.text)+": remove the quotes")
	}
	if n.kind != kindBool {
		return r.fail(n, path, "must be true or false, got "+n.describe())
	}
	r.set(n, path)
	return n.value, true
}

func (r *reader) integer(n *node, path string) (any, bool) {
	if n.kind != kindInt {
		return r.fail(n, path, "must be a whole number, got "+n.describe())
	}
	i, ok := n.value.(int)
	if !ok {
		return r.fail(n, path, "is too large: "+n.text)
	}
	r.set(n, path)
	return i, true
}

func (r *reader) number(n *node, path string) (any, bool) {
	f, ok := n.value.(float64)
	if i, whole := n.value.(int); whole {
		f, ok = float64(i), true
	}
	if !ok {
		return r.fail(n, path, "must be a number, got "+n.describe())
	}
	r.set(n, path)
	return f, true
}

func (r *reader) duration(n *node, path string) (any, bool) {
	switch n.kind {
	case kindString, kindInt, kindFloat:
	default:
		return r.fail(n, path, "must be a duration such as 30s, got "+n.describe())
	}
	d, err := parseDuration(n.text)
	if err != nil {
		return r.fail(n, path, err.Error())
	}
	r.set(n, path)
	return d, true
}

func (r *reader) size(n *node, path string) (any, bool) {
	text := n.text
	switch n.kind {
	case kindString:
	case kindInt:
		text = fmt.Sprint(n.value) // the text may be 0x10 or 1_000
	default:
		return r.fail(n, path, "must be a size such as 32MiB, got "+n.describe())
	}
	b, err := ParseBytes(text)
	if err != nil {
		return r.fail(n, path, err.Error())
	}
	r.set(n, path)
	return b, true
}

// nearest returns the candidate that word is probably a misspelling of, or "".
func nearest(word string, candidates []string) string {
	best, limit := "", max(1, len(word)/3)
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// distance is the number of letters to insert, remove, change or swap with
// their neighbour that turns a into b (optimal string alignment).
func distance(a, b string) int {
	const tooLong = 128
	if len(a) > tooLong || len(b) > tooLong {
		return tooLong
	}
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
