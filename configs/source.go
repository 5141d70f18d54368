package configs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// format is a syntax of configuration files.
type format uint8

const (
	formatNone format = iota
	formatYAML
	formatJSON
	formatTOML
	formatSluice
)

// formatOf returns the format of a file by its extension.
func formatOf(name string) format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return formatYAML
	case ".json":
		return formatJSON
	case ".toml":
		return formatTOML
	case ".sluice":
		return formatSluice
	}
	return formatNone
}

// parser is the koanf.Parser of our formats. koanf has no room for positions
// and stops at the first error, so Unmarshal fills origins, adds to faults and
// returns what can be used; its error is always nil.
type parser struct {
	format  format
	origin  Origin // of the file
	origins origins
	faults  *Faults
	env     []string // for secrets
	sources *Sources
	// read is false when nothing of the file could be used, or not all that is
	// in it.
	read bool
}

// Unmarshal returns the values of data that are valid for a Config.
func (p *parser) Unmarshal(data []byte) (map[string]any, error) {
	p.read = false
	if root, whole := p.node(data); root != nil {
		r := reader{origins: p.origins, faults: p.faults, env: p.env, sources: p.sources}
		if v, ok := r.value(root, configType, ""); ok {
			m, _ := v.(map[string]any)
			p.read = whole
			return m, nil
		}
	}
	return map[string]any{}, nil
}

// node returns what is in data, or nil. It is not whole where an error keeps
// values from being read at all.
func (p *parser) node(data []byte) (root *node, whole bool) {
	switch p.format {
	case formatYAML:
		root = parseYAML(data, p.origin, p.faults)
	case formatJSON:
		root = parseJSON(data, p.origin, p.faults)
	case formatTOML:
		root = parseTOML(data, p.origin, p.faults)
	case formatSluice:
		return parseSluice(data, p.origin, p.faults)
	default:
		p.faults.add(p.origin, "", "cannot tell the format of the file: name it .yaml, .yml, .json, .toml or .sluice")
	}
	return root, root != nil
}

// Marshal returns values, as Unmarshal returns them, in the format of p. Secrets
// are not shown.
func (p *parser) Marshal(values map[string]any) ([]byte, error) {
	n, err := valueNode(values)
	if err != nil {
		return nil, err
	}
	return writeNode(n, p.format)
}

// errNoParser is for callers that forget what a file needs.
var errNoParser = errors.New("a configuration file needs a parser")

// fileProvider is the koanf.Provider of a file.
type fileProvider string

// ReadBytes returns the file.
func (name fileProvider) ReadBytes() ([]byte, error) {
	f, err := os.Open(string(name))
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(data) > maxSourceBytes {
		return nil, fmt.Errorf("is larger than %v", Bytes(maxSourceBytes))
	}
	return data, nil
}

// bare returns err without the name of the file, which its fault has already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("cannot be read: %w", path.Err)
	}
	return err
}

// Read returns an error: without a parser a file has no values.
func (name fileProvider) Read() (map[string]any, error) { return nil, errNoParser }
