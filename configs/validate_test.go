package configs

import (
	"strings"
	"testing"
	"time"
)

// validateFaults returns a func that changes a valid config with two pools and
// expects faults of it, or none.
func validateFaults(t *testing.T) func(change func(c *Config), want ...string) {
	return func(change func(c *Config), want ...string) {
		t.Helper()
		c := Default()
		p := DefaultPool()
		p.Name, p.Models, p.Workers = "a", []string{"m"}, []Worker{{URL: "http://h:1"}}
		c.Pools = []Pool{p, p}
		c.Pools[1].Name, c.Pools[1].Models = "b", []string{"m2"}
		if err := c.Validate(); err != nil {
			t.Fatalf("the config is not valid before the change: %v", err)
		}
		change(c)
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != strings.Join(want, "\n") {
			t.Errorf("unexpected faults\n got %s\nwant %s", got, strings.Join(want, "\n"))
		}
	}
}

func TestValidateListeners(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Server.Listen = "localhost" },
		`server.listen: must be host:port, such as 127.0.0.1:30000 or :30000, got "localhost"`)
	f(func(c *Config) { c.Server.Listen = "" }, `server.listen: must be host:port, such as 127.0.0.1:30000 or :30000, got ""`)
	f(func(c *Config) { c.Server.Listen = "h:http" }, `server.listen: must have a port from 0 to 65535, got "h:http"`)
	f(func(c *Config) { c.Server.AdminListen = "h:65536" }, `server.admin_listen: must have a port from 0 to 65535, got "h:65536"`)
	f(func(c *Config) { c.Server.Listen, c.Server.AdminListen = "[::1]:0", "[::1]:0" })
	for _, pair := range [][2]string{{"h:1", "h:1"}, {":1", "h:1"}, {"127.0.0.1:1", "0.0.0.0:1"}, {"[::]:1", "[::1]:1"}} {
		f(func(c *Config) { c.Server.Listen, c.Server.AdminListen = pair[0], pair[1] },
			"server.admin_listen: must not be the address of server.listen, "+pair[0])
	}
	f(func(c *Config) { c.Server.MaxBody = 0 }, "server.max_body: must be at least 1 byte")
	f(func(c *Config) { c.Server.DrainDelay = time.Minute },
		"server.drain_delay: is a part of server.drain and must not be longer: 1m0s, of 30s")
}

func TestValidatePassthroughPaths(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) {
		c.Server.PassthroughPaths = []string{"/", "/a", "/a/", "/a.b/c-d_e~f:g@h", "/v1/chat", "/v1/modelsx"}
	})
	f(func(c *Config) {
		c.Server.PassthroughPaths = []string{"a", "/b", "/b", "/c?x", "/%41", "/é", "//a", "/a//", "/a/..", "/./a"}
	},
		`server.passthrough_paths[0]: must begin with /, got "a"`,
		`server.passthrough_paths[2]: repeats server.passthrough_paths[1]`,
		`server.passthrough_paths[3]: must hold only letters, digits and -._~!$&'()*+,;=:@/ (no query, no % escapes), got "/c?x"`,
		`server.passthrough_paths[4]: must hold only letters, digits and -._~!$&'()*+,;=:@/ (no query, no % escapes), got "/%41"`,
		`server.passthrough_paths[5]: must hold only letters, digits and -._~!$&'()*+,;=:@/ (no query, no % escapes), got "/é"`,
		`server.passthrough_paths[6]: must not have empty, . or .. segments, got "//a"`,
		`server.passthrough_paths[7]: must not have empty, . or .. segments, got "/a//"`,
		`server.passthrough_paths[8]: must not have empty, . or .. segments, got "/a/.."`,
		`server.passthrough_paths[9]: must not have empty, . or .. segments, got "/./a"`)
	f(func(c *Config) {
		c.Server.PassthroughPaths = []string{"/generate", "/v1/chat/completions/", "/V1/Messages", "/v1/audio/speech", "/v1/models/x", "/v1/images", "/readyz"}
	},
		`server.passthrough_paths[0]: must not be the path of a surface (/generate), got "/generate"`,
		`server.passthrough_paths[1]: must not be the path of a surface (/v1/chat/completions), got "/v1/chat/completions/"`,
		`server.passthrough_paths[2]: must not be the path of a surface (/v1/messages), got "/V1/Messages"`,
		`server.passthrough_paths[3]: must not be the path of a surface (/v1/audio/), got "/v1/audio/speech"`,
		`server.passthrough_paths[4]: must not be the path of a surface (/v1/models/), got "/v1/models/x"`,
		`server.passthrough_paths[5]: must not be the path of a surface (/v1/images/), got "/v1/images"`,
		`server.passthrough_paths[6]: must not be the path of a surface (/readyz), got "/readyz"`)
}

func TestValidatePools(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Pools[0].Name = "" }, "pools[0].name: must be set")
	f(func(c *Config) { c.Pools[1].Name = "a" }, `pools[1].name: "a" is the name of pools[0], too`)
	f(func(c *Config) { c.Pools[0].Name, c.Pools[1].Name = "llama-3.1_x", "0" })
	f(func(c *Config) { c.Pools[0].Name = "a b" },
		`pools[0].name: must be letters, digits, dots, dashes and underscores and begin with a letter or digit, got "a b"`)
	f(func(c *Config) { c.Pools[0].Name = ".a" },
		`pools[0].name: must be letters, digits, dots, dashes and underscores and begin with a letter or digit, got ".a"`)
	f(func(c *Config) { c.Pools[0].Name = strings.Repeat("x", 65) },
		`pools[0].name: must have at most 64 characters, got "`+strings.Repeat("x", 64)+`"…`)
	f(func(c *Config) { c.Pools[0].Engine = "VLLM" }, `pools[0].engine: must be one of sglang, vllm, openai, got "VLLM"; did you mean vllm?`)
	f(func(c *Config) { c.Pools[0].Protocol = "http2" }, `pools[0].protocol: must be one of auto, http1, h2c, got "http2"; did you mean http1?`)
	f(func(c *Config) { c.Pools[0].Balance = "prefix_aware" })
	f(func(c *Config) { c.Pools[0].Balance = "fastest" },
		`pools[0].balance: must be one of least_requests, round_robin, random, power_of_two, consistent_hash, prefix_aware, got "fastest"`)
	f(func(c *Config) { c.Pools[0].LoadFactor = 0.5 }, "pools[0].load_factor: must be from 1 to 100, got 0.5")
	f(func(c *Config) { c.Pools[0].Prefix.MaxBytes = 1 }, "pools[0].prefix.max_bytes: must be from 64KiB to 16GiB, got 1")
	f(func(c *Config) { c.Pools[0].Prefix.Block = 63 }, "pools[0].prefix.block: must be from 64 to 64KiB, got 63")
	f(func(c *Config) { c.Pools[0].Workers = []Worker{{URL: "http://h:1", Weight: 1001}} }, "pools[0].workers[0].weight: must be from 0 to 1000, got 1001")
}

func TestValidateFailures(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Pools[0].Health.Path = "health" }, `pools[0].health.path: must be a path such as /health, got "health"`)
	f(func(c *Config) { c.Pools[0].Health.Path = "/a b" }, `pools[0].health.path: must be a path such as /health, got "/a b"`)
	f(func(c *Config) { c.Pools[0].Health.Interval = 0 })
	f(func(c *Config) { c.Pools[0].Health.Interval = 1 }, "pools[0].health.interval: must be at least 1ms, got 1ns")
	f(func(c *Config) { c.Pools[0].Health.Timeout = 0 }, "pools[0].health.timeout: must be at least 1ms, got 0s")
	f(func(c *Config) { c.Pools[0].Health.UnhealthyAfter = 0 }, "pools[0].health.unhealthy_after: must be from 1 to 1000, got 0")
	f(func(c *Config) { c.Pools[0].Health.HealthyAfter = 1001 }, "pools[0].health.healthy_after: must be from 1 to 1000, got 1001")
	f(func(c *Config) { c.Pools[0].Breaker.Failures = 0 })
	f(func(c *Config) { c.Pools[0].Breaker.Failures = -1 }, "pools[0].breaker.failures: must be from 0 to 1000000, got -1")
	f(func(c *Config) { c.Pools[0].Breaker.Cooldown = 0 }, "pools[0].breaker.cooldown: must be at least 1ms, got 0s")
	f(func(c *Config) { c.Pools[0].Retry = Retry{} })
	f(func(c *Config) { c.Pools[0].Limits.MaxInflightPerWorker = -1 },
		"pools[0].limits.max_inflight_per_worker: must be from 0 to 1000000, got -1")
	f(func(c *Config) { c.Pools[0].Limits.MaxInflight = -1 }, "pools[0].limits.max_inflight: must be from 0 to 1000000, got -1")
	f(func(c *Config) { c.Pools[0].Limits.MaxQueue = -1 }, "pools[0].limits.max_queue: must be from 0 to 1000000, got -1")
	f(func(c *Config) { c.Pools[0].Limits.QueueTimeout = 0 }, "pools[0].limits.queue_timeout: must be at least 1ms, got 0s")
	f(func(c *Config) { c.Pools[0].Retry.Attempts = 11 }, "pools[0].retry.attempts: must be from 0 to 10, got 11")
	f(func(c *Config) { c.Pools[0].Retry.Budget = 1.5 }, "pools[0].retry.budget: must be from 0 to 1, got 1.5")
}

func TestValidateModels(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Pools[0].Models = []string{"m", "x", "m"} }, `pools[0].models[2]: "m" is served by pools[0].models[0] already`)
	f(func(c *Config) { c.Pools[1].Models = []string{"m"} }, `pools[1].models[0]: "m" is served by pools[0].models[0] already`)
	f(func(c *Config) { c.Pools[0].Models = nil })
	f(func(c *Config) { c.Pools[0].Models, c.Pools[1].Models = nil, nil },
		"pools[1].models: must be set: only one pool may serve what no other lists, and that is pools[0]")
	f(func(c *Config) { c.Pools[0].Aliases = map[string]string{"x": "m", "y.z/a": "m"} })
	f(func(c *Config) { c.Pools[0].Aliases = map[string]string{"x": "m2", "y.z": "x"} },
		`pools[0].aliases.x: must name one of the models of the pool, got "m2"; did you mean m?`,
		`pools[0].aliases["y.z"]: must name one of the models of the pool, got "x"; did you mean m?`)
	f(func(c *Config) { c.Pools[0].Aliases = map[string]string{"m": "m", "m2": "m"} },
		`pools[0].aliases.m: "m" is served by pools[0].models[0] already`,
		`pools[1].models[0]: "m2" is served by pools[0].aliases.m2 already`)
}

func TestValidateWorkers(t *testing.T) {
	f := validateFaults(t)
	worker := func(url, want string) {
		t.Helper()
		f(func(c *Config) { c.Pools[0].Workers = []Worker{{URL: url}} }, want)
	}
	f(func(c *Config) { c.Pools[0].Workers = nil }, "pools[0].workers: must hold at least one worker")
	f(func(c *Config) {
		c.Pools[0].Workers = []Worker{{URL: "http://[::1]:8000"}, {URL: "http://[::1]:8001"}, {URL: "http://a_b.c:1"}}
	})
	f(func(c *Config) {
		c.Pools[0].Workers = []Worker{{URL: "http://h:1"}, {URL: "http://h:2"}, {URL: "http://H:1"}}
	},
		`pools[0].workers[2].url: "http://H:1" is the url of pools[0].workers[0], too`)
	f(func(c *Config) { c.Pools[1].Workers = []Worker{{URL: "http://h:1"}} }) // two pools may share a worker
	worker("", "pools[0].workers[0].url: must be set")
	worker("10.0.0.1:80", `pools[0].workers[0].url: must be http://host:port or https://host:port, got "10.0.0.1:80": put http:// before it`)
	f(func(c *Config) { c.Pools[0].Workers = []Worker{{URL: "https://h:1"}, {URL: "HTTPS://g:1"}} })
	worker("ftp://h:1", `pools[0].workers[0].url: must be http://host:port or https://host:port, got "ftp://h:1"`)
	worker("http://:1", `pools[0].workers[0].url: must be http://host:port or https://host:port, got "http://:1"`)
	worker("http://h:x", `pools[0].workers[0].url: must be http://host:port or https://host:port, got "http://h:x"`)
	worker("http://h h:1", `pools[0].workers[0].url: must be http://host:port or https://host:port, got "http://h h:1"`)
	worker("http://h", `pools[0].workers[0].url: must be http://host:port or https://host:port with a port from 1 to 65535, got "http://h"`)
	worker("http://h:0", `pools[0].workers[0].url: must be http://host:port or https://host:port with a port from 1 to 65535, got "http://h:0"`)
	worker("http://h:65536", `pools[0].workers[0].url: must be http://host:port or https://host:port with a port from 1 to 65535, got "http://h:65536"`)
	for _, url := range []string{"http://user:secret@h:1", "https://user:secret@h:1", "user:secret@h:1", "http://user:secret@h:x"} {
		worker(url, "pools[0].workers[0].url: must be http://host:port or https://host:port without a user or password")
	}
	for _, rest := range []string{"/", "/v1", "?x", "#x"} {
		worker("http://h:1"+rest, `pools[0].workers[0].url: must be http://host:port or https://host:port and nothing after it, got "http://h:1`+rest+`"`)
	}
}

func TestValidateLogAndSim(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Log.Level = "INFO" }, `log.level: must be one of debug, info, warn, error, got "INFO"; did you mean info?`)
	f(func(c *Config) { c.Sim.Engines = 0 }, "sim.engines: must be from 1 to 64, got 0")
	f(func(c *Config) { c.Sim.Engines = 65 }, "sim.engines: must be from 1 to 64, got 65")
	f(func(c *Config) { c.Sim.Words = -1 }, "sim.words: must be from 1 to 1048576, got -1")
}

// The domains belong to package policy; what is tested here is that each fault
// gets the place of the value that is at fault.
func TestContractFaultsHavePlaces(t *testing.T) {
	const domain = "expected a number in [0, 2]"
	got := faultsOf(t, "a.yaml", `
sampling_contract:
  on_conflict: allow
  params:
    temperature: 3
    top_p: {min: 0.9, max: 1}
    top_k: {min: 0, max: 5}
    min_p: "0.5"
    n: 1.5
    repetition_penalty: {}
    Temperature: 1
    a.b: 1
`)
	for _, want := range []string{
		"a.yaml:5:18: sampling_contract.params.temperature: 3 is outside the domain; " + domain,
		"a.yaml:6:12: sampling_contract.params.top_p: {max: 1, min: 0.9} is a band, which",
		"a.yaml:7:18: sampling_contract.params.top_k.min: 0 is outside the domain",
		`a.yaml:8:12: sampling_contract.params.min_p: "0.5" is a string`,
		"a.yaml:9:8: sampling_contract.params.n: 1.5 is not an integer",
		"a.yaml:10:25: sampling_contract.params.repetition_penalty: {} is empty",
		"a.yaml:11:18: sampling_contract.params.Temperature: 1 is for an unknown parameter",
		"a.yaml:5:5: sampling_contract.params.a.b: 1 is for an unknown parameter",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing fault %q; got\n%s", want, got)
		}
	}
	for text, want := range map[string]string{
		"sampling_contract: {}":                     "a.yaml:1:20: sampling_contract.params: ",
		"sampling_contract: {params: {}}":           "a.yaml:1:29: sampling_contract.params: {} ",
		"sampling_contract: {on_conflict: observe}": "a.yaml:1:20: sampling_contract.params: ",
		"sampling_contract: {params: {n: }}":        "a.yaml:1:33: sampling_contract.params.n: null ",
	} {
		if got := faultsOf(t, "a.yaml", text); !strings.HasPrefix(got, want) {
			t.Errorf("unexpected faults of %s; got %s; want %s…", text, got, want)
		}
	}
}
