package configs

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sluice/configs/dsl"
)

// pluginTypes are what a PLUGIN may be without a template.
var pluginTypes = []string{RequestParams, ResponseCache}

// pluginType returns name as a type of plugins, which may be spelled with
// hyphens, or "".
func pluginType(name string) string {
	name = strings.ReplaceAll(name, "-", "_")
	if slices.Contains(pluginTypes, name) {
		return name
	}
	return ""
}

// template is a PLUGIN of the top level.
type template struct {
	typ    string
	origin Origin
	config *node
	size   int // nodes of config
	used   bool
}

// template reads a PLUGIN of the top level. Its faults are told here, once, and
// not where it is used.
func (r *sluiceReader) template(s *dsl.Statement) {
	name, typ := s.Args[0], pluginType(s.Args[1].Text)
	path := "template " + name.Text
	if typ == "" {
		r.fail(s.Args[1].Pos, path, "unknown type of plugins "+quote(s.Args[1].Text)+oneOf(s.Args[1].Text, pluginTypes))
	}
	first := r.templates[name.Text]
	switch {
	case name.Text == "":
		r.fail(name.Pos, path, "must not be empty")
	case pluginType(name.Text) != "":
		r.fail(name.Pos, path, "is a type of plugins: give the template another name")
	case first != nil:
		r.fail(name.Pos, path, "repeated template, first declared on line "+strconv.Itoa(first.origin.Line))
	}
	before := r.nodes
	t := &template{typ: typ, origin: r.at(name.Pos), config: r.value(s.Value, path)}
	t.size = r.nodes - before
	r.check(t.config, path)
	if first == nil {
		r.templates[name.Text] = t
	}
}

// check reads the configuration of a template. A member with a fault is left
// out.
func (r *sluiceReader) check(config *node, path string) {
	sound := &node{kind: kindMap, origin: config.origin}
	for _, m := range config.members {
		one := &node{kind: kindMap, origin: config.origin}
		one.add(m.key, m.origin, m.value)
		strict, before := reader{origins: origins{}, faults: r.faults}, len(*r.faults)
		strict.object(one, pluginConfigType, path)
		if len(*r.faults) == before {
			sound.add(m.key, m.origin, m.value)
		}
	}
	*config = *sound
}

// unused checks the values of a template that no route takes, as those of the
// only plugin of a route. What other sections allow is taken to be allowed.
func (r *sluiceReader) unused(t *template, path string) {
	plugin := newMap().put("type", newText(t.typ)).put("configuration", t.config)
	route := newMap().put("name", newText("r")).put("plugins", newList(plugin))
	c, _ := configOf(newMap().put("routing", newMap().put("decisions", newList(route))))
	c.Server.TenantHeader, c.Cache.MaxBytes = "x-tenant", math.MaxInt64
	const at = "routing.decisions[0].plugins[0].configuration"
	for _, f := range c.faults() {
		if rest, ok := strings.CutPrefix(f.Path, at); ok {
			r.faults.add(f.Origin, path+rest, f.Msg)
		}
	}
}

func oneOf(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; expected one of " + strings.Join(candidates, ", ")
}

// route reads a ROUTE.
func (r *sluiceReader) route(s *dsl.Statement) {
	if r.root.find("routing") == nil {
		routing := &node{kind: kindMap, origin: r.at(s.Pos)}
		r.root.add("routing", r.at(s.Pos), routing)
	}
	routing := r.root.find("routing").value
	if routing.kind != kindMap { // the strict reader tells
		return
	}
	all := r.grow(routing, "decisions", kindList, "routing.decisions", s.Pos)
	if all == nil {
		return
	}
	path := itemPath("routing.decisions", len(all.items))
	d := r.item(all, s)
	r.fields(d, s.Props, path)
	for _, c := range s.Clauses {
		r.clause(d, c, path)
	}
}

// clause reads a clause of the decision d.
func (r *sluiceReader) clause(d *node, c *dsl.Statement, path string) {
	key := keyOf(c.Word)
	switch {
	case c.Word == dsl.WordPlugin:
		if all := r.grow(d, "plugins", kindList, path+".plugins", c.Pos); all != nil {
			all.items = append(all.items, r.plugin(c, itemPath(path+".plugins", len(all.items))))
		}
	case c.Word == dsl.WordWhen:
		r.add(d, "rules", c.Pos, path, r.cond(c.When, path+".rules"))
	case c.Value == nil: // a flag
		r.add(d, key, c.Pos, path, &node{kind: kindBool, origin: r.at(c.Pos), text: "true", value: true})
	case key == "pools" && c.Value.Kind == dsl.Map:
		r.add(d, key, c.Pos, path, r.shares(c.Value, path+".pools"))
	default:
		r.add(d, key, c.Pos, path, r.value(c.Value, childPath(path, key)))
	}
}

// shares reads POOLS {name: weight}.
func (r *sluiceReader) shares(v *dsl.Value, path string) *node {
	named := &node{kind: kindMap, origin: r.at(v.Pos)}
	r.fields(named, v.Fields, path)
	list := &node{kind: kindList, origin: r.at(v.Pos)}
	for _, m := range named.members {
		share := &node{kind: kindMap, origin: m.origin}
		share.add("name", m.origin, &node{kind: kindString, origin: m.origin, text: m.key, value: m.key})
		share.add("weight", m.value.origin, m.value)
		list.items = append(list.items, share)
	}
	return list
}

// plugin reads a PLUGIN of a ROUTE: a template, overlaid key by key, or a type.
func (r *sluiceReader) plugin(c *dsl.Statement, path string) *node {
	name, typ := c.Args[0], pluginType(c.Args[0].Text)
	t := r.templates[name.Text]
	if typ == "" && t == nil {
		known := slices.Clone(pluginTypes)
		for name := range r.templates {
			known = append(known, name)
		}
		slices.Sort(known)
		return r.fail(name.Pos, path, "unknown template or type of plugins "+quote(name.Text)+oneOf(name.Text, known))
	}
	own := &node{kind: kindMap, origin: r.at(c.Pos)}
	if c.Value != nil {
		own = r.value(c.Value, path+".configuration")
	}
	if typ == "" && own.kind == kindMap {
		if typ = t.typ; typ == "" || !r.count(t.size, name.Pos, path) { // told
			return &node{origin: r.at(c.Pos)}
		}
		t.used = true
		own = overlay(t.config, own)
	}
	out := &node{kind: kindMap, origin: r.at(c.Pos)}
	out.add("type", r.at(name.Pos), &node{kind: kindString, origin: r.at(name.Pos), text: typ, value: typ})
	if len(own.members) > 0 || own.kind != kindMap {
		out.add("configuration", own.origin, own)
	}
	return out
}

// overlay returns the members of base, those of over in the place of equal
// keys, then the others of over.
func overlay(base, over *node) *node {
	out := &node{kind: kindMap, origin: over.origin}
	for _, m := range base.members {
		if own := over.find(m.key); own != nil {
			m = *own
		}
		out.add(m.key, m.origin, m.value)
	}
	for _, m := range over.members {
		if out.find(m.key) == nil {
			out.add(m.key, m.origin, m.value)
		}
	}
	return out
}

// operators are those of Rule.Operator, by Op.
var operators = [...]string{dsl.Not: "NOT", dsl.And: "AND", dsl.Or: "OR"}

// cond returns a condition as the node of a Rule.
func (r *sluiceReader) cond(c *dsl.Cond, path string) *node {
	if !r.count(1, c.Pos, path) {
		return &node{origin: r.at(c.Pos)}
	}
	if c.Op == dsl.Test {
		return r.test(c, path)
	}
	out, conds := &node{kind: kindMap, origin: r.at(c.Pos)}, &node{kind: kindList, origin: r.at(c.Pos)}
	for i, inner := range c.Conds {
		conds.items = append(conds.items, r.cond(inner, itemPath(path+".conditions", i)))
	}
	op := operators[c.Op]
	out.add("operator", r.at(c.Pos), &node{kind: kindString, origin: r.at(c.Pos), text: op, value: op})
	out.add("conditions", r.at(c.Pos), conds)
	return out
}

// test is how a type of rules is written: what its first argument sets, if
// there is one without a word, and the words with the keys that they set.
type test struct {
	first string
	words []testWord
}

type testWord struct{ word, key string }

// tests are those of all types of rules.
var tests = map[string]test{
	"model":   {first: "name"},
	"surface": {first: "name"},
	"tenant":  {first: "name"},
	"stream":  {first: "value"},
	"path":    {words: []testWord{{"exact", "exact"}, {"prefix", "prefix"}}},
	"header":  {first: "name", words: []testWord{{"exact", "exact"}, {"prefix", "prefix"}, {"regex", "regex"}, {"present", "present"}}},
	"context": {words: []testWord{{"min", "min_tokens"}, {"max", "max_tokens"}}},
	"body":    {first: "name", words: []testWord{{"equals", "equals"}, {"present", "present"}}},
}

// testUsage are examples for messages.
var testUsage = map[string]string{
	"model":   `model("llama-70b")`,
	"surface": "surface(chat)",
	"tenant":  `tenant("acme")`,
	"stream":  "stream(true)",
	"path":    `path(prefix "/v1/")`,
	"header":  `header("x-tier" exact "gold")`,
	"context": "context(min 32K max 1M)",
	"body":    `body("seed" present)`,
}

func (r *sluiceReader) test(c *dsl.Cond, path string) *node {
	how, ok := tests[c.Name]
	if !ok {
		return r.fail(c.Pos, path, "unknown condition "+quote(c.Name)+oneOf(c.Name, ruleTypes))
	}
	out := &node{kind: kindMap, origin: r.at(c.Pos)}
	out.add("type", r.at(c.Pos), &node{kind: kindString, origin: r.at(c.Pos), text: c.Name, value: c.Name})
	args := c.Args
	if how.first != "" {
		if len(args) == 0 {
			return r.fail(c.Pos, path, c.Name+" needs something in its parentheses, such as "+testUsage[c.Name])
		}
		out.add(how.first, r.at(args[0].Pos), r.scalar(args[0], childPath(path, how.first)))
		args = args[1:]
	}
	for len(args) > 0 {
		word := args[0]
		i := slices.IndexFunc(how.words, func(w testWord) bool { return !word.Quoted && w.word == word.Text })
		if i < 0 {
			return r.fail(word.Pos, path, "unexpected "+quote(word.Text)+" in "+c.Name+expectedWords(word, how.words)+"; it is written "+testUsage[c.Name])
		}
		key := how.words[i].key
		args = args[1:]
		var v *node
		switch {
		case key == "present" && (len(args) == 0 || args[0].Kind != dsl.Bool):
			v = &node{kind: kindBool, origin: r.at(word.Pos), text: "true", value: true}
		case len(args) == 0:
			return r.fail(word.Pos, path, quote(word.Text)+" in "+c.Name+" needs a value behind it")
		default:
			v = r.scalar(args[0], childPath(path, key))
			args = args[1:]
		}
		r.add(out, key, word.Pos, path, v)
	}
	return out
}

// expectedWords says what may stand in the place of a word.
func expectedWords(got *dsl.Value, words []testWord) string {
	if len(words) == 0 {
		return ""
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.word
	}
	return oneOf(got.Text, names)
}
