package configs

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// hidden stands for a secret that is printed.
const hidden = "***"

// Print writes the effective configuration as yaml or json: what Load reads back
// as the same, but for secrets, which are ***. Keys that have neither a value nor
// a default are left out. With origins each value has its place (see Origin.String):
// in YAML as a comment, in JSON as a second object, by path, beside the first.
func (c *Config) Print(w io.Writer, format string, origins bool) error {
	p := printer{origins: c.origins}
	root, err := p.node(reflect.ValueOf(c).Elem(), "")
	if err != nil {
		return err
	}
	if root == nil {
		root = &node{kind: kindMap}
	}
	var text []byte
	switch {
	case format == "yaml":
		text, err = printYAML(root, origins)
	case format == "json" && origins:
		both := &node{kind: kindMap}
		both.add("config", Origin{}, root)
		places := &node{kind: kindMap}
		listOrigins(root, "", places)
		both.add("origins", Origin{}, places)
		text = writeJSON(both)
	case format == "json":
		text = writeJSON(root)
	default:
		err = fmt.Errorf("cannot print as %s: want yaml or json", quote(format))
	}
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printer makes nodes of a configuration.
type printer struct{ origins origins }

// node returns the value at path with the places of what is in it, or nil where
// there is nothing to show.
func (p *printer) node(v reflect.Value, path string) (*node, error) {
	switch v.Type() {
	case secretType:
		if v.String() == "" {
			return nil, nil
		}
		return &node{kind: kindString, text: hidden, origin: p.origins[path].origin}, nil
	case objectType, tokensType:
		if v.IsZero() {
			return nil, nil
		}
		return p.free(v, path)
	case durationType:
		n, err := p.free(v, path)
		if err == nil {
			n.text = durationText(v.Interface().(time.Duration))
		}
		return n, err
	case bytesType:
		n, err := p.free(v, path)
		if err == nil && !strings.HasSuffix(n.text, "B") {
			n.kind = kindInt
		}
		return n, err
	case limitType, shareType:
		return p.free(v, path)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return p.node(v.Elem(), path)
	case reflect.Struct:
		return p.object(v, path)
	case reflect.Map:
		return p.mapping(v, path)
	case reflect.Slice:
		return p.list(v, path)
	case reflect.String, reflect.Interface:
		if v.IsZero() {
			return nil, nil
		}
	}
	return p.free(v, path)
}

// free returns a value that has no keys of ours below it. What has no place of its
// own is from where the whole is from.
func (p *printer) free(v reflect.Value, path string) (*node, error) {
	n, err := valueNode(v.Interface())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	from := p.origins[path].origin
	if v.Kind() == reflect.Interface || v.Type() == objectType {
		from = p.origins.of(path)
	}
	p.place(n, path, from)
	return n, nil
}

func (p *printer) place(n *node, path string, from Origin) {
	if o, ok := p.origins[path]; ok {
		from = o.origin
	}
	n.origin = from
	for i, item := range n.items {
		p.place(item, itemPath(path, i), from)
	}
	for _, m := range n.members {
		p.place(m.value, childPath(path, m.key), from)
	}
}

// object returns a struct. A plugin shows what was set alone: the other keys are
// mostly those of other types.
func (p *printer) object(v reflect.Value, path string) (*node, error) {
	out := &node{kind: kindMap, origin: p.origins[path].origin}
	for _, f := range fieldsOf(v.Type()) {
		at := childPath(path, f.key)
		value := v.FieldByIndex(f.index)
		if _, set := p.origins[at]; !set && value.IsZero() && v.Type() == pluginConfigType {
			continue
		}
		n, err := p.node(value, at)
		if err != nil {
			return nil, err
		}
		if n != nil {
			out.add(f.key, n.origin, n)
		}
	}
	if len(out.members) == 0 {
		return nil, nil
	}
	return out, nil
}

func (p *printer) mapping(v reflect.Value, path string) (*node, error) {
	if v.IsNil() {
		return nil, nil
	}
	out := &node{kind: kindMap, origin: p.origins[path].origin}
	for _, key := range sortedKeys(v) {
		at := childPath(path, key)
		n, err := p.node(v.MapIndex(reflect.ValueOf(key)), at)
		if err != nil {
			return nil, err
		}
		if n != nil {
			out.add(key, n.origin, n)
		}
	}
	return out, nil
}

func sortedKeys(v reflect.Value) []string {
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

func (p *printer) list(v reflect.Value, path string) (*node, error) {
	if v.IsNil() {
		return nil, nil
	}
	out := &node{kind: kindList, origin: p.origins[path].origin}
	for i := range v.Len() {
		n, err := p.node(v.Index(i), itemPath(path, i))
		if err != nil {
			return nil, err
		}
		if n == nil {
			n = &node{kind: kindMap}
		}
		out.items = append(out.items, n)
	}
	return out, nil
}

// durationText returns d as people write it: 1h, not 1h0m0s, and 30d.
func durationText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// printYAML writes n, if asked with the places as comments.
func printYAML(n *node, origins bool) ([]byte, error) {
	tree := yamlNode(n, 0)
	if origins {
		comment(tree, n)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(tree); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return b.Bytes(), nil
}

// comment puts the places of n behind what is in one line in y, which is its YAML.
func comment(y *yaml.Node, n *node) {
	if y.Kind == yaml.ScalarNode || y.Style == yaml.FlowStyle || len(y.Content) == 0 {
		places := map[string]bool{}
		n.places(places)
		y.LineComment = strings.Join(slices.Sorted(maps.Keys(places)), ", ")
		return
	}
	for i, item := range n.items {
		comment(y.Content[i], item)
	}
	for i, m := range n.members {
		comment(y.Content[2*i+1], m.value)
	}
}

// places adds the places of what n holds.
func (n *node) places(to map[string]bool) {
	if len(n.items)+len(n.members) == 0 {
		to[n.origin.String()] = true
	}
	for _, item := range n.items {
		item.places(to)
	}
	for _, m := range n.members {
		m.value.places(to)
	}
}

// listOrigins adds the place of each value below n, by path.
func listOrigins(n *node, path string, to *node) {
	if len(n.items)+len(n.members) == 0 {
		to.add(path, Origin{}, &node{kind: kindString, text: n.origin.String()})
	}
	for i, item := range n.items {
		listOrigins(item, itemPath(path, i), to)
	}
	for _, m := range n.members {
		listOrigins(m.value, childPath(path, m.key), to)
	}
}
