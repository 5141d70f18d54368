package policy

import (
	"strconv"

	"sluice/probe"
)

// Params is the plugin request_params of one decision, compiled: which members
// are taken out of a request and how large its limits may be. It is immutable
// and safe for concurrent use. A nil Params is off.
//
// What is one thing under several names is governed as one:
//
//   - the output limit: max_tokens, max_completion_tokens, max_output_tokens,
//     max_new_tokens. A default is written under the spelling that OpenAI, vLLM
//     and SGLang all read on the surface: max_tokens on chat, completions and
//     messages, max_output_tokens on responses, max_new_tokens on generate.
//   - the number of answers: n and candidate_count. best_of, which is computed
//     but not returned, is bounded by max_n, too.
//   - the format: response_format and output_format.
//
// On generate the members of the objects in sampling_params are looked at like
// those of the top level: blocking and caps hold at both levels. A default goes
// into each object that gives no limit, whatever the top level says, where
// SGLang reads none; an absent or null sampling_params counts as one object.
// strip_unknown is for the top level alone: what SGLang does not know below it,
// SGLang refuses.
//
// An output limit under a spelling that the engine does not read counts as
// given, unless strip_unknown takes it out.
type Params struct {
	blocked []string // as the config has them
	// blockedField is 1 + the index in blocked of what removes the field, 0: it
	// stays.
	blockedField  [probe.NumFields]uint8
	blockedFields probe.FieldSet
	// keys are the other keys of the config. keyBlock holds, by their values,
	// the index in blocked, or -1 for one of known_params.
	keys     keyTable
	keyBlock []int8
	known    probe.FieldSet // of known_params

	capped   probe.FieldSet         // the fields under a cap
	caps     [probe.NumFields]int64 // Valid iff capped
	capLits  [probe.NumFields]*Literal
	limit    int64                               // of the output, 0: none
	defaults [probe.SurfaceGenerate + 1]*Literal // nil: none
	auto     bool
	strip    bool
	observe  bool
}

// The fields that are one thing.
const (
	outputFields = probe.FieldSet(1)<<probe.FieldMaxTokens | 1<<probe.FieldMaxCompletionTokens |
		1<<probe.FieldMaxOutputTokens | 1<<probe.FieldMaxNewTokens
	answerFields = probe.FieldSet(1)<<probe.FieldN | 1<<probe.FieldCandidateCount
	countFields  = answerFields | 1<<probe.FieldBestOf
)

// outputField is the spelling of the output limit on each surface.
var outputField = [probe.SurfaceGenerate + 1]probe.Field{
	probe.SurfaceChat:        probe.FieldMaxTokens,
	probe.SurfaceCompletions: probe.FieldMaxTokens,
	probe.SurfaceResponses:   probe.FieldMaxOutputTokens,
	probe.SurfaceMessages:    probe.FieldMaxTokens,
	probe.SurfaceGenerate:    probe.FieldMaxNewTokens,
}

// BlockedParams returns the keys of the config that are blocked, by the indexes
// of ParamsVerdict.Blocked. They must not be changed.
func (ps *Params) BlockedParams() []string {
	if ps == nil {
		return nil
	}
	return ps.blocked
}

// Observes reports whether the plugin counts what it would do and does nothing.
func (ps *Params) Observes() bool { return ps != nil && ps.observe }

// ParamsVerdict is what request_params says of one request. It is a plain value
// that refers to nothing. Under on_violation observe it says what enforce would
// have done, with Refused false.
type ParamsVerdict struct {
	// Refused reports that the request must be answered with 400
	// request_params_violation, see AppendMessage, and its plan dropped.
	Refused bool
	// First is what the client is told: the first output limit at fault in body
	// order, or else the first number of answers. Valid iff Violated is not
	// empty.
	First ParamViolation
	// Violated are all fields at fault.
	Violated probe.FieldSet
	// Capped are the limits that were lowered, by the client's spelling, and
	// Defaulted the ones that were added. These and the following are empty for a
	// request that is refused, or would be.
	Capped, Defaulted probe.FieldSet
	// Blocked are the indexes in Params.BlockedParams of what was removed.
	Blocked uint64
	// Stripped is how many unknown members were removed.
	Stripped int
	// WantsLimit reports that default_max_tokens is auto and the request gives no
	// output limit: the caller counts one and calls Params.GiveLimit.
	WantsLimit bool
}

// HasBlocked reports whether what stands at index i of Params.BlockedParams was
// removed.
func (v *ParamsVerdict) HasBlocked(i int) bool { return v.Blocked>>(uint(i)&63)&1 != 0 }

// ParamViolation is one value that cannot be held to its cap.
type ParamViolation struct {
	// Field is the member at fault, or FieldSamplingParams for a
	// sampling_params that is not an object or a list of objects.
	Field probe.Field
	// Kind is the JSON type of the value. State is Number where the value reads as
	// a number, which is Num, and else Unusable.
	Kind  probe.Kind
	State probe.State
	Num   float64
	// Cap is the largest value that is let through as it is.
	Cap int64
}

// note counts a violation and keeps the one to report.
func (v *ParamsVerdict) note(n ParamViolation) {
	if v.Violated == 0 || n.rank() < v.First.rank() {
		v.First = n
	}
	v.Violated = v.Violated.With(n.Field)
}

// rank orders violations by what is told first.
func (n *ParamViolation) rank() int {
	switch {
	case n.Field == probe.FieldSamplingParams:
		return 0
	case outputFields.Has(n.Field):
		return 1
	}
	return 2
}

// Param returns the key of the member that AppendMessage is about, or nothing
// when none is violated.
func (v *ParamsVerdict) Param() string {
	if v.Violated == 0 {
		return ""
	}
	return v.First.Field.String()
}

// AppendMessage appends the message of the error that the client gets, or
// nothing when no field is violated. It never repeats a string of the client.
func (v *ParamsVerdict) AppendMessage(dst []byte) []byte {
	if v.Violated == 0 {
		return dst
	}
	n := &v.First
	dst = append(dst, n.Field.String()...)
	dst = append(dst, " violates this deployment's request limits: "...)
	if n.Field == probe.FieldSamplingParams {
		return append(dst, "must be an object or a list of objects"...)
	}
	dst = append(dst, "must be a whole number >= 1 (above "...)
	dst = strconv.AppendInt(dst, n.Cap, 10)
	dst = append(dst, " it is lowered to that), got "...)
	switch {
	case n.State == probe.Number && n.Kind == probe.KindNumber:
		return appendNumber(dst, n.Num)
	case n.State == probe.Number && n.Kind == probe.KindString:
		dst = append(dst, "a string that reads as "...)
		return appendNumber(dst, n.Num)
	}
	return append(dst, kindTexts[n.Kind]...)
}

// kindTexts say what a value that is no number is.
var kindTexts = [probe.KindArray + 1]string{
	probe.KindFalse:  "false",
	probe.KindTrue:   "true",
	probe.KindNumber: "a number out of range",
	probe.KindString: "a string that is not a number",
	probe.KindObject: "an object",
	probe.KindArray:  "a list",
}
