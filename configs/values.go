package configs

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"sluice/policy"
)

// Object is a JSON object as text, its members in the order in which the
// configuration gives them. Empty is none.
type Object string

// MarshalJSON returns the object itself, or null.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return []byte(o), nil
}

// Members returns the keys and the JSON text of the values, in order.
func (o Object) Members() []ObjectMember {
	if o == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(o)))
	if _, err := dec.Token(); err != nil {
		panic("BUG: an Object that is no JSON: " + err.Error())
	}
	var members []ObjectMember
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			panic("BUG: an Object that is no JSON: " + err.Error())
		}
		members = append(members, ObjectMember{key.(string), value})
	}
	return members
}

// ObjectMember is one member of an Object.
type ObjectMember struct {
	Key   string
	Value json.RawMessage
}

// Tokens is a number of tokens. It is written as a plain number, in thousands
// (32K) or in millions (1M).
type Tokens int

// TokenLimit is an output limit, at least 1, or AutoTokens.
type TokenLimit int

// AutoTokens, written auto, is what the context window leaves.
const AutoTokens TokenLimit = -1

// MarshalText returns the number, or auto.
func (l TokenLimit) MarshalText() ([]byte, error) {
	if l == AutoTokens {
		return []byte("auto"), nil
	}
	return strconv.AppendInt(nil, int64(l), 10), nil
}

// Thinking are the members that turn a model's thinking on or off: those of a
// named preset, or given ones.
type Thinking struct {
	// Preset is the name of one: sglang, vllm, qwen, deepseek, openai, minimax.
	// In a file: thinking: qwen.
	Preset string `koanf:"preset"`
	// On and Off are added to a request that asks for it.
	On  Object `koanf:"on"`
	Off Object `koanf:"off"`
}

var (
	objectType   = reflect.TypeFor[Object]()
	tokensType   = reflect.TypeFor[Tokens]()
	limitType    = reflect.TypeFor[TokenLimit]()
	thinkingType = reflect.TypeFor[Thinking]()
)

// jsonObject reads a mapping as the JSON object that it writes.
func (r *reader) jsonObject(n *node, path string) (any, bool) {
	if n.kind != kindMap {
		return r.fail(n, path, "must be a JSON object, got "+n.describe())
	}
	before := len(*r.faults)
	text := r.appendJSON(nil, n, path)
	if len(*r.faults) > before {
		return nil, false
	}
	r.origins.forget(path)
	r.set(n, path)
	return Object(text), true
}

// appendJSON appends n as JSON, its members in the order of the source and its
// numbers as they are written where JSON allows it.
func (r *reader) appendJSON(dst []byte, n *node, path string) []byte {
	switch n.kind {
	case kindList:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.appendJSON(dst, item, itemPath(path, i))
		}
		return append(dst, ']')
	case kindMap:
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, m.key), ':')
			dst = r.appendJSON(dst, m.value, childPath(path, m.key))
		}
		return append(dst, '}')
	case kindNull:
		return append(dst, "null"...)
	case kindBool:
		return strconv.AppendBool(dst, n.value.(bool))
	case kindInt, kindFloat:
		return r.appendJSONNumber(dst, n, path)
	case kindBad: // its fault is told
		return dst
	}
	return appendJSONString(dst, n.text)
}

func (r *reader) appendJSONNumber(dst []byte, n *node, path string) []byte {
	if json.Valid([]byte(n.text)) {
		return append(dst, n.text...)
	}
	if f, ok := n.value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		r.faults.add(n.origin, path, "must be a finite number, got "+n.text)
		return dst
	}
	text, err := json.Marshal(n.value)
	if err != nil {
		r.faults.add(n.origin, path, "must be a JSON number, got "+n.text)
		return dst
	}
	return append(dst, text...)
}

// appendJSONString appends s in quotes, without the escapes that HTML needs.
func appendJSONString(dst []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: a string cannot be encoded: " + err.Error())
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// tokens reads a number of tokens.
func (r *reader) tokens(n *node, path string) (any, bool) {
	text := n.text
	switch v := n.value.(type) {
	case int:
		text = strconv.Itoa(v)
	case float64:
		text = ""
	}
	t, err := policy.ParseTokens(text)
	if err != nil {
		return r.fail(n, path, "must be a number of tokens such as 4096, 32K or 1.5M, got "+n.describe())
	}
	r.set(n, path)
	return Tokens(t), true
}

// limit reads an output limit.
func (r *reader) limit(n *node, path string) (any, bool) {
	i, ok := n.value.(int)
	switch {
	case n.kind == kindString && n.text == "auto":
		i = int(AutoTokens)
	case !ok || i < 1:
		return r.fail(n, path, "must be a whole number, at least 1, or auto, got "+n.describe())
	}
	r.set(n, path)
	return TokenLimit(i), true
}

// thinking reads the name of a preset, or a mapping with on and off.
func (r *reader) thinking(n *node, path string) (any, bool) {
	if n.kind != kindString {
		return r.object(n, thinkingType, path)
	}
	r.set(n, path)
	return map[string]any{"preset": n.text}, true
}
