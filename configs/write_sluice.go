package configs

import (
	"slices"
	"strings"

	"sluice/configs/dsl"
	"sluice/policy"
)

// writeSluice returns root as a .sluice file: decisions as ROUTE, items with
// names one by one, and what the words cannot say as the plain value of its key.
func writeSluice(root *node) []byte {
	f := &dsl.File{}
	for _, m := range root.members {
		if m.key == "routing" && m.value.kind == kindMap {
			f.Statements = append(f.Statements, routingStatements(m.value)...)
			continue
		}
		f.Statements = append(f.Statements, sectionStatements(m)...)
	}
	return dsl.Print(f)
}

func sectionStatements(m member) []*dsl.Statement {
	names, ok := itemNames(m.value)
	i := slices.IndexFunc(fieldsOf(configType), func(f field) bool { return f.key == m.key && named(f.typ) })
	if i < 0 || !ok || len(names) == 0 {
		return []*dsl.Statement{{Word: wordOf(m.key), Value: broken(dslValue(m.value))}}
	}
	var out []*dsl.Statement
	for i, name := range names {
		s := &dsl.Statement{Notes: dsl.Notes{Blank: true}, Word: singular(m.key), Args: []*dsl.Value{dslName(name)}}
		if m.value.kind == kindMap {
			s.Value = broken(dslValue(m.value.members[i].value))
		} else {
			s.Value = broken(dslValue(without(m.value.items[i], "name")))
		}
		out = append(out, s)
	}
	return out
}

// wordOf returns the word that sets key.
func wordOf(key string) string {
	if key == keyOf(contractWord) {
		return contractWord
	}
	return strings.ToUpper(key)
}

// itemNames returns the names of the items of a list of mappings, or the keys of
// a mapping of mappings. It is false where there is another item among them.
func itemNames(n *node) (names []string, ok bool) {
	for _, m := range n.members {
		if m.value.kind != kindMap {
			return nil, false
		}
		names = append(names, m.key)
	}
	for _, item := range n.items {
		name := item.find("name")
		if name == nil || name.value.kind != kindString {
			return nil, false
		}
		names = append(names, name.value.text)
	}
	return names, n.kind == kindList || n.kind == kindMap
}

// without returns n without the member with key.
func without(n *node, key string) *node {
	out := &node{kind: kindMap, origin: n.origin}
	for _, m := range n.members {
		if m.key != key {
			out.add(m.key, m.origin, m.value)
		}
	}
	return out
}

// routingStatements writes the decisions as ROUTE, and what else is in the
// section as a ROUTING.
func routingStatements(n *node) []*dsl.Statement {
	rest := n
	var routes []*dsl.Statement
	if d := n.find("decisions"); d != nil && d.value.kind == kindList {
		names, ok := itemNames(d.value)
		for i := range names {
			routes = append(routes, routeStatement(names[i], d.value.items[i]))
		}
		if ok && len(names) > 0 {
			rest = without(n, "decisions")
		}
	}
	if len(rest.members) == 0 && len(n.members) > 0 {
		return routes
	}
	return append([]*dsl.Statement{{Word: "ROUTING", Value: broken(dslValue(rest))}}, routes...)
}

func routeStatement(name string, d *node) *dsl.Statement {
	s := &dsl.Statement{Notes: dsl.Notes{Blank: true}, Word: dsl.WordRoute, Args: []*dsl.Value{dslName(name)}}
	for _, m := range d.members {
		switch {
		case m.key == "name":
		case m.key == "description":
			s.Props = append(s.Props, &dsl.Field{Key: m.key, Value: dslValue(m.value)})
		case m.key == "rules" && condOf(m.value) != nil:
			s.Clauses = append(s.Clauses, &dsl.Statement{Word: dsl.WordWhen, When: condOf(m.value)})
		case m.key == "plugins" && pluginClauses(m.value) != nil:
			s.Clauses = append(s.Clauses, pluginClauses(m.value)...)
		case m.key == "pools" && sharesOf(m.value) != nil:
			s.Clauses = append(s.Clauses, &dsl.Statement{Word: "POOLS", Value: sharesOf(m.value)})
		case m.value.kind == kindBool && m.value.text == "true":
			s.Clauses = append(s.Clauses, &dsl.Statement{Word: wordOf(m.key)})
		default:
			s.Clauses = append(s.Clauses, &dsl.Statement{Word: wordOf(m.key), Value: quotedCapitals(dslValue(m.value))})
		}
	}
	return s
}

// pluginClauses returns a PLUGIN for each plugin, or nil where one has no type
// or other keys than a plugin has.
func pluginClauses(n *node) []*dsl.Statement {
	var out []*dsl.Statement
	for _, item := range n.items {
		typ, config := item.find("type"), item.find("configuration")
		if typ == nil || typ.value.kind != kindString || pluginType(typ.value.text) != typ.value.text {
			return nil
		}
		s := &dsl.Statement{Word: dsl.WordPlugin, Args: []*dsl.Value{dslName(typ.value.text)}}
		keys := 1
		if config != nil {
			keys, s.Value = 2, dslValue(config.value)
			if config.value.kind != kindMap {
				return nil
			}
		}
		if len(item.members) != keys {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// sharesOf returns a list of pools with weights as a mapping, or nil.
func sharesOf(n *node) *dsl.Value {
	out := &dsl.Value{Kind: dsl.Map}
	seen := map[string]bool{}
	for _, item := range n.items {
		name, weight := item.find("name"), item.find("weight")
		if len(item.members) != 2 || name == nil || weight == nil || name.value.kind != kindString || seen[name.value.text] {
			return nil
		}
		seen[name.value.text] = true
		out.Fields = append(out.Fields, &dsl.Field{Key: name.value.text, Value: dslValue(weight.value)})
	}
	if len(out.Fields) == 0 {
		return nil
	}
	return out
}

// condOf returns a Rule as a condition, or nil where it cannot be said as one: an
// AND or OR of less than two, or keys that its type does not have.
func condOf(n *node) *dsl.Cond {
	op, conds := n.find("operator"), n.find("conditions")
	if op == nil {
		return testOf(n)
	}
	if conds == nil || conds.value.kind != kindList || len(n.members) != 2 {
		return nil
	}
	c := &dsl.Cond{Op: dsl.Op(max(slices.Index(operators[:], op.value.text), 0))}
	for _, item := range conds.value.items {
		inner := condOf(item)
		if inner == nil {
			return nil
		}
		c.Conds = append(c.Conds, inner)
	}
	switch count := len(c.Conds); {
	case c.Op == dsl.Test, c.Op == dsl.Not && count != 1, c.Op != dsl.Not && count < 2:
		return nil
	}
	return c
}

func testOf(n *node) *dsl.Cond {
	typ := n.find("type")
	if typ == nil {
		return nil
	}
	how, ok := tests[typ.value.text]
	if !ok {
		return nil
	}
	c := &dsl.Cond{Name: typ.value.text}
	if how.first != "" {
		first := n.find(how.first)
		if first == nil || first.value.kind == kindList || first.value.kind == kindMap {
			return nil
		}
		c.Args = append(c.Args, dslQuoted(first.value))
	}
	for _, m := range n.members {
		i := slices.IndexFunc(how.words, func(w testWord) bool { return w.key == m.key })
		switch {
		case m.key == "type", m.key == how.first:
			continue
		case i < 0, m.value.kind == kindList, m.value.kind == kindMap:
			return nil
		}
		c.Args = append(c.Args, &dsl.Value{Kind: dsl.String, Text: how.words[i].word})
		if m.key != "present" || m.value.text != "true" {
			c.Args = append(c.Args, dslQuoted(m.value))
		}
	}
	return c
}

// dslQuoted returns a scalar for a condition, where strings are in quotes, but
// for a measure such as 32K.
func dslQuoted(n *node) *dsl.Value {
	v := dslValue(n)
	v.Quoted = v.Kind == dsl.String && !measure(v.Text)
	return v
}

func dslName(name string) *dsl.Value {
	return quotedCapitals(&dsl.Value{Kind: dsl.String, Text: name})
}

// quotedCapitals puts a string in quotes that could be taken for a word.
func quotedCapitals(v *dsl.Value) *dsl.Value {
	if v.Kind == dsl.String && v.Text == strings.ToUpper(v.Text) {
		v.Quoted = true
	}
	return v
}

// broken has the fields of a mapping written on lines of their own.
func broken(v *dsl.Value) *dsl.Value {
	v.Break = v.Kind == dsl.Map
	return v
}

// measure reports whether s is a duration, a size or a number of tokens. Other
// strings that begin like a number are written in quotes.
func measure(s string) bool {
	_, noDuration := parseDuration(s)
	_, noSize := ParseBytes(s)
	_, noTokens := policy.ParseTokens(s)
	return noDuration == nil || noSize == nil || noTokens == nil
}

var dslKinds = map[kind]dsl.Kind{
	kindNull: dsl.Null, kindBool: dsl.Bool, kindInt: dsl.Int, kindFloat: dsl.Float,
	kindString: dsl.String, kindList: dsl.List, kindMap: dsl.Map,
}

func dslValue(n *node) *dsl.Value {
	v := &dsl.Value{Kind: dslKinds[n.kind], Text: n.text}
	v.Quoted = n.kind == kindString && n.text != "" && strings.IndexByte("0123456789+-.", n.text[0]) >= 0 && !measure(n.text)
	for _, item := range n.items {
		v.Items = append(v.Items, &dsl.Item{Value: dslValue(item)})
	}
	for _, m := range n.members {
		v.Fields = append(v.Fields, &dsl.Field{Key: m.key, Value: dslValue(m.value)})
	}
	return v
}
