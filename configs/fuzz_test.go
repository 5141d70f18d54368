package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad feeds one document to the loader in each of its formats: no panic,
// no hang, and either a valid config or faults that name their file. Run it
// with -fuzzminimizetime=10x: what the libraries cover differs from run to run,
// and minimizing by coverage never ends.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"example.yaml", "example.toml", "example.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, seed := range []string{
		"", "{}", "[]", "a: &a [*a]", "<<: {}", "a: 1\na: 2", "{\"a\": {\"a\": [1e999]}}", "? [a]\n: b", "--- 1\n--- 2", "log: !x {}",
		"[a]\n[[a.b]]\nc.d = {e = [1, 2.5, nan]}\n", "a = 1979-05-27T07:32:00Z", "\xff\xfe", "\xef\xbb\xbflog: {}", "0: [:!00 \xef",
		"server: {listen: \"\\x1f\"}", "sampling_contract: {params: {n: 0x10, top_p: {min: .inf, max: ~}}}", onePool, twoPools,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, ext := range []string{".yaml", ".json", ".toml"} {
			name := filepath.Join(dir, "fuzz"+ext)
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := Load(Options{
				Files: []string{name, name},
				Env:   []string{"SLUICE_POOLS__LLAMA__BALANCE=" + string(text), "SLUICE_SAMPLING_CONTRACT__PARAMS__N=1"},
			})
			var faults Faults
			switch {
			case err == nil:
				if err := c.Validate(); err != nil {
					t.Errorf("Load returned a config that is not valid: %v", err)
				}
				c.Hash()
			case !errors.As(err, &faults) || len(faults) == 0:
				t.Errorf("unexpected error %T: %v", err, err)
			default:
				checkFaults(t, faults, name)
			}
		}
	})
}

func checkFaults(t *testing.T, faults Faults, name string) {
	t.Helper()
	for _, f := range faults {
		if f.Origin.Name != name && !strings.HasPrefix(f.Origin.Name, "SLUICE_") || f.Msg == "" {
			t.Errorf("unexpected fault without a place: %+v", f)
		}
		if strings.Contains(f.Msg, "BUG") || strings.Contains(f.Msg, "internal error") {
			t.Errorf("unexpected fault: %v", f)
		}
	}
}
