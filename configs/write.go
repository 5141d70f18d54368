package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A configuration is written from nodes, as it is read into them: they have the
// order of keys and the text of values that a Go map has lost. What a writer
// gets is plain (see plainNode): of an int, float, bool or null the text is that
// of JSON, and there are no dates.

// writeNode returns root in a format. The faults are values that the format
// cannot hold.
func writeNode(root *node, f format) ([]byte, error) {
	switch f {
	case formatYAML:
		return writeYAML(root)
	case formatJSON:
		return writeJSON(root), nil
	case formatTOML:
		return writeTOML(root)
	case formatSluice:
		return writeSluice(root), nil
	}
	return nil, errors.New("cannot write a file without a format")
}

// typeBelow returns the type of what is at key, or of any item, of a t.
func typeBelow(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			if f.key == key {
				return f.typ
			}
		}
	case reflect.Map, reflect.Slice:
		return t.Elem()
	}
	return anyType
}

var anyType = reflect.TypeFor[any]()

// plainNode returns n, a value of type t that the strict reader has taken, as
// writers want it. Within an Object a number becomes the text that the Object
// has; elsewhere it stays a whole number or none.
func plainNode(n *node, t reflect.Type) *node {
	out := &node{kind: n.kind, origin: n.origin, text: n.text, value: n.value}
	below := func(key string) reflect.Type {
		if t == objectType {
			return objectType
		}
		return typeBelow(t, key)
	}
	switch n.kind {
	case kindList:
		for _, item := range n.items {
			out.items = append(out.items, plainNode(item, below("")))
		}
	case kindMap:
		for _, m := range n.members {
			out.add(m.key, m.origin, plainNode(m.value, below(m.key)))
		}
	case kindNull:
		out.text = "null"
	case kindBool:
		out.text = fmt.Sprint(n.value)
	case kindInt:
		if !json.Valid([]byte(n.text)) {
			out.text = fmt.Sprint(n.value)
		}
	case kindFloat:
		if f, ok := n.value.(float64); ok && !json.Valid([]byte(n.text)) {
			out.text = floatText(f, t != objectType)
		}
	case kindDate:
		out.kind, out.value = kindString, n.text
	}
	return out
}

// floatText returns f as JSON has it, if asked with a sign that it is no whole
// number. What JSON has no number for is returned as YAML writes it.
func floatText(f float64, float bool) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+")
	}
	text, err := json.Marshal(f)
	if err != nil {
		panic("BUG: a finite number cannot be encoded: " + err.Error())
	}
	if float && !strings.ContainsAny(string(text), ".eE") {
		return string(text) + ".0"
	}
	return string(text)
}

// valueNode returns v, a value as koanf holds it, as a plain node. The keys of
// mappings are sorted.
func valueNode(v any) (*node, error) {
	text := func(k kind, s string) (*node, error) { return &node{kind: k, text: s, value: v}, nil }
	switch v := v.(type) {
	case nil:
		return text(kindNull, "null")
	case string:
		return text(kindString, v)
	case bool:
		return text(kindBool, strconv.FormatBool(v))
	case int, uint64, Tokens:
		return text(kindInt, fmt.Sprint(v))
	case float64:
		return text(kindFloat, floatText(v, true))
	case time.Duration, Bytes, Share:
		return text(kindString, fmt.Sprint(v))
	case Secret:
		return text(kindString, redacted)
	case TokenLimit:
		if v == AutoTokens {
			return text(kindString, "auto")
		}
		return text(kindInt, fmt.Sprint(int(v)))
	case Object:
		var faults Faults
		n := parseJSON([]byte(v), Origin{}, &faults)
		return n, faults.err()
	case []any:
		out := &node{kind: kindList}
		for _, item := range v {
			n, err := valueNode(item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, n)
		}
		return out, nil
	case map[string]any:
		out := &node{kind: kindMap}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n, err := valueNode(v[key])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			out.add(key, Origin{}, n)
		}
		return out, nil
	}
	return nil, fmt.Errorf("cannot write a %T", v)
}

// lineWidth is the longest line that a writer fills with a list or mapping.
const lineWidth = 80

// leaf reports whether n holds no list or mapping that is not empty.
func (n *node) leaf() bool {
	for _, item := range n.items {
		if len(item.items)+len(item.members) > 0 {
			return false
		}
	}
	for _, m := range n.members {
		if len(m.value.items)+len(m.value.members) > 0 {
			return false
		}
	}
	return true
}
