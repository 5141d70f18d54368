package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// withHeaders is a configuration whose pool has these headers, a YAML flow
// mapping that begins in column 15 of line 6.
func withHeaders(headers string) string { return onePool + "    headers: " + headers + "\n" }

func TestHeaders(t *testing.T) {
	inDir(t, "a.yaml", withHeaders(`{set: {Authorization: {env: KEY}, x-file: {file: secrets/k}, x-text: "a b	ü"}, remove: [X-Internal]}`),
		"secrets/k", "from a file\r\n")
	c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: []string{"KEY2=no", "KEY=Bearer k=1", "KEY=again"}})
	got := c.Pools[0].Headers
	for name, want := range map[string]string{"Authorization": "Bearer k=1", "x-file": "from a file", "x-text": "a b\tü"} {
		if string(got.Set[name]) != want {
			t.Errorf("unexpected value of %s; got %q; want %q", name, string(got.Set[name]), want)
		}
	}
	if len(got.Set) != 3 || fmt.Sprint(got.Remove) != "[X-Internal]" {
		t.Errorf("unexpected headers %v", got)
	}
	if o := c.Origin("pools[0].headers.set.Authorization").String(); !strings.HasPrefix(o, "a.yaml:6:") {
		t.Errorf("unexpected origin %s", o)
	}
}

// A secret may be set like any key, and as a source of one.
func TestHeadersFromOverrides(t *testing.T) {
	inDir(t, "a.yaml", withHeaders(`{set: {authorization: {env: KEY}}}`))
	f := func(want string, env ...string) {
		t.Helper()
		c := mustLoad(t, Options{Files: []string{"a.yaml"}, Env: append(env, "KEY=a", "OTHER=b")})
		if got := string(c.Pools[0].Headers.Set["authorization"]); got != want {
			t.Errorf("%q: unexpected value; got %q; want %q", env, got, want)
		}
	}
	f("a")
	f("c", "SLUICE_POOLS__LLAMA__HEADERS__SET__AUTHORIZATION=c")
	f("b", `SLUICE_POOLS__LLAMA__HEADERS__SET__AUTHORIZATION={"env": "OTHER"}`)
	f("b", `SLUICE_POOLS__LLAMA__HEADERS__SET={"authorization": {"env": "OTHER"}}`)
	f("", `SLUICE_POOLS__LLAMA__HEADERS__SET={"x-api-key": {"env": "OTHER"}}`)
}

func TestHeadersFaults(t *testing.T) {
	f := func(headers, want string) {
		t.Helper()
		inDir(t, "a.yaml", withHeaders(headers), "empty", "\n", "lines", "a\nb\n", "long", strings.Repeat("x", maxFieldValue+3))
		_, err := Load(Options{Files: []string{"a.yaml"}, Env: []string{"EMPTY=", "SECRET=s3cr3t\r\nx: y", "SPACE= s3cr3t"}})
		if err == nil {
			t.Errorf("%s: no fault; want %s", headers, want)
			return
		}
		// The columns are the parser's business.
		place, msg, _ := strings.Cut(err.Error(), ": ")
		if !strings.HasPrefix(place, "a.yaml:6:") || msg != want {
			t.Errorf("unexpected fault\n got %s\nwant %s", err, want)
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("a fault shows a secret: %v", err)
		}
	}
	const a = "pools[0].headers.set.a: "
	f(`{set: {a: {env: MISSING}}}`, a+`environment variable "MISSING" is not set`)
	f(`{set: {a: {env: EMPTY}}}`, a+"must not be empty")
	f(`{set: {a: {env: SECRET}}}`, a+"must not hold line breaks or other control characters")
	f(`{set: {a: {env: SPACE}}}`, a+"must not begin or end with white space")
	f(`{set: {a: {file: missing}}}`, a+`file "missing" cannot be read: no such file or directory`)
	f(`{set: {a: {file: .}}}`, a+`file "." is not a regular file`)
	f(`{set: {a: {file: empty}}}`, a+"must not be empty")
	f(`{set: {a: {file: lines}}}`, a+"must not hold line breaks or other control characters")
	f(`{set: {a: {file: long}}}`, a+`file "long" is larger than 8194 bytes`)
	f(`{set: {a: "s3cr3t\0"}}`, a+"must not hold line breaks or other control characters")
	f(`{set: {a: "s3cr3t\r\nx: y"}}`, a+"must not hold line breaks or other control characters")
	f(`{set: {a: ""}}`, a+"must not be empty")
	f(`{set: {a: 1}}`, a+secretForm)
	f(`{set: {a: [s3cr3t]}}`, a+secretForm)
	f(`{set: {a: {}}}`, a+secretForm)
	f(`{set: {a: {env: KEY, file: f}}}`, a+secretForm)
	f(`{set: {a: {environ: KEY}}}`, a[:len(a)-2]+".environ: unknown key; expected one of env, file")
	f(`{set: s3cr3t}`, "pools[0].headers.set: must be a mapping")

	f(`{set: {"a b": x}}`, `pools[0].headers.set["a b"]: must be the name of a header field, got "a b"`)
	f(`{set: {X-A: x, x-a: y}}`, `pools[0].headers.set.x-a: "x-a" is named by pools[0].headers.set.X-A already`)
	f(`{set: {x-a: x}, remove: [X-A]}`, `pools[0].headers.remove[0]: "X-A" is named by pools[0].headers.set.x-a already`)
	f(`{remove: ["x:"]}`, `pools[0].headers.remove[0]: must be the name of a header field, got "x:"`)
	for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "connection", "Keep-Alive", "TE", "upgrade", "Trailer", "Proxy-Authorization", "expect"} {
		f(`{set: {`+name+`: x}}`, "pools[0].headers.set."+name+`: "`+name+`" is the router's own to write`)
		f(`{remove: [`+name+`]}`, `pools[0].headers.remove[0]: "`+name+`" is the router's own to write`)
	}
}

func TestHeadersBounded(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) {
		for i := range maxFields + 1 {
			c.Pools[0].Headers.Remove = append(c.Pools[0].Headers.Remove, fmt.Sprintf("x-%d", i))
		}
	}, "pools[0].headers: must name at most 64 fields, got 65")
	f(func(c *Config) { c.Pools[0].Headers.Set = map[string]Secret{"a": "x\ny"} },
		"pools[0].headers.set.a: must not hold line breaks or other control characters")
	f(func(c *Config) {
		c.Pools[0].Headers.Set = map[string]Secret{"a": Secret(strings.Repeat("x", maxFieldValue+1))}
	},
		"pools[0].headers.set.a: is too long for a header field")
}

// Nothing that prints, logs, writes or sums up a configuration shows a secret.
func TestSecretsAreNotShown(t *testing.T) {
	inDir(t, "a.yaml", withHeaders(`{set: {authorization: "s3cr3t"}}`), "b.yaml", withHeaders(`{set: {authorization: "other"}}`))
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, *c, c.Pools, c.Pools[0].Headers, &c.Pools[0].Headers, c.Pools[0].Headers.Set["authorization"]} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
	}
	slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "config", c, "secret", c.Pools[0].Headers.Set["authorization"], "pool", c.Pools[0])
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "config", c, "secret", c.Pools[0].Headers.Set["authorization"])
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(text)
	values, err := os.ReadFile("a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var faults Faults
	for _, f := range []format{formatYAML, formatJSON, formatTOML} {
		p := parser{format: formatYAML, origins: origins{}, faults: &faults}
		m, err := p.Unmarshal(values)
		if err != nil {
			t.Fatal(err)
		}
		p.format = f
		out, err := p.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(out)
	}
	if n := strings.Count(shown.String(), redacted); n < 20 {
		t.Errorf("only %d places stand for a secret", n)
	}
	for _, leak := range []string{"s3cr3t", fmt.Sprintf("%x", "s3cr3t"), fmt.Sprintf("%X", "s3cr3t"), "115 51"} {
		if strings.Contains(shown.String(), leak) {
			t.Errorf("a secret is shown as %q", leak)
		}
	}
	if c.Hash() != mustLoad(t, Options{Files: []string{"b.yaml"}}).Hash() {
		t.Error("the hash tells of a secret")
	}
}
