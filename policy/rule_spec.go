package policy

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"sluice/probe"
)

// condition compiles spec, the rule of the given path and depth.
func (fs *faults) condition(path string, spec *RuleSpec, depth int) condition {
	if depth > MaxRuleDepth {
		fs.add(path, spec.Operator+spec.Type, "is nested too deep; expected at most %d levels", MaxRuleDepth)
		return condition{}
	}
	if spec.Operator == "" {
		return fs.leaf(path, spec)
	}
	c := condition{kind: fs.operator(path, spec)}
	for i := range spec.Conditions {
		at := fmt.Sprintf("%s.conditions[%d]", path, i)
		c.conditions = append(c.conditions, fs.condition(at, &spec.Conditions[i], depth+1))
		c.order = append(c.order, i)
	}
	slices.SortStableFunc(c.order, func(i, j int) int { return c.conditions[i].cost() - c.conditions[j].cost() })
	return c
}

// operator reads the operator of spec and checks what stands beside it.
func (fs *faults) operator(path string, spec *RuleSpec) conditionKind {
	i := slices.Index(operatorNames, spec.Operator)
	if i < 0 {
		fs.add(path+".operator", spec.Operator, "is unknown; expected %s", strings.Join(operatorNames, ", "))
	}
	if spec.Type != "" {
		fs.add(path+".type", spec.Type, "stands beside an operator; expected one of the two")
	}
	for _, st := range spec.statements() {
		fs.add(path+"."+st.name, st.value, "stands beside an operator; expected it in one of the conditions")
	}
	switch n := len(spec.Conditions); {
	case n == 0:
		fs.add(path+".conditions", nil, "is no list of conditions; expected one or more")
	case spec.Operator == "NOT" && n > 1:
		fs.add(path+".conditions", n, "conditions stand under NOT; expected exactly one")
	}
	return conditionKind(max(i, 0))
}

// shape says which fields a type of condition has.
type shape struct {
	needs []string // all of them
	one   []string // exactly one of them
	some  []string // one or more of them
}

var shapes = [numConditionKinds]shape{
	kindModel:   {needs: []string{"name"}},
	kindSurface: {needs: []string{"name"}},
	kindPath:    {one: []string{"exact", "prefix"}},
	kindHeader:  {needs: []string{"name"}, one: []string{"exact", "prefix", "regex", "present"}},
	kindTenant:  {needs: []string{"name"}},
	kindStream:  {needs: []string{"value"}},
	kindContext: {some: []string{"min_tokens", "max_tokens"}},
	kindBody:    {needs: []string{"name"}, one: []string{"equals", "present"}},
}

func (s *shape) fields() []string { return slices.Concat(s.needs, s.one, s.some) }

// statement is one field that a RuleSpec states, by its name in a config.
type statement struct {
	name  string
	value any
}

// statements returns the fields that spec states.
func (s *RuleSpec) statements() []statement {
	var list []statement
	add := func(name string, value any, stated bool) {
		if stated {
			list = append(list, statement{name, value})
		}
	}
	add("name", s.Name, s.Name != "")
	add("exact", s.Exact, s.Exact != "")
	add("prefix", s.Prefix, s.Prefix != "")
	add("regex", s.Regex, s.Regex != "")
	add("present", pointed(s.Present), s.Present != nil)
	add("value", pointed(s.Value), s.Value != nil)
	add("equals", s.Equals, s.Equals != nil)
	add("min_tokens", s.MinTokens, s.MinTokens != 0)
	add("max_tokens", s.MaxTokens, s.MaxTokens != 0)
	return list
}

func pointed(b *bool) bool { return b != nil && *b }

// leaf compiles spec, which has no operator.
func (fs *faults) leaf(path string, spec *RuleSpec) condition {
	if spec.Type == "" {
		fs.add(path, nil, "is no rule; expected an operator (%s) or a type (%s)", strings.Join(operatorNames, ", "), strings.Join(typeNames, ", "))
		return condition{}
	}
	i := slices.Index(typeNames, spec.Type)
	if i < 0 {
		fs.add(path+".type", spec.Type, "is unknown%s; expected %s", suggestion(spec.Type, typeNames), strings.Join(typeNames, ", "))
		return condition{}
	}
	if len(spec.Conditions) > 0 {
		fs.add(path+".conditions", len(spec.Conditions), "conditions stand beside a type; expected an operator over them")
	}
	c := condition{kind: kindModel + conditionKind(i), name: spec.Name, max: math.MaxInt}
	fs.shape(path, spec, &shapes[c.kind])
	switch c.kind {
	case kindSurface:
		c.surface = fs.surface(path, spec.Name)
	case kindPath:
		c.test, c.text = testOf(spec)
	case kindHeader:
		c.test, c.text = testOf(spec)
		if spec.Name != "" && !isToken(spec.Name) {
			fs.add(path+".name", spec.Name, "is no name of a header field; expected letters, digits and -")
		}
		c.regex = fs.regex(path, spec.Regex)
	case kindBody:
		c.field = fieldOf(spec.Name)
		c.test, c.text, c.num, c.want = fs.equals(path, spec.Equals)
	case kindContext:
		fs.bounds(path, spec)
		c.min = spec.MinTokens
		if spec.MaxTokens != 0 {
			c.max = spec.MaxTokens
		}
	case kindStream:
		c.want = pointed(spec.Value)
	}
	if spec.Present != nil {
		c.test, c.want = testPresent, *spec.Present
	}
	return c
}

// shape checks that spec states what its type has, and no more.
func (fs *faults) shape(path string, spec *RuleSpec, s *shape) {
	count := make(map[string]int)
	for _, st := range spec.statements() {
		switch {
		case slices.Contains(s.needs, st.name):
			count[st.name]++
		case slices.Contains(s.one, st.name):
			count["one"]++
		case slices.Contains(s.some, st.name):
			count["some"]++
		default:
			fs.add(path+"."+st.name, st.value, "does not belong to a condition of type %s; expected %s", spec.Type, strings.Join(s.fields(), ", "))
		}
	}
	for _, name := range s.needs {
		if count[name] == 0 {
			fs.add(path, spec.Type, "has no %s, which it needs", name)
		}
	}
	if n := count["one"]; len(s.one) > 0 && n != 1 {
		fs.add(path, spec.Type, "has %d of %s; expected exactly one", n, strings.Join(s.one, ", "))
	}
	if len(s.some) > 0 && count["some"] == 0 {
		fs.add(path, spec.Type, "has none of %s; expected one or more", strings.Join(s.some, ", "))
	}
}

// testOf returns the test of a text that spec states.
func testOf(spec *RuleSpec) (test, string) {
	switch {
	case spec.Prefix != "":
		return testPrefix, spec.Prefix
	case spec.Regex != "":
		return testRegex, spec.Regex
	}
	return testExact, spec.Exact
}

func (fs *faults) surface(path, name string) probe.Surface {
	var names []string
	for s := probe.SurfaceNone + 1; s < probe.NumSurfaces; s++ {
		if s.String() == name {
			return s
		}
		names = append(names, s.String())
	}
	if name != "" {
		fs.add(path+".name", name, "is no surface%s; expected %s", suggestion(name, names), strings.Join(names, ", "))
	}
	return probe.SurfaceNone
}

func (fs *faults) regex(path, expr string) *regexp.Regexp {
	if expr == "" {
		return nil
	}
	if len(expr) > MaxRegex {
		fs.add(path+".regex", expr, "has %d bytes; expected at most %d", len(expr), MaxRegex)
		return nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		fs.add(path+".regex", expr, "cannot be compiled: %s", err)
		return nil
	}
	return re
}

// equals reads the value that a member of the body is compared with.
func (fs *faults) equals(path string, value any) (test, string, float64, bool) {
	switch v := value.(type) {
	case nil:
		return testPresent, "", 0, false
	case string:
		return testEqualsText, v, 0, false
	case bool:
		return testEqualsBool, "", 0, v
	}
	num, ok := number(value)
	switch {
	case !ok:
		fs.add(path+".equals", value, "is %s; expected a string, a number or a bool", typeOf(value))
	case math.IsNaN(num) || math.IsInf(num, 0):
		fs.add(path+".equals", value, "is not finite; expected a string, a number or a bool")
	}
	return testEqualsNumber, "", num, false
}

func (fs *faults) bounds(path string, spec *RuleSpec) {
	if spec.MinTokens < 0 {
		fs.add(path+".min_tokens", spec.MinTokens, "is negative; expected a number of tokens")
	}
	if spec.MaxTokens < 0 {
		fs.add(path+".max_tokens", spec.MaxTokens, "is negative; expected a number of tokens")
	}
	if 0 < spec.MaxTokens && spec.MaxTokens < spec.MinTokens {
		fs.add(path, spec.Type, "has min_tokens %d > max_tokens %d; expected min_tokens <= max_tokens", spec.MinTokens, spec.MaxTokens)
	}
}

// isToken reports whether name is one of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		alnum := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
