package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxWeight bounds the weight of a worker, as an SRV record does.
const maxWeight = 65535

// errEmpty: somebody emptied the list, or is about to write it.
var errEmpty = errors.New("the list names no workers")

// parseList reads a list of workers. It is lines of a URL each, which may be
// followed by weight=N; an empty line and what follows a # that begins a word
// are nothing. Or it is YAML or JSON, which begins with a "-" or "[": a list of
// {url, weight}.
func parseList(b []byte) ([]Member, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // that editors on Windows begin with
	var members []Member
	var err error
	if structured(b) {
		members, err = parseYAML(b)
	} else {
		members, err = parseLines(b)
	}
	if err == nil && len(members) == 0 {
		err = errEmpty
	}
	if err != nil {
		return nil, err
	}
	return members, nil
}

// structured reports whether the first line that says something begins a list in
// YAML or JSON.
func structured(b []byte) bool {
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return line[0] == '-' || line[0] == '['
		}
	}
	return false
}

func parseLines(b []byte) ([]Member, error) {
	var members []Member
	n := 0
	for line := range bytes.Lines(b) {
		n++
		words := strings.Fields(string(line))
		for i, w := range words {
			if w[0] == '#' {
				words = words[:i]
				break
			}
		}
		if len(words) == 0 {
			continue
		}
		m, err := parseWords(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		members = append(members, m)
	}
	return members, nil
}

// parseWords reads what a line says.
func parseWords(words []string) (Member, error) {
	m := Member{URL: words[0], Weight: 1}
	for _, w := range words[1:] {
		value, ok := strings.CutPrefix(w, "weight=")
		if !ok {
			return m, fmt.Errorf("a url may be followed by weight=N, got %q", w)
		}
		var err error
		if m.Weight, err = strconv.Atoi(value); err != nil {
			return m, fmt.Errorf("the weight must be a number, got %q", value)
		}
	}
	return m, m.check()
}

func parseYAML(b []byte) ([]Member, error) {
	var list []struct {
		URL    string `yaml:"url"`
		Weight *int   `yaml:"weight"`
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the list")
	}
	members := make([]Member, len(list))
	for i, l := range list {
		members[i] = Member{URL: l.URL, Weight: 1}
		if l.Weight != nil {
			members[i].Weight = *l.Weight
		}
		if err := members[i].check(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return members, nil
}

// check returns why m cannot be a worker, as far as can be told here.
func (m *Member) check() error {
	// What is wrong is not echoed: it may be a password.
	u, err := url.Parse(m.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("a worker's url must be http://host:port or https://host:port")
	}
	if m.Weight < 1 || m.Weight > maxWeight {
		return fmt.Errorf("the weight must be from 1 to %d, got %d", maxWeight, m.Weight)
	}
	return nil
}
