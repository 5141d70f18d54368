package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// config is the router's; the scripts rely on its names. %[1]q and %[2]q are
// the engines.
const config = `
server: {listen: "127.0.0.1:0", admin_listen: "127.0.0.1:0"}
sampling_contract: {params: {temperature: 1, top_p: {min: 0.9, max: 1}}}
pools:
  - name: chat
    models: [sim-8b, meta-llama/Llama-3.1-8B-Instruct]
    aliases: {sim: sim-8b}
    workers: [{url: %[1]q}, {url: %[2]q}]
  - name: embeddings
    models: [BAAI/bge-m3]
    workers: [{url: %[1]q}, {url: %[2]q}]
`

// runtime is what runs scripts.
type runtime struct {
	name string
	// find returns the interpreter, or what is missing.
	find    func() (interpreter, missing string)
	scripts []string
}

var runtimes = []runtime{
	{"python", python, []string{"openai_client.py", "anthropic_client.py"}},
	{"node", node, []string{"openai_client.mjs", "anthropic_client.mjs"}},
}

func python() (interpreter, missing string) {
	path := os.Getenv("CLIENTS_PYTHON")
	if path == "" {
		path = filepath.Join(".venv", "bin", "python")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", "no Python with the packages of requirements.txt: make bench/clients/.venv as .ci/run does, or set CLIENTS_PYTHON"
	}
	return path, ""
}

func node() (interpreter, missing string) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", "no node on the PATH"
	}
	if _, err := os.Stat("node_modules"); err != nil {
		return "", "no node_modules: run npm ci in bench/clients as .ci/run does"
	}
	return path, ""
}

func (r runtime) installed() bool {
	_, missing := r.find()
	return missing == ""
}

// interpreter returns what runs scripts of r and skips t where it is missing,
// which must not be in CI.
func (r runtime) interpreter(t *testing.T) string {
	t.Helper()
	path, missing := r.find()
	switch {
	case missing != "" && os.Getenv("CI") == "true":
		t.Fatalf("%s clients must run in CI: %s", r.name, missing)
	case missing != "":
		t.Skipf("skipped: the %s clients: %s", r.name, missing)
	}
	return path
}

// TestInstalled is for `make test`, which prints what it says.
func TestInstalled(t *testing.T) {
	for _, r := range runtimes {
		t.Run(r.name, func(t *testing.T) { r.interpreter(t) })
	}
}

func TestClients(t *testing.T) {
	trackSources(t)
	var f *fleet // nil where nothing is installed
	if slices.ContainsFunc(runtimes, runtime.installed) {
		f = startFleet(t)
	}
	for _, r := range runtimes {
		t.Run(r.name, func(t *testing.T) {
			interpreter := r.interpreter(t)
			for _, script := range r.scripts {
				t.Run(script, func(t *testing.T) {
					runScript(t, interpreter, append([]string{script, f.router}, f.engines...)...)
				})
			}
		})
	}
	if f != nil {
		t.Run("log", func(t *testing.T) { checkLog(t, f.serve.stop(t)) })
	}
}

// trackSources opens every directory of the module. `go test` runs a test again
// when what it opened has changed, and cannot know that the router is built
// from these.
func trackSources(t *testing.T) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// outcome is a line that a script prints: a check, or at the end their number.
type outcome struct {
	Check  string
	OK     bool
	Detail string
	Done   int
}

// runScript runs a script and makes a subtest of each of its checks.
func runScript(t *testing.T, interpreter string, args ...string) {
	// The limit is for what hangs; a script takes seconds.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, interpreter, args...)
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, done := 0, 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Errorf("unexpected line %q: %v", lines.Text(), err)
			continue
		}
		if o.Check == "" {
			done = o.Done
			continue
		}
		n++
		t.Run(o.Check, func(t *testing.T) {
			if !o.OK {
				t.Error(o.Detail)
			}
		})
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the script ended with %v after %d checks (limit: %v)\n%s", err, n, ctx.Err(), &stderr)
	}
	if n == 0 || n != done {
		t.Errorf("unexpected number of checks; got %d; want %d", n, done)
	}
}

// checkLog looks at what the router has logged while the clients were at it.
func checkLog(t *testing.T, log string) {
	access := 0
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("a line of the log is not JSON: %q", line)
			continue
		}
		if fields["level"] == "ERROR" {
			t.Errorf("the router has logged an error: %s", line)
		}
		if fields["msg"] == "request" {
			access++
		}
	}
	if access == 0 {
		t.Error("the access log is empty")
	}
	// Words of the prompts, of the contract's refusals and of the engines.
	for _, secret := range []string{"Grüß", "Be brief", "Bearer", "Once upon", "iVBORw0K"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q, which a client has sent", secret)
		}
	}
}

// fleet is a router with two engines, each a process of its own.
type fleet struct {
	router  string // base URL
	engines []string
	serve   *process
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	binary := buildSluice(t)
	sim := startProcess(t, binary, "sim", "--listen", "127.0.0.1:0", "--count", "2")
	f := &fleet{engines: []string{sim.waitLine(t, "http://"), sim.waitLine(t, "http://")}}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, f.engines[0], f.engines[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	f.serve = startProcess(t, binary, "serve", "--config", file)
	var serving struct{ Listen string }
	line := f.serve.waitLine(t, `"msg":"serving"`)
	if err := json.Unmarshal([]byte(line), &serving); err != nil {
		t.Fatalf("cannot read %q: %v", line, err)
	}
	f.router = "http://" + serving.Listen
	return f
}
