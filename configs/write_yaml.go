package configs

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// writeYAML returns n as YAML. Short lists and mappings without others in them
// are in one line.
func writeYAML(n *node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(yamlNode(n, 0)); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return b.Bytes(), nil
}

// yamlTags are those of scalars: with them, the library puts a string in quotes
// that would be read as something else.
var yamlTags = map[kind]string{
	kindNull: "!!null", kindBool: "!!bool", kindInt: "!!int", kindFloat: "!!float", kindString: "!!str",
}

func yamlNode(n *node, depth int) *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Value: n.text, Tag: yamlTags[n.kind]}
	switch n.kind {
	case kindList:
		out.Kind, out.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range n.items {
			out.Content = append(out.Content, yamlNode(item, depth+1))
		}
	case kindMap:
		out.Kind, out.Tag = yaml.MappingNode, "!!map"
		for _, m := range n.members {
			key := &yaml.Node{Kind: yaml.ScalarNode, Value: m.key, Tag: "!!str"}
			out.Content = append(out.Content, key, yamlNode(m.value, depth+1))
		}
	default:
		return out
	}
	if depth > 1 && n.leaf() && len(appendJSONLine(nil, n)) <= lineWidth-20 {
		out.Style = yaml.FlowStyle
	}
	return out
}
