package configs

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sluice/configs/dsl"
)

// Format returns the source of a .sluice file in its canonical form, with all
// its comments (see dsl.Print). What words mean is not looked at: the file need
// not be a valid configuration. The error says all that is wrong with the syntax,
// with the lines; name is for it alone.
func Format(name string, source []byte) ([]byte, error) {
	tree, faults := dsl.Parse(name, source, vocabulary())
	if len(faults) == 0 {
		return dsl.Print(tree), nil
	}
	errs := make([]error, len(faults))
	for i, err := range faults {
		errs[i] = err
	}
	return nil, errors.Join(errs...)
}

// Report returns err, of Load or Convert, for people: as its Error, and below
// each fault of a .sluice file its line with a caret. The lines are read anew.
// One that holds a secret is not shown, nor one that could where the file has
// errors of its syntax.
func Report(err error) string {
	var faults Faults
	if !errors.As(err, &faults) {
		return err.Error()
	}
	sources := map[string]*source{}
	var b strings.Builder
	for i, f := range faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.Error())
		if f.Origin.Line == 0 || !strings.EqualFold(filepath.Ext(f.Origin.Name), ".sluice") {
			continue
		}
		s := sources[f.Origin.Name]
		if s == nil {
			s = readSource(f.Origin.Name)
			sources[f.Origin.Name] = s
		}
		if text := s.snippet(f.Origin); text != "" {
			b.WriteString("\n" + text)
		}
	}
	return b.String()
}

// source is a file that faults are shown of.
type source struct {
	text    []byte
	secrets map[int]bool // lines that are not shown
}

// readSource reads a file. It is empty where the file cannot be read any more.
func readSource(name string) *source {
	s := &source{secrets: map[int]bool{}}
	text, err := fileProvider(name).ReadBytes()
	if err != nil {
		return s
	}
	s.text = text
	root, whole := parseSluice(text, Origin{Name: name}, new(Faults))
	s.hide(root, configType)
	if whole {
		return s
	}
	// What has an error is not in the tree: there, lines go by their words.
	line := 0
	for l := range strings.Lines(string(text)) {
		line++
		if slices.ContainsFunc(secretKeys(), func(key string) bool { return strings.Contains(strings.ReplaceAll(l, " ", ""), key+":") }) {
			s.secrets[line] = true
		}
	}
	return s
}

// secretKeys returns the keys of values that are secrets, or hold some.
var secretKeys = sync.OnceValue(func() []string {
	var keys []string
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[Rule]() { // which holds itself
			return
		}
		for _, f := range fieldsOf(t) {
			if f.typ == secretType || f.typ.Kind() == reflect.Map && f.typ.Elem() == secretType {
				keys = append(keys, f.key)
			}
			walk(f.typ)
		}
	}
	walk(configType)
	return keys
})

// hide notes the lines below n, a value of type t, that hold a secret.
func (s *source) hide(n *node, t reflect.Type) {
	if t == secretType && n.kind != kindMap { // {env: …} and {file: …} are none
		s.secrets[n.origin.Line] = true
	}
	for _, item := range n.items {
		s.hide(item, typeBelow(t, ""))
	}
	for _, m := range n.members {
		s.hide(m.value, typeBelow(t, m.key))
	}
}

func (s *source) snippet(o Origin) string {
	if s.secrets[o.Line] {
		return ""
	}
	return dsl.Snippet(s.text, dsl.Pos{Line: o.Line, Column: o.Column})
}
