package configs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "TestReference writes schema.json and REFERENCE.md anew")

// TestReference holds schema.json and REFERENCE.md to the structs and to their
// comments, of which every key needs one.
func TestReference(t *testing.T) {
	g := newDescriber(t)
	for name, text := range map[string]string{"schema.json": g.schema(), "REFERENCE.md": g.reference()} {
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text {
			t.Errorf("%s is stale: go test ./configs -run TestReference -update", name)
		}
	}
	if !*update && (Schema() == "" || Reference() == "") {
		t.Error("nothing is embedded")
	}
}

// describer knows what is not in the types: comments, defaults and the words that
// a key takes.
type describer struct {
	t     *testing.T
	docs  map[string]string   // Type.Field: comment
	words map[string][]string // Type.Field: what the validation takes
	defs  map[string]any      // of the schema
	seen  map[reflect.Type]string
	page  strings.Builder
}

func newDescriber(t *testing.T) *describer {
	g := &describer{t: t, docs: map[string]string{}, words: map[string][]string{}, defs: map[string]any{}, seen: map[reflect.Type]string{}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					g.comments(spec.Name.Name, s)
				}
			}
			return true
		})
	}
	g.probe()
	// The words of policy's, which checks contracts.
	g.words["SamplingContract.OnConflict"] = []string{"reject", "allow", "observe", "replace"}
	g.words["PluginConfiguration.OnViolation"] = []string{"enforce", "observe"}
	return g
}

// comments reads those of a struct. A field without one has that of the field
// before, if it speaks of both.
func (g *describer) comments(name string, s *ast.StructType) {
	last := ""
	for _, f := range s.Fields.List {
		if text := strings.Join(strings.Fields(f.Doc.Text()), " "); text != "" {
			last = text
		}
		for _, id := range f.Names {
			if slices.Contains(regexp.MustCompile(`\w+`).FindAllString(last, -1), id.Name) {
				g.docs[name+"."+id.Name] = last
			}
		}
	}
}

// probe finds the words that a key takes by giving it one that none takes.
func (g *describer) probe() {
	c := Default()
	fill(reflect.ValueOf(c).Elem(), map[reflect.Type]int{})
	var walk func(v reflect.Value, field string)
	walk = func(v reflect.Value, field string) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem(), field)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), field)
			}
		case reflect.Struct:
			for f := range v.Type().Fields() {
				if f.IsExported() {
					walk(v.FieldByIndex(f.Index), v.Type().Name()+"."+f.Name)
				}
			}
		case reflect.String:
			if v.Type() != reflect.TypeFor[string]() {
				return
			}
			old := v.String()
			v.SetString("?!")
			for _, f := range c.faults() {
				list, ok := strings.CutPrefix(f.Msg, "must be one of ")
				if list, _, found := strings.Cut(list, `, got "?!"`); ok && found {
					g.words[field] = strings.Split(list, ", ")
				}
			}
			v.SetString(old)
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
}

// fill gives every pointer and list of v one value.
func fill(v reflect.Value, depth map[reflect.Type]int) {
	if depth[v.Type()]++; depth[v.Type()] > 2 {
		return
	}
	defer func() { depth[v.Type()]-- }()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth)
	case reflect.Struct:
		for f := range v.Type().Fields() {
			if f.IsExported() {
				fill(v.FieldByIndex(f.Index), depth)
			}
		}
	}
}

// describe returns the comment of a field in the words of a configuration.
func (g *describer) describe(owner reflect.Type, f reflect.StructField) string {
	text := g.docs[owner.Name()+"."+f.Name]
	if text == "" {
		g.t.Errorf("%s.%s has no comment that names it", owner.Name(), f.Name)
	}
	text = strings.ReplaceAll(text, " In Go: int, uint64 or float64, and map[string]any.", "")
	first := true
	return regexp.MustCompile(`\b[A-Z]\w*\b`).ReplaceAllStringFunc(text, func(word string) string {
		abbreviation := word == strings.ToUpper(word) && !first // the thing, not the key
		first = false
		if other, ok := owner.FieldByName(word); ok && !abbreviation && other.Tag.Get("koanf") != "" {
			return "`" + other.Tag.Get("koanf") + "`"
		}
		return word
	})
}

// keys calls do for each key of a struct, and for those of structs within.
func keys(t reflect.Type, do func(key string, f reflect.StructField)) {
	for f := range t.Fields() {
		if key := f.Tag.Get("koanf"); key != "" {
			do(key, f)
		}
	}
}

type jsonMap = map[string]any

// schema returns the JSON Schema.
func (g *describer) schema() string {
	root := g.structSchema(configType)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Sluice configuration"
	root["$defs"] = g.defs

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(root); err != nil {
		g.t.Fatal(err)
	}
	return b.String()
}

func (g *describer) structSchema(t reflect.Type) jsonMap {
	properties := jsonMap{}
	keys(t, func(key string, f reflect.StructField) {
		s := g.typeSchema(f.Type, t.Name()+"."+f.Name)
		s["description"] = strings.ReplaceAll(g.describe(t, f), "`", "")
		properties[key] = s
	})
	return jsonMap{"type": "object", "properties": properties, "additionalProperties": false}
}

var (
	stringSchema = jsonMap{"type": "string", "minLength": 1}
	numberOrBand = jsonMap{"anyOf": []any{
		jsonMap{"type": "number"},
		jsonMap{
			"type": "object", "additionalProperties": false, "required": []string{"min", "max"},
			"properties": jsonMap{"min": jsonMap{"type": "number"}, "max": jsonMap{"type": "number"}},
		},
	}}
)

// typeSchema returns the schema of a value; field is Type.Field of its key.
func (g *describer) typeSchema(t reflect.Type, field string) jsonMap {
	switch t {
	case durationType:
		return jsonMap{"type": "string", "pattern": `^(([0-9]*\.)?[0-9]+\.?(ns|us|µs|ms|s|m|h))+$|^[0-9]+d$`}
	case bytesType:
		return jsonMap{"anyOf": []any{jsonMap{"type": "integer", "minimum": 0}, jsonMap{"type": "string", "pattern": "^[0-9]+(B|[KMGT]i?B)?$"}}}
	case secretType:
		one := func(key string) jsonMap {
			return jsonMap{"type": "object", "properties": jsonMap{key: stringSchema}, "required": []string{key}, "additionalProperties": false}
		}
		return jsonMap{"anyOf": []any{stringSchema, one("env"), one("file")}}
	case objectType:
		return jsonMap{"type": "object"}
	case tokensType:
		return jsonMap{"anyOf": []any{jsonMap{"type": "integer", "minimum": 0}, jsonMap{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?[KkMm]?$`}}}
	case shareType:
		return jsonMap{"anyOf": []any{jsonMap{"type": "number", "minimum": 0, "maximum": 1}, jsonMap{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?%$`}}}
	case limitType:
		return jsonMap{"anyOf": []any{jsonMap{"type": "integer", "minimum": 1}, jsonMap{"const": "auto"}}}
	case thinkingType:
		return jsonMap{"anyOf": []any{stringSchema, g.define(t)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typeSchema(t.Elem(), field)
	case reflect.Struct:
		return g.define(t)
	case reflect.Slice:
		return jsonMap{"type": "array", "items": g.typeSchema(t.Elem(), field)}
	case reflect.Map:
		return jsonMap{"type": "object", "additionalProperties": g.typeSchema(t.Elem(), field)}
	case reflect.Interface:
		if field == "SamplingContract.Params" {
			return numberOrBand
		}
		return jsonMap{"type": []string{"string", "number", "boolean"}}
	case reflect.Bool:
		return jsonMap{"type": "boolean"}
	case reflect.Int:
		return jsonMap{"type": "integer"}
	case reflect.Float64:
		return jsonMap{"type": "number"}
	case reflect.String:
		if words := g.words[field]; words != nil {
			return jsonMap{"enum": words}
		}
		return jsonMap{"type": "string", "minLength": 1}
	}
	g.t.Fatalf("no schema for a %s", t)
	return nil
}

func (g *describer) define(t reflect.Type) jsonMap {
	if _, ok := g.defs[t.Name()]; !ok {
		g.defs[t.Name()] = nil // for those that hold themselves
		g.defs[t.Name()] = g.structSchema(t)
	}
	return jsonMap{"$ref": "#/$defs/" + t.Name()}
}

const pageHead = `# Every key of a configuration

Made from the comments of the code (` + "`go test ./configs -run TestReference -update`" + `). [example.yaml](example.yaml) shows
the keys in use; ` + "`sluice config schema`" + ` prints the JSON Schema for editors, ` + "`sluice config print --origin`" + ` what holds
and where it was set.

- A *duration* has a unit: ` + "`500ms`, `30s`, `1h30m`, `30d`" + `. A *size* may have one: ` + "`64KiB`, `32MiB`" + ` are powers of 1024,
  ` + "`64KB`, `32MB`" + ` of 1000, and a bare number is bytes. *Tokens* are a number, ` + "`32K`" + ` (thousands) or ` + "`1M`" + `.
- A *secret* is a string, ` + "`{env: NAME}` or `{file: path}`" + `. It is never shown.
- ` + "`pools[].name`" + ` stands for the key of each item of a list, ` + "`aliases.*`" + ` for each member with a name of your own.
- Each key may be set in the environment, with two underscores between the levels (` + "`SLUICE_SERVER__MAX_BODY=8MiB`" + `, a pool
  by its name: ` + "`SLUICE_POOLS__LLAMA__BALANCE=random`" + `), and by ` + "`--set server.max_body=8MiB`" + `.
`

// reference returns the page.
func (g *describer) reference() string {
	g.page.WriteString(pageHead)
	defaults := reflect.ValueOf(Default()).Elem()
	keys(configType, func(key string, f reflect.StructField) {
		fmt.Fprintf(&g.page, "\n## %s\n\n%s\n\n| key | type | default | |\n|---|---|---|---|\n", key, g.describe(configType, f))
		g.rows(key, configType, f, defaults.FieldByIndex(f.Index))
	})
	return g.page.String()
}

// rows writes the keys below the one of f at path. The value is the default, or
// invalid where there is none.
func (g *describer) rows(path string, owner reflect.Type, f reflect.StructField, value reflect.Value) {
	t, below := f.Type, path
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		switch t.Kind() {
		case reflect.Slice:
			below += "[]"
		case reflect.Map:
			below += ".*"
		}
		t, value = t.Elem(), reflect.Value{}
	}
	if t.Kind() != reflect.Struct {
		return
	}
	if t == reflect.TypeFor[Pool]() {
		value = reflect.ValueOf(DefaultPool())
	}
	if g.seen[t] != "" { // typeText has told
		return
	}
	g.seen[t] = below
	keys(t, func(key string, f reflect.StructField) {
		var v reflect.Value
		if value.IsValid() {
			v = value.FieldByIndex(f.Index)
		}
		at := below + "." + key
		fmt.Fprintf(&g.page, "| `%s` | %s | %s | %s |\n", at, g.typeText(f.Type, t.Name()+"."+f.Name), defaultText(v), strings.ReplaceAll(g.describe(t, f), "|", "\\|"))
		g.rows(at, t, f, v)
	})
}

// typeText names the type of a key, with its unit.
func (g *describer) typeText(t reflect.Type, field string) string {
	switch t {
	case durationType:
		return "duration"
	case bytesType:
		return "size"
	case secretType:
		return "secret"
	case objectType:
		return "JSON object"
	case tokensType:
		return "tokens"
	case shareType:
		return "share"
	case limitType:
		return "tokens, `auto`"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typeText(t.Elem(), field)
	case reflect.Struct:
		if first := g.seen[t]; first != "" {
			return "as `" + first + "`"
		}
		return "mapping"
	case reflect.Slice:
		return strings.NewReplacer("of as", "each as", "mapping", "mappings").Replace("list of " + g.typeText(t.Elem(), field))
	case reflect.Map:
		return strings.Replace("mapping to "+g.typeText(t.Elem(), field), "to as", "each as", 1)
	case reflect.Interface:
		return "any"
	case reflect.Bool:
		return "bool"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	if words := g.words[field]; words != nil {
		return "`" + strings.Join(words, "`, `") + "`"
	}
	return "string"
}

// defaultText shows a default. Nothing is shown of what has parts.
func defaultText(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Struct || v.IsZero() && (v.Kind() == reflect.String || v.Kind() == reflect.Pointer ||
		v.Kind() == reflect.Slice || v.Kind() == reflect.Map || v.Kind() == reflect.Interface) {
		return "–"
	}
	n, err := (&printer{}).node(v, "")
	if err != nil || n == nil {
		return "–"
	}
	return "`" + string(appendJSONLine(nil, &node{kind: kindInt, text: n.text})) + "`"
}

// The schema takes what Load takes and finds what an editor is to find.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if schema.DraftVersion != 2020 {
		t.Errorf("unexpected draft %d", schema.DraftVersion)
	}
	for _, name := range []string{"example.json", "example.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(plainJSON(t, text)); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
		if strings.HasSuffix(name, ".yaml") && !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=schema.json\n")) {
			t.Errorf("%s does not lead editors to the schema", name)
		}
	}
	f := func(text, want string) {
		t.Helper()
		err := schema.Validate(plainJSON(t, []byte(text)))
		if want == "" && err != nil {
			t.Errorf("%s is refused: %v", text, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("unexpected error of %s; got %v; want %s", text, err, want)
		}
	}
	f("{}", "")
	f("server: {lisen: ':1'}", "'lisen'")
	f("server: {drain: 30}", "'/server/drain'")
	f("server: {drain: 30x}", "'/server/drain'")
	f("server: {max_body: 8 MiB}", "'/server/max_body'")
	f("pools: [{name: a, engine: sglan}]", "'/pools/0/engine'")
	f("pools: {name: a}", "'/pools'")
	f("sampling_contract: {params: {top_p: {min: 0.5}}}", "'max'")
	f("records: {dsn: {file: a, env: b}}", "'/records/dsn'")
	f("pools: [{name: a, thinking: qwen, context_windows: {m: 1.5M}}]", "")
	f("routing: {decisions: [{name: a, rules: {operator: NOT, conditions: [{type: modell}]}}]}", "'/routing/decisions/0/rules/conditions/0/type'")
}

// plainJSON returns YAML as the values that JSON has.
func plainJSON(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
