package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// Secret is a value that is not shown: it prints, logs and marshals as the text
// [redacted], alone and within a Config. string(s) is the value.
type Secret string

const redacted = "[redacted]"

// Format implements fmt.Formatter, for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText implements encoding.TextMarshaler, and so json.Marshaler and what
// log/slog writes.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// secretSource is a secret that is not written in the configuration itself.
type secretSource struct {
	Env  string `koanf:"env"`
	File string `koanf:"file"`
}

var (
	secretType       = reflect.TypeFor[Secret]()
	secretSourceType = reflect.TypeFor[secretSource]()
)

const secretForm = "must be a string, {env: NAME} or {file: path}"

// secret reads a string, {env: NAME} or {file: path} as what it stands for. Its
// faults do not show the value.
func (r *reader) secret(n *node, path string) (any, bool) {
	text, err := n.text, error(nil)
	switch n.kind {
	case kindString:
		r.set(n, path)
	case kindMap:
		v, ok := r.object(n, secretSourceType, path)
		if !ok {
			return nil, false
		}
		source := v.(map[string]any)
		if len(n.members) != 1 {
			return r.fail(n, path, secretForm)
		}
		if len(source) == 0 { // its fault is told
			return nil, false
		}
		if name, ok := source["env"].(string); ok {
			text, err = lookupSecret(r.env, name)
		} else {
			text, err = r.secretFile(source["file"].(string))
		}
	default:
		return r.fail(n, path, secretForm)
	}
	if err != nil {
		return r.fail(n, path, err.Error())
	}
	if msg := fieldValueFault(text); msg != "" {
		return r.fail(n, path, msg)
	}
	return Secret(text), true
}

// lookupSecret returns a variable of env, which is as os.Environ returns it.
func lookupSecret(env []string, name string) (string, error) {
	for _, entry := range env {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, nil
		}
	}
	return "", fmt.Errorf("environment variable %s is not set", quote(name))
}

// secretFile returns what is in a file, without the line end that editors put
// behind it.
func (r *reader) secretFile(name string) (string, error) {
	b, err := readSmall(name, maxSourceBytes)
	r.sources.note(name, b, err)
	if len(b) > maxFieldValue+2 {
		err = fmt.Errorf("is larger than %d bytes", maxFieldValue+2)
	}
	if err != nil {
		return "", fmt.Errorf("file %s %w", quote(name), err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}

// readSmall returns a regular file of at most limit bytes. A pipe is none: it
// could be read once only, and not at all where nobody writes.
func readSmall(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, bare(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, bare(err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("is larger than %d bytes", limit)
	}
	return b, nil
}
