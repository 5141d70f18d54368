package policy

import (
	"regexp"

	"sluice/probe"
)

// condition is a compiled node of a tree of rules. It is immutable.
type condition struct {
	kind conditionKind
	// conditions are those of an operator, and order is how they are evaluated:
	// the cheap ones first. What holds does not depend on it.
	conditions []condition
	order      []int

	name    string         // Valid for model, tenant, header and body.
	field   probe.Field    // of name, for body
	surface probe.Surface  // Valid for surface.
	test    test           // Valid for path, header and body.
	text    string         // of the tests exact, prefix and equalsText
	regex   *regexp.Regexp // of the test regex
	num     float64        // of the test equalsNumber
	want    bool           // of the tests present and equalsBool, and for stream
	min     int            // Valid for context.
	max     int            // Valid for context.
}

type conditionKind uint8

const (
	kindAnd conditionKind = iota
	kindOr
	kindNot
	kindModel
	kindSurface
	kindPath
	kindHeader
	kindTenant
	kindStream
	kindContext
	kindBody
	numConditionKinds
)

var kindNames = [numConditionKinds]string{
	kindAnd: "AND", kindOr: "OR", kindNot: "NOT",
	kindModel: "model", kindSurface: "surface", kindPath: "path", kindHeader: "header",
	kindTenant: "tenant", kindStream: "stream", kindContext: "context", kindBody: "body",
}

// operatorNames and typeNames are what a RuleSpec may state.
var operatorNames, typeNames = kindNames[:kindModel], kindNames[kindModel:]

// test is how a text is compared.
type test uint8

const (
	testExact test = iota
	testPrefix
	testRegex
	testPresent
	testEqualsText
	testEqualsNumber
	testEqualsBool
)

// holds reports whether the condition holds for f.
func (c *condition) holds(f *Facts) bool {
	switch c.kind {
	case kindAnd:
		for _, i := range c.order {
			if !c.conditions[i].holds(f) {
				return false
			}
		}
		return true
	case kindOr:
		for _, i := range c.order {
			if c.conditions[i].holds(f) {
				return true
			}
		}
		return false
	case kindNot:
		return !c.conditions[0].holds(f)
	case kindModel:
		return string(f.Model) == c.name
	case kindSurface:
		return f.Surface == c.surface
	case kindPath:
		return c.matches(f.Path)
	case kindHeader:
		return c.headerHolds(f)
	case kindTenant:
		return string(f.Tenant) == c.name
	case kindStream:
		return f.Stream == c.want
	case kindContext:
		n := f.Tokens()
		return c.min <= n && n <= c.max
	case kindBody:
		return c.bodyHolds(f)
	}
	panic("BUG: unknown kind of condition")
}

// matches reports whether a text is what the condition asks for.
func (c *condition) matches(text []byte) bool {
	switch c.test {
	case testExact:
		return string(text) == c.text
	case testPrefix:
		return len(text) >= len(c.text) && string(text[:len(c.text)]) == c.text
	case testRegex:
		return c.regex.Match(text)
	}
	panic("BUG: not a test of a text")
}

func (c *condition) headerHolds(f *Facts) bool {
	values := f.values(c.name)
	if c.test == testPresent {
		return len(values) > 0 == c.want
	}
	for _, value := range values {
		if c.matches(value) {
			return true
		}
	}
	return false
}

func (c *condition) bodyHolds(f *Facts) bool {
	m := f.member(c.name, c.field)
	if c.test == testPresent {
		return m != nil == c.want
	}
	if m == nil {
		return false
	}
	value := m.Val.Of(f.Src)
	switch c.test {
	case testEqualsText:
		return m.Kind == probe.KindString && probe.EqualKey(value, c.text)
	case testEqualsNumber:
		num, state := probe.ReadNumber(value, m.Kind)
		return state == probe.Number && num == c.num
	case testEqualsBool:
		b, ok := readBool(value, m.Kind)
		return ok && b == c.want
	}
	panic("BUG: not a test of a member")
}

// readBool returns the bool that pydantic's lax mode reads in a value (pydantic-core
// input/shared.rs, str_as_bool and int_as_bool), if it reads one.
func readBool(value []byte, kind probe.Kind) (b, ok bool) {
	switch kind {
	case probe.KindTrue, probe.KindFalse:
		return kind == probe.KindTrue, true
	case probe.KindNumber:
		num, state := probe.ReadNumber(value, kind)
		return num == 1, state == probe.Number && (num == 0 || num == 1)
	case probe.KindString:
		var buf [len(`"\u0066\u0061\u006c\u0073\u0065"`)]byte // false, all of it escaped
		if len(value) > len(buf) {
			return false, false
		}
		text := probe.AppendUnquoted(buf[:0], value)
		for i, c := range text {
			if c >= 'A' && c <= 'Z' {
				text[i] = c + 'a' - 'A'
			}
		}
		switch string(text) {
		case "0", "off", "f", "false", "n", "no":
			return false, true
		case "1", "on", "t", "true", "y", "yes":
			return true, true
		}
	}
	return false, false
}

// cost orders conditions by what it takes to evaluate them.
func (c *condition) cost() int {
	switch c.kind {
	case kindContext:
		return 1 << 20
	case kindHeader:
		if c.test == testRegex {
			return 64
		}
		return 8
	case kindBody:
		return 16
	case kindAnd, kindOr, kindNot:
		sum := 1
		for i := range c.conditions {
			sum += c.conditions[i].cost()
		}
		return sum
	}
	return 1
}
