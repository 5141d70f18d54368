package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlReader turns the nodes of the YAML library into ours: aliases and merge
// keys are resolved, and what YAML allows but a configuration must not hold is
// a fault.
type yamlReader struct {
	origin Origin // of the file
	faults *Faults
	nodes  int // made so far
}

// parseYAML reads one YAML document. It returns nil when there is nothing to
// use; faults are added for everything that is wrong.
func parseYAML(data []byte, file Origin, faults *Faults) *node {
	doc, err := decodeYAML(data)
	if err != nil {
		origin, msg := yamlError(file, err)
		faults.add(origin, "", msg)
		return nil
	}
	if doc == nil {
		return &node{kind: kindMap, origin: at(file, 1, 1)}
	}
	r := yamlReader{origin: file, faults: faults}
	return r.node(doc.Content[0], "", 0)
}

// decodeYAML returns the only document of data, or nil when there is none.
// The library panics on some malformed input instead of returning an error;
// that must not take down a router that reloads its configuration.
func decodeYAML(data []byte) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, fmt.Errorf("cannot be read as YAML: %v", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc = new(yaml.Node)
	if err := dec.Decode(doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, fmt.Errorf("yaml: line %d: a second document: a configuration file holds one", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return doc, nil
}

// yamlLine is how the library writes the position of a syntax error, which it
// does not give in any other way.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func yamlError(file Origin, err error) (Origin, string) {
	msg := err.Error()
	m := yamlLine.FindStringSubmatch(msg)
	if m == nil {
		return file, strings.TrimPrefix(msg, "yaml: ")
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return file, msg
	}
	return at(file, line, 1), msg[len(m[0]):]
}

func at(file Origin, line, column int) Origin {
	file.Line, file.Column = line, column
	return file
}

func (r *yamlReader) at(n *yaml.Node) Origin { return at(r.origin, n.Line, n.Column) }

func (r *yamlReader) fail(n *yaml.Node, path, msg string) *node {
	r.faults.add(r.at(n), path, msg)
	return &node{origin: r.at(n)}
}

// node returns n as ours; after a fault it is a bad one.
func (r *yamlReader) node(n *yaml.Node, path string, depth int) *node {
	// Both bounds hold for what aliases stand for, too, so that neither an
	// alias of its own parent nor nine levels of nine aliases run away.
	if r.nodes++; r.nodes == maxNodes {
		return r.fail(n, path, "too many values, aliases counted as often as they are used")
	} else if r.nodes > maxNodes {
		return &node{origin: r.at(n)}
	}
	if depth > maxDepth {
		return r.fail(n, path, "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.node(n.Alias, path, depth+1)
	case yaml.SequenceNode:
		return r.list(n, path, depth)
	case yaml.MappingNode:
		return r.mapping(n, path, depth)
	}
	return r.scalar(n, path)
}

func (r *yamlReader) list(n *yaml.Node, path string, depth int) *node {
	if n.Tag != "!!seq" {
		return r.fail(n, path, "unknown tag "+quote(n.Tag))
	}
	out := &node{kind: kindList, origin: r.at(n)}
	for i, item := range n.Content {
		out.items = append(out.items, r.node(item, itemPath(path, i), depth+1))
	}
	return out
}

func (r *yamlReader) mapping(n *yaml.Node, path string, depth int) *node {
	if n.Tag != "!!map" {
		return r.fail(n, path, "unknown tag "+quote(n.Tag))
	}
	out := &node{kind: kindMap, origin: r.at(n)}
	var merges *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch name, ok := r.key(key, out, path); {
		case !ok:
		case key.Tag != "!!merge":
			out.add(name, r.at(key), r.node(value, childPath(path, name), depth+1))
		case merges != nil:
			r.fail(key, path, "repeated merge key (<<), first set on line "+strconv.Itoa(merges.Line)+": merge a list")
		default:
			merges = value
		}
	}
	if merges != nil {
		r.merge(out, merges, path, depth+1)
	}
	return out
}

// key returns the name that a mapping gives to a value, once.
func (r *yamlReader) key(key *yaml.Node, of *node, path string) (name string, ok bool) {
	if key.Kind != yaml.ScalarNode || key.Tag != "!!str" && key.Tag != "!!merge" {
		r.fail(key, path, "a key must be a string: put it in quotes")
		return "", false
	}
	if msg := keyFault(key.Value); msg != "" {
		r.fail(key, path, msg)
		return "", false
	}
	if first := of.find(key.Value); first != nil {
		r.fail(key, childPath(path, key.Value), "repeated key, first set on line "+strconv.Itoa(first.origin.Line))
		return "", false
	}
	return key.Value, true
}

// merge adds the members of a merge key (<<: *defaults, or a list of them)
// that into does not have. Keys of the mapping itself win, then earlier ones.
func (r *yamlReader) merge(into *node, value *yaml.Node, path string, depth int) {
	from := r.node(value, path, depth)
	sources := []*node{from}
	if from.kind == kindList {
		sources = from.items
	}
	for _, src := range sources {
		switch src.kind {
		case kindMap:
		case kindBad:
			return
		default:
			r.fail(value, path, "a merge key (<<) takes a mapping or a list of mappings, got "+src.describe())
			return
		}
		for _, m := range src.members {
			if into.find(m.key) == nil {
				into.add(m.key, m.origin, m.value)
			}
		}
	}
}

func (r *yamlReader) scalar(n *yaml.Node, path string) *node {
	out := &node{origin: r.at(n), text: n.Value}
	if err := n.Decode(&out.value); err != nil {
		return r.fail(n, path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch n.ShortTag() {
	case "!!null":
		out.kind = kindNull
	case "!!bool":
		out.kind = kindBool
	case "!!float":
		out.kind = kindFloat
	case "!!int":
		out.kind = kindInt
		if i, ok := out.value.(int64); ok {
			out.value = int(i)
		}
		if ambiguousOctal(n.Value) {
			return r.fail(n, path, "a number must not begin with 0, got "+n.Value+": YAML 1.1 reads it as octal, YAML 1.2 does not")
		}
	case "!!timestamp":
		out.kind, out.value = kindDate, n.Value
	case "!!str":
		out.kind = kindString
	default:
		return r.fail(n, path, "unknown tag "+quote(n.Tag))
	}
	return out
}

func ambiguousOctal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0' && (s[1] == '_' || '0' <= s[1] && s[1] <= '9')
}
