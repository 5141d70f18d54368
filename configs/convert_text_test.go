package configs

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// convertText converts files that are given as name, text, name, text, ….
func convertText(t *testing.T, to string, files ...string) string {
	t.Helper()
	inDir(t, files...)
	var names []string
	for i := 0; i < len(files); i += 2 {
		names = append(names, files[i])
	}
	out, err := Convert(names, []string{"KEY=k", "SLUICE_LOG__LEVEL=bad"}, to)
	if err != nil {
		t.Fatalf("cannot convert to %s: %v", to, err)
	}
	return string(out)
}

func TestConvert(t *testing.T) {
	const source = `
server: {drain: 90s, max_body: 0x100000, passthrough_paths: [/a, /b]}
pools:
  - name: a
    models: [m, "1", org/m:1]
    load_factor: 1.
    workers: [{url: "http://a:1", weight: 0o7}, {url: "http://b:1"}]
    headers: {set: {authorization: {env: KEY}, x-b: "true"}}
    extra_body: {z: 1.0, a: {y: 1e5, b: [null, "~", 2026-01-02]}, "": .5}
    thinking: qwen
routing:
  decisions:
    - name: r
      pools: [{name: a, weight: 2}]
      rules: {operator: AND, conditions: [{type: model, name: m}]}
      plugins: [{type: response_cache, configuration: {ttl: 90m, coalesce: True}}]
log: {access: off_, level: info}
`
	yaml := strings.Replace(strings.Replace(source, `, "": .5`, ", q: .5", 1), "access: off_, ", "", 1)
	f := func(to, want string) {
		t.Helper()
		if got := convertText(t, to, "a.yaml", yaml); got != strings.TrimPrefix(want, "\n") {
			t.Errorf("unexpected %s\n got\n%s\nwant\n%s", to, got, want)
		}
	}
	f("sluice", `
SERVER {
  drain: 90s
  max_body: 1048576
  passthrough_paths: [/a, /b]
}

POOL a {
  models: [m, "1", "org/m:1"]
  load_factor: 1.0
  workers: [{ url: "http://a:1", weight: 7 }, { url: "http://b:1" }]
  headers: { set: { authorization: { env: KEY }, x-b: "true" } }
  extra_body: { z: 1.0, a: { y: 1e5, b: [null, "~", "2026-01-02"] }, q: 0.5 }
  thinking: qwen
}

ROUTE r {
  POOLS { a: 2 }
  RULES { operator: AND, conditions: [{ type: model, name: m }] }
  PLUGIN response_cache { ttl: 90m, coalesce: true }
}

LOG {
  level: info
}
`)
	f("json", `
{
  "server": {"drain": "90s", "max_body": 1048576, "passthrough_paths": ["/a", "/b"]},
  "pools": [
    {
      "name": "a",
      "models": ["m", "1", "org/m:1"],
      "load_factor": 1.0,
      "workers": [{"url": "http://a:1", "weight": 7}, {"url": "http://b:1"}],
      "headers": {"set": {"authorization": {"env": "KEY"}, "x-b": "true"}},
      "extra_body": {"z": 1.0, "a": {"y": 1e5, "b": [null, "~", "2026-01-02"]}, "q": 0.5},
      "thinking": "qwen"
    }
  ],
  "routing": {
    "decisions": [
      {
        "name": "r",
        "pools": [{"name": "a", "weight": 2}],
        "rules": {"operator": "AND", "conditions": [{"type": "model", "name": "m"}]},
        "plugins": [
          {
            "type": "response_cache",
            "configuration": {"ttl": "90m", "coalesce": true}
          }
        ]
      }
    ]
  },
  "log": {"level": "info"}
}
`)
	f("yaml", `
server:
  drain: 90s
  max_body: 1048576
  passthrough_paths: [/a, /b]
pools:
  - name: a
    models: [m, "1", 'org/m:1']
    load_factor: 1.0
    workers:
      - {url: 'http://a:1', weight: 7}
      - {url: 'http://b:1'}
    headers:
      set:
        authorization: {env: KEY}
        x-b: "true"
    extra_body:
      z: 1.0
      a:
        y: 1e5
        b: [null, "~", "2026-01-02"]
      q: 0.5
    thinking: qwen
routing:
  decisions:
    - name: r
      pools:
        - {name: a, weight: 2}
      rules:
        operator: AND
        conditions:
          - {type: model, name: m}
      plugins:
        - type: response_cache
          configuration: {ttl: 90m, coalesce: true}
log:
  level: info
`)
	yaml = strings.Replace(yaml, "null, ", "", 1)
	f("toml", `
log = { level = "info" }

[server]
drain = "90s"
max_body = 1048576
passthrough_paths = ["/a", "/b"]

[[pools]]
name = "a"
models = ["m", "1", "org/m:1"]
load_factor = 1.0
workers = [
  { url = "http://a:1", weight = 7 },
  { url = "http://b:1" },
]
extra_body = { z = 1.0, a = { y = 1e5, b = ["~", "2026-01-02"] }, q = 0.5 }
thinking = "qwen"

[pools.headers]
set = { authorization = { env = "KEY" }, x-b = "true" }

[[routing.decisions]]
name = "r"
pools = [
  { name = "a", weight = 2 },
]

[routing.decisions.rules]
operator = "AND"
conditions = [
  { type = "model", name = "m" },
]

[[routing.decisions.plugins]]
type = "response_cache"
configuration = { ttl = "90m", coalesce = true }
`)
}

// Files are merged as Load merges them, and nothing of the environment gets in.
func TestConvertMerges(t *testing.T) {
	got := convertText(t, "yaml",
		"a.yaml", "log: {level: warn, access: false}\nsampling_contract: {params: {n: 1, top_p: {min: 0.5, max: 1}}}\npools: [{name: a, models: [m], workers: [{url: 'http://a:1'}]}]",
		"b.toml", "log = {level = \"debug\"}\nsampling_contract = {params = {top_p = {min = 0.9}}}",
		"c.json", `{"pools": [{"name": "b", "models": ["m"], "workers": [{"url": "http://b:1"}], "headers": {"set": {"a": {"env": "KEY"}}}}]}`)
	want := `log:
  level: debug
  access: false
sampling_contract:
  params:
    n: 1
    top_p: {min: 0.9, max: 1}
pools:
  - name: b
    models: [m]
    workers:
      - {url: 'http://b:1'}
    headers:
      set:
        a: {env: KEY}
`
	if got != want {
		t.Errorf("unexpected merged files\n got %s\nwant %s", got, want)
	}
}

func TestConvertNothing(t *testing.T) {
	for to, want := range map[string]string{"yaml": "{}\n", "json": "{}\n", "toml": "", "sluice": ""} {
		if got := convertText(t, to, "a.sluice", "# nothing\n"); got != want {
			t.Errorf("unexpected %s of nothing; got %q; want %q", to, got, want)
		}
	}
}

func TestConvertFaults(t *testing.T) {
	f := func(to, text, want string) {
		t.Helper()
		inDir(t, "a.json", text)
		out, err := Convert([]string{"a.json"}, nil, to)
		if err == nil || err.Error() != want {
			t.Errorf("unexpected error of %s to %s\n got %v %s\nwant %s", text, to, err, out, want)
		}
	}
	f("toml", `{"log": {"acces": 1}}`, "a.json:1:10: log.acces: unknown key; did you mean access?")
	f("xml", `{}`, `unknown format "xml"; expected one of yaml, json, toml, sluice`)
	pool := func(body string) string {
		return `{"pools": [{"name": "a", "workers": [{"url": "http://a:1"}], "extra_body": ` + body + `}]}`
	}
	f("toml", pool(`{"x": [null], "y": 18446744073709551615, "z": 123456789012345678901}`),
		"a.json:1:83: pools[0].extra_body.x[0]: TOML has no null\n"+
			"a.json:1:95: pools[0].extra_body.y: TOML has no whole number as large as 18446744073709551615\n"+
			"a.json:1:122: pools[0].extra_body.z: TOML has no whole number as large as 123456789012345678901")
	if _, err := Convert([]string{"none.yaml"}, nil, "json"); err == nil || !strings.Contains(err.Error(), "none.yaml: cannot be read") {
		t.Errorf("unexpected error for a file that is not there: %v", err)
	}
}

// FuzzSluice loads any text as a .sluice file: a valid configuration that is the
// same in each format, or faults with their place.
func FuzzSluice(f *testing.F) {
	page, err := os.ReadFile("GRAMMAR.md")
	if err != nil {
		f.Fatal(err)
	}
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 1 {
			f.Add(strings.TrimPrefix(block, "sluice\n"))
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		name := dir + "/a.sluice"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{Files: []string{name}})
		var faults Faults
		switch {
		case errors.As(err, &faults):
			checkFaults(t, faults, name)
			Report(err)
			return
		case err != nil:
			t.Fatalf("unexpected error %T: %v", err, err)
		}
		c.origins = nil
		for _, to := range Formats {
			out, err := Convert([]string{name}, nil, to)
			if err != nil && to == "toml" {
				continue
			} else if err != nil {
				t.Fatalf("cannot convert to %s: %v\n%s", to, err, text)
			}
			if got := loadText(t, t.TempDir(), to, out); got.Hash() != c.Hash() {
				t.Fatalf("another configuration in %s\n%s\n%s", to, text, out)
			}
		}
	})
}
