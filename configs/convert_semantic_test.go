package configs

import (
	"strings"
	"testing"
)

// fromSemanticRouter converts text and returns the result and what was left.
func fromSemanticRouter(t *testing.T, text string) (out, left string) {
	t.Helper()
	inDir(t, "sr.yaml", text)
	b, faults, err := FromSemanticRouter("sr.yaml", "sluice")
	if err != nil {
		t.Fatal(err)
	}
	return string(b), faults.Error()
}

func TestFromSemanticRouter(t *testing.T) {
	got, left := fromSemanticRouter(t, `version: v0.3
listeners:
  - {name: http, address: 0.0.0.0, port: 8899, timeout: 300s}
providers:
  defaults: {model: small}
  models:
    - name: small
      provider_model_id: Qwen/Qwen3-8B
      api_format: openai
      backend_refs:
        - {name: a, endpoint: "127.0.0.1:8000", protocol: http, weight: 80, provider: vllm, api_key_env: KEY}
        - {name: b, endpoint: "127.0.0.1:8001", protocol: http, weight: 20, provider: vllm}
    - name: large model
      backend_refs: [{endpoint: "10.0.0.1:443", protocol: https, provider: openai}]
    - name: remote
      backend_refs: [{base_url: "https://api.example/v1", provider: openai}]
routing:
  strategy: priority
  signals:
    context: [{name: long, min_tokens: 32K, max_tokens: 256K}]
    domains: [{name: business}]
  decisions:
    - name: budget
      description: |
        a budget
        tier
      priority: 200
      tier: 2
      rules: {operator: AND, conditions: [{type: domain, name: business}, {operator: NOT, conditions: [{type: context, name: long}]}]}
      modelRefs: [{model: small, weight: 0.4, use_reasoning: false}, {model: large model, weight: 0.6}]
      plugins:
        - {type: request-params, configuration: {blocked_params: [logprobs, top_logprobs], max_tokens_limit: 500, max_n: 1, strip_unknown: true, extra: 1}}
        - {type: system_prompt, configuration: {system_prompt: x}}
    - name: rest
      rules: {operator: AND, conditions: []}
      modelRefs: [{model: small}]
`)
	want := `SERVER {
  listen: "0.0.0.0:8899"
}

POOL small {
  models: [Qwen/Qwen3-8B]
  aliases: { small: Qwen/Qwen3-8B }
  engine: vllm
  workers: [
    { url: "http://127.0.0.1:8000", weight: 80 }
    { url: "http://127.0.0.1:8001", weight: 20 }
  ]
}

POOL large-model {
  models: ["large model"]
  workers: [{ url: "https://10.0.0.1:443" }]
}

ROUTE budget (description = "a budget tier") {
  PRIORITY 200
  WHEN header("x-signal-domain" exact "business") AND NOT context(min 32K max 256K)
  MODEL "large model"
  PLUGIN request_params {
    blocked_params: [logprobs, top_logprobs]
    max_tokens_limit: 500
    max_n: 1
    strip_unknown: true
  }
}

ROUTE rest {
  MODEL small
}
`
	if got != want {
		t.Errorf("unexpected result\n got\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{
		"sr.yaml:3:48: listeners[0].timeout: is not taken over",
		"providers.models[0].api_format: is not taken over",
		"providers.models[0].backend_refs[0].api_key_env: is not taken over",
		"providers.models[1]: is named large-model here",
		`providers.models[2].backend_refs[0]: is no worker: the URL must be http://host:port or https://host:port and nothing after it, got "https://api.example/v1"`,
		"providers.models[2]: has no back end that is a worker: there is no pool for it",
		"providers.defaults: is not taken over",
		"routing.decisions[0].tier: is not taken over",
		"routing.decisions[0].rules.conditions[0]: the signal domain is not known here: set the header field x-signal-domain: business in front of the router",
		"routing.decisions[0].modelRefs[0].use_reasoning: is not taken over",
		`routing.decisions[0].modelRefs: a decision has one model here: "large model" is taken`,
		"routing.decisions[0].plugins[0].configuration.extra: is not taken over",
		`routing.decisions[0].plugins[1]: the plugin "system_prompt" is not taken over`,
	} {
		if !strings.Contains(left+"\n", want+"\n") {
			t.Errorf("it is not told that\n%s\nbut\n%s", want, left)
		}
	}
	if n := strings.Count(left, "\n") + 1; n != 13 || strings.Contains(left, "not valid") {
		t.Errorf("unexpected number of things left: %d\n%s", n, left)
	}
	inDir(t, "a.sluice", got)
	mustLoad(t, Options{Files: []string{"a.sluice"}})
}

// The older form has decisions and vllm_endpoints at the top.
func TestFromSemanticRouterOlder(t *testing.T) {
	got, left := fromSemanticRouter(t, `
vllm_endpoints:
  - {name: e1, address: 10.0.0.1, port: 8000, weight: 1}
  - {name: e2, address: 10.0.0.2, port: 8000, weight: 1}
model_config:
  a: {preferred_endpoints: [e1]}
  b: {preferred_endpoints: [e2], reasoning_family: qwen}
strategy: confidence
bert_model: {model_id: x}
decisions:
  - {name: r, priority: 5, modelRefs: [{model: b}], rules: {operator: OR, conditions: [{type: keyword, name: k}, {type: language, name: de}]}}
  - {name: r, modelRefs: [{model: none}], plugins: [{type: request_params, configuration: {max_n: 0}}]}
`)
	want := `POOL a {
  models: [a]
  engine: vllm
  workers: [{ url: "http://10.0.0.1:8000", weight: 1 }]
}

POOL b {
  models: [b]
  engine: vllm
  workers: [{ url: "http://10.0.0.2:8000", weight: 1 }]
}

ROUTE r {
  PRIORITY 5
  WHEN header("x-signal-keyword" exact "k") OR header("x-signal-language" exact "de")
  MODEL b
}

ROUTE r2 {
  MODEL none
  PLUGIN request_params { max_n: 0 }
}
`
	if got != want {
		t.Errorf("unexpected result\n got\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{
		"bert_model: is not taken over",
		`strategy: decisions go by priority here, not by "confidence"`,
		"model_config.b.reasoning_family: is not taken over",
		"decisions[1].name: is named r2 here",
		"the result is not valid yet: must be from 1 to",
		`the result is not valid yet: "none" is no model of the pools`,
	} {
		if !strings.Contains(left, want) {
			t.Errorf("it is not told that\n%s\nbut\n%s", want, left)
		}
	}
}

func TestFromSemanticRouterFaults(t *testing.T) {
	inDir(t, "a.yaml", "a: [", "b.json", "{}")
	for name, want := range map[string]string{
		"a.yaml":    "a.yaml:1:1: did not find expected node content",
		"b.json":    "b.json: must be a .yaml file",
		"none.yaml": "none.yaml: cannot be read: no such file or directory",
	} {
		if _, _, err := FromSemanticRouter(name, "yaml"); err == nil || err.Error() != want {
			t.Errorf("unexpected error of %s\n got %v\nwant %s", name, err, want)
		}
	}
	if _, _, err := FromSemanticRouter("a.yaml", "xml"); err == nil {
		t.Error("the format xml is taken")
	}
	// shapes that nobody expects
	for _, text := range []string{"[]", "5", "routing: 5", "routing: {decisions: 5}", "decisions: [5, {}, {rules: 5}, {plugins: {}}, {modelRefs: [{}]}, {rules: {operator: AND}}]", "providers: {models: [{}]}", "model_config: {a: 5}", "model_config: 5"} {
		fromSemanticRouter(t, text)
	}
}
