package configs

import (
	"testing"
)

const poolPair = `
server: {tenant_header: x-tenant}
pools:
  - {name: a, models: [m, n], aliases: {alias: m}, workers: [{url: "http://10.0.0.1:80"}], context_windows: {m: 4K}}
  - {name: b, workers: [{url: "http://10.0.0.2:80"}]}
`

func TestFaultsRouting(t *testing.T) {
	cases := []faultCase{
		{
			`routing: {decisions: [{name: x}, {name: x}, {}, {name: "a b"}]}`,
			"a.yaml:6:41: routing.decisions[1].name: \"x\" is the name of routing.decisions[0], too\n" +
				"a.yaml:6:45: routing.decisions[2].name: must be set\n" +
				`a.yaml:6:56: routing.decisions[3].name: must be letters, digits, dots, dashes and underscores and begin with a letter or digit, got "a b"`,
		},
		{`routing: {decisions: [{name: x, priority: 1000001}]}`, "a.yaml:6:43: routing.decisions[0].priority: must be from -1000000 to 1000000, got 1000001"},
		{`routing: {decisions: [{name: x, pool: c}]}`, `a.yaml:6:39: routing.decisions[0].pool: must name a pool, got "c"; did you mean a?`},
		{`routing: {decisions: [{name: x, pool: a, pools: [{name: b, weight: 1}]}]}`, "a.yaml:6:49: routing.decisions[0].pools: must not be given beside pool"},
		{`routing: {decisions: [{name: x, pools: [{name: b}]}]}`, "a.yaml:6:40: routing.decisions[0].pools: must have a weight above 0"},
		{`routing: {decisions: [{name: x, sticky: true}]}`, "a.yaml:6:41: routing.decisions[0].sticky: needs pools to share the requests among"},
		{
			`routing: {decisions: [{name: x, pool: a, fallback: [b, a, b]}]}`,
			"a.yaml:6:56: routing.decisions[0].fallback[1]: \"a\" is tried already\n" + `a.yaml:6:59: routing.decisions[0].fallback[2]: "b" is tried already`,
		},
		{`routing: {decisions: [{name: x, pool: a, model: alais}]}`, `a.yaml:6:49: routing.decisions[0].model: "alais" is no model of the pools that the decision leads to; did you mean alias?`},
		{`routing: {decisions: [{name: x, pool: b, model: any}]}`, ""},
		{`routing: {decisions: [{name: x, rules: {operator: ANDD, conditions: [{type: stream, value: true}]}}]}`, `a.yaml:6:51: routing.decisions[0].rules.operator: must be one of AND, OR, NOT, got "ANDD"; did you mean AND?`},
		{`routing: {decisions: [{name: x, rules: {type: modl, name: m}}]}`, `a.yaml:6:47: routing.decisions[0].rules.type: must be one of model, surface, path, header, tenant, stream, context, body, got "modl"; did you mean model?`},
		{`routing: {decisions: [{name: x, rules: {type: context, min_tokens: 32Q}}]}`, `a.yaml:6:68: routing.decisions[0].rules.min_tokens: must be a number of tokens such as 4096, 32K or 1.5M, got "32Q"`},
		{
			`routing: {decisions: [{name: x, rules: {type: header, name: h, regex: "("}}]}`,
			"a.yaml:6:71: routing.decisions[0].rules.regex: \"(\" cannot be compiled: error parsing regexp: missing closing ): `(`",
		},
		{`routing: {decisions: [{name: x, plugins: [{configuration: {max_n: 1}}]}]}`, "a.yaml:6:43: routing.decisions[0].plugins[0].type: must be set: request_params or response_cache"},
		{`routing: {decisions: [{name: x, plugins: [{type: request_parms}]}]}`, `a.yaml:6:50: routing.decisions[0].plugins[0].type: must be one of request_params, response_cache, got "request_parms"; did you mean request_params?`},
		{`routing: {decisions: [{name: x, plugins: [{type: request_params, configuration: {ttl: 1h}}]}]}`, "a.yaml:6:87: routing.decisions[0].plugins[0].configuration.ttl: is no key of the plugin request_params"},
		{`routing: {decisions: [{name: x, plugins: [{type: request_params, configuration: {max_n: 0}}]}]}`, "a.yaml:6:89: routing.decisions[0].plugins[0].configuration.max_n: must be from 1 to 1000000000, got 0"},
		{`routing: {decisions: [{name: x, plugins: [{type: request_params, configuration: {max_tokens_limit: "5"}}]}]}`, `a.yaml:6:100: routing.decisions[0].plugins[0].configuration.max_tokens_limit: must be a whole number, got "5"`},
		{`routing: {decisions: [{name: x, plugins: [{type: request_params, configuration: {default_max_tokens: 0}}]}]}`, "a.yaml:6:102: routing.decisions[0].plugins[0].configuration.default_max_tokens: must be a whole number, at least 1, or auto, got 0"},
		{
			`routing: {decisions: [{name: x, pool: a, plugins: [{type: request_params, configuration: {default_max_tokens: auto}}]}]}`,
			`a.yaml:6:111: routing.decisions[0].plugins[0].configuration.default_max_tokens: auto needs the context window of "n": set context_windows of the pool a`,
		},
		{`routing: {decisions: [{name: x, force: [1]}]}`, "a.yaml:6:40: routing.decisions[0].force: must be a JSON object, got a list"},
		{`routing: {decisions: [{name: x, force: {a: .inf}}]}`, "a.yaml:6:44: routing.decisions[0].force.a: must be a finite number, got .inf"},
		{
			`routing: {decisions: [{name: x, plugins: [{type: response_cache, configuration: {ttl: 1ms, namespace: tenant}}]}]}`,
			"a.yaml:6:87: routing.decisions[0].plugins[0].configuration.ttl: must be at least 1s, got 1ms",
		},
		{`cache: {store: redis}`, "a.yaml:6:8: cache.redis.addr: must be set for the store redis"},
		{`records: {store: postgres, queue: 0}`, "a.yaml:6:10: records.dsn: must be set for the store postgres\na.yaml:6:35: records.queue: must be from 1 to 1000000, got 0"},
	}
	for i := range cases {
		cases[i].text = poolPair + cases[i].text
	}
	testFaults(t, "a.yaml", cases)
}

// A model of a second pool needs a decision that leads there.
func TestModelOfTwoPools(t *testing.T) {
	pools := `pools: [{name: a, models: [m, m], workers: [{url: "http://10.0.0.1:80"}]}, {name: b, models: [m, n, n], workers: [{url: "http://10.0.0.2:80"}]}]` + "\n"
	testFaults(t, "a.yaml", []faultCase{
		{pools, "a.yaml:1:31: pools[0].models[1]: \"m\" is served by pools[0].models[0] already\n" +
			"a.yaml:1:95: pools[1].models[0]: \"m\" is served by pools[0].models[0] already\n" +
			"a.yaml:1:101: pools[1].models[2]: \"n\" is served by pools[1].models[1] already"},
		{pools + `routing: {decisions: [{name: x, pool: a, fallback: [b]}]}`, "a.yaml:1:31: pools[0].models[1]: \"m\" is served by pools[0].models[0] already\n" +
			"a.yaml:1:101: pools[1].models[2]: \"n\" is served by pools[1].models[1] already"},
	})
}

// The most specific contract holds, and a narrow one only narrows.
func TestContractOf(t *testing.T) {
	inDir(t, "a.yaml", `
sampling_contract: {params: {temperature: {min: 0, max: 1}, top_p: 1}}
pools:
  - name: a
    models: [m, n]
    workers: [{url: "http://10.0.0.1:80"}]
    sampling_contract: {narrow: true, params: {temperature: {min: 0.5, max: 1}}}
    model_contracts: {n: {params: {n: 1}}}
  - {name: b, workers: [{url: "http://10.0.0.2:80"}]}
routing:
  decisions:
    - {name: x, sampling_contract: {narrow: true, params: {top_k: -1}}}
    - {name: y, sampling_contract: {on_conflict: observe, params: {top_k: -1}}}
`)
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	x, y := &c.Routing.Decisions[0], &c.Routing.Decisions[1]
	f := func(d *Decision, pool int, model, from string, params ...string) {
		t.Helper()
		spec, at, err := c.ContractOf(d, &c.Pools[pool], model)
		if err != nil || at != from || len(spec.Params) != len(params) {
			t.Errorf("unexpected contract; got %v from %s (%v); want %v from %s", spec, at, err, params, from)
		}
		for _, p := range params {
			if _, ok := spec.Params[p]; !ok {
				t.Errorf("the contract from %s lacks %s: %v", at, p, spec)
			}
		}
	}
	f(nil, 1, "z", "sampling_contract", "temperature", "top_p")
	f(nil, 0, "m", "pools[0].sampling_contract", "temperature", "top_p")
	f(nil, 0, "n", "pools[0].model_contracts.n", "n")
	f(x, 0, "m", "routing.decisions[0].sampling_contract", "temperature", "top_p", "top_k")
	f(x, 0, "n", "routing.decisions[0].sampling_contract", "n", "top_k")
	f(y, 0, "n", "routing.decisions[1].sampling_contract", "top_k")

	inDir(t, "b.yaml", `
sampling_contract: {params: {temperature: 1}, narrow: true}
pools:
  - {name: a, models: [m], workers: [{url: "http://10.0.0.1:80"}], model_contracts: {k: {params: {n: 1}}}, sampling_contract: {narrow: true, params: {temperature: 0.5}}}
`)
	want := "b.yaml:2:55: sampling_contract.narrow: has nothing to narrow: this is the contract of the fleet\n" +
		"b.yaml:4:89: pools[0].model_contracts.k: must be for one of the models of the pool, got \"k\"; did you mean m?\n" +
		"b.yaml:4:164: pools[0].sampling_contract.params.temperature: 0.5 is not within 1, the rule that it narrows"
	if _, err := Load(Options{Files: []string{"b.yaml"}}); err == nil || err.Error() != want {
		t.Errorf("unexpected faults\n got %v\nwant %s", err, want)
	}
}

func TestFaultsDiscover(t *testing.T) {
	pool := func(discover string) string {
		return "pools: [{name: a, discover: {" + discover + "}}]"
	}
	testFaults(t, "a.yaml", []faultCase{
		{pool("file: workers.txt"), ""},
		{pool(`dns: {name: engines.internal, port: 8000}`), ""},
		{pool(`srv: _http._tcp.engines.internal, scheme: https, resolver: "127.0.0.1:53"`), ""},
		{pool(""), "a.yaml:1:9: pools[0].workers: must hold at least one worker"},
		{pool("file: w, srv: x"), "a.yaml:1:29: pools[0].discover: must have one source, got file and srv"},
		{pool("dns: {name: x}"), "a.yaml:1:35: pools[0].discover.dns.port: must be from 1 to 65535, got 0"},
		{pool("srv: a..b"), `a.yaml:1:35: pools[0].discover.srv: must be a name in the DNS, got "a..b"`},
		{pool("file: w, scheme: ftp"), `a.yaml:1:47: pools[0].discover.scheme: must be one of http, https, got "ftp"`},
		{pool("file: w, min_interval: 2m"), "a.yaml:1:29: pools[0].discover.max_interval: must not be shorter than min_interval, 2m0s, got 1m0s"},
	})
}

// A JSON object keeps the order and the text of the source in every format.
func TestObjectKeepsItsText(t *testing.T) {
	const want = `{"z":{"b":1.50,"a":[1e3,null,true]},"a":"<é>"}`
	inDir(t,
		"a.yaml", `pools: [{name: a, workers: [{url: "http://10.0.0.1:80"}], extra_body: {z: {b: 1.50, a: [1e3, null, true]}, a: "<é>"}}]`,
		"a.json", `{"pools": [{"name": "a", "workers": [{"url": "http://10.0.0.1:80"}], "extra_body": {"z": {"b": 1.50, "a": [1e3, null, true]}, "a": "<é>"}}]}`)
	for _, name := range []string{"a.yaml", "a.json"} {
		c := mustLoad(t, Options{Files: []string{name}})
		if got := string(c.Pools[0].ExtraBody); got != want {
			t.Errorf("unexpected object of %s; got %s; want %s", name, got, want)
		}
	}
	c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: []string{`SLUICE_POOLS__A__EXTRA_BODY={"temperature":0}`, "SLUICE_POOLS__A__THINKING=qwen"}})
	if got := c.Pools[0]; got.ExtraBody != `{"temperature":0}` || got.Thinking.Preset != "qwen" {
		t.Errorf("unexpected pool after the environment; got %+v", got)
	}
	members := c.Pools[0].ExtraBody.Members()
	if len(members) != 1 || members[0].Key != "temperature" || string(members[0].Value) != "0" {
		t.Errorf("unexpected members; got %v", members)
	}
}
