package configs

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The four examples are one configuration, so that who reads one may trust
// the others.
func TestExamplesAreOneConfig(t *testing.T) {
	var first *Config
	for _, name := range []string{"example.yaml", "example.toml", "example.json", "example.sluice"} {
		c, err := Load(Options{Files: []string{name}})
		if err != nil {
			t.Fatalf("cannot load %s: %v", name, err)
		}
		if first == nil {
			first = c
		}
		if got, want := c.Hash(), first.Hash(); got != want {
			t.Errorf("unexpected hash of %s; got %s; want that of example.yaml, %s", name, got, want)
		}
	}
}

// example.yaml is the reference: it shows every key, and where it says that a
// value is the default, it is.
func TestExampleShowsEveryKey(t *testing.T) {
	c, err := Load(Options{Files: []string{"example.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range keysOf("", configType) {
		if inComments(path) {
			continue
		}
		second := strings.Replace(path, "plugins[0]", "plugins[1]", 1)
		if c.Origin(path).Name != "example.yaml" && c.Origin(second).Name != "example.yaml" {
			t.Errorf("example.yaml does not show %s", path)
		}
	}
	want := Default()
	want.Server.TenantHeader = c.Server.TenantHeader
	want.Server.PassthroughPaths = c.Server.PassthroughPaths
	if !reflect.DeepEqual(c.Server, want.Server) || c.Sim != want.Sim || c.Log != want.Log || c.Cache != want.Cache || c.Records != want.Records {
		t.Errorf("example.yaml shows other values than the defaults\n got %+v %+v %+v\nwant %+v %+v %+v",
			c.Server, c.Sim, c.Log, want.Server, want.Sim, want.Log)
	}
	if got, want := c.Pools[0].Timeouts, DefaultPool().Timeouts; got != want {
		t.Errorf("unexpected timeouts in example.yaml; got %+v; want the defaults %+v", got, want)
	}
}

// inComments reports whether example.yaml shows path in a comment: what needs
// files or servers, and what cannot stand beside what it shows.
func inComments(path string) bool {
	for _, p := range []string{
		"server.admin.", "server.tls.", "server.cors.", "pools[0].tls.", "pools[0].discover.file", "pools[0].discover.dns.", "pools[0].discover.srv", "pools[0].discover.resolver",
		"cache.redis.addr", "cache.redis.username", "cache.redis.password", "records.dsn", "routing.decisions[0].pool",
		"routing.decisions[0].fallback[0]", "pools[0].thinking.preset",
		"sampling_contract.rollout.", "pools[0].sampling_contract.rollout.", "routing.decisions[0].rollout.", "routing.decisions[0].sampling_contract.rollout.",
		"capture.file",
	} {
		if path == p || strings.HasPrefix(path, p) && strings.HasSuffix(p, ".") {
			return true
		}
	}
	return false
}

// What example.yaml shows in comments, because it needs files and variables, is
// right as well.
func TestExampleComments(t *testing.T) {
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	server := 0 // how many of its sections are still to come
	for i, l := range lines {
		switch {
		case l == "server:":
			server = 3
		case server > 0 && slices.Contains([]string{"  # admin:", "  # tls:", "  # cors:"}, l):
			server--
			for ; strings.HasPrefix(lines[i], "  #   ") || lines[i] == l; i++ {
				lines[i] = strings.Replace(lines[i], "# ", "", 1)
			}
			continue
		}
		key := strings.TrimPrefix(strings.TrimSpace(l), "# ")
		name, _, _ := strings.Cut(strings.TrimSpace(key), ":")
		if slices.Contains([]string{"tls", "ca", "server_name", "cert", "key", "authorization", "x-api-key"}, name) {
			lines[i] = strings.Replace(l, "# ", "", 1)
		}
	}
	text = []byte(strings.ReplaceAll(strings.Join(lines, "\n"), "http://127.0.0.1:8002", "https://127.0.0.1:8002"))
	ca := newAuthority(t)
	cert, key := ca.issue(t)
	inDir(t, "a.yaml", string(text), "certs/ca.pem", ca.pem, "certs/router.pem", cert, "certs/router-key.pem", key, "secrets/llama", "k\n",
		"certs/admin.pem", cert, "certs/admin-key.pem", key, "certs/operators.pem", ca.pem,
		"certs/sluice.pem", cert, "certs/sluice-key.pem", key, "certs/clients.pem", ca.pem)
	c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: []string{"LLAMA_AUTHORIZATION=Bearer k", "ADMIN_TOKEN=0123456789abcdef"}})
	for _, path := range slices.Concat(
		keysOf("pools[0].tls", reflect.TypeFor[TLS]()), keysOf("server.admin", reflect.TypeFor[Admin]()),
		keysOf("server.tls", reflect.TypeFor[ServerTLS]()), keysOf("server.cors", reflect.TypeFor[CORS]()),
	) {
		if c.Origin(path).Name != "a.yaml" {
			t.Errorf("example.yaml does not show %s", path)
		}
	}
	want := map[string]Secret{"x-served-by": "sluice", "authorization": "Bearer k", "x-api-key": "k"}
	if got := c.Pools[0].Headers.Set; !maps.Equal(got, want) {
		t.Errorf("unexpected secrets in example.yaml: %d of them", len(got))
	}
}

// keysOf returns the paths of all keys of t; of lists, those of the first item.
func keysOf(path string, t reflect.Type) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return keysOf(path, t.Elem())
	case t.Kind() == reflect.Slice:
		return keysOf(path+"[0]", t.Elem())
	case t.Kind() != reflect.Struct:
		return []string{path}
	case t == reflect.TypeFor[Rule](): // of which each type has keys of its own
		return nil
	}
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, keysOf(childPath(path, f.key), f.typ)...)
	}
	return keys
}

// Every exported field must be a key: a field without a tag would be read by
// its Go name, or never.
func TestEveryFieldIsAKey(t *testing.T) {
	var check func(typ reflect.Type)
	seen := make(map[reflect.Type]bool) // rules hold rules
	check = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			key := f.Tag.Get("koanf")
			if f.IsExported() && (key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "") {
				t.Errorf("%s.%s has the key %q; want lower case with underscores", typ, f.Name, key)
			}
			check(f.Type)
		}
	}
	check(configType)
	if keys := keysOf("", configType); !slices.Contains(keys, "pools[0].workers[0].url") {
		t.Errorf("the walk over the keys misses pools[0].workers[0].url; got %v", keys)
	}
}
