package configs

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
)

// inDir writes files (name, text, name, text, …) to a new working directory.
func inDir(t *testing.T, files ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for i := 0; i < len(files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(files[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// mustLoad loads what must be valid.
func mustLoad(t *testing.T, o Options) *Config {
	t.Helper()
	c, err := Load(o)
	if err != nil {
		t.Fatalf("unexpected faults:\n%v", err)
	}
	return c
}

const onePool = `
pools:
  - name: llama
    models: [m]
    workers: [{url: "http://10.0.0.1:80"}]
`

func TestLoadNothingIsDefault(t *testing.T) {
	c := mustLoad(t, Options{})
	want := Default()
	want.origins = origins{}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("unexpected config; got %+v; want %+v", c, want)
	}
	if err := Default().Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
}

func TestLoadDefaultsOfAPool(t *testing.T) {
	inDir(t, "a.yaml", onePool+`    timeouts: {connect: 0s, total: 5m}`)
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	want := Pool{
		Name:       "llama",
		Models:     []string{"m"},
		Engine:     "openai",
		Balance:    "least_requests",
		Protocol:   "auto",
		LoadFactor: 1.25, Prefix: Prefix{MaxBytes: 16 << 20, Block: 512},
		Workers: []Worker{{URL: "http://10.0.0.1:80"}},
		Timeouts: Timeouts{
			FirstByte: 300 * time.Second, BetweenEvents: time.Minute, Total: 5 * time.Minute,
		},
		Health:   Health{Path: "/health", Interval: 5 * time.Second, Timeout: 2 * time.Second, UnhealthyAfter: 3, HealthyAfter: 2},
		Breaker:  Breaker{Failures: 5, Cooldown: 30 * time.Second},
		Retry:    Retry{Attempts: 2, Budget: 0.2, Backoff: Backoff{Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		Discover: Discover{Scheme: "http", MinInterval: time.Second, MaxInterval: time.Minute},
		Limits:   Limits{MaxQueue: 1024, QueueTimeout: 10 * time.Second},
	}
	if got := c.Pools[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("unexpected pool; got %+v; want %+v", got, want)
	}
}

// Files are merged in order: mappings key by key, lists and scalars whole;
// then the environment, then flags.
func TestLoadOrder(t *testing.T) {
	inDir(t,
		"a.yaml", onePool+`
server: {listen: "127.0.0.1:1", drain: 1s, max_body: 1KiB, read_timeout: 1s, passthrough_paths: [/a, /b]}
sampling_contract: {params: {temperature: 1, top_p: {min: 0.5, max: 1}}}
`,
		"b.json", `{"server": {"listen": "127.0.0.1:2", "drain": "2s", "passthrough_paths": ["/c"]},
			"sampling_contract": {"params": {"top_p": {"min": 0.25}, "n": 1}}}`,
		"c.toml", "[server]\nlisten = '127.0.0.1:3'\n",
	)
	c := mustLoad(t, Options{
		Files: []string{"a.yaml", "b.json", "c.toml"},
		Env:   []string{"SLUICE_SERVER__LISTEN=127.0.0.1:4", "SLUICE_SERVER__MAX_BODY=2KiB", "HOME=/"},
		Flags: []Override{
			{"--listen", "server.listen", "127.0.0.1:5"},
			{"--listen", "server.listen", "127.0.0.1:6"},
		},
	})
	s := c.Server
	if s.Listen != "127.0.0.1:6" || s.Drain != 2*time.Second || s.MaxBody != 2048 || s.ReadTimeout != time.Second ||
		!reflect.DeepEqual(s.PassthroughPaths, []string{"/c"}) {
		t.Errorf("unexpected server after the merge: %+v", s)
	}
	wantParams := map[string]any{"temperature": 1, "top_p": map[string]any{"min": 0.25, "max": 1}, "n": 1}
	if !reflect.DeepEqual(c.Contract.Params, wantParams) {
		t.Errorf("unexpected params; got %v; want %v", c.Contract.Params, wantParams)
	}
	if len(c.Pools) != 1 {
		t.Errorf("unexpected pools: %+v", c.Pools)
	}
	for path, want := range map[string]string{
		"server.listen":                        "--listen",
		"server.drain":                         "b.json:1:47",
		"server.max_body":                      "SLUICE_SERVER__MAX_BODY",
		"server.read_timeout":                  "a.yaml:7:74",
		"server.idle_timeout":                  "default",
		"server.passthrough_paths[0]":          "b.json:1:75",
		"server.passthrough_paths[1]":          "default",
		"sampling_contract.params.top_p.min":   "b.json:2:54",
		"sampling_contract.params.top_p.max":   "a.yaml:8:69",
		"sampling_contract.params.temperature": "a.yaml:8:43",
		"pools[0].workers[0].url":              "a.yaml:5:21",
	} {
		if got := c.Origin(path).String(); got != want {
			t.Errorf("unexpected origin of %s; got %s; want %s", path, got, want)
		}
	}
}

// Keys that are names of models hold every delimiter one could think of.
func TestLoadNamesWithDelimiters(t *testing.T) {
	names := []string{"llama-3.1/x: y", "a.b", "a/b", "a:b", "a__b", "ö", "a b", "pools", "x.y.z", "[0]"}
	text := onePool + "    aliases:\n"
	for _, name := range names {
		text += "      " + quote(name) + ": m\n"
	}
	inDir(t, "a.yaml", text, "b.yaml", "server: {drain: 1s}\n")
	c := mustLoad(t, Options{Files: []string{"a.yaml", "b.yaml"}, Env: []string{"SLUICE_POOLS__LLAMA__BALANCE=random"}})
	aliases := c.Pools[0].Aliases
	if len(aliases) != len(names) {
		t.Errorf("unexpected aliases %q; want those of %q", aliases, names)
	}
	for _, name := range names {
		if aliases[name] != "m" {
			t.Errorf("the alias %q is lost; got %q", name, aliases)
		}
	}
}

// The contract gets numbers in the types that it knows and everything else as
// what it is, so that it can refuse it.
func TestLoadParamTypes(t *testing.T) {
	const yamlParams = "sampling_contract:\n  params: {a: 1, b: 1.0, c: 18446744073709551615, d: true, e: null, f: x, g: [1], h: {min: 0.5}, i: .nan, j: -1, k: 0x10}\n"
	const jsonParams = `{"sampling_contract": {"params": {"a": 1, "b": 1.0, "c": 18446744073709551615, "d": true, "e": null, "f": "x", "g": [1], "h": {"min": 5e-1}, "j": -1}}}`
	const tomlParams = "[sampling_contract.params]\na = 1\nb = 1.0\nd = true\nf = 'x'\ng = [1]\nh.min = 0.5\ni = nan\nj = -1\nk = 0x10\nl = 1_000.5\n"
	want := map[string]any{
		"a": 1, "b": 1.0, "c": uint64(math.MaxUint64), "d": true, "e": nil, "f": "x", "g": []any{1}, "h": map[string]any{"min": 0.5},
		"j": -1, "k": 16, "l": 1000.5,
	}
	for name, text := range map[string]string{"a.yaml": yamlParams, "a.json": jsonParams, "a.toml": tomlParams} {
		var faults Faults
		p := parser{format: formatOf(name), origins: origins{}, faults: &faults}
		m, err := p.Unmarshal([]byte(text))
		if err != nil || faults != nil {
			t.Fatalf("%s: unexpected error %v, faults %v", name, err, faults)
		}
		contract, _ := m["sampling_contract"].(map[string]any)
		params, _ := contract["params"].(map[string]any)
		if len(params) < 9 {
			t.Errorf("%s: unexpected params %v", name, params)
		}
		for key, got := range params {
			if f, ok := got.(float64); ok && math.IsNaN(f) && key == "i" {
				continue
			}
			if !reflect.DeepEqual(got, want[key]) {
				t.Errorf("%s: unexpected value of %s; got %T %v; want %T %v", name, key, got, got, want[key], want[key])
			}
		}
	}
}

func TestLoadYAMLAliasesAndMerges(t *testing.T) {
	inDir(t, "a.yaml", `
pools:
  - name: a
    models: [m1]
    workers: [{url: "http://10.0.0.1:80"}]
    timeouts: &slow {connect: 9s, total: 2h}
  - name: b
    models: [m2]
    workers: [{url: "http://10.0.0.1:80"}]
    timeouts: *slow
  - name: c
    models: [m3]
    workers: [{url: "http://10.0.0.1:80"}]
    timeouts: {<<: [{first_byte: 7s}, *slow], total: 3h}
`)
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	if got, want := c.Pools[1].Timeouts, c.Pools[0].Timeouts; got != want || got.Connect != 9*time.Second {
		t.Errorf("unexpected timeouts of an alias; got %+v; want %+v", got, want)
	}
	want := Timeouts{Connect: 9 * time.Second, FirstByte: 7 * time.Second, BetweenEvents: time.Minute, Total: 3 * time.Hour}
	if got := c.Pools[2].Timeouts; got != want {
		t.Errorf("unexpected timeouts of a merge; got %+v; want %+v", got, want)
	}
	if got := c.Origin("pools[2].timeouts.connect").String(); got != "a.yaml:6:31" {
		t.Errorf("unexpected origin of a merged value: %s", got)
	}
}

func TestLoadEmptyFiles(t *testing.T) {
	inDir(t, "a.yaml", "# nothing yet\n", "b.toml", "", "c.json", "{}", "d.yml", "---\n{}\n")
	c := mustLoad(t, Options{Files: []string{"a.yaml", "b.toml", "c.json", "d.yml"}})
	if got, want := c.Hash(), Default().Hash(); got != want {
		t.Errorf("empty files change the config: %+v", c)
	}
}

// Load keeps no state: a reload calls it again, and tools at the same time.
func TestLoadAgainAndAtOnce(t *testing.T) {
	inDir(t, "a.yaml", onePool)
	o := Options{Files: []string{"a.yaml"}, Env: []string{"SLUICE_POOLS__LLAMA__ENGINE=vllm"}}
	first := mustLoad(t, o)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c, err := Load(o)
			if err != nil || !reflect.DeepEqual(c, first) {
				t.Errorf("unexpected second config; got %+v, %v; want %+v", c, err, first)
			}
		})
	}
	wg.Wait()
	if err := os.WriteFile("a.yaml", []byte("pools: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil {
		t.Error("a variable for a pool that is gone is no fault")
	}
	if c := mustLoad(t, Options{Files: o.Files}); len(c.Pools) != 0 {
		t.Errorf("the file was not read again: %+v", c.Pools)
	}
}

func TestHash(t *testing.T) {
	inDir(t,
		"a.yaml", "sampling_contract: {params: {temperature: 1, n: 1}}\nserver: {max_body: 1MiB, drain: 60s}\n",
		"b.yaml", "server:\n  drain: 1m\n  max_body: 1048576\nsampling_contract:\n  on_conflict: reject\n  params:\n    n: 1\n    temperature: 1.0\n",
		"c.yaml", "sampling_contract: {params: {temperature: 1.5, n: 1}}\nserver: {max_body: 1MiB, drain: 60s}\n",
	)
	hash := func(name string) string { return mustLoad(t, Options{Files: []string{name}}).Hash() }
	if hash("a.yaml") != hash("b.yaml") {
		t.Error("equal configs have different hashes")
	}
	if hash("a.yaml") == hash("c.yaml") {
		t.Error("different configs have one hash")
	}
}

func TestFaultsAreTyped(t *testing.T) {
	inDir(t, "a.yaml", "log: {level: loud}\n")
	_, err := Load(Options{Files: []string{"a.yaml"}})
	var faults Faults
	var fault Fault
	if !errors.As(err, &faults) || !errors.As(err, &fault) {
		t.Fatalf("unexpected type of error: %T", err)
	}
	want := Fault{Origin{Name: "a.yaml", Line: 1, Column: 14}, "log.level", `must be one of debug, info, warn, error, got "loud"`}
	if len(faults) != 1 || faults[0] != want || fault != want {
		t.Errorf("unexpected fault; got %+v; want %+v", faults, want)
	}
}

// What a parser writes it reads back as the same values, but for secrets, which
// it does not write.
func TestMarshalRoundTrip(t *testing.T) {
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("x-served-by: sluice"), []byte("x-served-by: '"+redacted+"'"), 1)
	var faults Faults
	values, err := (&parser{format: formatYAML, origins: origins{}, faults: &faults}).Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []format{formatYAML, formatJSON, formatTOML} {
		p := parser{format: f, origins: origins{}, faults: &faults}
		out, err := p.Marshal(values)
		if err != nil {
			t.Fatalf("format %d: cannot write: %v", f, err)
		}
		got, err := p.Unmarshal(out)
		if err != nil || len(faults) > 0 || !reflect.DeepEqual(got, values) {
			t.Errorf("format %d: not the same after writing and reading (error %v, faults %v):\n%s", f, err, faults, out)
		}
	}
	if _, err := (&parser{}).Marshal(values); err == nil {
		t.Error("values can be written without a format")
	}
}
