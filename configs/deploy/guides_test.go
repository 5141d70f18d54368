package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/configs"
)

// block is a fenced block of a page.
type block struct {
	info, text string // info is what follows the fence: yaml, or yaml of another program
}

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) (list []block) {
	t.Helper()
	parts := strings.Split("\n"+read(t, page), "\n```")
	if len(parts)%2 == 0 {
		t.Fatalf("%s: a block has no end", page)
	}
	for i := 1; i < len(parts); i += 2 {
		info, text, _ := strings.Cut(parts[i], "\n")
		list = append(list, block{info, text + "\n"})
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages returns the names of all pages, of which there must be some.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("*.md")
	if err != nil || len(list) < 6 {
		t.Fatalf("found %d pages only: %q, %v", len(list), list, err)
	}
	return list
}

// secretEnv is what the examples name, so that Load finds it.
var secretEnv = []string{"LLAMA_AUTHORIZATION=Bearer x", "ADMIN_TOKEN=0123456789abcdef"}

// load loads text as a file with the given extension.
func load(t *testing.T, extension, text string) (*configs.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice."+extension)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return configs.Load(configs.Options{Files: []string{file}, Env: secretEnv})
}

// TestGuides_Load loads each configuration that a page shows. Blocks of other
// programs say so after the language (yaml litellm).
func TestGuides_Load(t *testing.T) {
	for _, page := range pages(t) {
		n := 0
		for _, b := range blocks(t, page) {
			if b.info != "yaml" && b.info != "sluice" {
				continue
			}
			n++
			if _, err := load(t, b.info, withFiles(t, b.text)); err != nil {
				t.Errorf("%s: a configuration does not load:\n%v\n%s", page, configs.Report(err), b.text)
			}
		}
		if n == 0 && strings.HasPrefix(page, "from-") {
			t.Errorf("%s shows no configuration", page)
		}
	}
}

// The guides name files that are not here.
var absolutePath = regexp.MustCompile(`(?:/etc|/run)/[a-z0-9./-]+`)

// withFiles returns text with files of the test in the place of those in /etc
// and /run: keys, certificates and, for all others, secrets.
func withFiles(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate(t)
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key, "secret": []byte("0123456789abcdef")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return absolutePath.ReplaceAllStringFunc(text, func(path string) string {
		switch {
		case strings.HasSuffix(path, "key.pem"):
			return filepath.Join(dir, "key.pem")
		case strings.HasSuffix(path, ".pem"):
			return filepath.Join(dir, "cert.pem")
		}
		return filepath.Join(dir, "secret")
	})
}

// certificate returns one that has signed itself, and its key.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// TestGuides_Keys holds the keys in the text of the pages to the reference.
func TestGuides_Keys(t *testing.T) {
	known := referenceKeys(t)
	key := regexp.MustCompile("`((?:server|pools\\[\\]|routing|sampling_contract|cache|records|capture|log|sim)(?:\\.[a-z_0-9.\\[\\]]+)?)(?:: [^`]*)?`")
	n := 0
	for _, page := range pages(t) {
		for _, m := range key.FindAllStringSubmatch(read(t, page), -1) {
			n++
			if !known(m[1]) {
				t.Errorf("%s: there is no key %s", page, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("found %d keys only", n)
	}
}

// referenceKeys returns whether REFERENCE.md has a key. A row "as other" stands
// for all that is below the other.
func referenceKeys(t *testing.T) func(key string) bool {
	t.Helper()
	var list []string
	as := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:as `([^`]+)`)?")
	for _, m := range row.FindAllStringSubmatch(read(t, "../REFERENCE.md"), -1) {
		list = append(list, m[1])
		if m[2] != "" {
			as[m[1]] = m[2]
		}
	}
	if len(list) < 100 {
		t.Fatalf("found %d keys in the reference only", len(list))
	}
	return func(key string) bool {
		for prefix, other := range as {
			if rest, ok := strings.CutPrefix(key, prefix+"."); ok {
				key = other + "." + rest
			}
		}
		for _, k := range list {
			if k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(k, key+"[]") {
				return true
			}
		}
		return false
	}
}

// TestGuides_Flags holds the guide for SGLang to the list of the flags that its
// routers have (see the heads in the list).
func TestGuides_Flags(t *testing.T) {
	rows := map[string]bool{}
	flag := regexp.MustCompile("`(--[a-z0-9-]+)`")
	for line := range strings.Lines(read(t, "from-sglang.md")) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			for _, m := range flag.FindAllStringSubmatch(cell, -1) {
				if rows[m[1]] {
					t.Errorf("%s has two rows", m[1])
				}
				rows[m[1]] = true
			}
		}
	}
	n := 0
	for name := range strings.Lines(read(t, "testdata/sglang_flags.txt")) {
		name = strings.TrimSpace(name)
		if name == "" || name[0] == '#' {
			continue
		}
		n++
		if !rows[name] {
			t.Errorf("the flag %s has no row", name)
		}
		delete(rows, name)
	}
	if n < 100 {
		t.Errorf("the list has %d flags only", n)
	}
	for name := range rows {
		t.Errorf("%s has a row and is not in the list", name)
	}
}

// TestGuides_SemanticRouter converts what the guide shows.
func TestGuides_SemanticRouter(t *testing.T) {
	shown := map[string]string{}
	for _, b := range blocks(t, "from-semantic-router.md") {
		shown[b.info] = b.text
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("FILE.yaml", []byte(shown["yaml semantic-router"]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, left, err := configs.FromSemanticRouter("FILE.yaml", "sluice")
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != shown["sluice"] {
		t.Errorf("unexpected conversion\n got\n%s\nwant\n%s", out, shown["sluice"])
	}
	if got := left.Error() + "\n"; got != shown["left"] {
		t.Errorf("unexpected remarks\n got\n%s\nwant\n%s", got, shown["left"])
	}
}
