package configs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func printed(t *testing.T, c *Config, format string, origins bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Print(&b, format, origins); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is printed is a configuration, and the same one.
func TestPrintIsReadBack(t *testing.T) {
	c := mustLoad(t, Options{Files: []string{"example.yaml"}})
	empty := mustLoad(t, Options{})
	for _, format := range []string{"yaml", "json"} {
		for _, c := range []*Config{c, empty} {
			text := printed(t, c, format, false)
			inDir(t, "p."+format, text, "o.yaml", printed(t, c, "yaml", true))
			for _, name := range []string{"p." + format, "o.yaml"} {
				if again := mustLoad(t, Options{Files: []string{name}}); again.Hash() != c.Hash() {
					t.Errorf("%s: another configuration is read back:\n%s", name, text)
				}
			}
		}
	}
}

func TestPrintOrigins(t *testing.T) {
	inDir(t, "a.yaml", withHeaders(`{set: {authorization: {env: KEY}}}`)+"    extra_body: {a: 1, b: {c: 2}}\nsampling_contract:\n  params: {top_p: {min: 0.5, max: 1}}\n")
	c := mustLoad(t, Options{
		Files: []string{"a.yaml"}, Env: []string{"KEY=s3cr3t", "SLUICE_LOG__LEVEL=warn", "SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P__MAX=0.9"},
		Flags: []Override{{Flag: "--drain", Path: "server.drain", Value: "90m"}},
	})
	text := printed(t, c, "yaml", true)
	for _, want := range []string{
		"  level: warn # SLUICE_LOG__LEVEL\n", "  drain: 1h30m # --drain\n", "  admin_listen: 127.0.0.1:29000 # default\n",
		"    balance: least_requests # default\n", "authorization: '***'", "on_conflict: reject # default\n",
		"top_p: {max: 0.9, min: 0.5} # SLUICE_SAMPLING_CONTRACT__PARAMS__TOP_P__MAX, a.yaml:9:25\n",
		"b: {c: 2} # a.yaml:7:17\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	var both struct {
		Config  map[string]any
		Origins map[string]string
	}
	if err := json.Unmarshal([]byte(printed(t, c, "json", true)), &both); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"server.drain": "--drain", "log.level": "SLUICE_LOG__LEVEL", "pools[0].balance": "default",
		"pools[0].headers.set.authorization": "a.yaml:6:36", "pools[0].extra_body.b.c": "a.yaml:7:17",
	} {
		if got := both.Origins[path]; got != want {
			t.Errorf("unexpected origin of %s; got %q; want %q", path, got, want)
		}
	}
	if both.Config["server"] == nil {
		t.Errorf("unexpected configuration %v", both.Config)
	}
	for _, format := range []string{"yaml", "json"} {
		if strings.Contains(printed(t, c, format, true), "s3cr3t") {
			t.Error("a secret is shown")
		}
	}
	if err := c.Print(new(bytes.Buffer), "toml", false); err == nil {
		t.Error("an unknown format is taken")
	}
}
