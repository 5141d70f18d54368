package bench

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice/configs"
	"sluice/router"
	"sluice/upstream/sim"
)

const (
	dashboardFile = root + "/configs/grafana-dashboard.json"
	alertsFile    = root + "/configs/alerts.yaml"
)

// everything is a configuration with all that has metrics of its own.
const everything = `
server: {listen: "127.0.0.1:0", admin_listen: "127.0.0.1:0", tls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem}}
sampling_contract:
  params: {temperature: 1}
  rollout: {share: 50%%, abort_on: {rejected: 50%%}}
pools:
  - name: all
    models: [m]
    engine: sglang
    discover: {file: %[1]s/workers.txt}
    limits: {max_inflight: 8}
cache: {store: memory}
records: {store: sqlite, dsn: %[1]s/records.db}
capture: {file: %[1]s/capture.jsonl}
routing:
  decisions:
    - name: capped
      plugins:
        - {type: response_cache, configuration: {}}
        - {type: request_params, configuration: {blocked_params: [logprobs], max_tokens_limit: 9, default_max_tokens: 8, strip_unknown: true}}
    - name: watched
      priority: 1
      rules: {type: stream, value: true}
      plugins:
        - {type: request_params, configuration: {blocked_params: [logprobs], max_tokens_limit: 9, on_violation: observe}}
`

// startEverything serves with everything, and returns the metrics after a request
// and a stream.
func startEverything(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writePair(t, dir)
	e := sim.New(sim.Options{Models: []string{"m"}})
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "workers.txt"), []byte(url+"\n"))
	writeFile(t, filepath.Join(dir, "sluice.yaml"), fmt.Appendf(nil, everything, dir))
	cfg, err := configs.Load(configs.Options{Files: []string{filepath.Join(dir, "sluice.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(cfg, router.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var on [2]net.Listener
	for i := range on {
		if on[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve(on[0], on[1]) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("cannot shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("unexpected error of Serve: %v", err)
		}
		if err := e.Close(ctx); err != nil {
			t.Errorf("cannot close the engine: %v", err)
		}
	})
	for _, stream := range []string{"false", "true"} {
		askUntilOK(t, "https://"+on[0].Addr().String()+"/v1/chat/completions", `{"model":"m","stream":`+stream+`,"messages":[{"role":"user","content":"Hi"}]}`)
	}
	// The outcome of a stream is counted after its last byte was sent.
	text := ""
	for end := time.Now().Add(10 * time.Second); !strings.Contains(text, "sluice_streams_total"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the stream is not counted")
		}
		text = fetch(t, http.MethodGet, "http://"+on[1].Addr().String()+"/metrics", "", http.StatusOK)
	}
	return text
}

// askUntilOK waits for the worker that the file names.
func askUntilOK(t *testing.T, url, body string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if answer := fetch(t, http.MethodPost, url, body, 0); answer != "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no request was answered with 200")
		}
	}
}

// oneShot keeps no connections, which a shutdown would wait for.
var oneShot = http.Client{Transport: &http.Transport{
	DisableKeepAlives: true,
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it is the test's own, on loopback
}}

// fetch returns the body of an answer with the given status. Zero is 200, or an
// empty text for any other.
func fetch(t *testing.T, method, url, body string, status int) string {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := oneShot.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		t.Fatal(err)
	case status == 0 && resp.StatusCode != http.StatusOK:
		return ""
	case status != 0 && resp.StatusCode != status:
		t.Fatalf("%s was answered %d %s; want %d", url, resp.StatusCode, b, status)
	}
	return string(b)
}

func writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writePair writes a certificate that has signed itself, and its key.
func writePair(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	writeFile(t, filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// samples returns the labels of each metric in Prometheus' text format.
func samples(text string) map[string]map[string]bool {
	sample := regexp.MustCompile(`(?m)^([a-z_0-9]+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	list := map[string]map[string]bool{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		if list[m[1]] == nil {
			list[m[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			list[m[1]][l[1]] = true
		}
	}
	return list
}

// TestDeploy_Metrics holds the names, and the labels in selectors, of the
// dashboard and the alerts to what a router exports.
func TestDeploy_Metrics(t *testing.T) {
	exported := samples(startEverything(t))
	use := regexp.MustCompile(`\b((?:sluice|process|go)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z_]+) ?(?:=~|!~|!=|=)`)
	for _, file := range []string{dashboardFile, alertsFile} {
		used := map[string]bool{}
		for _, m := range use.FindAllStringSubmatch(strings.ReplaceAll(readText(t, file), `\"`, `"`), -1) {
			name := m[1]
			if used[name] = true; strings.HasSuffix(name, "_") {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(exported)), func(s string) bool { return strings.HasPrefix(s, name) }) {
					t.Errorf("%s: no metric begins with %s", file, name)
				}
				continue
			}
			labels, ok := exported[name]
			if _, histogram := exported[name+"_bucket"]; !ok && histogram {
				continue // as the runbooks call it
			}
			if !ok {
				t.Errorf("%s: there is no metric %s", file, name)
				continue
			}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				// Prometheus adds two where it scrapes.
				if !labels[l[1]] && l[1] != "instance" && l[1] != "job" {
					t.Errorf("%s: %s has no label %s", file, name, l[1])
				}
			}
		}
		if len(used) < 20 {
			t.Errorf("%s uses %d metrics only", file, len(used))
		}
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// panel is what the tests read of a panel of the dashboard.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr, RefID string }
}

func dashboard(t *testing.T) (panels []panel) {
	t.Helper()
	var d struct{ Panels []panel }
	if err := json.Unmarshal([]byte(readText(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 40 {
		t.Fatalf("the dashboard has %d panels only", len(d.Panels))
	}
	return d.Panels
}

// TestDeploy_Dashboard holds the panels to what Grafana does not say: it drops or
// moves what has the id, or the place, of another one.
func TestDeploy_Dashboard(t *testing.T) {
	ids, places := map[int]string{}, map[[2]int]string{}
	for _, p := range dashboard(t) {
		if other, ok := ids[p.ID]; ok || p.ID == 0 {
			t.Errorf("panel %q has the id %d, as %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q has %d targets", p.ID, p.Title, len(p.Targets))
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := places[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("panel %q lies on %q, or outside", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestDeploy_Annotations holds each alert to a severity, a summary and a runbook.
func TestDeploy_Annotations(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readText(t, alertsFile)), &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || len(r.Annotations["runbook"]) < 40 {
				t.Errorf("%s lacks a summary or a runbook", r.Alert)
			}
		}
	}
	if n < 15 {
		t.Errorf("there are %d alerts only", n)
	}
}

// promtool runs Prometheus' own checker, of Debian's package prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: apt-get install prometheus")
		}
		t.Skip("skipped: needs promtool (apt-get install prometheus)")
	}
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
}

func TestDeploy_Rules(t *testing.T) {
	promtool(t, "check", "rules", alertsFile)
}

// TestDeploy_Alerts plays what must raise alerts and what must not.
func TestDeploy_Alerts(t *testing.T) {
	promtool(t, "test", "rules", "testdata/alerts.yaml")
}

// TestDeploy_Expressions has promtool read the expressions of the dashboard, as
// rules.
func TestDeploy_Expressions(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	vars := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$pool", ".*")
	var rules []rule
	for _, p := range dashboard(t) {
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel%d:%s", p.ID, target.RefID), vars.Replace(target.Expr)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, text)
	promtool(t, "check", "rules", file)
}
