package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Step is one condition of a decision and what became of it, for an operator
// who asks why. It refers to nothing of the request.
type Step struct {
	// Path is the condition's key below the decision: "rules",
	// "rules.conditions[1]".
	Path string
	// Condition is what is asked, in words: AND, model is "m".
	Condition string
	// Holds is the answer.
	Holds bool
	// Seen is what was found in the request, shortened; empty for an operator.
	Seen string
}

// Trace returns the conditions of the decision at index i of the specs, in the
// order in which they are stated, an operator before its conditions. Each
// answer is that of the very code that Match runs; all are evaluated, also
// where Match would stop before. A decision without rules has no steps and takes
// every request; for an index that is none, as -1, there are no steps either.
func (m *Matcher) Trace(f *Facts, i int) []Step {
	if m == nil {
		return nil
	}
	for rank := range m.decisions {
		if d := &m.decisions[rank]; d.spec == i {
			if d.all {
				return nil
			}
			return d.rule.trace(nil, f, "rules")
		}
	}
	return nil
}

func (c *condition) trace(steps []Step, f *Facts, path string) []Step {
	steps = append(steps, Step{Path: path, Condition: c.String(), Holds: c.holds(f), Seen: c.seen(f)})
	for i := range c.conditions {
		steps = c.conditions[i].trace(steps, f, fmt.Sprintf("%s.conditions[%d]", path, i))
	}
	return steps
}

// String returns the condition in words, without those below it.
func (c *condition) String() string {
	kind := kindNames[c.kind]
	switch c.kind {
	case kindModel, kindTenant:
		return kind + " is " + printed(c.name)
	case kindSurface:
		return kind + " is " + c.surface.String()
	case kindPath:
		return kind + " " + c.testString()
	case kindHeader, kindBody:
		return kind + " " + printed(c.name) + " " + c.testString()
	case kindStream:
		return kind + " is " + strconv.FormatBool(c.want)
	case kindContext:
		if c.max == math.MaxInt {
			return fmt.Sprintf("%s has %d or more tokens", kind, c.min)
		}
		return fmt.Sprintf("%s has %d to %d tokens", kind, c.min, c.max)
	}
	return kind
}

func (c *condition) testString() string {
	switch c.test {
	case testExact, testEqualsText:
		return "is " + printed(c.text)
	case testPrefix:
		return "begins with " + printed(c.text)
	case testRegex:
		return "matches " + printed(c.text)
	case testEqualsNumber:
		return "is " + printed(c.num)
	case testEqualsBool:
		return "is " + strconv.FormatBool(c.want)
	}
	if c.want {
		return "is present"
	}
	return "is absent"
}

// seen returns what f holds where the condition looks.
func (c *condition) seen(f *Facts) string {
	switch c.kind {
	case kindModel:
		return seenText(f.Model)
	case kindSurface:
		return f.Surface.String()
	case kindPath:
		return seenText(f.Path)
	case kindTenant:
		return seenText(f.Tenant)
	case kindStream:
		return strconv.FormatBool(f.Stream)
	case kindContext:
		return strconv.Itoa(f.Tokens()) + " tokens"
	case kindHeader:
		return seenValues(f.values(c.name))
	case kindBody:
		m := f.member(c.name, c.field)
		if m == nil {
			return "absent"
		}
		return shortened(m.Val.Of(f.Src))
	}
	return ""
}

func seenText(text []byte) string {
	if len(text) == 0 {
		return "none"
	}
	return printed(shortened(text))
}

// maxSeenValues bounds the values of a header field that are shown.
const maxSeenValues = 4

func seenValues(values [][]byte) string {
	if len(values) == 0 {
		return "absent"
	}
	var sb strings.Builder
	for i, value := range values {
		if i == maxSeenValues {
			fmt.Fprintf(&sb, " and %d more", len(values)-i)
			break
		}
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(printed(shortened(value)))
	}
	return sb.String()
}

// shortened returns text, or its beginning where it is long, as a copy.
func shortened(text []byte) string {
	const limit = 80
	if len(text) <= limit {
		return string(text)
	}
	return strings.ToValidUTF8(string(text[:limit]), "") + "…"
}
