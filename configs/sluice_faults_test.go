package configs

import (
	"strings"
	"testing"
)

func TestFaultsSluice(t *testing.T) {
	const pool = "POOL llama { models: [m] workers: [{url: \"http://a:1\"}] }\n"
	testFaults(t, "a.sluice", []faultCase{
		// the syntax (package dsl has more)
		{"SERVR {}", `a.sluice:1:1: unknown word "SERVR"; did you mean SERVER?`},
		{"SERVER {", `a.sluice:1:8: the "{" is never closed`},
		{"SERVER {}\nLOG { level: \"x }\n", `a.sluice:2:14: the string is not closed on its line; a line break is written \n`},
		// as strict as the other formats
		{"SERVER { lisen: x }", "a.sluice:1:10: server.lisen: unknown key; did you mean listen?"},
		{"SERVER 5", "a.sluice:1:8: server: must be a mapping, got 5"},
		{"SERVER null", "a.sluice:1:8: server: has no value: give it one or remove the key"},
		{"POOLS {}", "a.sluice:1:7: pools: must be a list, got a mapping"},
		{"SERVER { listen: 30000 }", "a.sluice:1:18: server.listen: must be a string, got 30000: put it in quotes"},
		{"SERVER { listen: \"\" }", "a.sluice:1:18: server.listen: must not be empty"},
		{"LOG { access: \"true\" }", `a.sluice:1:15: log.access: must be true or false, got the string "true": remove the quotes`},
		{"SIM { engines: 2.0 }", "a.sluice:1:16: sim.engines: must be a whole number, got 2.0"},
		{"SIM { engines: 010 }", `a.sluice:1:16: sim.engines: must be a whole number, got "010"`},
		{"SIM { engines: 99999999999999999999 }", "a.sluice:1:16: sim.engines: must be a whole number, got 99999999999999999999"},
		{"CONTRACT { params: { n: 1e999 } }", "a.sluice:1:25: sampling_contract.params.n: the number 1e999 is out of range"},
		{"SERVER { drain: 30 }", "a.sluice:1:17: server.drain: must be a duration, got 30: add a unit, such as 30s"},
		{"SERVER { \"\": 1 }", "a.sluice:1:10: server: a key must not be empty"},
		{"SERVER { \"a\\u0000\": 1 }", `a.sluice:1:10: server: a key must not hold control characters, got "a\x00"`},
		{"SERVER {}\nSERVER {}", "a.sluice:2:1: server: repeated key, first set on line 1"},
		{"LOG {\n level: info\n level: warn }", "a.sluice:3:2: log.level: repeated key, first set on line 2"},
		{"CONTRACT { params: { n: 1 } }\nSAMPLING_CONTRACT {}", "a.sluice:2:1: sampling_contract: repeated key, first set on line 1"},
		{"CONTRACT { params: { top_k: 0.5 } }", "a.sluice:1:29: sampling_contract.params.top_k: 0.5 is outside the domain; expected an integer >= 1 or exactly -1"},
		// pools and routes
		{pool + "POOL llama { workers: [{url: \"http://b:1\"}] }", `a.sluice:2:6: pools[1].name: "llama" is the name of pools[0], too`},
		{pool + "POOL b { name: c workers: [{url: \"http://b:1\"}] models: [n] }", "a.sluice:2:10: pools[1].name: repeated key, first set on line 2"},
		{pool + "POOLS []", "a.sluice:2:1: pools: repeated key, first set on line 1"},
		{"POOLS []\n" + pool, "a.sluice:2:1: pools: is set as a whole on line 1 already"},
		{"ROUTING { decisions: [] }\nROUTE r {}", "a.sluice:2:1: routing.decisions: is set as a whole on line 1 already"},
		{"ROUTING 5\nROUTE r {}", "a.sluice:1:9: routing: must be a mapping, got 5"},
		{pool + "ROUTE r {}\nROUTE r {}", `a.sluice:3:7: routing.decisions[1].name: "r" is the name of routing.decisions[0], too`},
		{pool + "ROUTE r { POOL lama }", `a.sluice:2:16: routing.decisions[0].pool: must name a pool, got "lama"; did you mean llama?`},
		{pool + "ROUTE r { POOLS { lama: 1 } }", `a.sluice:2:19: routing.decisions[0].pools[0].name: must name a pool, got "lama"; did you mean llama?`},
		{pool + "ROUTE r { POOLS { llama: x } }", `a.sluice:2:26: routing.decisions[0].pools[0].weight: must be a whole number, got "x"`},
		{pool + "ROUTE r { POOLS { llama: 1 llama: 2 } }", "a.sluice:2:28: routing.decisions[0].pools.llama: repeated key, first set on line 2"},
		{pool + "ROUTE r { PRIORITY 1\nPRIORITY 2 }", "a.sluice:3:1: routing.decisions[0].priority: repeated key, first set on line 2"},
		{pool + "ROUTE r (priority = 1) { PRIORITY 2 }", "a.sluice:2:26: routing.decisions[0].priority: repeated key, first set on line 2"},
		{pool + "ROUTE r (prio = 1) {}", "a.sluice:2:10: routing.decisions[0].prio: unknown key; expected one of " + decisionKeys()},
		{pool + "ROUTE r { PRIORITY 1.5 STICKY 1 }", "a.sluice:2:20: routing.decisions[0].priority: must be a whole number, got 1.5\na.sluice:2:31: routing.decisions[0].sticky: must be true or false, got 1"},
		{pool + "ROUTE r { FORCE [1] }", "a.sluice:2:17: routing.decisions[0].force: must be a JSON object, got a list"},
		// conditions
		{pool + "ROUTE r { WHEN modle(m) }", `a.sluice:2:16: routing.decisions[0].rules: unknown condition "modle"; did you mean model?`},
		{pool + "ROUTE r { WHEN model() }", `a.sluice:2:16: routing.decisions[0].rules: model needs something in its parentheses, such as model("llama-70b")`},
		{pool + "ROUTE r { WHEN model(m n) }", `a.sluice:2:24: routing.decisions[0].rules: unexpected "n" in model; it is written model("llama-70b")`},
		{pool + "ROUTE r { WHEN model(5) }", "a.sluice:2:22: routing.decisions[0].rules.name: must be a string, got 5: put it in quotes"},
		{pool + "ROUTE r { WHEN header(x exat y) }", `a.sluice:2:25: routing.decisions[0].rules: unexpected "exat" in header; did you mean exact?; it is written header("x-tier" exact "gold")`},
		{pool + "ROUTE r { WHEN header(x exact) }", `a.sluice:2:25: routing.decisions[0].rules: "exact" in header needs a value behind it`},
		{pool + "ROUTE r { WHEN stream(yes) }", `a.sluice:2:23: routing.decisions[0].rules.value: must be true or false, got "yes"`},
		{pool + "ROUTE r { WHEN context(min 1 min 2) }", "a.sluice:2:30: routing.decisions[0].rules.min_tokens: repeated key, first set on line 2"},
		{pool + "ROUTE r { WHEN body(k equals 1e999) }", "a.sluice:2:30: routing.decisions[0].rules.equals: the number 1e999 is out of range"},
		{pool + "ROUTE r { WHEN model(m) RULES {} }", "a.sluice:2:25: routing.decisions[0].rules: repeated key, first set on line 2"},
		// templates and plugins
		{"PLUGIN p request_parms {}", `a.sluice:1:10: template p: unknown type of plugins "request_parms"; did you mean request_params?`},
		{"PLUGIN p request_params {}\nPLUGIN p request_params {}", "a.sluice:2:8: template p: repeated template, first declared on line 1"},
		{"PLUGIN request-params request_params {}", "a.sluice:1:8: template request-params: is a type of plugins: give the template another name"},
		{"PLUGIN p request_params { max_m: 1 }", "a.sluice:1:27: template p.max_m: unknown key; did you mean max_n?"},
		{"PLUGIN p request_params { max_n: x }\n" + pool + "ROUTE r { PLUGIN p { max_n: 2 } }", `a.sluice:1:34: template p.max_n: must be a whole number, got "x"`},
		{"PLUGIN p request_params { max_n: x }\n" + pool + "ROUTE r { PLUGIN p }", `a.sluice:1:34: template p.max_n: must be a whole number, got "x"`},
		{"PLUGIN p request_params { max_n: 0 }", "a.sluice:1:34: template p.max_n: must be from 1 to 1000000000, got 0"},
		{"PLUGIN p request_params { ttl: 1h }", "a.sluice:1:32: template p.ttl: is no key of the plugin request_params"},
		{"PLUGIN p request_params { max_n: 0 }\n" + pool + "ROUTE r { PLUGIN p }", "a.sluice:1:34: routing.decisions[0].plugins[0].configuration.max_n: must be from 1 to 1000000000, got 0"},
		{pool + "ROUTE r { PLUGIN request_parms {} }", `a.sluice:2:18: routing.decisions[0].plugins[0]: unknown template or type of plugins "request_parms"; did you mean request_params?`},
		{"PLUGIN budget request_params {}\n" + pool + "ROUTE r { PLUGIN bugdet }", `a.sluice:3:18: routing.decisions[0].plugins[0]: unknown template or type of plugins "bugdet"; did you mean budget?`},
		{pool + "ROUTE r { PLUGIN request-params { max_tokens_limt: 1 } }", "a.sluice:2:35: routing.decisions[0].plugins[0].configuration.max_tokens_limt: unknown key; did you mean max_tokens_limit?"},
		{pool + "ROUTE r { PLUGIN request_params { max_n: \"1\" } }", `a.sluice:2:42: routing.decisions[0].plugins[0].configuration.max_n: must be a whole number, got "1"`},
		{pool + "ROUTE r { PLUGIN request_params { max_n: 1\n max_n: 2 } }", "a.sluice:3:2: routing.decisions[0].plugins[0].configuration.max_n: repeated key, first set on line 2"},
		{pool + "ROUTE r { PLUGIN request_params\nPLUGIN request_params }", "a.sluice:3:8: routing.decisions[0].plugins[1].type: the decision has a plugin request_params already"},
		{pool + "ROUTE r { PLUGINS []\nPLUGIN request_params }", "a.sluice:3:1: routing.decisions[0].plugins: is set as a whole on line 2 already"},
	})
}

func decisionKeys() string {
	var keys []string
	for _, f := range fieldsOf(decisionType) {
		keys = append(keys, f.key)
	}
	return strings.Join(keys, ", ")
}

// One slip does not hide another: all errors of a file are told at once, those
// of the syntax and those of the words.
func TestFaultsSluiceAtOnce(t *testing.T) {
	got := faultsOf(t, "a.sluice", `SERVR {}
PLUGIN budget request_parms { max_n: 0 }
SERVER { lisen: x }
ROUTE cheap {
  PRIORTY 100
  WHEN modle("llama-70b") AND header("x" exat "y")
  POOL "lama
  PLUGIN bugdet {}
}
LOG { level: }
`)
	want := `a.sluice:1:1: unknown word "SERVR"; did you mean SERVER?
a.sluice:2:15: template budget: unknown type of plugins "request_parms"; did you mean request_params?
a.sluice:3:10: server.lisen: unknown key; did you mean listen?
a.sluice:5:3: unknown word in a ROUTE "PRIORTY"; did you mean PRIORITY?
a.sluice:6:8: routing.decisions[0].rules.conditions[0]: unknown condition "modle"; did you mean model?
a.sluice:6:42: routing.decisions[0].rules.conditions[1]: unexpected "exat" in header; did you mean exact?; it is written header("x-tier" exact "gold")
a.sluice:7:8: the string is not closed on its line; a line break is written \n
a.sluice:8:10: routing.decisions[0].plugins[0]: unknown template or type of plugins "bugdet"; did you mean budget?
a.sluice:10:14: expected a value, got "}"`
	if got != want {
		t.Errorf("unexpected faults\n got %s\nwant %s", got, want)
	}
}

// A file with an error is not whole: what is missing in it is no fault of the
// files beside it.
func TestFaultsSluiceIncomplete(t *testing.T) {
	inDir(t, "a.sluice", "POOL llama { models: [m }", "b.yaml", "routing: {decisions: [{name: r, pool: llama}]}")
	_, err := Load(Options{Files: []string{"a.sluice", "b.yaml"}})
	if want := "a.sluice:1:25: expected a value, got \"}\""; err == nil || err.Error() != want {
		t.Errorf("unexpected faults\n got %v\nwant %s", err, want)
	}
}

// A template that is used often costs what it costs written out.
func TestFaultsSluiceBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("PLUGIN p request_params { known_params: [" + strings.Repeat("a ", 30000) + "] }\n")
	for range 300 {
		b.WriteString("ROUTE r { PLUGIN p }\n")
	}
	got := faultsOf(t, "a.sluice", b.String())
	if want := "too many values, those of a template counted as often as it is used"; strings.Count(got, want) != 1 {
		t.Errorf("unexpected faults; want one that says %s", want)
	}
}

func TestReport(t *testing.T) {
	inDir(t, "a.sluice", "SERVER { lisen: x }\nCACHE {\n  redis: { password: \"s3cret\" adr: x }\n  redis2: {}\n}\n", "b.yaml", "log: {acces: 1}")
	_, err := Load(Options{Files: []string{"a.sluice", "b.yaml", "c.sluice"}})
	want := `a.sluice:1:10: server.lisen: unknown key; did you mean listen?
    SERVER { lisen: x }
             ^
a.sluice:3:31: cache.redis.adr: unknown key; did you mean addr?
a.sluice:4:3: cache.redis2: unknown key; did you mean redis?
      redis2: {}
      ^
b.yaml:1:7: log.acces: unknown key; did you mean access?
c.sluice: cannot be read: no such file or directory`
	if got := Report(err); got != want {
		t.Errorf("unexpected report\n got %s\nwant %s", got, want)
	}
	inDir(t, "a.sluice", "CACHE {\n  redis: { password: \"s3cret\" addr }\n}\nLOG { level }\n")
	_, err = Load(Options{Files: []string{"a.sluice"}})
	want = `a.sluice:2:36: expected a ":" behind the key "addr", got "}"
a.sluice:4:13: expected a ":" behind the key "level", got "}"
    LOG { level }
                ^`
	if got := Report(err); got != want {
		t.Errorf("unexpected report\n got %s\nwant %s", got, want)
	}
	if got, want := Report(errNoParser), errNoParser.Error(); got != want {
		t.Errorf("unexpected report; got %q; want %q", got, want)
	}
}
