package configs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Admin says who may use the admin listener: whoever has the token, or a
// certificate that TLS.ClientCA has signed. One of the two is required where the
// listener can be reached from other machines; without both, whoever reaches it
// may.
type Admin struct {
	// Token is what Authorization: Bearer must hold, at least 16 characters: a
	// string, {env: NAME} or {file: path}.
	Token Secret `koanf:"token"`
	// TLS has the listener speak TLS.
	TLS ServerTLS `koanf:"tls"`
}

// ServerTLS has a listener speak TLS 1.2 or later. Files are PEM, at most 1 MiB;
// they are read anew with the configuration and when they change. TLS turned on or
// off needs a restart.
type ServerTLS struct {
	// Cert and Key are the files of the certificate, with those between it and
	// the one that clients trust, and of its private key.
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
	// ClientCA is a file with the certificates that a client's must be signed by.
	// On the data listener every client needs one; on the admin listener a client
	// with the token does not. Without it, no client is asked for one.
	ClientCA string `koanf:"client_ca"`
}

// CORS says which web pages may use the data listener from a browser (the Fetch
// standard). Without origins the router knows nothing of it.
type CORS struct {
	// Origins are those of the pages, such as https://chat.example or
	// http://localhost:3000, as browsers write them: in lower case, without a
	// path. The only "*" is any.
	Origins []string `koanf:"origins"`
	// Methods are those that a page may use. Default: those of the path.
	Methods []string `koanf:"methods"`
	// Headers are the names of the fields that a page may send. Default: any.
	Headers []string `koanf:"headers"`
	// MaxAge is how long a browser may remember that. Zero: it asks each time.
	// Default 10m.
	MaxAge time.Duration `koanf:"max_age"`
	// Credentials allows cookies and client certificates. It is not for the
	// origin "*".
	Credentials bool `koanf:"credentials"`
}

// On reports whether the listener speaks TLS.
func (t *ServerTLS) On() bool { return *t != ServerTLS{} }

// ServerConfig reads the files and returns what crypto/tls needs of t to serve,
// or nil where t says nothing. Clients are to be asked for a certificate as auth
// says where there is a ClientCA. The caller owns it. The error is a Fault whose
// Path is the key at fault, below t.
func (t *ServerTLS) ServerConfig(auth tls.ClientAuthType) (*tls.Config, error) {
	if !t.On() {
		return nil, nil
	}
	pair, err := (&TLS{Cert: t.Cert, Key: t.Key}).certificate()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair}}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := readPEM("client_ca", t.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), auth
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, Fault{Path: "client_ca", Msg: "file " + quote(t.ClientCA) + " holds no certificate in PEM"}
	}
	return c, nil
}

// serverTLS checks a listener's TLS, files and all.
func (v *validator) serverTLS(t *ServerTLS, path string) {
	if _, err := t.ServerConfig(tls.NoClientCert); err != nil {
		var f Fault
		if !errors.As(err, &f) {
			panic("BUG: not a Fault: " + err.Error())
		}
		v.fail(childPath(path, f.Path), "%s", f.Msg)
	}
}

// minToken is the length of the shortest token of the admin listener.
const minToken = 16

// admin checks who may use the admin listener at a.
func (v *validator) admin(s *Server, a address, ok bool) {
	t := &s.Admin
	v.serverTLS(&t.TLS, "server.admin.tls")
	if t.Token != "" && (len(t.Token) < minToken || strings.ContainsFunc(string(t.Token), func(r rune) bool { return r <= ' ' || r > '~' })) {
		v.fail("server.admin.token", "must have at least %d characters, all of them visible ASCII", minToken)
	}
	if ok && !a.loopback() && t.Token == "" && t.TLS.ClientCA == "" {
		v.fail("server.admin_listen", "can be reached from other machines, got %s: set server.admin.token, or server.admin.tls with client_ca, or listen on 127.0.0.1", quote(s.AdminListen))
	}
}

// loopback reports whether only this machine can reach a.
func (a address) loopback() bool {
	ip := net.ParseIP(a.host)
	return a.host == "localhost" || ip != nil && ip.IsLoopback()
}

// cors checks which web pages may use the data listener.
func (v *validator) cors(c *CORS) {
	const path = "server.cors"
	if len(c.Origins) == 0 && (len(c.Methods) > 0 || len(c.Headers) > 0 || c.Credentials) {
		v.fail(path, "has no effect without origins")
	}
	any := slices.Contains(c.Origins, "*")
	if any && len(c.Origins) > 1 {
		v.fail(path+".origins", "must hold nothing beside \"*\", which is any")
	}
	if any && c.Credentials {
		v.fail(path+".credentials", "must not be true where origins is \"*\": name the origins")
	}
	for i, o := range c.Origins {
		if msg := originFault(o); msg != "" {
			v.fail(itemPath(path+".origins", i), "%s, got %s", msg, quote(o))
		}
	}
	for i, m := range c.Methods {
		v.oneOf(itemPath(path+".methods", i), m, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	}
	for i, h := range c.Headers {
		if !fieldName(h) {
			v.fail(itemPath(path+".headers", i), "must be the name of a header field, got %s", quote(h))
		}
	}
	if c.MaxAge < 0 || c.MaxAge > 24*time.Hour {
		v.fail(path+".max_age", "must be from 0s to 24h, got %s", c.MaxAge)
	}
}

// originFault says why a browser would never send o as an Origin field, or
// returns "".
func originFault(o string) string {
	if o == "*" {
		return ""
	}
	u, err := url.Parse(o)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || o != u.Scheme+"://"+u.Host:
		return "must be scheme://host or scheme://host:port and nothing after it, or \"*\""
	case o != strings.ToLower(o):
		return "must be in lower case, as browsers write it"
	case strings.Contains(u.Host, "*"):
		return "must not hold a \"*\" beside other characters"
	case u.Scheme == "http" && u.Port() == "80", u.Scheme == "https" && u.Port() == "443":
		return fmt.Sprintf("must not have the port %s, which browsers leave out", u.Port())
	}
	return ""
}

// log checks the logs.
func (v *validator) log(l *Log) {
	v.oneOf("log.level", l.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", l.Format, "json", "text")
	if !(l.Sample >= 0 && l.Sample <= 1) {
		v.fail("log.sample", "must be from 0 to 1, got %v", l.Sample)
	}
}
