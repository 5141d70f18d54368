package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the top of the repository, from this package.
const root = ".."

// ban is an import that must not be.
type ban struct {
	// from and to are import paths; "sluice" stands before those that begin
	// with a slash. A path that ends in /... covers the ones below as well.
	from string
	to   []string
	// but are packages of from that may.
	but []string
	// direct bans the import itself; otherwise no chain of imports may lead
	// there either.
	direct bool
	// tests bans it in test files as well.
	tests  bool
	reason string
}

// bans is the import graph of the house: cmd → {configs, router} → {upstream,
// policy} → probe.
var bans = []ban{
	{
		from: "/...", but: []string{"/bench/..."}, to: []string{"/bench/..."}, tests: true,
		reason: "bench measures the product; nothing may need it to build or to pass",
	},
	{
		from: "/...", but: []string{"/cmd/..."}, to: []string{"/cmd/..."}, tests: true,
		reason: "commands put packages together and are the end of the chain",
	},
	{
		from: "/probe/...", tests: true,
		to:     []string{"/policy/...", "/upstream/...", "/configs/...", "/router/..."},
		reason: "probe is the bottom: bytes in, offsets out",
	},
	{
		from: "/configs/dsl", to: []string{"/..."}, but: []string{"/configs/dsl"}, tests: true,
		reason: "the language knows words and values, not what they mean here",
	},
	{
		from: "/probe/...",
		to: []string{
			"fmt", "reflect", "encoding/json", "encoding/json/v2", "net", "os", "time", "log/slog", "regexp",
			"github.com/valyala/fasthttp", "github.com/bytedance/sonic",
		},
		reason: "probe runs on every byte of every request: what allocates, reflects or does I/O has no place in it",
	},
	{
		from: "/policy/...", tests: true,
		to:     []string{"/upstream/...", "/configs/...", "/router/..."},
		reason: "policy decides from values alone; configs checks itself against policy, not the other way round",
	},
	{
		from:   "/policy/...",
		to:     []string{"net", "net/http", "log/slog", "github.com/valyala/fasthttp", "github.com/VictoriaMetrics/metrics"},
		reason: "policy is values in, values out: no I/O, no server, no metrics",
	},
	{
		from: "/upstream/...", tests: true,
		to:     []string{"/policy/...", "/configs/...", "/router/..."},
		reason: "upstream moves bytes and does not know why; router tells it what the configuration says",
	},
	{
		from: "/upstream/...", but: []string{"/upstream/sim/..."}, to: []string{"/upstream/sim/..."},
		reason: "the product does not carry its simulated engine on the data path",
	},
	{
		// fasthttp itself imports net/http.
		from: "/...", but: []string{"/cmd/...", "/upstream/sim/...", "/bench/..."}, to: []string{"net/http"}, direct: true,
		reason: "the wire is fasthttp and our own clients; a second HTTP stack reads some requests differently",
	},
	{
		from: "/upstream/h1/...", to: []string{"net", "time", "context"},
		reason: "the wire parser does no I/O and has no clock, so that a goroutine or an event loop can drive it",
	},
	{
		from: "/configs/...", to: []string{"/upstream/...", "/router/..."}, tests: true,
		reason: "configs builds nothing: router.New does",
	},
	{
		from: "/router/...", to: []string{"/upstream/sim/..."},
		reason: "the router cannot tell a simulated engine from a real one",
	},
	{
		from: "/router/...", to: []string{"flag", "github.com/knadh/koanf/v2"}, direct: true,
		reason: "router gets plain structs: cmd knows flags, configs knows koanf",
	},
	{
		from: "/...", but: []string{"/cmd/..."}, to: []string{"flag", "os/signal"}, direct: true,
		reason: "flags and signals are known in cmd alone",
	},
	{
		from: "/...", to: []string{"testing"},
		reason: "what only a test needs belongs into a test file",
	},
	{
		from: "/...", to: []string{"log"}, but: []string{"/upstream/sim/..."}, direct: true,
		reason: "the product logs through the slog.Logger that it is given (net/http wants a log.Logger in sim)",
	},
	{
		from: "/...", to: []string{"encoding/gob", "plugin", "github.com/stretchr/testify/..."}, direct: true, tests: true,
		reason: "std testing only, and nothing that loads code",
	},
}

// goPackage is what the go command knows about a package of ours.
type goPackage struct {
	path    string
	imports []string // of its files
	deps    []string // what imports leads to
	tests   []string // imports of its test files
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	const format = `{{.ImportPath}}|{{join .Imports " "}}|{{join .Deps " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}`
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-e", "-f", format, "./...")
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v\n%s", err, &stderr)
	}
	var list []goPackage
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			t.Fatalf("unexpected line of go list: %q", line)
		}
		list = append(list, goPackage{f[0], strings.Fields(f[1]), strings.Fields(f[2]), strings.Fields(f[3])})
	}
	return list
}

// covers reports whether pattern stands for path; see ban.
func covers(pattern, path string) bool {
	if strings.HasPrefix(pattern, "/") {
		pattern = "sluice" + pattern
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}

func coversAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, path) })
}

// faults returns what of p breaks b.
func (b *ban) faults(p goPackage) []string {
	if !covers(b.from, p.path) || coversAny(b.but, p.path) {
		return nil
	}
	imports := slices.Clone(p.imports)
	if !b.direct {
		imports = append(imports, p.deps...)
	}
	if b.tests {
		imports = append(imports, p.tests...)
	}
	slices.Sort(imports)
	var list []string
	for _, to := range slices.Compact(imports) {
		// An external test imports the package that it tests.
		if to != p.path && coversAny(b.to, to) {
			list = append(list, fmt.Sprintf("%s must not import %s: %s", p.path, to, b.reason))
		}
	}
	return list
}

func TestHouse_ImportGraph(t *testing.T) {
	packages := listPackages(t)
	for _, want := range []string{"sluice/cmd/sluice", "sluice/router", "sluice/policy", "sluice/upstream", "sluice/configs", "sluice/probe"} {
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.path == want }) {
			t.Errorf("package %s is missing: the import graph below is not the whole", want)
		}
	}
	for _, p := range packages {
		for i := range bans {
			for _, fault := range bans[i].faults(p) {
				t.Error(fault)
			}
		}
	}
}

// TestHouse_Bans shows that the bans bite.
func TestHouse_Bans(t *testing.T) {
	f := func(want int, p goPackage) {
		t.Helper()
		n := 0
		for i := range bans {
			n += len(bans[i].faults(p))
		}
		if n != want {
			t.Errorf("unexpected number of faults of %+v; got %d; want %d", p, n, want)
		}
	}
	f(0, goPackage{path: "sluice/probe", imports: []string{"math/bits"}, deps: []string{"math/bits", "unsafe"}})
	f(1, goPackage{path: "sluice/probe", imports: []string{"math/big"}, deps: []string{"math/big", "fmt"}})
	f(0, goPackage{path: "sluice/probe", tests: []string{"encoding/json", "sluice/probe"}})
	f(1, goPackage{path: "sluice/probe", tests: []string{"sluice/policy"}})
	f(1, goPackage{path: "sluice/policy", imports: []string{"sluice/upstream/h1"}, deps: []string{"sluice/upstream/h1"}})
	f(1, goPackage{path: "sluice/upstream", imports: []string{"net/http"}})
	f(0, goPackage{path: "sluice/upstream", tests: []string{"net/http", "sluice/upstream/sim"}})
	f(0, goPackage{path: "sluice/upstream/sim", imports: []string{"net/http"}, deps: []string{"net"}})
	f(1, goPackage{path: "sluice/upstream/h1", imports: []string{"net"}})
	f(0, goPackage{path: "sluice/router", deps: []string{"flag", "sluice/configs", "sluice/upstream"}})
	f(1, goPackage{path: "sluice/router", deps: []string{"sluice/upstream/sim"}})
	f(2, goPackage{path: "sluice/router", imports: []string{"flag"}})
	f(0, goPackage{path: "sluice/cmd/sluice", imports: []string{"flag", "sluice/upstream/sim"}})
	f(1, goPackage{path: "sluice/cmd/sluice", tests: []string{"sluice/bench/clients"}})
	f(0, goPackage{path: "sluice/bench/clients", imports: []string{"sluice/bench"}})
	f(0, goPackage{path: "sluice/router/record", imports: []string{"database/sql"}})
}

// TestHouse_PackageComments holds each package to exactly one package comment,
// in a file that is not a test where there is one.
func TestHouse_PackageComments(t *testing.T) {
	n := 0
	for dir, files := range goFiles(t) {
		n++
		checkPackageComment(t, dir, files)
	}
	if n < 6 {
		t.Errorf("found %d packages only", n)
	}
}

func checkPackageComment(t *testing.T, dir string, files []string) {
	t.Helper()
	plain := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	if len(plain) == 0 {
		t.Errorf("%s has test files only: put the package comment into doc.go", dir)
		return
	}
	var with []string
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		if f.Doc == nil {
			continue
		}
		with = append(with, file)
		checkFirstWords(t, file, f)
	}
	if len(with) != 1 || !slices.Contains(plain, with[0]) {
		t.Errorf("%s must have one package comment, outside of tests; got %q", dir, with)
	}
}

func checkFirstWords(t *testing.T, file string, f *ast.File) {
	t.Helper()
	want := "Package " + f.Name.Name + " "
	if f.Name.Name == "main" {
		name := filepath.Base(filepath.Dir(file))
		want = strings.ToUpper(name[:1]) + name[1:] + " "
	}
	if text := f.Doc.Text(); !strings.HasPrefix(text, want) {
		t.Errorf("%s: the package comment must begin with %q; got %q", file, want, text)
	}
}

// goFiles returns the Go files of the repository by directory, without
// testdata, installed packages and what begins with a dot.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	dirs := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name[0] == '.' || name == "node_modules" || name == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(name) == ".go":
			dirs[filepath.Dir(path)] = append(dirs[filepath.Dir(path)], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// topLevel is what the top of the repository holds. A further name needs its
// reason in the README.
var topLevel = []string{
	"cmd", "router", "probe", "policy", "upstream", "bench", "configs",
	"go.mod", "go.sum", "Makefile", "README.md",
}

// TestHouse_TopLevel allows topLevel, dot-files and what .gitignore names.
func TestHouse_TopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	ignored := gitIgnored(t)
	for _, e := range entries {
		name := e.Name()
		if name[0] != '.' && !slices.Contains(topLevel, name) && !ignored(name) {
			t.Errorf("%s does not belong to the top level: the spec names %s", name, strings.Join(topLevel, " "))
		}
	}
	for _, name := range []string{"go.mod", "probe", "cmd"} {
		if ignored(name) {
			t.Errorf(".gitignore must not name %s", name)
		}
	}
}

// gitIgnored reads .gitignore, of which it knows names and globs, each with an
// optional slash at either end.
func gitIgnored(t *testing.T) func(name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	var globs []string
	for line := range strings.Lines(string(text)) {
		if glob := strings.Trim(strings.TrimSpace(line), "/"); glob != "" && glob[0] != '#' {
			globs = append(globs, glob)
		}
	}
	return func(name string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool {
			ok, err := filepath.Match(glob, name)
			return err == nil && ok
		})
	}
}

// TestHouse_Module holds go.mod to released modules: a replace would be a fork
// that only this machine has.
func TestHouse_Module(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		first, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if first == "replace" || first == "toolchain" {
			t.Errorf("go.mod must not have %q", lines.Text())
		}
	}
	if !bytes.HasPrefix(text, []byte("module sluice\n")) {
		t.Errorf("go.mod must begin with module sluice; got %q", text[:min(len(text), 40)])
	}
}
