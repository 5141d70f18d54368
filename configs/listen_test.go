package configs

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"
	"time"
)

// The admin listener is for who has the token or a certificate, where other
// machines can reach it.
func TestValidateAdmin(t *testing.T) {
	f := validateFaults(t)
	reached := func(addr string) string {
		return `server.admin_listen: can be reached from other machines, got "` + addr +
			`": set server.admin.token, or server.admin.tls with client_ca, or listen on 127.0.0.1`
	}
	for _, addr := range []string{":29000", "0.0.0.0:29000", "[::]:29000", "10.0.0.1:29000", "router.internal:29000"} {
		f(func(c *Config) { c.Server.AdminListen = addr }, reached(addr))
		f(func(c *Config) { c.Server.AdminListen, c.Server.Admin.Token = addr, "0123456789abcdef" })
	}
	for _, addr := range []string{"127.0.0.1:29000", "127.1.2.3:1", "[::1]:29000", "localhost:0"} {
		f(func(c *Config) { c.Server.AdminListen = addr })
	}
	for _, token := range []Secret{"0123456789abcde", "0123456789 abcdef", "0123456789abcdeé"} {
		f(func(c *Config) { c.Server.Admin.Token = token }, "server.admin.token: must have at least 16 characters, all of them visible ASCII")
	}
}

func TestServerTLS(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t)
	_, other := ca.issue(t)
	inDir(t, "ca.pem", ca.pem, "cert.pem", cert, "key.pem", key, "other.pem", other, "junk", "junk")
	f := func(s ServerTLS, want ...string) {
		t.Helper()
		for _, path := range []string{"server.tls", "server.admin.tls"} {
			faults := make([]string, len(want))
			for i, w := range want {
				faults[i] = path + "." + w
			}
			validateFaults(t)(func(c *Config) {
				if path == "server.tls" {
					c.Server.TLS = s
				} else {
					c.Server.Admin.TLS = s
				}
			}, faults...)
		}
	}
	f(ServerTLS{})
	f(ServerTLS{Cert: "cert.pem", Key: "key.pem"})
	f(ServerTLS{Cert: "cert.pem", Key: "key.pem", ClientCA: "ca.pem"})
	f(ServerTLS{Cert: "cert.pem"}, "key: must be set beside cert")
	f(ServerTLS{Key: "key.pem"}, "cert: must be set beside key")
	f(ServerTLS{ClientCA: "ca.pem"}, "key: must be set beside cert")
	f(ServerTLS{Cert: "none", Key: "key.pem"}, `cert: file "none" cannot be read: no such file or directory`)
	f(ServerTLS{Cert: "cert.pem", Key: "key.pem", ClientCA: "junk"}, `client_ca: file "junk" holds no certificate in PEM`)
	f(ServerTLS{Cert: "cert.pem", Key: "other.pem"},
		`cert: file "cert.pem" and the file of key are no pair: tls: private key does not match public key`)

	s := ServerTLS{Cert: "cert.pem", Key: "key.pem", ClientCA: "ca.pem"}
	c, err := s.ServerConfig(tls.RequireAndVerifyClientCert)
	if err != nil || c.MinVersion != tls.VersionTLS12 || c.ClientAuth != tls.RequireAndVerifyClientCert || c.ClientCAs == nil ||
		len(c.NextProtos) != 1 || c.NextProtos[0] != "http/1.1" {
		t.Errorf("unexpected configuration of TLS %+v, %v", c, err)
	}
}

// B65: what a browser would never send, or never take, is a fault.
func TestB65_ValidateCORS(t *testing.T) {
	f := validateFaults(t)
	set := func(c CORS) func(*Config) { return func(cfg *Config) { cfg.Server.CORS = c } }
	f(set(CORS{}))
	f(set(CORS{Origins: []string{"*"}, MaxAge: time.Hour}))
	f(set(CORS{
		Origins: []string{"https://a.example", "http://localhost:3000", "tauri://localhost", "http://[::1]:8080"},
		Methods: []string{"POST"}, Headers: []string{"authorization", "X-Api-Key"}, Credentials: true,
	}))
	f(set(CORS{Headers: []string{"a"}}), "server.cors: has no effect without origins")
	f(set(CORS{Origins: []string{"*"}, Credentials: true}), `server.cors.credentials: must not be true where origins is "*": name the origins`)
	f(set(CORS{Origins: []string{"*", "https://a"}}), `server.cors.origins: must hold nothing beside "*", which is any`)
	const form = `must be scheme://host or scheme://host:port and nothing after it, or "*"`
	for origin, msg := range map[string]string{
		"a.example":             form,
		"null":                  form,
		"https://":              form,
		"https://a/":            form,
		"https://u@a":           form,
		"https://a?b":           form,
		"https://A.example":     "must be in lower case, as browsers write it",
		"https://*.example":     `must not hold a "*" beside other characters`,
		"https://a.example:443": "must not have the port 443, which browsers leave out",
		"http://a.example:80":   "must not have the port 80, which browsers leave out",
	} {
		f(set(CORS{Origins: []string{origin}}), `server.cors.origins[0]: `+msg+`, got "`+origin+`"`)
	}
	f(set(CORS{Origins: []string{"https://a"}, Methods: []string{"post"}}),
		`server.cors.methods[0]: must be one of GET, HEAD, POST, PUT, PATCH, DELETE, got "post"; did you mean POST?`)
	f(set(CORS{Origins: []string{"https://a"}, Headers: []string{"a b"}}), `server.cors.headers[0]: must be the name of a header field, got "a b"`)
	f(set(CORS{Origins: []string{"https://a"}, MaxAge: 25 * time.Hour}), "server.cors.max_age: must be from 0s to 24h, got 25h0m0s")
}

func TestValidateLog(t *testing.T) {
	f := validateFaults(t)
	f(func(c *Config) { c.Log = Log{Level: "warn", Format: "text", Sample: 0} })
	f(func(c *Config) { c.Log.Format = "xml" }, `log.format: must be one of json, text, got "xml"`)
	f(func(c *Config) { c.Log.Sample = 1.5 }, "log.sample: must be from 0 to 1, got 1.5")
}

// No token is shown by what prints a configuration, or tells of its faults.
func TestAdminTokenIsSecret(t *testing.T) {
	const token = "s3cret"
	inDir(t, "a.yaml", "server: {admin: {token: {file: token}}}\n", "token", token+"\n")
	_, err := Load(Options{Files: []string{"a.yaml"}})
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("unexpected fault of a short token: %v", err)
	}
	if err := os.WriteFile("token", []byte("0123456789abcdef-"+token), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	if string(c.Server.Admin.Token) != "0123456789abcdef-"+token {
		t.Errorf("the token was not read")
	}
}
