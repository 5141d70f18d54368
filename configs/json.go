package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonReader reads JSON token by token, because positions, the order of keys
// and repeated keys are lost to every decoder that fills maps.
type jsonReader struct {
	dec    *json.Decoder
	data   []byte
	cursor *cursor
	origin Origin
	faults *Faults
}

// parseJSON reads exactly one JSON value (RFC 8259: no comments, no trailing
// commas, nothing after it). It returns nil when there is nothing to use.
func parseJSON(data []byte, source Origin, faults *Faults) *node {
	r := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, cursor: newCursor(data), origin: source, faults: faults}
	r.dec.UseNumber()
	if off, err := checkJSON(data); err != nil {
		faults.add(r.at(off), "", err.Error())
		return nil
	}
	n, err := r.value("", 0)
	if err != nil {
		faults.add(source, "", err.Error())
		return nil
	}
	return n
}

// checkJSON returns the first fault of the syntax and the offset of it.
func checkJSON(data []byte) (offset int, err error) {
	var raw json.RawMessage
	err = json.Unmarshal(data, &raw)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) && int(syntax.Offset) >= len(data) && strings.Contains(syntax.Error(), "unexpected end"):
		return len(data), errors.New("the JSON ends too early")
	case errors.As(err, &syntax):
		return max(int(syntax.Offset)-1, 0), errors.New("not valid JSON: " + syntax.Error())
	case err != nil:
		return 0, fmt.Errorf("not valid JSON: %w", err)
	}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size == 1 {
			return i, errors.New("not valid JSON: not UTF-8")
		}
		i += size
	}
	return 0, nil
}

// at returns the place of the byte at off.
func (r *jsonReader) at(off int) Origin {
	line, column := r.cursor.at(off)
	return at(r.origin, line, column)
}

// next returns the next token and where it begins. InputOffset is the end of
// the token before; white space, commas and colons lie between.
func (r *jsonReader) next() (json.Token, Origin, error) {
	start := int(r.dec.InputOffset())
	for start < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[start]) >= 0 {
		start++
	}
	tok, err := r.dec.Token()
	return tok, r.at(start), err
}

// value reads one value. A fault of that value alone makes it a bad node; the
// error says that reading cannot go on.
func (r *jsonReader) value(path string, depth int) (*node, error) {
	tok, origin, err := r.next()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return r.list(origin, path, depth)
		}
		return r.object(origin, path, depth)
	case json.Number:
		return r.number(tok.String(), origin, path), nil
	case string:
		return &node{kind: kindString, origin: origin, text: tok, value: tok}, nil
	case bool:
		return &node{kind: kindBool, origin: origin, text: strconv.FormatBool(tok), value: tok}, nil
	}
	return &node{kind: kindNull, origin: origin, text: "null"}, nil
}

func (r *jsonReader) list(origin Origin, path string, depth int) (*node, error) {
	out := &node{kind: kindList, origin: origin}
	for i := 0; r.dec.More(); i++ {
		v, err := r.value(itemPath(path, i), depth+1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	_, _, err := r.next()
	return out, err
}

func (r *jsonReader) object(origin Origin, path string, depth int) (*node, error) {
	out := &node{kind: kindMap, origin: origin}
	for r.dec.More() {
		tok, keyOrigin, err := r.next()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		keyPath := childPath(path, key)
		v, err := r.value(keyPath, depth+1)
		if err != nil {
			return nil, err
		}
		first, msg := out.find(key), keyFault(key)
		switch {
		case msg != "":
			r.faults.add(keyOrigin, path, msg)
		case first != nil:
			r.faults.add(keyOrigin, keyPath, "repeated key, first set on line "+strconv.Itoa(first.origin.Line))
		default:
			out.add(key, keyOrigin, v)
		}
	}
	_, _, err := r.next()
	return out, err
}

func (r *jsonReader) number(text string, origin Origin, path string) *node {
	if !strings.ContainsAny(text, ".eE") {
		if v, ok := integer(text, 10); ok {
			return &node{kind: kindInt, origin: origin, text: text, value: v}
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.faults.add(origin, path, "the number "+text+" is out of range")
		return &node{origin: origin}
	}
	return &node{kind: kindFloat, origin: origin, text: text, value: f}
}
