package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sluice/probe"
)

// ParamsSpec is a configuration of request_params as a config states it. The
// zero value does nothing.
type ParamsSpec struct {
	// BlockedParams are top-level members that are removed. Blocking one name of
	// a thing removes all of them, blocking stream also stream_options, and
	// blocking tools also tool_choice and parallel_tool_calls. model, messages,
	// prompt and input cannot be blocked; what generate has in their place (text,
	// input_ids) can, because text is an option on responses.
	BlockedParams []string
	// MaxTokensLimit, MaxN and DefaultMaxTokens are at least 1, or 0 for unset.
	MaxTokensLimit, MaxN, DefaultMaxTokens int
	// AutoMaxTokens is default_max_tokens auto. DefaultMaxTokens is then unset.
	AutoMaxTokens bool
	// StripUnknown removes the top-level members that neither the surface nor the
	// engine nor KnownParams knows.
	StripUnknown bool
	KnownParams  []string
	// OnViolation is enforce, observe or, for enforce, empty.
	OnViolation string
}

// maxBlocked bounds BlockedParams: ParamsVerdict.Blocked has a bit for each.
const maxBlocked = 64

// required are the members without which there is no request.
var required = []string{"model", "messages", "prompt", "input"}

// kin are the members that go with a blocked one.
var kin = map[string][]string{
	"max_tokens":            outputNames,
	"max_completion_tokens": outputNames,
	"max_output_tokens":     outputNames,
	"max_new_tokens":        outputNames,
	"n":                     {"candidate_count"},
	"candidate_count":       {"n"},
	"response_format":       {"output_format"},
	"output_format":         {"response_format"},
	"stream":                {"stream_options"},
	"tools":                 {"tool_choice", "parallel_tool_calls"},
}

var outputNames = []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"}

// NewParams compiles spec. An error joins one *SpecError for each fault of spec,
// with a path from the configuration of the plugin on: "blocked_params[1]".
func NewParams(spec ParamsSpec) (*Params, error) {
	var faults faults
	ps := &Params{
		blocked: slices.Clone(spec.BlockedParams),
		auto:    spec.AutoMaxTokens,
		strip:   spec.StripUnknown,
		observe: faults.observes(spec.OnViolation),
	}
	faults.keys("blocked_params", spec.BlockedParams)
	faults.keys("known_params", spec.KnownParams)
	for i, key := range spec.BlockedParams {
		if slices.Contains(required, key) {
			faults = append(faults, &SpecError{
				Path:    "blocked_params[" + strconv.Itoa(i) + "]",
				Value:   fmt.Sprintf("required field %q", key),
				Problem: "cannot be blocked",
			})
		}
	}
	if len(spec.BlockedParams) > maxBlocked {
		faults.add("blocked_params", len(spec.BlockedParams), "are too many keys; expected at most %d", maxBlocked)
	}
	faults.atLeastOne("max_tokens_limit", spec.MaxTokensLimit)
	faults.atLeastOne("max_n", spec.MaxN)
	faults.atLeastOne("default_max_tokens", spec.DefaultMaxTokens)
	if spec.AutoMaxTokens && spec.DefaultMaxTokens != 0 {
		faults.add("default_max_tokens", spec.DefaultMaxTokens, "is set beside auto; expected one of them")
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	ps.setKeys(spec)
	ps.setCaps(spec)
	return ps, nil
}

// setKeys compiles the blocked and the known keys. A key that is blocked by its
// own name is counted under it, kin under what they go with.
func (ps *Params) setKeys(spec ParamsSpec) {
	var keys []string
	add := func(key string, index int) {
		if f := fieldOf(key); f != probe.FieldNone {
			switch {
			case index < 0:
				ps.known = ps.known.With(f)
			case ps.blockedField[f] == 0:
				ps.blockedField[f] = uint8(index + 1)
				ps.blockedFields = ps.blockedFields.With(f)
			}
			return
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
			ps.keyBlock = append(ps.keyBlock, int8(index))
		}
	}
	for i, key := range spec.BlockedParams {
		add(key, i)
	}
	for i, key := range spec.BlockedParams {
		for _, other := range kin[key] {
			add(other, i)
		}
	}
	for _, key := range spec.KnownParams {
		add(key, -1)
	}
	ps.keys = newKeyTable(keys)
}

// setCaps compiles the numbers.
func (ps *Params) setCaps(spec ParamsSpec) {
	ps.limit = int64(spec.MaxTokensLimit)
	set := func(fields probe.FieldSet, value int) {
		if value == 0 {
			return
		}
		ps.capped |= fields
		for f := probe.FieldNone; f < probe.NumFields; f++ {
			if fields.Has(f) {
				ps.caps[f], ps.capLits[f] = int64(value), numberLiteral(f, float64(value))
			}
		}
	}
	set(outputFields, spec.MaxTokensLimit)
	set(countFields, spec.MaxN)
	def := spec.DefaultMaxTokens
	if def == 0 {
		return
	}
	if spec.MaxTokensLimit > 0 {
		def = min(def, spec.MaxTokensLimit)
	}
	for s, f := range outputField {
		if f != probe.FieldNone {
			ps.defaults[s] = numberLiteral(f, float64(def))
		}
	}
}

// observes reads on_violation.
func (fs *faults) observes(name string) bool {
	names := []string{"enforce", "observe"}
	if name != "" && !slices.Contains(names, name) {
		fs.add("on_violation", name, "is unknown%s; expected enforce or observe", suggestion(name, names))
	}
	return name == "observe"
}

// keys checks a list of keys.
func (fs *faults) keys(path string, keys []string) {
	for i, key := range keys {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case key == "":
			fs.add(at, key, "is empty; expected the name of a member")
		case len(key) > maxKey:
			fs.add(at, key, "is too long; expected at most %d bytes", maxKey)
		case slices.Contains(keys[:i], key):
			fs.add(at, key, "is given more than once")
		}
	}
}

func (fs *faults) atLeastOne(path string, n int) {
	switch {
	case n < 0:
		fs.add(path, n, "is too small; expected a whole number >= 1")
	case n > maxInteger:
		fs.add(path, n, "is too large; expected a whole number up to %d", maxInteger)
	}
}
