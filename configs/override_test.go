package configs

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const twoPools = `
pools:
  - name: llama-3.1
    models: [m1]
    aliases: {small-1: m1}
    workers: [{url: "http://10.0.0.1:80"}]
  - name: Qwen
    models: [m2]
    workers: [{url: "http://10.0.0.2:80"}]
`

func TestB80_EnvSetsKeys(t *testing.T) {
	inDir(t, "a.yaml", twoPools)
	f := func(entry string, get func(c *Config) any, want any) {
		t.Helper()
		c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: []string{entry}})
		if got := get(c); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: unexpected value %v; want %v", entry, got, want)
		}
	}
	f("SLUICE_SERVER__LISTEN=:1", func(c *Config) any { return c.Server.Listen }, ":1")
	f("SLUICE_SERVER__ADMIN_LISTEN=localhost:1", func(c *Config) any { return c.Server.AdminListen }, "localhost:1")
	f("SLUICE_LOG__ACCESS=false", func(c *Config) any { return c.Log.Access }, false)
	f("SLUICE_LOG__ACCESS=true", func(c *Config) any { return c.Log.Access }, true)
	f("SLUICE_SERVER__DRAIN=1m", func(c *Config) any { return c.Server.Drain }, time.Minute)
	f("SLUICE_SERVER__MAX_BODY=64KiB", func(c *Config) any { return c.Server.MaxBody }, Bytes(64<<10))
	f("SLUICE_SERVER__MAX_BODY=512", func(c *Config) any { return c.Server.MaxBody }, Bytes(512))
	f("SLUICE_SIM__ENGINES=3", func(c *Config) any { return c.Sim.Engines }, 3)
	f("SLUICE_SERVER__PASSTHROUGH_PATHS=/a, /b", func(c *Config) any { return c.Server.PassthroughPaths }, []string{"/a", "/b"})
	f(`SLUICE_SERVER__PASSTHROUGH_PATHS=["/a,b"]`, func(c *Config) any { return c.Server.PassthroughPaths }, []string{"/a,b"})
	f(`SLUICE_SERVER={"drain": "3s"}`, func(c *Config) any { return c.Server.Drain }, 3*time.Second)

	// pools by their names, and what is inside of them
	f("SLUICE_POOLS__LLAMA_3_1__BALANCE=random", func(c *Config) any { return c.Pools[0].Balance }, "random")
	f("SLUICE_POOLS__QWEN__TIMEOUTS__TOTAL=1s", func(c *Config) any { return c.Pools[1].Timeouts.Total }, time.Second)
	f("SLUICE_POOLS__QWEN__TIMEOUTS__TOTAL=1s", func(c *Config) any { return c.Pools[1].Timeouts.Connect }, 2*time.Second)
	f("SLUICE_POOLS__QWEN__MODELS=a/b,c", func(c *Config) any { return c.Pools[1].Models }, []string{"a/b", "c"})
	f("SLUICE_POOLS__QWEN__WORKERS__0__URL=http://h:1", func(c *Config) any { return c.Pools[1].Workers }, []Worker{{URL: "http://h:1"}})
	f(`SLUICE_POOLS__QWEN__WORKERS=[{"url": "http://h:1"}, {"url": "http://h:2"}]`,
		func(c *Config) any { return c.Pools[1].Workers }, []Worker{{URL: "http://h:1"}, {URL: "http://h:2"}})
	f(`SLUICE_POOLS__LLAMA_3_1__ALIASES={"A.b/C": "m1"}`, func(c *Config) any { return c.Pools[0].Aliases }, map[string]string{"A.b/C": "m1"})
	f("SLUICE_POOLS__LLAMA_3_1__ALIASES__SMALL_1=m1", func(c *Config) any { return c.Pools[0].Aliases }, map[string]string{"small-1": "m1"})
	f("SLUICE_POOLS__QWEN__RETRY__BUDGET=0.5", func(c *Config) any { return c.Pools[1].Retry.Budget }, 0.5)
	f("SLUICE_POOLS__QWEN__RETRY__BUDGET=1", func(c *Config) any { return c.Pools[1].Retry.Budget }, 1.0)
	f("SLUICE_POOLS=[]", func(c *Config) any { return len(c.Pools) }, 0)

	// the contract
	f(`SLUICE_SAMPLING_CONTRACT__PARAMS={"temperature": 1.5}`, func(c *Config) any { return c.Contract.Params }, map[string]any{"temperature": 1.5})
	f(`SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P={"min": 0.5, "max": 1}`, func(c *Config) any { return c.Contract.Params },
		map[string]any{"top_p": map[string]any{"min": 0.5, "max": 1}})
	f("SLUICE_SAMPLING_CONTRACT__PARAMS__N=1", func(c *Config) any { return *c.Contract },
		SamplingContract{OnConflict: "reject", Params: map[string]any{"n": 1}})

	// what is not ours
	f("SLUICE=x", func(c *Config) any { return c.Hash() }, mustLoad(t, Options{Files: []string{"a.yaml"}}).Hash())
	f("NOT_SLUICE_X=x", func(c *Config) any { return len(c.Pools) }, 2)
}

// A variable replaces the value of its key, where a file would be merged; a
// section comes before its parts, whatever the order of the environment.
func TestEnvReplaces(t *testing.T) {
	inDir(t, "a.yaml", "sampling_contract: {on_conflict: observe, params: {temperature: 1, n: 1}}\n")
	c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: []string{
		"SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P__MAX=0.75",
		`SLUICE_SAMPLING_CONTRACT__PARAMS={"top_p": {"min": 0.5, "max": 1}}`,
	}})
	want := SamplingContract{OnConflict: "observe", Params: map[string]any{"top_p": map[string]any{"min": 0.5, "max": 0.75}}}
	if !reflect.DeepEqual(*c.Contract, want) {
		t.Errorf("unexpected contract; got %+v; want %+v", *c.Contract, want)
	}
	if got := c.Origin("sampling_contract.params.n"); got != (Origin{}) {
		t.Errorf("a value that was replaced has an origin: %v", got)
	}
	if got, want := c.Origin("sampling_contract.params.top_p.max").String(), "SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P__MAX"; got != want {
		t.Errorf("unexpected origin; got %s; want %s", got, want)
	}
}

func TestB80_EnvFaults(t *testing.T) {
	inDir(t, "a.yaml", twoPools+"  - name: qwen\n    models: [m3]\n    workers: [{url: \"http://10.0.0.3:80\"}]\n")
	f := func(want string, env ...string) {
		t.Helper()
		_, err := Load(Options{Files: []string{"a.yaml"}, Env: env})
		if err == nil || err.Error() != want {
			t.Errorf("%s: unexpected faults\n got %v\nwant %s", env, err, want)
		}
	}
	// unknown names
	f(`SLUICE_SERVER_LISTEN: unknown variable: "server_listen" is no key; did you mean SLUICE_SERVER__LISTEN?`, "SLUICE_SERVER_LISTEN=:1")
	f(`SLUICE_SERVER__LISEN: unknown variable: "lisen" is no key of server; did you mean SLUICE_SERVER__LISTEN?`, "SLUICE_SERVER__LISEN=:1")
	f(`SLUICE_UPSTREAM_BASE_URL: unknown variable: "upstream_base_url" is no key`, "SLUICE_UPSTREAM_BASE_URL=x")
	f(`SLUICE_: unknown variable: "" is no key`, "SLUICE_=x")
	f(`SLUICE_SERVER____LISTEN: unknown variable: "" is no key of server; did you mean SLUICE_SERVER__LISTEN?`, "SLUICE_SERVER____LISTEN=x")
	f(`SLUICE_LOG__LEVEL__X: unknown variable: log.level is a single value and has no keys; did you mean SLUICE_LOG__LEVEL?`, "SLUICE_LOG__LEVEL__X=x")
	f(`SLUICE_POOLS__LAMA_3_1__BALANCE: unknown variable: pools has no such name as "LAMA_3_1"; the names are llama-3.1, Qwen, qwen; did you mean SLUICE_POOLS__LLAMA_3_1__BALANCE?`,
		"SLUICE_POOLS__LAMA_3_1__BALANCE=random")
	f(`SLUICE_POOLS__QWEN__BALANCE: unknown variable: pools has two names that are spelled QWEN: "Qwen" and "qwen"`,
		"SLUICE_POOLS__QWEN__BALANCE=random")
	f(`SLUICE_POOLS__LLAMA_3_1__WORKERS__1__URL: unknown variable: pools[0].workers has no item "1", it has 1: set it as a whole, in JSON, to add one; did you mean SLUICE_POOLS__LLAMA_3_1__WORKERS?`,
		"SLUICE_POOLS__LLAMA_3_1__WORKERS__1__URL=http://h:1")
	f(`SLUICE_POOLS__LLAMA_3_1__ALIASES__X: unknown variable: pools[0].aliases has no such name as "X"; the names are small-1: set it as a whole, in JSON, to add one; did you mean SLUICE_POOLS__LLAMA_3_1__ALIASES?`,
		"SLUICE_POOLS__LLAMA_3_1__ALIASES__X=m1")
	f("SLUICE_server__listen: server.listen: is set by SLUICE_SERVER__LISTEN, too", "SLUICE_SERVER__LISTEN=:1", "SLUICE_server__listen=:2")

	// values
	f(`SLUICE_LOG__ACCESS: log.access: must be true or false, got "oops"`, "SLUICE_LOG__ACCESS=oops")
	f(`SLUICE_LOG__ACCESS: log.access: must be true or false, got ""`, "SLUICE_LOG__ACCESS=")
	f(`SLUICE_LOG__ACCESS: log.access: must be true or false, got "1"`, "SLUICE_LOG__ACCESS=1")
	f("SLUICE_SERVER__DRAIN: server.drain: must be a duration, got 30: add a unit, such as 30s", "SLUICE_SERVER__DRAIN=30")
	f(`SLUICE_SERVER__DRAIN: server.drain: must be a duration such as 500ms, 30s, 1h30m or 30d, at most 2562047h, got "oops"`, "SLUICE_SERVER__DRAIN=oops")
	f(`SLUICE_SERVER__MAX_BODY: server.max_body: must be a size such as 32MiB, 64KB or 1048576, got "32mb"`, "SLUICE_SERVER__MAX_BODY=32mb")
	f(`SLUICE_SIM__ENGINES: sim.engines: must be a whole number, got "two"`, "SLUICE_SIM__ENGINES=two")
	f("SLUICE_SERVER__LISTEN: server.listen: must not be empty", "SLUICE_SERVER__LISTEN=")
	f(`SLUICE_SERVER__LISTEN: server.listen: must be UTF-8, got "\xff:1"`, "SLUICE_SERVER__LISTEN=\xff:1")
	f("SLUICE_SERVER__PASSTHROUGH_PATHS: server.passthrough_paths[1]: must not be empty", "SLUICE_SERVER__PASSTHROUGH_PATHS=/a,")
	f("SLUICE_POOLS: pools: must be a list, got a mapping", "SLUICE_POOLS={}")
	f("SLUICE_POOLS: pools: not valid JSON: invalid character 'x' looking for beginning of value (character 1 of the value)", "SLUICE_POOLS=x")
	f("SLUICE_POOLS: pools: the JSON ends too early (character 2 of the value)", "SLUICE_POOLS=[")
	f(`SLUICE_POOLS__LLAMA_3_1__WORKERS: pools[0].workers[0].uri: unknown key; did you mean url?
SLUICE_POOLS__LLAMA_3_1__WORKERS: pools[0].workers[0].url: must be set`, `SLUICE_POOLS__LLAMA_3_1__WORKERS=[{"uri": "x"}]`)
	f("SLUICE_SAMPLING_CONTRACT__PARAMS: sampling_contract.params.n: repeated key, first set on line 1 (character 10 of the value)",
		`SLUICE_SAMPLING_CONTRACT__PARAMS={"n": 1, "n": 1}`)
	f(`SLUICE_SAMPLING_CONTRACT__PARAMS__N: sampling_contract.params.n: "one" is a string; expected an integer in [1, 128], or a band {min, max}`,
		"SLUICE_SAMPLING_CONTRACT__PARAMS__N=one")
	f("SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P: sampling_contract.params.top_p: the JSON ends too early (character 7 of the value)",
		`SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P={"min"`)
}

// Kubernetes sets these in every pod of a namespace with a Service named
// sluice, sluice-admin or sluice-server.
func TestEnvOfServiceLinks(t *testing.T) {
	env := []string{
		"SLUICE_SERVICE_HOST=10.96.0.7", "SLUICE_SERVICE_PORT=30000", "SLUICE_SERVICE_PORT_HTTP=30000",
		"SLUICE_PORT=tcp://10.96.0.7:30000", "SLUICE_PORT_30000_TCP=tcp://10.96.0.7:30000", "SLUICE_PORT_30000_TCP_PROTO=tcp",
		"SLUICE_PORT_30000_TCP_PORT=30000", "SLUICE_PORT_30000_TCP_ADDR=10.96.0.7",
		"SLUICE_ADMIN_SERVICE_HOST=10.96.0.8", "SLUICE_ADMIN_SERVICE_PORT=29000", "SLUICE_SERVER_PORT=tcp://10.96.0.9:1",
	}
	if got, want := mustLoad(t, Options{Env: env}).Hash(), Default().Hash(); got != want {
		t.Error("the variables of service links change the config")
	}
	for _, entry := range []string{"SLUICE_SERVER_PORT=8080", "SLUICE_SERVER__PORT=tcp://10.96.0.9:1", "SLUICE_SERVER__SERVICE_HOST=x"} {
		if _, err := Load(Options{Env: []string{entry}}); err == nil {
			t.Errorf("%s is ignored", entry)
		}
	}
}

func TestFlagFaults(t *testing.T) {
	f := func(o Override, want string) {
		t.Helper()
		_, err := Load(Options{Flags: []Override{o}})
		if err == nil || err.Error() != want {
			t.Errorf("unexpected faults of %v\n got %v\nwant %s", o, err, want)
		}
	}
	f(Override{"--listen", "server.listen", "x"}, `--listen: server.listen: must be host:port, such as 127.0.0.1:30000 or :30000, got "x"`)
	f(Override{"--drain", "server.drain", "30"}, "--drain: server.drain: must be a duration, got 30: add a unit, such as 30s")
	f(Override{"--x", "server.x", "30"}, `--x: sets an unknown key: "x" is no key of server`)
	f(Override{"--x", "", "30"}, `--x: sets an unknown key: "" is no key`)
}

func TestParseContractFlags(t *testing.T) {
	f := func(params, conflict string, want SamplingContract) {
		t.Helper()
		overrides, err := ParseContractFlags(params, conflict)
		if err != nil {
			t.Fatalf("unexpected error for %q and %q: %v", params, conflict, err)
		}
		c := mustLoad(t, Options{Files: []string{"a.yaml"}, Flags: overrides})
		if !reflect.DeepEqual(*c.Contract, want) {
			t.Errorf("unexpected contract of %q and %q; got %+v; want %+v", params, conflict, *c.Contract, want)
		}
	}
	band := map[string]any{"temperature": 1, "top_p": map[string]any{"min": 0.9, "max": 1}}
	inDir(t, "a.yaml", "sampling_contract: {on_conflict: observe, params: {n: 1}}\n")
	f("", "", SamplingContract{OnConflict: "observe", Params: map[string]any{"n": 1}})
	f(`{"temperature":1,"top_p":{"min":0.9,"max":1}}`, "", SamplingContract{OnConflict: "observe", Params: band})
	f(`{"temperature":1,"top_p":{"min":0.9,"max":1}}`, "replace", SamplingContract{OnConflict: "replace", Params: band})
	inDir(t, "a.yaml", "")
	f(` {"temperature":1,"top_p":{"min":0.9,"max":1}} `, "", SamplingContract{OnConflict: "reject", Params: band})
	f(`{"temperature":1.0}`, "allow", SamplingContract{OnConflict: "allow", Params: map[string]any{"temperature": 1.0}})
}

func TestParseContractFlagsFaults(t *testing.T) {
	f := func(params, conflict, want string) {
		t.Helper()
		overrides, err := ParseContractFlags(params, conflict)
		if err == nil {
			_, err = Load(Options{Flags: overrides})
		}
		if err == nil || err.Error() != want {
			t.Errorf("unexpected faults of %q and %q\n got %v\nwant %s", params, conflict, err, want)
		}
	}
	const flag = "--override-sampling-params: "
	f("", "allow", "--sampling-param-conflict: needs --override-sampling-params beside it")
	f(" ", "", flag+"the JSON ends too early (character 2 of the value)")
	f("{", "", flag+"the JSON ends too early (character 2 of the value)")
	f("{}", "", flag+"must name at least one parameter")
	f("[]", "", flag+"must be a JSON object, got a list")
	f("null", "", flag+"must be a JSON object, got nothing")
	f("1e999", "", flag+"the number 1e999 is out of range (character 1 of the value)")
	f(`{"temperature": 1} x`, "", flag+"not valid JSON: invalid character 'x' after top-level value (character 20 of the value)")
	f(`{'temperature': 1}`, "", flag+`not valid JSON: invalid character '\'' looking for beginning of object key string (character 2 of the value)`)
	f(`{"temperature": 1, "temperature": 1}`, "", flag+"temperature: repeated key, first set on line 1 (character 20 of the value)")
	f(`{"top_p": {"min": 0.5, "min": 0.5, "max": 1}}`, "", flag+"top_p.min: repeated key, first set on line 1 (character 24 of the value)")
	f(`{"temperature": 9}`, "", flag+"sampling_contract.params.temperature: 9 is outside the domain; expected a number in [0, 2]")
	f(`{"temperature": "1"}`, "", flag+`sampling_contract.params.temperature: "1" is a string; expected a number in [0, 2], or a band {min, max}`)
	f(`{"temperature": 1}`, "refuse", `--sampling-param-conflict: sampling_contract.on_conflict: "refuse" is unknown; expected reject, allow, observe, replace`)
}

func TestEnvName(t *testing.T) {
	for name, want := range map[string]string{
		"llama": "LLAMA", "llama-3.1": "LLAMA_3_1", "a__b": "A_B", "-a-": "A", "a.-.b": "A_B", "max_body": "MAX_BODY", "": "", "é": "",
	} {
		if got := envName(name); got != want {
			t.Errorf("unexpected variable form of %q; got %q; want %q", name, got, want)
		}
		if strings.Contains(envName(name), "__") {
			t.Errorf("%q has two underscores as a variable", name)
		}
	}
}
