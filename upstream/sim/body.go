package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object that is read member by member, the way pydantic does
// it in lax mode. The first fault is kept in err, and the values read after it
// do not matter. Members that nobody asks for are let through, as engines do.
type object struct {
	members map[string]json.RawMessage // the last of duplicates, as in Python
	err     *apiError
}

// parseObject reads a request body as Python's json.loads does: a byte order
// mark, NaN and Infinity are let through.
func parseObject(body []byte) (*object, *apiError) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(body) {
		return nil, badRequest("", "There was an error parsing the body: it is not UTF-8")
	}
	if !json.Valid(body) {
		body = quoteNonFinite(body)
	}
	o := &object{}
	if err := json.Unmarshal(body, &o.members); err != nil {
		return nil, badRequest("", "1 validation error:\n  {'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: %s'}", err)
	}
	if o.members == nil { // null
		return nil, badRequest("", "1 validation error:\n  {'type': 'missing', 'loc': ('body',), 'msg': 'Field required', 'input': None}")
	}
	return o, nil
}

// quoteNonFinite puts the literals NaN, Infinity and -Infinity in quotes. As
// strings they read as the same numbers.
func quoteNonFinite(body []byte) []byte {
	out := make([]byte, 0, len(body)+16)
	inString := false
	for i := 0; i < len(body); {
		c := body[i]
		if inString {
			n := 1
			if c == '\\' && i+1 < len(body) {
				n = 2
			}
			inString = c != '"'
			out = append(out, body[i:i+n]...)
			i += n
			continue
		}
		if n := nonFinite(body[i:]); n > 0 {
			out = append(out, '"')
			out = append(out, body[i:i+n]...)
			out = append(out, '"')
			i += n
			continue
		}
		inString = c == '"'
		out = append(out, c)
		i++
	}
	return out
}

func nonFinite(b []byte) int {
	for _, lit := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(lit)) {
			return len(lit)
		}
	}
	return 0
}

func (o *object) fail(key, kind, message string) {
	if o.err == nil {
		o.err = badRequest(key, "1 validation error:\n  {'type': '%s', 'loc': ('body', '%s'), 'msg': '%s'}", kind, key, message)
	}
}

// has reports whether the member is there and not null.
func (o *object) has(key string) bool {
	v, ok := o.members[key]
	return ok && string(v) != "null"
}

// need makes a missing or null member a fault.
func (o *object) need(key string) {
	if !o.has(key) {
		o.fail(key, "missing", "Field required")
	}
}

// decode reads a member into v. It reports false if the member is missing, null
// or no such value.
func (o *object) decode(key string, v any) bool {
	return o.has(key) && json.Unmarshal(o.members[key], v) == nil
}

// text returns a string member, or "" if it is not there.
func (o *object) text(key string) string {
	var s string
	if o.has(key) && !o.decode(key, &s) {
		o.fail(key, "string_type", "Input should be a valid string")
	}
	return s
}

// flag returns a bool member, or def if it is not there.
func (o *object) flag(key string, def bool) bool {
	if !o.has(key) {
		return def
	}
	switch strings.ToLower(strings.Trim(string(o.members[key]), `"`)) {
	case "true", "1", "1.0", "yes", "y", "on", "t":
		return true
	case "false", "0", "0.0", "no", "n", "off", "f":
		return false
	}
	o.fail(key, "bool_parsing", "Input should be a valid boolean, unable to interpret input")
	return def
}

// number returns a number member, or def if it is not there. Numeric strings,
// true and false are numbers.
func (o *object) number(key string, def float64) float64 {
	if !o.has(key) {
		return def
	}
	raw := string(o.members[key])
	switch raw {
	case "true":
		return 1
	case "false":
		return 0
	}
	if raw[0] == '"' {
		o.decode(key, &raw)
		raw = strings.TrimSpace(raw)
		if strings.ContainsAny(raw, "xXpP") { // Go's hexadecimal form
			raw = ""
		}
		raw = strings.ReplaceAll(raw, "_", "")
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil && !math.IsInf(f, 0) {
		o.fail(key, "float_parsing", "Input should be a valid number, unable to parse string as a number")
		return def
	}
	return f
}

// integer returns a whole number, or def if it is not there. What is beyond
// int64 is the nearest int64.
func (o *object) integer(key string, def int) int {
	f := o.number(key, float64(def))
	switch {
	case f != math.Trunc(f): // NaN too
		o.fail(key, "int_from_float", "Input should be a valid integer, got a number with a fractional part")
		return def
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int(f)
}

// texts returns a member that is a string or a list of strings.
func (o *object) texts(key string) []string {
	var one string
	var list []string
	switch {
	case !o.has(key):
		return nil
	case o.decode(key, &one):
		return []string{one}
	case o.decode(key, &list):
		return list
	}
	o.fail(key, "list_type", "Input should be a valid string or list of strings")
	return nil
}

// child returns a member that is an object, empty if it is not there. Faults in
// it must be taken over with adopt.
func (o *object) child(key string) *object {
	c := &object{}
	if o.has(key) && !o.decode(key, &c.members) {
		o.fail(key, "dict_type", "Input should be a valid dictionary")
	}
	return c
}

// adopt makes c's fault o's own.
func (o *object) adopt(c *object) {
	if o.err == nil {
		o.err = c.err
	}
}

// bounds is the domain of a sampling parameter.
type bounds struct {
	key     string
	ok      func(float64) bool
	message string
}

// samplingBounds are what vLLM's SamplingParams lets through; NaN is let through
// as there, since no comparison with it holds.
var samplingBounds = []bounds{
	{"temperature", func(v float64) bool { return !(v < 0) }, "temperature must be non-negative, got %v."},
	{"top_p", func(v float64) bool { return !(v <= 0 || v > 1) }, "top_p must be in (0, 1], got %v."},
	{"top_k", func(v float64) bool { return !(v < -1) && v == math.Trunc(v) }, "top_k must be 0 (disable), or at least 1, got %v."},
	{"min_p", func(v float64) bool { return !(v < 0 || v > 1) }, "min_p must be in [0, 1], got %v."},
	{"repetition_penalty", func(v float64) bool { return !(v <= 0) }, "repetition_penalty must be greater than zero, got %v."},
	{"frequency_penalty", func(v float64) bool { return !(v < -2 || v > 2) }, "frequency_penalty must be in [-2, 2], got %v."},
	{"presence_penalty", func(v float64) bool { return !(v < -2 || v > 2) }, "presence_penalty must be in [-2, 2], got %v."},
}

// sampling checks the sampling parameters.
func (o *object) sampling() {
	for _, b := range samplingBounds {
		if !o.has(b.key) {
			continue
		}
		if v := o.number(b.key, 0); o.err == nil && !b.ok(v) {
			o.err = badRequest(b.key, b.message, v)
		}
	}
}

// positive returns a whole number of at least 1, or 0 if it is not there.
func (o *object) positive(key string) int {
	if !o.has(key) {
		return 0
	}
	n := o.integer(key, 1)
	if n < 1 && o.err == nil {
		o.err = badRequest(key, "%s must be at least 1, got %d.", key, n)
	}
	return n
}

// model returns the model asked for, or the one that is served. One that is not
// served is a fault.
func (x *exchange) model() string {
	return x.checkModel(x.obj.text("model"))
}

func (x *exchange) checkModel(name string) string {
	if name == "" {
		return x.p.served()[0]
	}
	if !x.p.serves(name) {
		x.refuse(unknownModel(name))
	}
	return name
}

func unknownModel(name string) *apiError {
	return &apiError{status: http.StatusNotFound, message: fmt.Sprintf("The model `%s` does not exist.", name), param: "model"}
}

// rids returns the ids that the client gave to the request.
func (x *exchange) rids() []string {
	if x.obj == nil {
		return nil
	}
	var one string
	var list []string
	if x.obj.decode("rid", &one) && one != "" {
		return []string{one}
	}
	x.obj.decode("rid", &list)
	return list
}

// valid refuses the request if a fault was found in it.
func (x *exchange) valid() {
	if x.obj.err != nil {
		x.refuse(x.obj.err)
	}
}

// marshal returns v as JSON without HTML escapes. v is one of the answers of
// this package, all of which can be written.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("BUG: cannot write an answer: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
