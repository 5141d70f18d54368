package configs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Override sets one key from the command line. It wins over files and the
// environment, and a later one over an earlier one.
type Override struct {
	// Flag is the name of the flag with its dashes, for faults and origins.
	Flag string
	// Path is the key with dots between its levels: server.listen. A pool is
	// addressed by its name, as in the environment.
	Path string
	// Value is read by the type of the key: true or false, 30s, 32MiB, the
	// string itself; a list, a mapping and a sampling parameter are JSON. A
	// list of strings may also be written with commas between them.
	Value string
}

// ParseContractFlags returns what the two flags that set the sampling contract
// override: --override-sampling-params, a JSON object of the params, and
// --sampling-param-conflict, the on_conflict. They are those of SGLang's
// router. An empty string is a flag that was not given; the second without the
// first is an error, whatever the files hold. Each given flag replaces the key
// it sets as a whole, as every flag does; the domains are checked by Load.
func ParseContractFlags(params, conflict string) ([]Override, error) {
	const paramsFlag, conflictFlag = "--override-sampling-params", "--sampling-param-conflict"
	var faults Faults
	if params == "" {
		if conflict != "" {
			faults.add(Origin{Name: conflictFlag}, "", "needs "+paramsFlag+" beside it")
		}
		return nil, faults.err()
	}
	overrides := []Override{{Flag: paramsFlag, Path: "sampling_contract.params", Value: params}}
	if conflict != "" {
		overrides = append(overrides, Override{Flag: conflictFlag, Path: "sampling_contract.on_conflict", Value: conflict})
	}
	n := parseJSONText(params, Origin{Name: paramsFlag}, "", &faults)
	switch {
	case n == nil || n.kind == kindBad:
	case n.kind != kindMap:
		faults.add(n.origin, "", "must be a JSON object, got "+n.describe())
	case len(n.members) == 0 && len(faults) == 0:
		faults.add(n.origin, "", "must name at least one parameter")
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	return overrides, nil
}

// setting is an override on its way into the configuration.
type setting struct {
	origin Origin
	levels []string // of the key
	text   string
}

const envPrefix = "SLUICE_"

// serviceLink matches the variables that Kubernetes sets in every pod for each
// Service of the namespace: a Service named sluice or sluice-admin must not
// keep the router from starting. None of them can be meant as a key, which has
// two underscores between its levels.
var serviceLink = regexp.MustCompile(`^SLUICE_([A-Z0-9]+_)*?` +
	`(SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9]+)*=|PORT=(tcp|udp|sctp)://|PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?=)`)

// envSettings returns the settings of an environment (os.Environ), whole
// sections before their parts, then by name.
func envSettings(env []string, rank int) []setting {
	var settings []setting
	for _, entry := range env {
		name, text, _ := strings.Cut(entry, "=")
		key, ok := strings.CutPrefix(name, envPrefix)
		if !ok || serviceLink.MatchString(entry) {
			continue
		}
		settings = append(settings, setting{Origin{Name: name, rank: rank}, strings.Split(key, "__"), text})
	}
	slices.SortStableFunc(settings, func(a, b setting) int {
		return cmp.Or(cmp.Compare(len(a.levels), len(b.levels)), cmp.Compare(a.origin.Name, b.origin.Name))
	})
	return settings
}

// flagSettings returns the settings of flags in their order.
func flagSettings(overrides []Override, rank int) []setting {
	settings := make([]setting, len(overrides))
	for i, o := range overrides {
		settings[i] = setting{Origin{Name: o.Flag, rank: rank + i}, strings.Split(o.Path, "."), o.Value}
	}
	return settings
}

// envName returns name as a variable has it: upper case, each run of other
// characters than letters and digits one underscore, none at the ends.
func envName(name string) string {
	var b strings.Builder
	gap := false
	for i := range len(name) {
		if !isAlphanumeric(name[i]) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteByte(name[i])
	}
	return strings.ToUpper(b.String())
}

// target is the place in the configuration that a setting names.
type target struct {
	steps []any // from the root: string keys and int indices
	path  string
	typ   reflect.Type
}

func (t *target) key(key string, typ reflect.Type) {
	t.steps, t.path, t.typ = append(t.steps, key), childPath(t.path, key), typ
}

func (t *target) item(i int, typ reflect.Type) {
	t.steps, t.path, t.typ = append(t.steps, i), itemPath(t.path, i), typ
}

// locate finds the place that levels name in values. Its error says which
// level does not fit.
func locate(levels []string, values map[string]any) (target, error) {
	t := target{typ: configType}
	var at any = values
	for _, level := range levels {
		if err := t.step(level, at); err != nil {
			return t, err
		}
		at = inside(at, t.steps[len(t.steps)-1])
	}
	return t, nil
}

// inside returns the value at one step below v, or nil.
func inside(v, step any) any {
	switch step := step.(type) {
	case string:
		m, _ := v.(map[string]any)
		return m[step]
	case int:
		if list, _ := v.([]any); step < len(list) {
			return list[step]
		}
	}
	return nil
}

// step goes one level down from the value at.
func (t *target) step(level string, at any) error {
	if t.typ.Kind() == reflect.Pointer {
		t.typ = t.typ.Elem()
	}
	switch {
	case t.typ.Kind() == reflect.Struct:
		return t.stepField(level)
	case t.typ.Kind() == reflect.Slice:
		list, _ := at.([]any)
		return t.stepItem(level, list)
	case t.typ.Kind() == reflect.Map, t.typ.Kind() == reflect.Interface:
		m, _ := at.(map[string]any)
		return t.stepMember(level, m)
	}
	return fmt.Errorf("%s is a single value and has no keys", t.path)
}

func (t *target) stepField(level string) error {
	fields := fieldsOf(t.typ)
	for _, f := range fields {
		if strings.EqualFold(envName(f.key), level) || f.key == level {
			t.key(f.key, f.typ)
			return nil
		}
	}
	where := ""
	if t.path != "" {
		where = " of " + t.path
	}
	return fmt.Errorf("%s is no key%s", quote(strings.ToLower(level)), where)
}

// stepItem finds an item by its name where items have one, else by its index.
func (t *target) stepItem(level string, list []any) error {
	elem := t.typ.Elem()
	if elem.Kind() != reflect.Struct || !slices.ContainsFunc(fieldsOf(elem), func(f field) bool { return f.key == "name" }) {
		i, err := strconv.Atoi(level)
		if err != nil || i < 0 || i >= len(list) {
			return fmt.Errorf("%s has no item %s, it has %d: set it as a whole, in JSON, to add one", t.path, quote(level), len(list))
		}
		t.item(i, elem)
		return nil
	}
	names := make([]string, len(list))
	for i, item := range list {
		names[i], _ = inside(item, "name").(string)
	}
	i, err := byName(level, names)
	if err != nil {
		return fmt.Errorf("%s %w", t.path, err)
	}
	t.item(i, elem)
	return nil
}

// stepMember finds a key that is there; only where keys are free words of ours
// may it add one, in lower case.
func (t *target) stepMember(level string, m map[string]any) error {
	elem := t.typ
	if t.typ.Kind() == reflect.Map {
		elem = t.typ.Elem()
	}
	names := slices.Sorted(maps.Keys(m))
	i, err := byName(level, names)
	switch {
	case err == nil:
		t.key(names[i], elem)
	case errors.Is(err, errNoName) && elem.Kind() == reflect.Interface && level != "":
		t.key(strings.ToLower(level), elem)
	default:
		return fmt.Errorf("%s %w: set it as a whole, in JSON, to add one", t.path, err)
	}
	return nil
}

var errNoName = errors.New("has no such name")

// byName returns the index of the only name that level spells.
func byName(level string, names []string) (int, error) {
	found := -1
	for i, name := range names {
		if name == level {
			return i, nil
		}
		if envName(name) != strings.ToUpper(level) || level == "" {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("has two names that are spelled %s: %s and %s", level, quote(names[found]), quote(name))
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("%w as %s; the names are %s", errNoName, quote(level), strings.Join(names, ", "))
	}
	return found, nil
}

// variables returns the names, after prefix, that a variable may have, for
// suggestions: those of every struct key, with the pools that value holds.
func variables(prefix string, t reflect.Type, value any) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			name := prefix + envName(f.key)
			names = append(append(names, name), variables(name+"__", f.typ, inside(value, f.key))...)
		}
	case reflect.Slice:
		list, _ := value.([]any)
		for _, item := range list {
			if name, _ := inside(item, "name").(string); name != "" {
				names = append(names, variables(prefix+envName(name)+"__", t.Elem(), item)...)
			}
		}
	}
	return names
}

// node reads the text of a setting by the type of its key.
func (s *setting) node(t reflect.Type, path string, faults *Faults) *node {
	n := &node{kind: kindString, origin: s.origin, text: s.text, value: s.text}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType, t == bytesType:
		return n
	case t == thinkingType && !strings.HasPrefix(s.text, "{"):
		return n // the name of a preset
	case t == objectType, t == secretType && strings.HasPrefix(s.text, "{"):
		return parseJSONText(s.text, s.origin, path, faults)
	case t.Kind() == reflect.Bool && (s.text == "true" || s.text == "false"):
		n.kind, n.value = kindBool, s.text == "true"
	case t.Kind() == reflect.Int:
		if v, ok := integer(s.text, 10); ok {
			n.kind, n.value = kindInt, v
		}
	case t.Kind() == reflect.Float64 && json.Valid([]byte(s.text)):
		return parseJSONText(s.text, s.origin, path, faults)
	case t.Kind() == reflect.Interface:
		if json.Valid([]byte(s.text)) || strings.HasPrefix(s.text, "{") || strings.HasPrefix(s.text, "[") {
			return parseJSONText(s.text, s.origin, path, faults)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && !strings.HasPrefix(s.text, "["):
		n.kind = kindList
		for item := range strings.SplitSeq(s.text, ",") {
			item = strings.TrimSpace(item)
			n.items = append(n.items, &node{kind: kindString, origin: s.origin, text: item, value: item})
		}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return parseJSONText(s.text, s.origin, path, faults)
	}
	return n
}

// parseJSONText reads the JSON value of a variable or flag. Its positions are
// those within the text, so they stand in the message.
func parseJSONText(text string, origin Origin, path string, faults *Faults) *node {
	var found Faults
	n := parseJSON([]byte(text), origin, &found)
	for _, f := range found {
		faults.add(origin, joinPath(path, f.Path), fmt.Sprintf("%s (character %d of the value)", f.Msg, f.Origin.Column))
	}
	if n != nil {
		n.relocate(origin)
	}
	return n
}

// joinPath returns the path of rest, a path of its own, below parent.
func joinPath(parent, rest string) string {
	if parent == "" || rest == "" || rest[0] == '[' {
		return parent + rest
	}
	return parent + "." + rest
}

// relocate gives n and everything below it one origin.
func (n *node) relocate(origin Origin) {
	n.origin = origin
	for _, item := range n.items {
		item.relocate(origin)
	}
	for i := range n.members {
		n.members[i].origin = origin
		n.members[i].value.relocate(origin)
	}
}
