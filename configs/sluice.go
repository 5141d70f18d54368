package configs

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sluice/configs/dsl"
)

// The words of .sluice files follow the keys of the configuration: SERVER is
// server and, in a ROUTE, PRIORITY is priority of a decision. A key whose items
// have names is written one by one as well: POOL llama {…}. So a new key can be
// written at once. GRAMMAR.md describes the language.

// contractWord is short for SAMPLING_CONTRACT.
const contractWord = "CONTRACT"

// vocabulary returns the words of the language. Nobody changes it.
var vocabulary = sync.OnceValue(func() *dsl.Vocabulary {
	v := &dsl.Vocabulary{Suggest: nearest}
	for _, f := range fieldsOf(configType) {
		v.Sections = append(v.Sections, strings.ToUpper(f.key))
		if named(f.typ) {
			v.Named = append(v.Named, singular(f.key))
		}
	}
	for _, f := range fieldsOf(decisionType) {
		if f.key == "name" {
			continue
		}
		v.Clauses = append(v.Clauses, strings.ToUpper(f.key))
		if f.typ.Kind() == reflect.Bool {
			v.Flags = append(v.Flags, strings.ToUpper(f.key))
		}
	}
	v.Sections = append(v.Sections, contractWord)
	v.Clauses = append(v.Clauses, contractWord)
	return v
})

var (
	decisionType     = reflect.TypeFor[Decision]()
	pluginConfigType = reflect.TypeFor[PluginConfiguration]()
)

// named reports whether t is a list or mapping of structs that have a name.
func named(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return elem(t).Kind() == reflect.Struct
	case reflect.Slice:
		item := elem(t)
		return item.Kind() == reflect.Struct && slices.ContainsFunc(fieldsOf(item), func(f field) bool { return f.key == "name" })
	}
	return false
}

func elem(t reflect.Type) reflect.Type {
	if t = t.Elem(); t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func singular(key string) string { return strings.TrimSuffix(strings.ToUpper(key), "S") }

// keyOf returns the key that a word stands for.
func keyOf(word string) string {
	if word == contractWord {
		return "sampling_contract"
	}
	return strings.ToLower(word)
}

// sluiceReader turns the tree of a .sluice file into nodes.
type sluiceReader struct {
	origin    Origin // of the file
	faults    *Faults
	root      *node
	templates map[string]*template
	// grown are the lists and mappings that statements have added to.
	grown map[*node]bool
	nodes int // made so far, those of a template as often as it is used
}

// parseSluice reads one .sluice file. Faults are added for everything that is
// wrong. What has no error of the syntax is returned, also beside such errors;
// whole is false then.
func parseSluice(data []byte, file Origin, faults *Faults) (root *node, whole bool) {
	tree, errs := dsl.Parse(file.Name, data, vocabulary())
	for _, err := range errs {
		faults.add(at(file, err.Pos.Line, err.Pos.Column), "", err.Msg)
	}
	r := &sluiceReader{
		origin: file, faults: faults,
		root:      &node{kind: kindMap, origin: at(file, 1, 1)},
		templates: map[string]*template{},
		grown:     map[*node]bool{},
	}
	of := func(read func(*dsl.Statement), is func(word string) bool) {
		for _, s := range tree.Statements {
			if is(s.Word) {
				read(s)
			}
		}
	}
	// A template may stand behind the routes that use it, and the section
	// ROUTING behind the routes in it.
	of(r.template, func(word string) bool { return word == dsl.WordPlugin })
	of(r.section, func(word string) bool { return word != dsl.WordPlugin && word != dsl.WordRoute })
	of(r.route, func(word string) bool { return word == dsl.WordRoute })
	for _, name := range slices.Sorted(maps.Keys(r.templates)) {
		if t := r.templates[name]; !t.used && t.typ != "" {
			r.unused(t, "template "+name)
		}
	}
	return r.root, len(errs) == 0
}

func (r *sluiceReader) at(p dsl.Pos) Origin { return at(r.origin, p.Line, p.Column) }

func (r *sluiceReader) fail(p dsl.Pos, path, msg string) *node {
	r.faults.add(r.at(p), path, msg)
	return &node{origin: r.at(p)}
}

// add adds a member to a mapping, once.
func (r *sluiceReader) add(to *node, key string, p dsl.Pos, path string, value *node) {
	if first := to.find(key); first != nil {
		r.fail(p, childPath(path, key), "repeated key, first set on line "+strconv.Itoa(first.origin.Line))
		return
	}
	to.add(key, r.at(p), value)
}

// section reads a statement that sets a key of the configuration or adds an
// item to it.
func (r *sluiceReader) section(s *dsl.Statement) {
	if len(s.Args) == 0 {
		key := keyOf(s.Word)
		r.add(r.root, key, s.Pos, "", r.value(s.Value, key))
		return
	}
	fields := fieldsOf(configType)
	f := fields[slices.IndexFunc(fields, func(f field) bool { return named(f.typ) && singular(f.key) == s.Word })]
	name := s.Args[0]
	if f.typ.Kind() == reflect.Map {
		if all := r.grow(r.root, f.key, kindMap, f.key, s.Pos); all != nil {
			r.add(all, name.Text, name.Pos, f.key, r.value(s.Value, childPath(f.key, name.Text)))
		}
		return
	}
	if all := r.grow(r.root, f.key, kindList, f.key, s.Pos); all != nil {
		path := itemPath(f.key, len(all.items))
		item := r.item(all, s)
		r.fields(item, s.Value.Fields, path)
	}
}

// grow returns the list or mapping at key of parent that statements add to, or
// nil when it was set as a whole.
func (r *sluiceReader) grow(parent *node, key string, k kind, path string, p dsl.Pos) *node {
	m := parent.find(key)
	if m == nil {
		all := &node{kind: k, origin: r.at(p)}
		parent.add(key, r.at(p), all)
		r.grown[all] = true
		return all
	}
	if !r.grown[m.value] {
		r.fail(p, path, "is set as a whole on line "+strconv.Itoa(m.origin.Line)+" already")
		return nil
	}
	return m.value
}

// item appends an item with the name that s gives to all.
func (r *sluiceReader) item(all *node, s *dsl.Statement) *node {
	item := &node{kind: kindMap, origin: r.at(s.Pos)}
	item.add("name", r.at(s.Args[0].Pos), r.scalar(s.Args[0], ""))
	all.items = append(all.items, item)
	return item
}

// value returns v as a node.
func (r *sluiceReader) value(v *dsl.Value, path string) *node {
	if !r.count(1, v.Pos, path) {
		return &node{origin: r.at(v.Pos)}
	}
	switch v.Kind {
	case dsl.List:
		out := &node{kind: kindList, origin: r.at(v.Pos)}
		for i, item := range v.Items {
			out.items = append(out.items, r.value(item.Value, itemPath(path, i)))
		}
		return out
	case dsl.Map:
		out := &node{kind: kindMap, origin: r.at(v.Pos)}
		r.fields(out, v.Fields, path)
		return out
	}
	return r.scalar(v, path)
}

// count bounds the nodes of a file by those that n more make.
func (r *sluiceReader) count(n int, p dsl.Pos, path string) bool {
	if r.nodes <= maxNodes && r.nodes+n > maxNodes {
		r.fail(p, path, "too many values, those of a template counted as often as it is used")
	}
	r.nodes += n
	return r.nodes <= maxNodes
}

// fields adds the fields of a mapping to out.
func (r *sluiceReader) fields(out *node, fields []*dsl.Field, path string) {
	for _, f := range fields {
		if msg := keyFault(f.Key); msg != "" {
			r.fail(f.Pos, path, msg)
			continue
		}
		r.add(out, f.Key, f.Pos, path, r.value(f.Value, childPath(path, f.Key)))
	}
}

func (r *sluiceReader) scalar(v *dsl.Value, path string) *node {
	out := &node{origin: r.at(v.Pos), text: v.Text}
	switch v.Kind {
	case dsl.Null:
		out.kind = kindNull
	case dsl.Bool:
		out.kind, out.value = kindBool, v.Text == "true"
	case dsl.Int, dsl.Float:
		if i, ok := integer(v.Text, 10); ok && v.Kind == dsl.Int {
			out.kind, out.value = kindInt, i
			break
		}
		f, err := strconv.ParseFloat(v.Text, 64)
		if err != nil {
			return r.fail(v.Pos, path, "the number "+v.Text+" is out of range")
		}
		out.kind, out.value = kindFloat, f
	default:
		out.kind, out.value = kindString, v.Text
	}
	return out
}
