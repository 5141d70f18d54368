package router

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"sluice/configs"
)

// secure is the TLS of one listener. Connections take what it is at their
// handshake; those that are open keep theirs.
type secure struct {
	name      string // of the listener, for metrics
	auth      tls.ClientAuthType
	now       atomic.Pointer[tls.Config] // nil: the listener is plain
	good, bad atomic.Uint64              // times that the files were read anew
}

// prepare reads the files of t. It changes nothing, but counts what fails.
func (s *secure) prepare(t *configs.ServerTLS) (*tls.Config, error) {
	c, err := t.ServerConfig(s.auth)
	if err != nil {
		s.bad.Add(1)
		return nil, fmt.Errorf("TLS of the %s listener: %w", s.name, err)
	}
	return c, nil
}

// use has the handshakes from now on made with c, unless that would turn TLS on
// or off, which needs a restart.
func (s *secure) use(c *tls.Config) {
	if c != nil && s.now.Load() != nil {
		s.now.Store(c)
		s.good.Add(1)
	}
}

// config returns what a listener is made with, or nil for a plain one.
func (s *secure) config() *tls.Config {
	if s.now.Load() == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return s.now.Load(), nil
		},
	}
}

// write writes the metrics of the listener.
func (s *secure) write(w io.Writer) {
	metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_tls_reloads_total{listener=%q,result=\"success\"}", s.name), s.good.Load())
	metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_tls_reloads_total{listener=%q,result=\"failure\"}", s.name), s.bad.Load())
	c := s.now.Load()
	if c == nil {
		return
	}
	if leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0]); err == nil { // crypto/tls has read it
		metrics.WriteGaugeFloat64(w, fmt.Sprintf("sluice_tls_certificate_expiry_timestamp_seconds{listener=%q}", s.name), float64(leaf.NotAfter.Unix()))
	}
}

// listeners are the TLS of both.
type listeners struct {
	data, admin secure
	// reached is whether other machines reach the admin listener; it is settled
	// before it serves.
	reached bool
}

// prepared is the TLS of a configuration, read and not yet in use.
type prepared struct{ data, admin *tls.Config }

func (l *listeners) prepare(s *configs.Server) (p prepared, err error) {
	if p.data, err = l.data.prepare(&s.TLS); err != nil {
		return prepared{}, err
	}
	p.admin, err = l.admin.prepare(&s.Admin.TLS)
	return p, err
}

func (l *listeners) use(p prepared) {
	l.data.use(p.data)
	l.admin.use(p.admin)
}

// begin settles which listeners speak TLS.
func (l *listeners) begin(s *configs.Server) error {
	l.data.name, l.data.auth = "data", tls.RequireAndVerifyClientCert
	// Who has the token needs no certificate, and the page that asks for it
	// neither: who may is decided by serveAdmin.
	l.admin.name, l.admin.auth = "admin", tls.VerifyClientCertIfGiven
	p, err := l.prepare(s)
	if err != nil {
		return err
	}
	l.data.now.Store(p.data)
	l.admin.now.Store(p.admin)
	return nil
}

// listenData returns ln as the data listener: watched, and with TLS where the
// configuration has it.
func (r *Router) listenData(ln net.Listener) net.Listener {
	if c := r.secure.data.config(); c != nil {
		return r.watcher.ListenTLS(ln, c)
	}
	return r.watcher.Listen(ln)
}

// listenAdmin returns ln as the admin listener.
func (r *Router) listenAdmin(ln net.Listener) net.Listener {
	a, tcp := ln.Addr().(*net.TCPAddr)
	r.secure.reached = tcp && !a.IP.IsLoopback()
	if c := r.secure.admin.config(); c != nil {
		return tls.NewListener(ln, c)
	}
	return ln
}
