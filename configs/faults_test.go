package configs

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// faultsOf returns what Load says about one file.
func faultsOf(t *testing.T, name, text string) string {
	t.Helper()
	inDir(t, name, text)
	c, err := Load(Options{Files: []string{name}})
	if err == nil {
		return ""
	}
	if c != nil {
		t.Errorf("a faulty configuration is returned: %+v", c)
	}
	return err.Error()
}

// keyList returns the keys of a struct as faults list them.
func keyList(t reflect.Type) string {
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return strings.Join(keys, ", ")
}

type faultCase struct{ text, want string }

func testFaults(t *testing.T, name string, cases []faultCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run("", func(t *testing.T) {
			if got := faultsOf(t, name, tc.text); got != tc.want {
				t.Errorf("unexpected faults of\n%s\n got %s\nwant %s", tc.text, got, tc.want)
			}
		})
	}
}

func TestFaultsYAML(t *testing.T) {
	testFaults(t, "a.yaml", []faultCase{
		// unknown keys
		{"server: {lisen: x}", "a.yaml:1:10: server.lisen: unknown key; did you mean listen?"},
		{"server:\n  max_bdoy: 1", "a.yaml:2:3: server.max_bdoy: unknown key; did you mean max_body?"},
		{"sever: {}", "a.yaml:1:1: sever: unknown key; did you mean server?"},
		{"Log: {}", "a.yaml:1:1: Log: unknown key; did you mean log?"},
		{"zebra: {}", "a.yaml:1:1: zebra: unknown key; expected one of " + keyList(configType)},
		{"'a.b': 1", `a.yaml:1:1: ["a.b"]: unknown key; expected one of ` + keyList(configType)},
		// types
		{"[]", "a.yaml:1:1: must be a mapping, got a list"},
		{"llama", `a.yaml:1:1: must be a mapping, got "llama"`},
		{"server: 5", "a.yaml:1:9: server: must be a mapping, got 5"},
		{"server:", "a.yaml:1:8: server: has no value: give it one or remove the key"},
		{"pools: {}", "a.yaml:1:8: pools: must be a list, got a mapping"},
		{"pools: [5, x]", "a.yaml:1:9: pools[0]: must be a mapping, got 5\na.yaml:1:12: pools[1]: must be a mapping, got \"x\""},
		{"server: {listen: 30000}", "a.yaml:1:18: server.listen: must be a string, got 30000: put it in quotes"},
		{"server: {listen: true}", "a.yaml:1:18: server.listen: must be a string, got true: put it in quotes"},
		{"server: {listen: 2026-01-02}", "a.yaml:1:18: server.listen: must be a string, got 2026-01-02: put it in quotes"},
		{"server: {listen: [x]}", "a.yaml:1:18: server.listen: must be a string, got a list"},
		{"server: {listen: ''}", "a.yaml:1:18: server.listen: must not be empty"},
		{`server: {listen: "a\nb"}`, `a.yaml:1:18: server.listen: must not hold control characters, got "a\nb"`},
		{"server: {passthrough_paths: /a}", `a.yaml:1:29: server.passthrough_paths: must be a list, got "/a"`},
		{"server: {passthrough_paths: [1]}", "a.yaml:1:30: server.passthrough_paths[0]: must be a string, got 1: put it in quotes"},
		{`log: {access: "true"}`, `a.yaml:1:15: log.access: must be true or false, got the string "true": remove the quotes`},
		{"log: {access: yes}", `a.yaml:1:15: log.access: must be true or false, got "yes"`},
		{"log: {access: 1}", "a.yaml:1:15: log.access: must be true or false, got 1"},
		{"log: {access: ~}", "a.yaml:1:15: log.access: has no value: give it one or remove the key"},
		{"sim: {engines: 2.0}", "a.yaml:1:16: sim.engines: must be a whole number, got 2.0"},
		{"sim: {engines: '2'}", `a.yaml:1:16: sim.engines: must be a whole number, got "2"`},
		{"sim: {engines: 18446744073709551615}", "a.yaml:1:16: sim.engines: is too large: 18446744073709551615"},
		{"sim: {engines: 99999999999999999999}", "a.yaml:1:16: sim.engines: must be a whole number, got 99999999999999999999"},
		// durations and sizes
		{"server: {drain: 30}", "a.yaml:1:17: server.drain: must be a duration, got 30: add a unit, such as 30s"},
		{"server: {drain: 0}", "a.yaml:1:17: server.drain: must be a duration, got 0: add a unit, such as 0s"},
		{"server: {drain: 1.5}", "a.yaml:1:17: server.drain: must be a duration, got 1.5: add a unit, such as 1.5s"},
		{"server: {drain: '30'}", "a.yaml:1:17: server.drain: must be a duration, got 30: add a unit, such as 30s"},
		{"server: {drain: -30s}", `a.yaml:1:17: server.drain: must not be negative, got "-30s"`},
		{"server: {drain: 3 minutes}", `a.yaml:1:17: server.drain: must be a duration such as 500ms, 30s, 1h30m or 30d, at most 2562047h, got "3 minutes"`},
		{"server: {drain: 9999999h}", `a.yaml:1:17: server.drain: must be a duration such as 500ms, 30s, 1h30m or 30d, at most 2562047h, got "9999999h"`},
		{"server: {drain: true}", "a.yaml:1:17: server.drain: must be a duration such as 30s, got true"},
		{"server: {max_body: -1}", `a.yaml:1:20: server.max_body: must not be negative, got "-1"`},
		{"server: {max_body: 0}", "a.yaml:1:20: server.max_body: must be at least 1 byte"},
		{"server: {max_body: 32MB/s}", `a.yaml:1:20: server.max_body: must be a size such as 32MiB, 64KB or 1048576, got "32MB/s"`},
		{"server: {max_body: 9999999TiB}", `a.yaml:1:20: server.max_body: is too large: "9999999TiB" is more than 8 EiB`},
		{"server: {max_body: 1.5}", "a.yaml:1:20: server.max_body: must be a size such as 32MiB, got 1.5"},
		{"server: {max_body: 1.5GiB}", `a.yaml:1:20: server.max_body: must be a size such as 32MiB, 64KB or 1048576, got "1.5GiB"`},
		// YAML of its own
		{"a: [", "a.yaml:1:1: did not find expected node content"},
		{"server:\n\tdrain: 1s", "a.yaml:2:1: found character that cannot start any token"},
		{"server: {}\nserver: {}", "a.yaml:2:1: server: repeated key, first set on line 1"},
		{"log:\n  level: info\n  level: warn", "a.yaml:3:3: log.level: repeated key, first set on line 2"},
		{"sampling_contract: {params: {n: 1, n: 1}}", "a.yaml:1:36: sampling_contract.params.n: repeated key, first set on line 1"},
		{"1: x", "a.yaml:1:1: a key must be a string: put it in quotes"},
		{"true: x", "a.yaml:1:1: a key must be a string: put it in quotes"},
		{"? [a]\n: x", "a.yaml:1:3: a key must be a string: put it in quotes"},
		{`"a\x1fb": x`, `a.yaml:1:1: a key must not hold control characters, got "a\x1fb"`},
		{"'': x", "a.yaml:1:1: a key must not be empty"},
		{"log: {}\n---\nsim: {}", "a.yaml:2:1: a second document: a configuration file holds one"},
		{"log: !mine {}", `a.yaml:1:6: log: unknown tag "!mine"`},
		{"server: {passthrough_paths: !!set [a]}", `a.yaml:1:29: server.passthrough_paths: unknown tag "!!set"`},
		{"server: {listen: !!binary aGk=}", `a.yaml:1:18: server.listen: unknown tag "!!binary"`},
		{"sim: {engines: !!int x}", "a.yaml:1:16: sim.engines: cannot decode !!str `x` as a !!int"},
		{"sim: {engines: 010}", "a.yaml:1:16: sim.engines: a number must not begin with 0, got 010: YAML 1.1 reads it as octal, YAML 1.2 does not"},
		{"log: {level: *x}", "a.yaml: unknown anchor 'x' referenced"},
		{"log: {<<: 5}", "a.yaml:1:11: log: a merge key (<<) takes a mapping or a list of mappings, got 5"},
		{"log: {<<: {level: info}, <<: {}}", "a.yaml:1:26: log: repeated merge key (<<), first set on line 1: merge a list"},
	})
}

func TestFaultsJSON(t *testing.T) {
	testFaults(t, "a.json", []faultCase{
		{"", "a.json:1:1: the JSON ends too early"},
		{`{"log": {`, "a.json:1:10: the JSON ends too early"},
		{`[]`, "a.json:1:1: must be a mapping, got a list"},
		{"{\n  \"log\": {},\n}", "a.json:3:1: not valid JSON: invalid character '}' looking for beginning of object key string"},
		{"{} // x", "a.json:1:4: not valid JSON: invalid character '/' after top-level value"},
		{"{}{}", "a.json:1:3: not valid JSON: invalid character '{' after top-level value"},
		{"{'a': 1}", "a.json:1:2: not valid JSON: invalid character '\\'' looking for beginning of object key string"},
		{`{"sim": {"engines": NaN}}`, "a.json:1:21: not valid JSON: invalid character 'N' looking for beginning of value"},
		{`{"sim": {"engines": 02}}`, "a.json:1:22: not valid JSON: invalid character '2' after object key:value pair"},
		{"{\"log\": {\"level\": \"\xff\"}}", "a.json:1:20: not valid JSON: not UTF-8"},
		{`{"log": {}, "log": {}}`, "a.json:1:13: log: repeated key, first set on line 1"},
		{`{"log": {}, "l\u006fg": {}}`, "a.json:1:13: log: repeated key, first set on line 1"},
		{`{"sampling_contract": {"params": {"n": 1, "n": 1}}}`, "a.json:1:43: sampling_contract.params.n: repeated key, first set on line 1"},
		{`{"": 1}`, "a.json:1:2: a key must not be empty"},
		{`{"a\u001fb": 1}`, `a.json:1:2: a key must not hold control characters, got "a\x1fb"`},
		{`{"ö": 1, "sim": {"words": "ö", "pace": 5}}`, "a.json:1:2: [\"ö\"]: unknown key; expected one of " + keyList(configType) + "\n" +
			"a.json:1:27: sim.words: must be a whole number, got \"ö\"\n" +
			"a.json:1:40: sim.pace: must be a duration, got 5: add a unit, such as 5s"},
		{"{\n\t\"log\": {\n\t\t\"access\": null}}", "a.json:3:13: log.access: has no value: give it one or remove the key"},
		{`{"sim": {"engines": 1e2}}`, "a.json:1:21: sim.engines: must be a whole number, got 1e2"},
		{`{"sim": {"engines": 1e400}}`, "a.json:1:21: sim.engines: the number 1e400 is out of range"},
		{`{"server": {"drain": "30s", "max_body": "1 MiB"}}`, `a.json:1:41: server.max_body: must be a size such as 32MiB, 64KB or 1048576, got "1 MiB"`},
	})
}

func TestFaultsTOML(t *testing.T) {
	testFaults(t, "a.toml", []faultCase{
		{"[log", "a.toml:1:4: expected ']' to close table name"},
		{"[server]\nlisen = 'x'", "a.toml:2:1: server.lisen: unknown key; did you mean listen?"},
		{"[log]\nlevel = 'info'\nlevel = 'warn'", "a.toml:3:1: key level is already defined"},
		{"log.access = 'true'", `a.toml:1:14: log.access: must be true or false, got the string "true": remove the quotes`},
		{"[server]\ndrain = 30\nmax_body = 1.5", "a.toml:2:9: server.drain: must be a duration, got 30: add a unit, such as 30s\n" +
			"a.toml:3:12: server.max_body: must be a size such as 32MiB, got 1.5"},
		{
			"[[pools]]\nname = 'a'\nworkers = [{url = 'http://a:1'}]\n[[pools]]\nname = 'b'\n[[pools.workers]]\nuri = 'http://a:1'",
			"a.toml:4:3: pools[1].models: must be set: only one pool may serve what no other lists, and that is pools[0]\n" +
				"a.toml:6:9: pools[1].workers[0].url: must be set\n" +
				"a.toml:7:1: pools[1].workers[0].uri: unknown key; did you mean url?",
		},
		{"[server]\npassthrough_paths = [\n  1]", "a.toml:3:3: server.passthrough_paths[0]: must be a string, got 1: put it in quotes"},
		{"[sim]\nengines = 1979-05-27", "a.toml:2:11: sim.engines: must be a whole number, got 1979-05-27"},
		{"[sim]\nengines = 99999999999999999999", "a.toml:2:11: decimal number is too large to fit in a 64-bit signed integer"},
		{"'a\x01b' = 1", "a.toml:1:3: literal strings cannot have control characters"},
		{"a = 'öö' x", "a.toml:1:10: expected newline but got U+0078 'x'"},
		{`"a\u001fb" = 1`, `a.toml:1:1: a key must not hold control characters, got "a\x1fb"`},
	})
}

// Files that cannot be used at all, side by side with one that can.
func TestFaultsOfWholeFiles(t *testing.T) {
	inDir(t, "a.conf", "x", "b.yaml", "log: {access: 1}\n", "big.yaml", strings.Repeat("# long\n", maxSourceBytes/7+1))
	if err := os.Mkdir("dir.yaml", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Options{
		Files: []string{"none.yaml", "a.conf", "dir.yaml", "big.yaml", "b.yaml"},
		// What the unread files may hold is not called missing.
		Env: []string{"SLUICE_POOLS__LLAMA__BALANCE=random", "SLUICE_SAMPLING_CONTRACT__ON_CONFLICT=allow", "SLUICE_LOG__LEVEL=info"},
	})
	want := "none.yaml: cannot be read: no such file or directory\n" +
		"a.conf: cannot tell the format of the file: name it .yaml, .yml, .json, .toml or .sluice\n" +
		"dir.yaml: cannot be read: is a directory\n" +
		"big.yaml: is larger than 1MiB\n" +
		"b.yaml:1:15: log.access: must be true or false, got 1"
	if err == nil || err.Error() != want {
		t.Errorf("unexpected faults\n got %v\nwant %s", err, want)
	}
}

// All faults at once, those of the types and those of the rules, in the order
// of the sources and lines. What follows from another fault is not said.
func TestFaultsAllAtOnce(t *testing.T) {
	inDir(t,
		"a.yaml", `
server: {listen: nowhere, drain: 30, bogus: 1}
pools:
  - name: a
    models: [m]
    balance: rnd
    workers: 5
  - name: a
    models: [m, 7]
    engine: sglan
`,
		"b.json", `{"sampling_contract": {"on_conflict": "rejct", "params": {"temperature": 3, "topp": 1}}}`,
	)
	_, err := Load(Options{
		Files: []string{"a.yaml", "b.json"},
		Env:   []string{"SLUICE_LOG__LEVEL=loud", "SLUICE_NOPE=1"},
		Flags: []Override{{"--drain", "server.drain", "1 day"}},
	})
	want := []string{
		`a.yaml:2:18: server.listen: must be host:port, such as 127.0.0.1:30000 or :30000, got "nowhere"`,
		`a.yaml:2:34: server.drain: must be a duration, got 30: add a unit, such as 30s`,
		`a.yaml:2:38: server.bogus: unknown key; expected one of ` + keyList(reflect.TypeFor[Server]()),
		`a.yaml:6:14: pools[0].balance: must be one of least_requests, round_robin, random, power_of_two, consistent_hash, prefix_aware, got "rnd"`,
		`a.yaml:7:14: pools[0].workers: must be a list, got 5`,
		`a.yaml:8:5: pools[1].workers: must hold at least one worker`,
		`a.yaml:8:11: pools[1].name: "a" is the name of pools[0], too`,
		`a.yaml:9:14: pools[1].models[0]: "m" is served by pools[0].models[0] already`,
		`a.yaml:9:17: pools[1].models[1]: must be a string, got 7: put it in quotes`,
		`a.yaml:10:13: pools[1].engine: must be one of sglang, vllm, openai, got "sglan"; did you mean sglang?`,
		`b.json:1:39: sampling_contract.on_conflict: "rejct" is unknown (did you mean "reject"?); expected reject, allow, observe, replace`,
		`b.json:1:74: sampling_contract.params.temperature: 3 is outside the domain; expected a number in [0, 2]`,
		`b.json:1:85: sampling_contract.params.topp: 1 is for an unknown parameter (did you mean "top_p"?); expected one of temperature, top_p, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, n`,
		`SLUICE_LOG__LEVEL: log.level: must be one of debug, info, warn, error, got "loud"`,
		`SLUICE_NOPE: unknown variable: "nope" is no key`,
		`--drain: server.drain: must be a duration such as 500ms, 30s, 1h30m or 30d, at most 2562047h, got "1 day"`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("unexpected faults\n got:\n%v\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

// Documents that are small and mean a lot.
func TestFaultsBounded(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := byte('1'); i <= '9'; i++ {
		last := "*a" + string(i-1)
		laughs += "a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat(last+", ", 9) + last + "]\n"
	}
	for _, tc := range []struct{ name, file, text, want string }{
		{"laughs", "a.yaml", laughs, "too many values, aliases counted as often as they are used"},
		{"cycle", "a.yaml", "log: &a\n  level: *a\n", "a.yaml:1:6: log.level" + strings.Repeat(".level", maxDepth/2-1) + ": nested deeper than 64 levels"},
		{"merge cycle", "a.yaml", "log: &a\n  <<: *a\n", "nested deeper than 64 levels"},
		{"deep YAML", "a.yaml", "server: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 64 levels"},
		{"deep JSON", "a.json", `{"server": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", "nested deeper than 64 levels"},
		{"deeper JSON", "a.json", strings.Repeat("[", 1<<19), "exceeded max depth"},
		{"deep TOML", "a.toml", "server = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 64 levels"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := faultsOf(t, tc.file, tc.text)
			if !strings.Contains(got, tc.want) {
				t.Errorf("unexpected faults; got %.300s; want %s", got, tc.want)
			}
		})
	}
}
