package configs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ClientConfig reads the files and returns what crypto/tls needs of t to speak
// to a worker, or nil where t says nothing. The caller owns it. The error is a
// Fault whose Path is the key at fault, below t.
func (t *TLS) ClientConfig() (*tls.Config, error) {
	if *t == (TLS{}) {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := readPEM("ca", t.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Fault{Path: "ca", Msg: "file " + quote(t.CA) + " holds no certificate in PEM"}
		}
	}
	if t.Cert == "" && t.Key == "" {
		return c, nil
	}
	pair, err := t.certificate()
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// certificate reads the client certificate and its key.
func (t *TLS) certificate() (tls.Certificate, error) {
	switch {
	case t.Key == "":
		return tls.Certificate{}, Fault{Path: "key", Msg: "must be set beside cert"}
	case t.Cert == "":
		return tls.Certificate{}, Fault{Path: "cert", Msg: "must be set beside key"}
	}
	cert, err := readPEM("cert", t.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readPEM("key", t.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, Fault{Path: "cert", Msg: fmt.Sprintf("file %s and the file of key are no pair: %v", quote(t.Cert), err)}
	}
	return pair, nil
}

func readPEM(key, name string) ([]byte, error) {
	b, err := readSmall(name, maxSourceBytes)
	if err != nil {
		return nil, Fault{Path: key, Msg: "file " + quote(name) + " " + err.Error()}
	}
	return b, nil
}

// tls checks how the pool at path speaks TLS, files and all.
func (v *validator) tls(p *Pool, path string) {
	secure := speaksTLS(p.Workers)
	if secure && p.Protocol == "h2c" {
		v.fail(path+".protocol", "must be auto or http1 where a worker is https://: h2c is without TLS")
	}
	if p.TLS == (TLS{}) {
		return
	}
	path += ".tls"
	if !secure {
		v.fail(path, "has no effect: no worker of the pool is https://")
	}
	if name := p.TLS.ServerName; name != "" && net.ParseIP(name) == nil && !hostName(name) {
		v.fail(path+".server_name", "must be a host name or an IP address, got %s", quote(name))
	}
	var f Fault
	if _, err := p.TLS.ClientConfig(); errors.As(err, &f) {
		v.fail(childPath(path, f.Path), "%s", f.Msg)
	}
}

func speaksTLS(workers []Worker) bool {
	for _, w := range workers {
		if scheme, _, _ := strings.Cut(w.URL, "://"); strings.EqualFold(scheme, "https") {
			return true
		}
	}
	return false
}

// hostName reports whether s may be a name that a certificate is for.
func hostName(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !plainWord(label) {
			return false
		}
	}
	return len(s) <= 253
}
