package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlReader builds nodes from the expressions of a TOML document that
// toml.Unmarshal has accepted: it may rely on keys that are defined once and
// on tables that are tables.
type tomlReader struct {
	parser unstable.Parser
	cursor *cursor
	origin Origin
	faults *Faults
}

// parseTOML reads one TOML document (v1.0). It returns nil when there is
// nothing to use.
func parseTOML(data []byte, file Origin, faults *Faults) *node {
	if err := toml.Unmarshal(data, new(map[string]any)); err != nil {
		origin, msg := tomlError(data, file, err)
		faults.add(origin, "", msg)
		return nil
	}
	r := tomlReader{cursor: newCursor(data), origin: file, faults: faults}
	r.parser.Reset(data)
	root := &node{kind: kindMap, origin: at(file, 1, 1)}
	table, path := root, ""
	for r.parser.NextExpression() {
		switch e := r.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, path = r.table(root, e)
		case unstable.KeyValue:
			r.keyValue(table, e, path, 0)
		}
	}
	if err := r.parser.Error(); err != nil {
		faults.add(file, "", err.Error())
		return nil
	}
	return root
}

// tomlError returns the place and the text of an error of the library. Its
// columns are in bytes.
func tomlError(data []byte, file Origin, err error) (Origin, string) {
	msg := strings.TrimPrefix(err.Error(), "toml: ")
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return file, msg
	}
	line, column := decode.Position()
	for range line - 1 {
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return at(file, line, utf8.RuneCount(data[:min(column-1, len(data))])+1), msg
}

// table returns the table that a header [a.b] or [[a.b]] opens, and its path.
func (r *tomlReader) table(root *node, header *unstable.Node) (table *node, path string) {
	keys := r.keys(header)
	table = root
	for i, key := range keys {
		if last := i == len(keys)-1; last && header.Kind == unstable.ArrayTable {
			return r.item(table, key, path)
		}
		table, path = r.descend(table, key, path)
	}
	return table, path
}

// item appends a table to the list of tables at key.
func (r *tomlReader) item(table *node, key tomlKey, path string) (*node, string) {
	if table.find(key.name) == nil {
		table.add(key.name, key.origin, &node{kind: kindList, origin: key.origin})
	}
	list := table.find(key.name).value
	item := &node{kind: kindMap, origin: key.origin}
	list.items = append(list.items, item)
	return item, itemPath(childPath(path, key.name), len(list.items)-1)
}

// descend returns the table at key, made if it is not there. Of a list of
// tables it is the last one.
func (r *tomlReader) descend(table *node, key tomlKey, path string) (*node, string) {
	path = childPath(path, key.name)
	m := table.find(key.name)
	if m == nil {
		table.add(key.name, key.origin, &node{kind: kindMap, origin: key.origin})
		m = table.find(key.name)
	}
	if n := len(m.value.items); n > 0 {
		return m.value.items[n-1], itemPath(path, n-1)
	}
	return m.value, path
}

// tomlKey is one part of a dotted key.
type tomlKey struct {
	name   string
	origin Origin
}

func (r *tomlReader) keys(e *unstable.Node) []tomlKey {
	var keys []tomlKey
	for it := e.Key(); it.Next(); {
		keys = append(keys, tomlKey{string(it.Node().Data), r.at(it.Node().Raw)})
	}
	return keys
}

func (r *tomlReader) at(raw unstable.Range) Origin {
	line, column := r.cursor.at(int(raw.Offset))
	return at(r.origin, line, column)
}

// keyValue adds a.b = value to table.
func (r *tomlReader) keyValue(table *node, e *unstable.Node, path string, depth int) {
	keys := r.keys(e)
	last := len(keys) - 1
	for _, key := range keys[:last] {
		table, path = r.descend(table, key, path)
	}
	for _, key := range keys {
		if msg := keyFault(key.name); msg != "" {
			r.faults.add(key.origin, path, msg)
			return
		}
	}
	key := keys[last]
	table.add(key.name, key.origin, r.value(e.Value(), key.origin, childPath(path, key.name), depth+1))
}

// value returns v as a node. Lists have no position of their own in the
// library's tree; they get that of the key.
func (r *tomlReader) value(v *unstable.Node, key Origin, path string, depth int) *node {
	out := &node{origin: key, text: string(v.Data)}
	if v.Raw.Length > 0 {
		out.origin = r.at(v.Raw)
	}
	if depth > maxDepth {
		r.faults.add(out.origin, path, fmt.Sprintf("nested deeper than %d levels", maxDepth))
		return &node{origin: out.origin}
	}
	switch v.Kind {
	case unstable.Array:
		out.kind = kindList
		for it := v.Children(); it.Next(); {
			item := r.value(it.Node(), key, itemPath(path, len(out.items)), depth+1)
			out.items = append(out.items, item)
		}
	case unstable.InlineTable:
		out.kind = kindMap
		for it := v.Children(); it.Next(); {
			r.keyValue(out, it.Node(), path, depth)
		}
	case unstable.String:
		out.kind, out.value = kindString, out.text
	case unstable.Bool:
		out.kind, out.value = kindBool, out.text == "true"
	case unstable.Integer:
		var ok bool
		if out.value, ok = integer(out.text, 0); !ok { // 0x, 0o, 0b and _ as in TOML
			return r.outOfRange(out, path)
		}
		out.kind = kindInt
	case unstable.Float:
		f, err := strconv.ParseFloat(strings.ReplaceAll(out.text, "_", ""), 64)
		if err != nil {
			return r.outOfRange(out, path)
		}
		out.kind, out.value = kindFloat, f
	default:
		out.kind, out.value = kindDate, out.text
	}
	return out
}

func (r *tomlReader) outOfRange(n *node, path string) *node {
	r.faults.add(n.origin, path, "the number "+n.text+" is out of range")
	return &node{origin: n.origin}
}
