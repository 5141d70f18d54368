package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"sluice/probe"
)

// Literal is a member that a config writes into bodies: a key and a value, both
// as JSON text that is made once. It is immutable and safe for concurrent use;
// plans and segments point to it and never copy it.
type Literal struct {
	// Key is the key, not escaped.
	Key string
	// Field is the known field of that name, or FieldNone.
	Field probe.Field
	// State and Num are what an engine reads from the value where it wants a
	// number, see probe.ReadNumber. Num is valid iff State is Number.
	State probe.State
	Num   float64

	member []byte // "key":value, with the comma
	value  []byte // aliases member
}

// NewLiteral returns the literal of the given key and JSON value. The value is
// kept byte for byte, in a copy without the white space around it. An error means that it is not JSON.
func NewLiteral(key string, value []byte) (*Literal, error) {
	value = bytes.Trim(value, " \t\r\n")
	if !json.Valid(value) {
		return nil, fmt.Errorf("cannot use the value of %q: not JSON", key)
	}
	quoted, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("cannot quote the key %q: %w", key, err)
	}
	l := &Literal{Key: key, Field: fieldOf(key)}
	l.setText(quoted, value)
	l.State, l.Num = readLiteral(value)
	return l, nil
}

// Value returns the JSON text of the value. It must not be changed.
func (l *Literal) Value() []byte { return l.value }

func (l *Literal) setText(quotedKey, value []byte) {
	l.member = make([]byte, 0, len(quotedKey)+len(value)+2)
	l.member = append(l.member, quotedKey...)
	l.member = append(l.member, ':')
	l.member = append(l.member, value...)
	l.value = l.member[len(quotedKey)+1:]
	l.member = append(l.member, ',')
	l.value = l.value[:len(value):len(value)]
}

// numberLiteral returns the literal of a governed field and a finite number,
// written as the shortest text without exponent that reads as v again.
func numberLiteral(f probe.Field, v float64) *Literal {
	l := &Literal{Key: f.String(), Field: f, State: probe.Number, Num: v}
	l.setText(strconv.AppendQuote(nil, l.Key), strconv.AppendFloat(nil, v, 'f', -1, 64))
	return l
}

func fieldOf(key string) probe.Field {
	for f := probe.FieldNone + 1; f < probe.NumFields; f++ {
		if f.String() == key {
			return f
		}
	}
	return probe.FieldNone
}

// readLiteral returns what an engine reads from a JSON value.
func readLiteral(value []byte) (probe.State, float64) {
	num, state := probe.ReadNumber(value, kindOf(value))
	return state, num
}

// kindOf returns the type of a JSON value.
func kindOf(value []byte) probe.Kind {
	switch value[0] {
	case 'n':
		return probe.KindNull
	case 't':
		return probe.KindTrue
	case 'f':
		return probe.KindFalse
	case '"':
		return probe.KindString
	case '{':
		return probe.KindObject
	case '[':
		return probe.KindArray
	}
	return probe.KindNumber
}
