package configs

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// There and back: a configuration that is written in any format, and converted
// from any to any other, is the same Config. The configurations are made by
// reflection, so that a new key takes part as soon as it is there.
func TestConvertThereAndBack(t *testing.T) {
	const least, most = 20, 200 // rounds, until each key had its turn
	dir := t.TempDir()
	missing := map[string]bool{}
	for _, path := range keysOf("", configType) {
		path = index.ReplaceAllString(path, "[]")
		if !slices.ContainsFunc(notGenerated, func(p string) bool { return strings.HasPrefix(path, p) }) {
			missing[path] = true
		}
	}
	for seed := uint64(0); seed < least || seed < most && len(missing) > 0; seed++ {
		g := &generator{rand: rand.New(rand.NewPCG(seed, 7)), toml: seed%2 == 0}
		root := g.valid(t, dir)
		root.shown("", missing)
		checkThereAndBack(t, dir, root, g.toml, int(seed/2))
	}
	for path := range missing {
		t.Errorf("no generated configuration has %s: give it valid values in generated", path)
	}
}

// notGenerated are keys that need files.
var notGenerated = []string{"pools[].tls.", "server.tls.", "server.admin.tls.", "pools[].discover.file"}

var index = regexp.MustCompile(`\[\d+\]`)

// shown removes the paths below n from missing, with [] for every index.
func (n *node) shown(path string, missing map[string]bool) {
	delete(missing, path)
	for _, item := range n.items {
		item.shown(path+"[]", missing)
	}
	for _, m := range n.members {
		m.value.shown(childPath(path, m.key), missing)
	}
}

// checkThereAndBack writes root in each format and converts each to another one,
// which turns with the round, also to itself.
func checkThereAndBack(t *testing.T, dir string, root *node, toml bool, round int) {
	t.Helper()
	formats := []string{"json", "yaml", "sluice"}
	if toml {
		formats = append(formats, "toml")
	}
	var want *Config
	for i, from := range formats {
		text, err := writeNode(root, formatOf("."+from))
		if err != nil {
			t.Fatal(err)
		}
		got := loadText(t, dir, from, text)
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("the configuration in %s is another one than in %s\n%s\n got %+v\nwant %+v", from, formats[0], text, got, want)
		}
		to := formats[(i+round)%len(formats)]
		out, err := Convert([]string{filepath.Join(dir, "a."+from)}, convertEnv, to)
		if err != nil {
			t.Fatalf("cannot convert from %s to %s: %v\n%s", from, to, err, text)
		}
		if back := loadText(t, dir, to, out); !reflect.DeepEqual(back, want) {
			t.Fatalf("converted from %s to %s it is another configuration\n%s\n%s\n got %+v\nwant %+v", from, to, text, out, back, want)
		}
	}
}

var convertEnv = []string{"SECRET=s3cret"}

// loadText loads text as a file in dir and forgets where its values are from.
func loadText(t *testing.T, dir, format string, text []byte) *Config {
	t.Helper()
	name := filepath.Join(dir, "a."+format)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Options{Files: []string{name}, Env: convertEnv})
	if err != nil {
		t.Fatalf("cannot load what was written: %v\n%s", err, text)
	}
	c.origins = nil
	return c
}

// generator makes nodes of the types of Config.
type generator struct {
	rand *rand.Rand
	toml bool // only what TOML can hold
	n    int
}

// valid returns a configuration that Load takes: what it finds wrong with a
// generated one is left out.
func (g *generator) valid(t *testing.T, dir string) *node {
	t.Helper()
	root := g.value(configType, "")
	name := filepath.Join(dir, "a.json")
	for range 100 {
		if err := os.WriteFile(name, writeJSON(root), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(Options{Files: []string{name}, Env: convertEnv})
		var faults Faults
		switch {
		case err == nil:
			return root
		case !errors.As(err, &faults):
			t.Fatal(err)
		}
		var done []string
		for _, f := range slices.Backward(faults) { // the last first: those before keep their indices
			near := func(path string) bool { return within(f.Path, path) || within(path, f.Path) }
			if !slices.ContainsFunc(done, near) && root.cut(f.Path) {
				done = append(done, f.Path)
			}
		}
		if len(done) == 0 {
			t.Fatalf("cannot leave out %v", faults)
		}
	}
	t.Fatal("too many faults in a generated configuration")
	return nil
}

var step = regexp.MustCompile(`^(?:\.?([\w-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\])`)

// cut removes what is at path, or the nearest thing that holds it.
func (n *node) cut(path string) bool {
	m := step.FindStringSubmatch(path)
	if m == nil {
		return false
	}
	rest := path[len(m[0]):]
	if m[2] != "" {
		i, _ := strconv.Atoi(m[2])
		if i >= len(n.items) {
			return false
		}
		if rest == "" || !n.items[i].cut(rest) {
			n.items = slices.Delete(n.items, i, i+1)
		}
		return true
	}
	key := m[1]
	if m[3] != "" {
		key, _ = strconv.Unquote(m[3])
	}
	found := n.find(key)
	if found == nil {
		return false
	}
	if rest == "" || !found.value.cut(rest) {
		*n = *without(n, key)
	}
	return true
}

// generated are valid values of keys that do not take any of their type.
var generated = map[string][]string{
	"server.listen":                 {"127.0.0.1:30000", ":0", "[::1]:80"},
	"server.admin_listen":           {"127.0.0.1:29000"},
	"server.drain_delay":            {"0s", "1ms"},
	"server.passthrough_paths[]":    {"/v1/files", "/pooling", "/a/b-c"},
	"server.tenant_header":          {"x-tenant"},
	"server.admin.token":            {"0123456789abcdef"},
	"server.cors.origins[]":         {"https://a.example", "http://localhost:3000"},
	"server.cors.methods[]":         {"GET", "POST"},
	"server.cors.headers[]":         {"authorization", "x-a"},
	"server.cors.max_age":           {"0s", "10m"},
	"log.level":                     {"debug", "info", "warn", "error"},
	"log.format":                    {"json", "text"},
	"cache.store":                   {"memory", "off", "redis"},
	"cache.redis.addr":              {"127.0.0.1:6379"},
	"records.store":                 {"off", "sqlite", "postgres"},
	"on_conflict":                   {"reject", "replace", "observe"},
	"pools[].engine":                {"sglang", "vllm", "openai"},
	"pools[].balance":               {"least_requests", "random", "prefix_aware"},
	"pools[].protocol":              {"auto", "http1", "h2c"},
	"pools[].load_factor":           {"1", "1.5", "2.0", "1e1"},
	"pools[].health.path":           {"/health", "/"},
	"pools[].retry.budget":          {"0", "0.25", "1"},
	"pools[].prefix.block":          {"64", "512", "1KiB"},
	"pools[].workers[].url":         {"http://127.0.0.1:8001", "https://b:1", "http://c:2", "http://[::1]:9"},
	"pools[].discover.file":         {"workers.txt"},
	"pools[].discover.dns.name":     {"engines.internal"},
	"pools[].discover.srv":          {"_http._tcp.engines.internal"},
	"pools[].discover.scheme":       {"http", "https"},
	"pools[].discover.resolver":     {"127.0.0.1:53"},
	"pools[].discover.min_interval": {"1s", "100ms"},
	"pools[].discover.max_interval": {"1h", "30d"},
	"pools[].thinking.preset":       {"sglang", "vllm", "qwen", "deepseek", "openai", "minimax"},
	"decisions[].plugins[].type":    {RequestParams, ResponseCache},
	"configuration.auto_fallback":   {"estimate", "reject"},
	"configuration.on_violation":    {"enforce", "observe"},
	"rollout.over":                  {"10s", "1h", "1d"},
	"rollout.min_requests":          {"1", "50"},
	"capture.max_bytes":             {"4KiB", "1GB"},
	"configuration.namespace":       {"tenant", "a b"},
	"configuration.max_entry":       {"1", "1KiB"},
	"decisions[].pool":              poolNames,
	"decisions[].pools[].name":      poolNames,
	"decisions[].fallback[]":        poolNames,
	"decisions[].pools[].weight":    {"1", "2", "30"},
	"decisions[].model":             {"m0"},
	"rules.operator":                {"AND", "OR", "NOT"},
	"conditions[].operator":         {"AND", "OR", "NOT"},
	"rules.type":                    ruleTypes,
	"conditions[].type":             ruleTypes,
	"rules.regex":                   {`^gold-\d+$`},
	"conditions[].regex":            {`^gold-\d+$`},
	"rules.exact":                   {"/v1/chat/completions"},
	"rules.prefix":                  {"/v1/"},
	"conditions[].exact":            {"/v1/x", "gold"},
	"conditions[].prefix":           {"/v1/"},
}

var poolNames = []string{"p0", "p1"}

// words are strings that a format could take for something else.
var words = []string{
	"a", "x y", "true", "null", "~", "1", "1e5", "0x10", "-1", "1_000", "yes", "2026-01-02", "30s", "32MiB", "A", "WHEN", "POOL",
	`"`, `'`, `\`, `\n`, "#a", "a # b", "a: b", "- a", "[a]", "{a}", "é", "日本", "\U0001f600", "a,b", "%", "*a", "&a", "!a", "|", ">", "@", "`", "=", "<<",
	"meta-llama/Llama-3.1-70B", "a.b", "a-b", "+1", ".5", "5.", ".inf", "nan", "\u2028", "\u00a0", "?", ": ", "0o7", "12:30", "{env: A}",
}

func (g *generator) pick(list []string) string { return list[g.rand.IntN(len(list))] }

func (g *generator) string(s string) *node { return &node{kind: kindString, text: s, value: s} }

func (g *generator) maybe() bool { return g.rand.IntN(3) > 0 }

// value returns a value of type t for the key at path.
func (g *generator) value(t reflect.Type, path string) *node {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	plain := index.ReplaceAllString(path, "[]")
	for end, values := range generated {
		if strings.HasSuffix(plain, end) && t.Kind() != reflect.Slice {
			return g.scalar(g.pick(values), t)
		}
	}
	switch {
	case t == objectType:
		return g.object(3)
	case t == secretType && g.maybe():
		env := &node{kind: kindMap}
		env.add("env", Origin{}, g.string("SECRET"))
		return env
	case t == secretType:
		return g.string("a#b: c")
	case t == durationType:
		return g.string(g.pick([]string{"1s", "1m30s", "2h", "250ms", "1.5s", "30d"}))
	case t == bytesType:
		return g.scalar(g.pick([]string{"1MiB", "2GB", "1048576", "64MiB"}), t)
	case t == tokensType:
		return g.scalar(g.pick([]string{"4096", "32K", "1M"}), t)
	case t == shareType:
		return g.scalar(g.pick([]string{"5%", "0.25", "1", "12.5%"}), t)
	case t == limitType:
		return g.scalar(g.pick([]string{"100", "auto", "1"}), t)
	case t == thinkingType && g.maybe():
		return g.string(g.pick(generated["pools[].thinking.preset"]))
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.structure(t, path)
	case reflect.Map:
		return g.mapping(t, path)
	case reflect.Slice:
		return g.list(t, path)
	case reflect.Interface:
		return g.free(path)
	case reflect.Bool:
		return g.scalar(g.pick([]string{"true", "false"}), t)
	case reflect.Int:
		return g.scalar(g.pick([]string{"0", "1", "2", "7"}), t)
	case reflect.Float64:
		return g.scalar(g.pick([]string{"0", "1.0", "0.25"}), t)
	}
	return g.string(g.pick(words))
}

// scalar returns text as the kind of node that it has in JSON, if t is no string.
func (g *generator) scalar(text string, t reflect.Type) *node {
	n := g.string(text)
	if t.Kind() == reflect.String {
		return n
	}
	if text == "true" || text == "false" {
		n.kind, n.value = kindBool, text == "true"
	} else if i, ok := integer(text, 10); ok {
		n.kind, n.value = kindInt, i
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		n.kind, n.value = kindFloat, f
	}
	return n
}

// structure leaves keys out by chance, but for those that the others need.
func (g *generator) structure(t reflect.Type, path string) *node {
	out := &node{kind: kindMap}
	if t == reflect.TypeFor[Rule]() {
		return g.rule(path, 2)
	}
	for _, f := range fieldsOf(t) {
		at := childPath(path, f.key)
		switch {
		case at == "pools", at == "server", at == "routing", f.key == "type", f.key == "url", f.key == "dns" && g.maybe(), g.maybe():
			out.add(f.key, Origin{}, g.value(f.typ, at))
		case f.key == "name":
			g.n++
			out.add(f.key, Origin{}, g.string("n"+strconv.Itoa(g.n)))
		}
	}
	switch t {
	case reflect.TypeFor[Pool]():
		g.pool(out, path)
	case thinkingType:
		if preset := out.find("preset"); preset != nil && g.maybe() {
			out = newMap().put("preset", preset.value)
		}
	case pluginConfigType:
		if out.find("auto_fallback") != nil {
			out = without(out, "default_max_tokens")
			out.add("default_max_tokens", Origin{}, g.string("auto"))
		}
	case decisionType:
		if g.n++; out.find("pool") != nil {
			out = without(out, g.pick([]string{"pool", "pools"}))
		}
		out = without(out, "name")
		out.add("name", Origin{}, g.string(g.pick([]string{"d", "D", "7-"})+strconv.Itoa(g.n)))
	}
	return out
}

// pool gives a pool names that the decisions know.
func (g *generator) pool(p *node, path string) {
	i := path[len("pools[") : len(path)-1]
	models := &node{kind: kindList, items: []*node{g.string("m" + i), g.string("org/m:" + i)}}
	aliases, windows, contracts := &node{kind: kindMap}, &node{kind: kindMap}, &node{kind: kindMap}
	aliases.add("a.b/"+i, Origin{}, g.string("m"+i))
	for _, m := range models.items {
		windows.add(m.text, Origin{}, g.value(tokensType, ""))
	}
	contracts.add("org/m:"+i, Origin{}, g.value(reflect.TypeFor[SamplingContract](), path+".sampling_contract"))
	for _, m := range []member{
		{key: "name", value: g.string("p" + i)},
		{key: "models", value: models},
		{key: "context_windows", value: windows},
		{key: "aliases", value: aliases},
		{key: "model_contracts", value: contracts},
	} {
		if has := p.find(m.key); has != nil {
			has.value = m.value
		} else if m.key != "aliases" && m.key != "model_contracts" {
			p.add(m.key, Origin{}, m.value)
		}
	}
	if p.find("workers") == nil && p.find("discover") == nil {
		p.add("workers", Origin{}, g.value(reflect.TypeFor[[]Worker](), path+".workers"))
	}
}

func (g *generator) list(t reflect.Type, path string) *node {
	out := &node{kind: kindList}
	count := g.rand.IntN(3)
	if path == "pools" || path == "routing.decisions" {
		count = 2
	}
	for i := range count {
		out.items = append(out.items, g.value(t.Elem(), itemPath(path, i)))
	}
	return out
}

func (g *generator) mapping(t reflect.Type, path string) *node {
	out := &node{kind: kindMap}
	if strings.HasSuffix(path, "params") {
		params := []string{"temperature", "1", "top_p", "0.9", "top_k", "-1", "min_p", "0.0", "presence_penalty", "1e0"}
		for i := 0; i < len(params); i += 2 {
			if g.maybe() || i == 0 {
				out.add(params[i], Origin{}, g.scalar(params[i+1], t.Elem()))
			}
		}
		return out
	}
	for _, key := range []string{"x-a", "X-B1", "x_c"}[:g.rand.IntN(4)] {
		out.add(key, Origin{}, g.value(t.Elem(), childPath(path, key)))
	}
	return out
}

// rule returns a tree of rules: each type with the keys that it takes.
func (g *generator) rule(path string, depth int) *node {
	out := &node{kind: kindMap}
	if depth > 0 && g.maybe() {
		op := g.pick([]string{"AND", "OR", "NOT"})
		list := &node{kind: kindList}
		for range map[string]int{"AND": 1 + g.rand.IntN(3), "OR": 1 + g.rand.IntN(3), "NOT": 1}[op] {
			list.items = append(list.items, g.rule(path+".conditions[0]", depth-1))
		}
		out.add("operator", Origin{}, g.string(op))
		out.add("conditions", Origin{}, list)
		return out
	}
	typ := g.pick(ruleTypes)
	out.add("type", Origin{}, g.string(typ))
	how := tests[typ]
	switch how.first {
	case "name":
		out.add("name", Origin{}, g.string(map[string]string{"surface": "chat", "header": "x-tier", "body": "user"}[typ]+strings.Repeat("m0", btoi(typ == "model" || typ == "tenant"))))
	case "value":
		out.add("value", Origin{}, g.scalar(g.pick([]string{"true", "false"}), configType))
	}
	if len(how.words) > 0 {
		w := how.words[g.rand.IntN(len(how.words))]
		typ, _ := reflect.TypeFor[Rule]().FieldByNameFunc(func(name string) bool {
			return strings.EqualFold(name, strings.ReplaceAll(w.key, "_", ""))
		})
		out.add(w.key, Origin{}, g.value(typ.Type, path+"."+w.key))
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// free returns a scalar.
func (g *generator) free(string) *node {
	return g.scalar(g.pick([]string{"me", "true", "1", "1.0", "1e3", "-0.5", "0.1", "yes", "32K"}), configType)
}

// object returns a JSON object.
func (g *generator) object(depth int) *node {
	out := &node{kind: kindMap}
	for range 1 + g.rand.IntN(4) {
		key := g.pick(words)
		if out.find(key) == nil {
			out.add(key, Origin{}, g.json(depth-1))
		}
	}
	return out
}

func (g *generator) json(depth int) *node {
	kinds := 6
	if depth <= 0 {
		kinds = 4
	}
	switch g.rand.IntN(kinds) {
	case 0:
		return g.string(g.pick(append(words, "", "a\nb", "\t", "\x00", "\x1b\x7f\u0085", " a ", "\r\n", "\ufeff")))
	case 1:
		n := g.scalar(g.pick([]string{"0", "-0", "1.0", "1e5", "1E+5", "-1.50", "9223372036854775807", "0.1"}), configType)
		if !g.toml && g.maybe() {
			n = g.scalar(g.pick([]string{"18446744073709551615", "123456789012345678901234567890"}), configType)
		}
		return n
	case 2:
		if !g.toml {
			return &node{kind: kindNull, text: "null"}
		}
		return g.scalar("false", configType)
	case 3:
		return g.scalar("true", configType)
	case 4:
		out := &node{kind: kindList}
		for range g.rand.IntN(4) {
			out.items = append(out.items, g.json(depth-1))
		}
		return out
	}
	return g.object(depth)
}
