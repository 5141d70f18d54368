package configs

import (
	"reflect"
	"testing"
)

// sameConfig checks that a .sluice and a YAML text are one configuration.
func sameConfig(t *testing.T, sluice, yaml string) {
	t.Helper()
	inDir(t, "a.sluice", sluice, "a.yaml", yaml)
	got := mustLoad(t, Options{Files: []string{"a.sluice"}})
	want := mustLoad(t, Options{Files: []string{"a.yaml"}})
	got.origins, want.origins = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("unexpected configuration of\n%s\n got %+v\nwant %+v", sluice, got, want)
	}
}

const (
	sluicePools = `POOL a { models: [m] aliases: {"llama-70b": m} workers: [{url: "http://a:1"}] }
POOL b { models: [n] workers: [{url: "http://b:1"}] }
SERVER { tenant_header: x-tenant }
`
	yamlPools = `
pools:
  - {name: a, models: [m], aliases: {llama-70b: m}, workers: [{url: "http://a:1"}]}
  - {name: b, models: [n], workers: [{url: "http://b:1"}]}
server: {tenant_header: x-tenant}
`
)

func TestSluiceIsYAML(t *testing.T) {
	f := func(sluice, yaml string) {
		t.Helper()
		sameConfig(t, sluicePools+sluice, yamlPools+yaml)
	}
	f("", "")
	f("# nothing\nLOG { level: debug, access: false }", "log: {level: debug, access: false}")
	f("CONTRACT { on_conflict: observe params: {temperature: 1 top_p: {min: 0.9 max: 1}} }",
		"sampling_contract: {on_conflict: observe, params: {temperature: 1, top_p: {min: 0.9, max: 1}}}")
	f("CACHE { max_bytes: 64MiB redis: { timeout: 1.5s } }", "cache: {max_bytes: 64MiB, redis: {timeout: 1500ms}}")
	// the example of the specification
	f(`PLUGIN budget request_params { blocked_params: [logprobs, top_logprobs] max_tokens_limit: 500 max_n: 1 strip_unknown: true }
ROUTE cheap (description = "budget tier") {
  PRIORITY 100
  WHEN model("llama-70b") AND NOT header("x-tier" exact "gold")
  MODEL "llama-70b"
  PLUGIN budget { max_tokens_limit: 256 }
}`, `
routing:
  decisions:
    - name: cheap
      description: budget tier
      priority: 100
      rules:
        operator: AND
        conditions:
          - {type: model, name: llama-70b}
          - {operator: NOT, conditions: [{type: header, name: x-tier, exact: gold}]}
      model: llama-70b
      plugins:
        - type: request_params
          configuration: {blocked_params: [logprobs, top_logprobs], max_tokens_limit: 256, max_n: 1, strip_unknown: true}`)
	// every clause, and templates behind their use
	f(`ROUTE r {
  POOLS { a: 3, b: 1 }
  STICKY
  FALLBACK [b]
  FORCE { response_format: {type: json_object}, x: null, y: 1.0 }
  CONTRACT { params: {top_k: 20} }
  PLUGIN response-cache { ttl: 1h max_entry: 1MiB }
  PLUGIN late
}
ROUTE s { POOLS [{name: b weight: 1}] STICKY false PLUGINS [{type: request_params}] }
ROUTE t (priority = 3) { RULES {type: model name: m} POOL a }
PLUGIN late request-params { default_max_tokens: 5 }`, `
routing:
  decisions:
    - name: r
      pools: [{name: a, weight: 3}, {name: b, weight: 1}]
      sticky: true
      fallback: [b]
      force: {response_format: {type: json_object}, x: null, y: 1.0}
      sampling_contract: {params: {top_k: 20}}
      plugins:
        - {type: response_cache, configuration: {ttl: 1h, max_entry: 1MiB}}
        - {type: request_params, configuration: {default_max_tokens: 5}}
    - {name: s, pools: [{name: b, weight: 1}], sticky: false, plugins: [{type: request_params}]}
    - {name: t, priority: 3, rules: {type: model, name: m}, pool: a}`)
}

func TestSluiceConditions(t *testing.T) {
	f := func(when, rules string) {
		t.Helper()
		sameConfig(t, sluicePools+"ROUTE r { WHEN "+when+" }", yamlPools+"routing: {decisions: [{name: r, rules: "+rules+"}]}")
	}
	f(`model(m)`, `{type: model, name: m}`)
	f(`surface(chat)`, `{type: surface, name: chat}`)
	f(`tenant("acme")`, `{type: tenant, name: acme}`)
	f(`path(exact /v1/chat/completions)`, `{type: path, exact: /v1/chat/completions}`)
	f(`path(prefix: "/v1/")`, `{type: path, prefix: /v1/}`)
	f(`header("x-a" exact "1")`, `{type: header, name: x-a, exact: "1"}`)
	f(`header(x-a, prefix, b)`, `{type: header, name: x-a, prefix: b}`)
	f(`header("x-a" regex "^\\d+$")`, `{type: header, name: x-a, regex: '^\d+$'}`)
	f(`header(x-a present)`, `{type: header, name: x-a, present: true}`)
	f(`header(x-a present false)`, `{type: header, name: x-a, present: false}`)
	f(`stream(false)`, `{type: stream, value: false}`)
	f(`context(min 32K)`, `{type: context, min_tokens: 32K}`)
	f(`context(max: 1M, min: 4096)`, `{type: context, min_tokens: 4096, max_tokens: 1M}`)
	f(`body(user equals "me")`, `{type: body, name: user, equals: me}`)
	f(`body(seed equals 5)`, `{type: body, name: seed, equals: 5}`)
	f(`body(seed equals 1.0)`, `{type: body, name: seed, equals: 1.0}`)
	f(`body(logprobs equals true)`, `{type: body, name: logprobs, equals: true}`)
	f(`body(seed present)`, `{type: body, name: seed, present: true}`)
	// NOT binds more than AND, and that more than OR
	f(`NOT model(m) AND model(n) OR stream(true)`, `{operator: OR, conditions: [
		{operator: AND, conditions: [{operator: NOT, conditions: [{type: model, name: m}]}, {type: model, name: n}]}, {type: stream, value: true}]}`)
	f(`NOT (model(m) OR model(n)) AND stream(true)`, `{operator: AND, conditions: [
		{operator: NOT, conditions: [{operator: OR, conditions: [{type: model, name: m}, {type: model, name: n}]}]}, {type: stream, value: true}]}`)
}

// A .sluice file is merged like any other, before and behind others.
func TestSluiceMerges(t *testing.T) {
	inDir(t, "a.yaml", "server: {drain: 1s, max_body: 1MiB}\nlog: {level: warn}", "b.sluice", "SERVER { drain: 2s }\nSIM { words: 3 }", "c.toml", "[log]\naccess = false")
	c := mustLoad(t, Options{Files: []string{"a.yaml", "b.sluice", "c.toml"}, Env: []string{"SLUICE_SIM__WORDS=4"}})
	for path, want := range map[string]string{
		"server.drain": "b.sluice:1:17", "server.max_body": "a.yaml:1:31", "log.level": "a.yaml:2:14", "log.access": "c.toml:2:10", "sim.words": "SLUICE_SIM__WORDS",
	} {
		if got := c.Origin(path).String(); got != want {
			t.Errorf("unexpected origin of %s; got %s; want %s", path, got, want)
		}
	}
}

// What a template sets has its place there, what is laid over it in the route.
func TestSluiceOrigins(t *testing.T) {
	inDir(t, "a.sluice", sluicePools+"PLUGIN p request_params { max_n: 1 max_tokens_limit: 2 }\nROUTE r {\n  POOL a\n  PLUGIN p { max_n: 3 }\n}")
	c := mustLoad(t, Options{Files: []string{"a.sluice"}})
	for path, want := range map[string]string{
		"pools[1]":                     "a.sluice:2:1",
		"pools[1].name":                "a.sluice:2:6",
		"routing.decisions[0]":         "a.sluice:5:1",
		"routing.decisions[0].pool":    "a.sluice:6:8",
		"routing.decisions[0].plugins": "a.sluice:7:3",
		"routing.decisions[0].plugins[0].configuration.max_n":            "a.sluice:7:21",
		"routing.decisions[0].plugins[0].configuration.max_tokens_limit": "a.sluice:4:54",
	} {
		if got := c.Origin(path).String(); got != want {
			t.Errorf("unexpected origin of %s; got %s; want %s", path, got, want)
		}
	}
}

// Every key of the configuration has a word, or lies below one.
func TestSluiceHasAWordForEveryKey(t *testing.T) {
	for _, f := range fieldsOf(configType) {
		text, err := Format("a.sluice", writeSluice(&node{kind: kindMap, members: []member{{key: f.key, value: &node{kind: kindMap}}}}))
		if err != nil {
			t.Errorf("%s cannot be written: %v\n%s", f.key, err, text)
		}
	}
	for _, f := range fieldsOf(decisionType) {
		if f.key == "name" {
			continue
		}
		if _, err := Format("a.sluice", []byte("ROUTE r { "+wordOf(f.key)+" [] }")); err != nil {
			t.Errorf("%s of a decision cannot be written: %v", f.key, err)
		}
	}
}
