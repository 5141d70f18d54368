package policy

import (
	"math"
	"strconv"

	"sluice/probe"
)

// Verdict is what a contract says of one request. It is a plain value that
// refers to nothing.
type Verdict struct {
	// Refused reports that the request must be answered with 400
	// sampling_contract_violation, see AppendMessage, and its plan dropped.
	Refused bool
	// First is what the client is told: the first violated field in field
	// order and, where several objects violate it, its first value in body
	// order. Valid iff Violated is not empty.
	First Violation
	// Violated are all fields at fault, for counters. Under on_conflict
	// observe they are those for which reject would have refused.
	Violated probe.FieldSet
	// Injected are the pins that were added where the client sent none, or
	// null, and Replaced the fields whose value was replaced. Both are empty
	// for a refused request.
	Injected, Replaced probe.FieldSet
}

// Violation is one value that breaks one rule of a contract.
type Violation struct {
	// Field is a governed field, or FieldSamplingParams for a sampling_params
	// that is not an object or a list of objects.
	Field probe.Field
	// State is Number or Unusable; Num is valid iff it is Number.
	State probe.State
	Num   float64
	// Pin reports a pin, whose number is Min and Max, else they bound a band.
	Pin      bool
	Min, Max float64
}

// note counts a violation and keeps the one to report.
func (v *Verdict) note(n Violation) {
	if v.Violated == 0 || n.Field < v.First.Field {
		v.First = n
	}
	v.Violated = v.Violated.With(n.Field)
}

// AppendMessage appends the message of the error that the client gets, or
// nothing when no field is violated. It never repeats a string of the client.
func (v *Verdict) AppendMessage(dst []byte) []byte {
	if v.Violated == 0 {
		return dst
	}
	dst = append(dst, v.First.Field.String()...)
	dst = append(dst, " violates this deployment's sampling contract: "...)
	return v.First.appendDetail(dst)
}

func (n *Violation) appendDetail(dst []byte) []byte {
	switch {
	case n.Field == probe.FieldSamplingParams:
		return append(dst, "must be an object or a list of objects"...)
	case n.Pin && n.State == probe.Number:
		dst = append(dst, "got "...)
		dst = appendNumber(dst, n.Num)
		dst = append(dst, ", expected "...)
		dst = appendNumber(dst, n.Min)
		return append(dst, " (or omit the field)"...)
	case n.Pin:
		dst = append(dst, "expected "...)
		dst = appendNumber(dst, n.Min)
		return append(dst, " (or omit the field), got a non-numeric value"...)
	case n.State == probe.Number:
		dst = append(dst, "must be between "...)
		dst = n.appendBand(dst)
		dst = append(dst, ", got "...)
		return appendNumber(dst, n.Num)
	default:
		dst = append(dst, "must be a number between "...)
		dst = n.appendBand(dst)
		return append(dst, ", got a non-numeric value"...)
	}
}

func (n *Violation) appendBand(dst []byte) []byte {
	dst = appendNumber(dst, n.Min)
	dst = append(dst, " and "...)
	return appendNumber(dst, n.Max)
}

// appendNumber appends the shortest decimal that reads as v again, without
// exponent; NaN and the infinities as Python's json writes them.
func appendNumber(dst []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}
