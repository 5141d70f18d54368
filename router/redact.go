package router

import (
	"bytes"
	"slices"

	"sluice/configs"
	"sluice/probe"
)

// redactor replaces texts in a request by filler of the same length, so that it
// can be shared and fares under most rules as it did: all strings become x, byte
// for byte, but for
//
//   - keys,
//   - the model, at the top level,
//   - role and type, where the value is a word of the APIs,
//   - sampling parameters and limits that read as numbers,
//   - top-level members that a rule of the configuration compares, where the value
//     is the one that the rule has, or reads as a number or bool, where the rule
//     asks for these.
//
// Rules on the estimated tokens of a prompt may decide otherwise, since filler is
// not text; shares of requests without a session fall differently.
//
// It is immutable and safe for concurrent use.
type redactor struct {
	compared map[string][]any // what rules compare top-level members with
}

func newRedactor(cfg *configs.Config) *redactor {
	r := &redactor{compared: map[string][]any{}}
	eachRule(cfg, func(rule *configs.Rule) {
		if rule.Type == "body" && rule.Equals != nil {
			r.compared[rule.Name] = append(r.compared[rule.Name], rule.Equals)
		}
	})
	return r
}

// plainWords are the values of role and type that stay.
var plainWords = []string{
	"system", "user", "assistant", "tool", "developer", "function",
	"text", "image", "image_url", "input_text", "input_image", "input_audio", "input_file", "audio", "video", "video_url", "document", "file",
	"output_text", "refusal", "message", "function_call", "function_call_output", "tool_use", "tool_result", "thinking", "reasoning",
	"json_object", "json_schema", "object", "array", "string", "number", "integer", "boolean", "null", "auto", "none", "required", "any",
	"enabled", "disabled", "adaptive", "ephemeral", "base64", "url",
}

// redact changes the body, a JSON object that was scanned without a fault, in
// place. What stands where no key can be taken from is filler.
func (r *redactor) redact(body []byte) {
	depth, key := 0, []byte(nil)
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
			key = nil
		case '}', ']':
			depth--
			key = nil
		case '"':
			end := stringEnd(body, i)
			text := body[i:end]
			if isKey(body, end) {
				key = text
			} else if !r.keeps(key, text, depth) {
				fill(text)
			}
			i = end - 1
		}
	}
}

// isKey reports whether a colon follows the string that ends at i.
func isKey(body []byte, i int) bool {
	for i < len(body) && (body[i] == ' ' || body[i] == '\t' || body[i] == '\n' || body[i] == '\r') {
		i++
	}
	return i < len(body) && body[i] == ':'
}

// fill replaces what is between the quotes of a JSON string.
func fill(text []byte) {
	text = text[1 : len(text)-1]
	for i := range text {
		text[i] = 'x'
	}
}

// keeps reports whether the string stays that is the value of key, or in a list,
// where there is none.
func (r *redactor) keeps(key, text []byte, depth int) bool {
	if key == nil {
		return false
	}
	if depth == 1 {
		if probe.EqualKey(key, "model") || r.comparedWith(key, text) {
			return true
		}
	}
	if probe.EqualKey(key, "role") || probe.EqualKey(key, "type") {
		return slices.ContainsFunc(plainWords, func(w string) bool { return probe.EqualKey(text, w) })
	}
	return governedKey(key) && readsAsNumber(text)
}

// governedKey reports whether rules read numbers under a key.
func governedKey(key []byte) bool {
	for f := probe.FirstSampling; f <= probe.FieldBestOf; f++ {
		if f != probe.FieldModel && f != probe.FieldStream && probe.EqualKey(key, f.String()) {
			return true
		}
	}
	return false
}

func readsAsNumber(text []byte) bool {
	const longest = 66 // of a numeric string, with its quotes
	if len(text) > longest {
		return false
	}
	_, state := probe.ReadNumber(text, probe.KindString)
	return state == probe.Number
}

// comparedWith reports whether a rule compares the member with what the string
// says, or may be read as.
func (r *redactor) comparedWith(key, text []byte) bool {
	for name, values := range r.compared {
		if !probe.EqualKey(key, name) {
			continue
		}
		for _, v := range values {
			if s, ok := v.(string); ok {
				if probe.EqualKey(text, s) {
					return true
				}
			} else if readsAsNumber(text) || readsAsBool(text) {
				return true
			}
		}
	}
	return false
}

// readsAsBool reports whether pydantic takes the string for a bool.
func readsAsBool(text []byte) bool {
	for _, w := range []string{"true", "false", "t", "f", "yes", "no", "y", "n", "on", "off"} {
		if bytes.EqualFold(text[1:len(text)-1], []byte(w)) {
			return true
		}
	}
	return false
}
