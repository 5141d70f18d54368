package configs

import (
	"os"
	"testing"
)

// example.sluice is the configuration of the other examples, and formatted.
func TestExampleSluice(t *testing.T) {
	want := mustLoad(t, Options{Files: []string{"example.yaml"}})
	got := mustLoad(t, Options{Files: []string{"example.sluice"}})
	if got.Hash() != want.Hash() {
		a, _ := Convert([]string{"example.sluice"}, nil, "yaml")
		t.Errorf("example.sluice is another configuration than example.yaml; it is\n%s", a)
	}
	text, err := os.ReadFile("example.sluice")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Format("example.sluice", text); err != nil || string(out) != string(text) {
		t.Errorf("example.sluice is not formatted: %v\n%s", err, out)
	}
}
