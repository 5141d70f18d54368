package configs

import (
	"crypto/sha256"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/knadh/koanf/v2"
)

// Sources are what the last Load with it has read: the files of its Options, the
// keys in etcd, and the files of secrets and certificates that those name. What
// could not be read is one of them, too. The zero value is ready; it is safe for
// concurrent use, but two Loads at the same time mix what they tell it.
type Sources struct {
	mu   sync.Mutex
	seen map[string]digest
}

// digest tells contents apart. It is zero where there is nothing to read.
type digest [sha256.Size]byte

func digestOf(data []byte, err error) digest {
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(data)
}

// Names returns the sources in the order of their names.
func (s *Sources) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.seen))
}

// begin forgets what an earlier Load has read.
func (s *Sources) begin() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = map[string]digest{}
}

// note takes down what a source held. A source that is named twice keeps the
// first: if the second is another, the source has changed meanwhile.
func (s *Sources) note(name string, data []byte, err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[name]; !ok {
		s.seen[name] = digestOf(data, err)
	}
}

// differs reports whether a source, which holds now, held something else, and
// takes that down.
func (s *Sources) differs(name string, now digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.seen[name]
	if !ok || before == now {
		return false
	}
	s.seen[name] = now
	return true
}

// noted is a provider whose text is noted.
type noted struct {
	koanf.Provider
	name string
	to   *Sources
}

// ReadBytes returns the text of the provider.
func (n noted) ReadBytes() ([]byte, error) {
	data, err := n.Provider.ReadBytes()
	n.to.note(n.name, data, err)
	return data, err
}

// noteFiles takes down the files that c names and that are read later: by the
// checks, and by who makes listeners and pools.
func (s *Sources) noteFiles(c *Config) {
	if s == nil {
		return
	}
	for _, name := range c.certificateFiles() {
		data, err := readSmall(name, maxSourceBytes)
		s.note(name, data, err)
	}
}

// certificateFiles returns the names of the PEM files of c: those of every struct
// that has a certificate.
func (c *Config) certificateFiles() []string {
	var names []string
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			fields := fieldsOf(v.Type())
			secure := slices.ContainsFunc(fields, func(f field) bool { return f.key == "cert" })
			for _, f := range fields {
				below := v.FieldByIndex(f.index)
				if secure && slices.Contains([]string{"ca", "client_ca", "cert", "key"}, f.key) {
					names = append(names, below.String())
					continue
				}
				walk(below)
			}
		}
	}
	walk(reflect.ValueOf(c).Elem())
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// look returns what is in a file, as note has it. It is false for what cannot be
// read again, such as a pipe.
func look(name string) (now digest, ok bool) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return digest{}, false
	}
	return digestOf(readSmall(name, maxSourceBytes)), true
}
