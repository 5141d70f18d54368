package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// format is a syntax of configuration files.
type format uint8

const (
	formatNone format = iota
	formatYAML
	formatJSON
	formatTOML
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
	// read is false when nothing of the file could be used.
	read bool
}

// Unmarshal returns the values of data that are valid for a Config.
func (p *parser) Unmarshal(data []byte) (map[string]any, error) {
	p.read = false
	if root := p.node(data); root != nil {
		r := reader{origins: p.origins, faults: p.faults, env: p.env}
		if v, ok := r.value(root, configType, ""); ok {
			m, _ := v.(map[string]any)
			p.read = true
			return m, nil
		}
	}
	return map[string]any{}, nil
}

func (p *parser) node(data []byte) *node {
	switch p.format {
	case formatYAML:
		return parseYAML(data, p.origin, p.faults)
	case formatJSON:
		return parseJSON(data, p.origin, p.faults)
	case formatTOML:
		return parseTOML(data, p.origin, p.faults)
	}
	p.faults.add(p.origin, "", "cannot tell the format of the file: name it .yaml, .yml, .json or .toml")
	return nil
}

// Marshal returns values, as Unmarshal returns them, in the format of p.
func (p *parser) Marshal(values map[string]any) ([]byte, error) {
	text := written(values)
	switch p.format {
	case formatYAML:
		return yaml.Marshal(text)
	case formatJSON:
		return json.MarshalIndent(text, "", "  ")
	case formatTOML:
		return toml.Marshal(text)
	}
	return nil, errors.New("cannot write a file without a format")
}

// written returns v with durations and sizes as a file holds them.
func written(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case Bytes:
		return v.String()
	case Secret:
		return redacted
	case Object:
		var m any
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			panic("BUG: an Object that is no JSON: " + err.Error())
		}
		return m
	case TokenLimit:
		if v == AutoTokens {
			return "auto"
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = written(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = written(value)
		}
		return out
	}
	return v
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
