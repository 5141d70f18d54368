package configs

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/knadh/koanf/v2"
)

// Formats are the names of the formats that Convert writes.
var Formats = []string{"yaml", "json", "toml", "sluice"}

// Convert returns the files, merged as Load merges them, in one of Formats. They
// must be a valid configuration, without the settings in env, which is for the
// secrets alone; the error is that of Load otherwise. No defaults are added. What
// a secret is stays {env: …} or {file: …}, the members of an Object keep their
// order, sizes and durations their text; comments and YAML's aliases are lost, and
// so are templates. Load reads the result as the same Config, but for origins. The
// error is also a Faults where the format cannot hold a value: TOML has no null.
func Convert(files, env []string, to string) ([]byte, error) {
	format := formatOf("." + to)
	if format == formatNone {
		return nil, fmt.Errorf("unknown format %s; expected one of %s", quote(to), strings.Join(Formats, ", "))
	}
	var secrets []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, envPrefix) {
			secrets = append(secrets, entry)
		}
	}
	if _, err := Load(Options{Files: files, Env: secrets}); err != nil {
		return nil, err
	}
	root := &node{kind: kindMap}
	for i, name := range files {
		n, err := readNode(Origin{Name: name, rank: i})
		if err != nil {
			return nil, err
		}
		root = mergeNodes(root, plainNode(n, configType), configType)
	}
	return writeNode(root, format)
}

// readNode returns what is in a file.
func readNode(origin Origin) (*node, error) {
	data, err := fileProvider(origin.Name).ReadBytes()
	if err != nil {
		return nil, Faults{{Origin: origin, Msg: err.Error()}}
	}
	var faults Faults
	p := parser{format: formatOf(origin.Name), origin: origin, faults: &faults}
	n, _ := p.node(data)
	return n, faults.err()
}

// mergeNodes returns over merged into base, both of type t, as koanf merges what
// the strict reader makes of them: mappings key by key, anything else replaced.
// Neither is changed.
func mergeNodes(base, over *node, t reflect.Type) *node {
	if t == thinkingType {
		base, over = presetNode(base), presetNode(over)
	}
	if base.kind != kindMap || over.kind != kindMap || t == objectType || t == secretType {
		return over
	}
	out := &node{kind: kindMap, origin: over.origin}
	for _, m := range base.members {
		if own := over.find(m.key); own != nil {
			m.origin, m.value = own.origin, mergeNodes(m.value, own.value, typeBelow(t, m.key))
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

// presetNode returns the name of a preset as the mapping that it stands for.
func presetNode(n *node) *node {
	if n.kind != kindString {
		return n
	}
	out := &node{kind: kindMap, origin: n.origin}
	out.add("preset", n.origin, n)
	return out
}

// configOf returns what root says, over the defaults. It is nil with the faults of
// the strict reader; Config.Validate has not been called.
func configOf(root *node) (*Config, Faults) {
	var faults Faults
	r := reader{origins: origins{}, faults: &faults}
	v, ok := r.value(root, configType, "")
	if !ok || len(faults) > 0 {
		return nil, faults
	}
	l := loader{k: koanf.New(delim), origins: r.origins}
	if err := l.k.Load(valueProvider(v.(map[string]any)), nil); err != nil {
		panic("BUG: values that were checked do not load: " + err.Error())
	}
	c, err := l.config()
	if err != nil {
		panic(err.Error())
	}
	return c, nil
}

// valueProvider is the koanf.Provider of values that are read already.
type valueProvider map[string]any

// Read returns the values.
func (v valueProvider) Read() (map[string]any, error) { return v, nil }

// ReadBytes returns an error: there is no text.
func (v valueProvider) ReadBytes() ([]byte, error) { return nil, errNoParser }

// The makers of nodes that come from no source.

func newMap() *node { return &node{kind: kindMap} }

func newText(text string) *node { return &node{kind: kindString, text: text, value: text} }

func newList(items ...*node) *node { return &node{kind: kindList, items: items} }

// put adds a member and returns n.
func (n *node) put(key string, value *node) *node {
	n.add(key, value.origin, value)
	return n
}
