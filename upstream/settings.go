package upstream

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
)

// settings are what a PoolSpec says, but for its workers. They do not change.
type settings struct {
	balance    string
	loadFactor float64
	// affinity is what of a key the choices depend on.
	affinity Affinity
	prefix   Prefix
	prefixes *prefixes // nil but for PrefixAware
	timeouts Timeouts
	protocol string
	health   Health
	breaker  Breaker
	retry    Retry
	budget   *budget
	limits   Limits
	// counted says that a request counts in admission.inFlight: there is a limit
	// for it, or choices depend on it.
	counted   bool
	tls       *tls.Config
	fields    FieldEdits
	abortPath string
}

// newSettings checks spec. What the pool remembers beyond its workers is taken
// over from old, which may be nil, where it is of the same kind.
func newSettings(spec *PoolSpec, old *settings) (*settings, error) {
	s := &settings{
		balance:    spec.Balance,
		loadFactor: spec.LoadFactor,
		prefix:     spec.Prefix,
		timeouts:   spec.Timeouts,
		protocol:   spec.Protocol,
		health:     spec.Health,
		breaker:    spec.Breaker,
		retry:      spec.Retry,
		limits:     spec.Limits,
		fields:     spec.Fields,
		abortPath:  spec.AbortPath,
	}
	if old != nil && sameTLS(old.tls, spec.TLS) {
		s.tls = old.tls // equal at a glance
	} else if spec.TLS != nil {
		s.tls = spec.TLS.Clone()
	}
	if s.protocol == "" {
		s.protocol = HTTP1
	}
	if !slices.Contains(Protocols, s.protocol) {
		return nil, fmt.Errorf("unknown protocol %q; want one of %q", s.protocol, Protocols)
	}
	if s.health.Interval > 0 && s.health.Timeout <= 0 {
		return nil, errors.New("probes must have a timeout")
	}
	if err := s.setBalance(old); err != nil {
		return nil, err
	}
	s.counted = s.counted || s.limits.Pool > 0
	if old != nil && old.retry.Budget == s.retry.Budget {
		s.budget = old.budget
	} else {
		s.budget = newBudget(s.retry.Budget)
	}
	return s, nil
}

// setBalance checks what choices depend on.
func (s *settings) setBalance(old *settings) error {
	if !slices.Contains(Balances, s.balance) {
		return fmt.Errorf("unknown balance %q; want one of %q", s.balance, Balances)
	}
	if s.balance != ConsistentHash && s.balance != PrefixAware {
		return nil
	}
	if !(s.loadFactor >= 1) {
		return fmt.Errorf("load factor must be at least 1, got %v", s.loadFactor)
	}
	s.counted = true
	s.affinity.Session = true
	if s.balance == ConsistentHash {
		return nil
	}
	if s.prefix.Block < 1 || s.prefix.MaxBytes < setBytes {
		return fmt.Errorf("prefixes must have blocks and memory, got %+v", s.prefix)
	}
	s.affinity.Block = s.prefix.Block
	if old != nil && old.prefixes != nil && old.prefix == s.prefix {
		s.prefixes = old.prefixes
	} else {
		s.prefixes = newPrefixes(s.prefix.MaxBytes)
	}
	return nil
}

// sameTLS reports whether a and b, which may be nil, make the same sessions.
// Files are read again at each reload, so that it is their content that counts.
// Hooks cannot be compared: two that have any are the same where they are one.
func sameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	if a.GetClientCertificate != nil || b.GetClientCertificate != nil || a.VerifyConnection != nil ||
		b.VerifyConnection != nil || a.VerifyPeerCertificate != nil || b.VerifyPeerCertificate != nil {
		return false
	}
	return a.ServerName == b.ServerName && a.InsecureSkipVerify == b.InsecureSkipVerify &&
		a.MinVersion == b.MinVersion && a.MaxVersion == b.MaxVersion &&
		slices.Equal(a.CipherSuites, b.CipherSuites) && slices.Equal(a.CurvePreferences, b.CurvePreferences) &&
		(a.RootCAs == nil) == (b.RootCAs == nil) && (a.RootCAs == nil || a.RootCAs.Equal(b.RootCAs)) &&
		slices.EqualFunc(a.Certificates, b.Certificates, sameCertificate)
}

// sameCertificate reports whether a and b prove the same. A certificate that was
// renewed for the same key is another one.
func sameCertificate(a, b tls.Certificate) bool {
	if !slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal) {
		return false
	}
	key, ok := a.PrivateKey.(interface{ Equal(crypto.PrivateKey) bool })
	return ok && key.Equal(b.PrivateKey)
}
