package policy

import (
	"fmt"
	"hash/crc64"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"sluice/probe"
)

// tiers are n decisions as a fleet has them: one for each model, with a tier in a
// header field.
func tiers(n int) []DecisionSpec {
	specs := make([]DecisionSpec, n)
	for i := range specs {
		rule := and(model(fmt.Sprintf("model-%d", i)), RuleSpec{Type: "header", Name: "x-tier", Exact: "free"}, RuleSpec{Type: "surface", Name: "chat"})
		specs[i] = DecisionSpec{Name: fmt.Sprintf("d%04d", i), Priority: n - i, Rules: &rule}
	}
	return specs
}

// tier is a header whose only field is x-tier.
type tier [][]byte

func (h tier) PeekAll(name string) [][]byte {
	if name == "x-tier" {
		return h
	}
	return nil
}

func BenchmarkMatch(b *testing.B) {
	header := tier{[]byte("free")}
	for _, n := range []int{10, 500, 1000} {
		m := matcher(b, tiers(n))
		for _, hit := range []struct {
			name  string
			model string
			want  int
		}{{"first", "model-0", 0}, {"last", fmt.Sprintf("model-%d", n-1), n - 1}, {"none", "model-x", -1}} {
			b.Run(fmt.Sprintf("%d/%s", n, hit.name), func(b *testing.B) {
				f := &Facts{Surface: probe.SurfaceChat, Model: []byte(hit.model), Header: &header}
				b.ReportAllocs()
				for b.Loop() {
					if m.Match(f) != hit.want {
						b.Fatal("unexpected match")
					}
				}
			})
		}
		// The baseline: no decision asks for a model or a tenant.
		specs := tiers(n)
		for i := range specs {
			specs[i].Rules.Conditions[0] = RuleSpec{Type: "header", Name: "x-tier", Exact: fmt.Sprintf("tier-%d", i)}
		}
		m = matcher(b, specs)
		b.Run(fmt.Sprintf("%d/linear", n), func(b *testing.B) {
			f := &Facts{Surface: probe.SurfaceChat, Model: []byte("model-0"), Header: &header}
			b.ReportAllocs()
			for b.Loop() {
				if m.Match(f) != -1 {
					b.Fatal("unexpected match")
				}
			}
		})
	}
}

func BenchmarkEstimateTokens(b *testing.B) {
	for _, name := range []string{"english", "go", "chinese", "mixed"} {
		text, err := os.ReadFile(filepath.Join("testdata", "tokens", name+".txt"))
		if err != nil {
			b.Fatal(err)
		}
		for len(text) < 64<<10 {
			text = append(text, text...)
		}
		src := []byte(`{"messages":[{"role":"user","content":` + quoted(b, string(text)) + `}]}`)
		var body probe.Body
		if fault := probe.Scan(src, probe.SurfaceChat, 0, &body); fault != probe.FaultNone {
			b.Fatalf("cannot scan: %v", fault)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				EstimateTokens(src, &body)
			}
		})
	}
}

func BenchmarkRequestHash(b *testing.B) {
	table := crc64.MakeTable(crc64.ECMA)
	hashes := []struct {
		name string
		hash func([]byte) uint64
	}{
		{"fold", func(p []byte) uint64 { return RequestHash(nil, p) }},
		{"crc64", func(p []byte) uint64 { return crc64.Checksum(p, table) }},
		{"fnv", func(p []byte) uint64 {
			h := fnv.New64a()
			h.Write(p)
			return h.Sum64()
		}},
	}
	for _, h := range hashes {
		for _, n := range []int{16, 1 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", h.name, n), func(b *testing.B) {
				p := make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					h.hash(p)
				}
			})
		}
	}
}
