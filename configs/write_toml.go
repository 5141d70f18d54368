package configs

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// tomlWriter writes a document of TOML v1.0.
type tomlWriter struct {
	b      bytes.Buffer
	faults Faults
}

// writeTOML returns root as TOML. Its faults are what TOML cannot hold: null and
// whole numbers beyond 64 bits with a sign.
func writeTOML(root *node) ([]byte, error) {
	w := &tomlWriter{}
	w.check(root, "")
	if err := w.faults.err(); err != nil {
		return nil, err
	}
	w.table(root, configType, nil)
	return w.b.Bytes(), nil
}

func (w *tomlWriter) check(n *node, path string) {
	_, err := strconv.ParseInt(n.text, 10, 64)
	whole := n.kind == kindInt || n.kind == kindFloat && !strings.ContainsAny(n.text, ".eEn")
	switch {
	case n.kind == kindNull:
		w.faults.add(n.origin, path, "TOML has no null")
	case whole && err != nil:
		w.faults.add(n.origin, path, "TOML has no whole number as large as "+n.text)
	}
	for i, item := range n.items {
		w.check(item, itemPath(path, i))
	}
	for _, m := range n.members {
		w.check(m.value, childPath(path, m.key))
	}
}

// table writes the members of n, whose header stands already: first the keys,
// then the tables below, as TOML wants it.
func (w *tomlWriter) table(n *node, t reflect.Type, header []string) {
	for _, m := range n.members {
		if !headed(m.value, typeBelow(t, m.key)) {
			w.b.WriteString(tomlKeyText(m.key) + " = ")
			w.b.Write(w.value(m.value))
			w.b.WriteByte('\n')
		}
	}
	for _, m := range n.members {
		typ := typeBelow(t, m.key)
		if !headed(m.value, typ) {
			continue
		}
		path := append(header[:len(header):len(header)], tomlKeyText(m.key))
		if m.value.kind == kindMap {
			if !w.implied(m.value, typ) {
				w.header("[", path, "]")
			}
			w.table(m.value, typ, path)
			continue
		}
		for _, item := range m.value.items {
			w.header("[[", path, "]]")
			w.table(item, typeBelow(typ, ""), path)
		}
	}
}

// implied reports whether the headers below that of n imply it: all that is in n
// has one.
func (w *tomlWriter) implied(n *node, t reflect.Type) bool {
	return !slices.ContainsFunc(n.members, func(m member) bool { return !headed(m.value, typeBelow(t, m.key)) })
}

func (w *tomlWriter) header(open string, path []string, end string) {
	if w.b.Len() > 0 {
		w.b.WriteByte('\n')
	}
	w.b.WriteString(open + strings.Join(path, ".") + end + "\n")
}

// headed reports whether n is written below a header of its own, and not behind
// its key: a mapping, or a list of mappings, that is not short. Where the order
// of keys counts, in an Object, it is never headed, as headers come last.
func headed(n *node, t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == objectType || t.Kind() == reflect.Interface:
		return false
	case n.kind == kindMap && t.Kind() == reflect.Struct:
		return len(n.members) > 0 && (!n.leaf() || len(appendJSONLine(nil, n)) > lineWidth-20)
	case n.kind == kindMap:
		return len(n.members) > 2
	case n.kind == kindList && t.Kind() == reflect.Slice:
		for _, item := range n.items {
			if headed(item, t.Elem()) {
				return true
			}
		}
	}
	return false
}

// value returns n behind its key. A list of mappings has an item a line.
func (w *tomlWriter) value(n *node) []byte {
	if n.kind == kindList && !n.leaf() {
		dst := []byte("[\n")
		for _, item := range n.items {
			dst = append(append(append(dst, "  "...), appendTOML(nil, item)...), ",\n"...)
		}
		return append(dst, ']')
	}
	return appendTOML(nil, n)
}

// appendTOML appends n in one line.
func appendTOML(dst []byte, n *node) []byte {
	switch n.kind {
	case kindList:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendTOML(dst, item)
		}
		return append(dst, ']')
	case kindMap:
		if len(n.members) == 0 {
			return append(dst, "{}"...)
		}
		dst = append(dst, "{ "...)
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, tomlKeyText(m.key)...), " = "...)
			dst = appendTOML(dst, m.value)
		}
		return append(dst, " }"...)
	case kindString:
		return append(dst, tomlString(n.text)...)
	case kindFloat:
		return append(dst, strings.TrimPrefix(n.text, ".")...) // nan
	}
	return append(dst, n.text...)
}

func tomlKeyText(key string) string {
	if plainWord(key) {
		return key
	}
	return tomlString(key)
}

// tomlString returns s as a basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case isControl(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
