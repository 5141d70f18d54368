package configs

import "strings"

// writeJSON returns n as JSON (RFC 8259): what is short in one line, else an
// item a line.
func writeJSON(n *node) []byte { return append(appendJSONNode(nil, n, 0), '\n') }

func appendJSONNode(dst []byte, n *node, depth int) []byte {
	open, end, count := byte('{'), byte('}'), len(n.members)
	switch n.kind {
	case kindList:
		open, end, count = '[', ']', len(n.items)
	case kindMap:
	case kindString:
		return appendJSONString(dst, n.text)
	default:
		return append(dst, n.text...)
	}
	if count == 0 {
		return append(dst, open, end)
	}
	if depth > 0 {
		if line := appendJSONLine(nil, n); len(line)+2*depth <= lineWidth {
			return append(dst, line...)
		}
	}
	dst = append(dst, open)
	for i := range count {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, '\n'), strings.Repeat("  ", depth+1)...)
		if n.kind == kindList {
			dst = appendJSONNode(dst, n.items[i], depth+1)
			continue
		}
		dst = append(appendJSONString(dst, n.members[i].key), ": "...)
		dst = appendJSONNode(dst, n.members[i].value, depth+1)
	}
	dst = append(append(dst, '\n'), strings.Repeat("  ", depth)...)
	return append(dst, end)
}

// appendJSONLine appends n in one line, or some of it where it is too long.
func appendJSONLine(dst []byte, n *node) []byte {
	switch n.kind {
	case kindList:
		dst = append(dst, '[')
		for i, item := range n.items {
			if len(dst) > lineWidth {
				break
			}
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendJSONLine(dst, item)
		}
		return append(dst, ']')
	case kindMap:
		dst = append(dst, '{')
		for i, m := range n.members {
			if len(dst) > lineWidth {
				break
			}
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(appendJSONString(dst, m.key), ": "...)
			dst = appendJSONLine(dst, m.value)
		}
		return append(dst, '}')
	case kindString:
		return appendJSONString(dst, n.text)
	}
	return append(dst, n.text...)
}
