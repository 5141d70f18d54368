package policy

import (
	"sluice/probe"
)

// DecisionSpec is a decision as a config states it: which requests it takes.
// What becomes of them is the caller's matter.
type DecisionSpec struct {
	// Name identifies the decision. No two of a Matcher share one.
	Name string
	// Priority orders the decisions, the highest first; ties go by name.
	Priority int
	// Rules is the root of the tree. A decision without one takes all requests.
	Rules *RuleSpec
}

// RuleSpec is a node of a tree of rules as a config states it: an operator over
// conditions or, where Operator is empty, a condition of one Type. A field that
// the type does not have must be left at its zero value.
//
//	type     fields                              holds for
//	model    name                                the model that the client asks for, before an alias is replaced
//	surface  name                                a surface by its probe name: chat, generate, embeddings, …
//	path     exact or prefix                     the raw path, without the query, byte by byte
//	header   name and exact, prefix, regex       one of the field's values, if it has several
//	         or present
//	tenant   name                                the tenant of the request
//	stream   value                               whether a stream is asked for
//	context  min_tokens, max_tokens or both      the estimated tokens of the prompt, bounds included
//	body     name and equals or present          a top-level member of the body
//
// All texts are compared byte by byte, case included; only the names of header
// fields have no case.
type RuleSpec struct {
	// Operator is AND, OR, NOT (of exactly one condition) or empty.
	Operator string
	// Conditions are what the operator joins, one or more.
	Conditions []RuleSpec
	// Type is one of the above.
	Type string
	// Name is the name of the model, surface, header field, tenant, or member.
	Name string
	// Exact is all of the text, Prefix its beginning. An empty text cannot be
	// asked for; the regex ^$ finds it.
	Exact, Prefix string
	// Regex is a regular expression as package regexp reads it (RE2), which is
	// searched for: it is anchored only where it says so. It has at most
	// MaxRegex bytes.
	Regex string
	// Present is whether the header field is there, be its value empty, or the
	// member, where null is absent as it is for the engine.
	Present *bool
	// Value is whether a stream is asked for.
	Value *bool
	// Equals is a string, a number (int, int64, uint64, float64) or a bool. A
	// string is that of the member after un-escaping. Numbers and bools are what
	// an engine reads (pydantic in its lax mode), so that a rule is not dodged
	// by writing "2" for 2: numbers are compared as float64, see
	// probe.ReadNumber, and a bool is true, 1, "1", "true", "t", "yes", "y" or
	// "on", in any case, or one of their opposites.
	Equals any
	// MinTokens and MaxTokens are bounds that belong to the range. Zero is
	// none.
	MinTokens, MaxTokens int
}

// Limits of a tree of rules.
const (
	// MaxRegex bounds a regular expression in bytes.
	MaxRegex = 1024
	// MaxRuleDepth bounds the nesting of operators and conditions.
	MaxRuleDepth = 32
)

// Header is where the header fields of a request are looked up. The
// *fasthttp.RequestHeader that normalizes names is one.
type Header interface {
	// PeekAll returns all values of the named field, in any letter case. They
	// need only be valid until the next call.
	PeekAll(name string) [][]byte
}

// Facts are what a Matcher may ask about one request. The caller fills them in,
// and leaves them and what they refer to unchanged until it is done with them.
// They refer to memory of the request and keep nothing. To use Facts again,
// assign a new value: Tokens remembers its answer. Not safe for concurrent use.
type Facts struct {
	// Surface is the surface that the request came in on.
	Surface probe.Surface
	// Path is the raw path of the target, without the query.
	Path []byte
	// Model is what the client asked for, un-escaped; an alias as it was sent.
	Model []byte
	// Tenant is the tenant, empty for none.
	Tenant []byte
	// Stream is whether the client asks for a stream.
	Stream bool
	// Src is the body and Body what probe.Scan found in it. A nil Body, as of
	// multipart, has no members and no tokens.
	Src  []byte
	Body *probe.Body
	// Header holds the header fields. A nil one has none.
	Header Header

	tokens int // 1 + the answer of Tokens, 0: not asked yet
}

// Tokens returns EstimateTokens of the body. It is computed when it is asked
// for the first time, and remembered.
func (f *Facts) Tokens() int {
	if f.tokens == 0 {
		f.tokens = 1
		if f.Body != nil {
			f.tokens += EstimateTokens(f.Src, f.Body)
		}
	}
	return f.tokens - 1
}

// values returns the values of a header field.
func (f *Facts) values(name string) [][]byte {
	if f.Header == nil {
		return nil
	}
	return f.Header.PeekAll(name)
}

// member returns the last top-level member of the given key, which is the one
// that engines read, or nil if it is absent or null. field is the one of the
// key: it spares the search for known keys.
func (f *Facts) member(key string, field probe.Field) *probe.Member {
	if f.Body == nil {
		return nil
	}
	var found *probe.Member
	if field != probe.FieldNone {
		found = f.Body.Last(field)
	} else {
		found = lastMember(f.Src, f.Body.Members, key)
	}
	if found == nil || found.Kind == probe.KindNull {
		return nil
	}
	return found
}

func lastMember(src []byte, ms []probe.Member, key string) *probe.Member {
	for i := len(ms) - 1; i >= 0; i-- {
		m := &ms[i]
		switch {
		case m.Field != probe.FieldNone:
		case m.Escaped:
			if probe.EqualKey(m.Key.Of(src), key) {
				return m
			}
		case m.Key.Len() == len(key)+2 && string(src[m.Key.Start+1:m.Key.End-1]) == key:
			return m
		}
	}
	return nil
}
