package discover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// watchDNS is Watch for a name in the DNS.
func watchDNS(ctx context.Context, s *Source, tell func([]Member, error)) {
	l := &lookup{source: s, last: map[string][]netip.Addr{}}
	failed := 0 // in a row
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		members, ttl, err := l.members(ctx)
		tell(members, err)
		if failed++; err == nil {
			failed = 0
		}
		wait := s.wait(ttl, failed)
		// Routers that started together do not ask together, nor too early.
		timer.Reset(wait + rand.N(wait/10+1))
	}
}

// wait returns how long to wait for the next look after one whose records live
// for ttl, or after so many in a row that failed.
func (s *Source) wait(ttl time.Duration, failed int) time.Duration {
	if failed > 0 {
		ttl = s.MinInterval << min(failed-1, 16)
	}
	return min(max(ttl, s.MinInterval), s.MaxInterval)
}

// lookup finds the workers of a source in the DNS. It remembers what names had
// for addresses, by name and type, for when one of them cannot be asked: else a
// lost answer to AAAA would take half of a fleet away.
type lookup struct {
	source *Source
	last   map[string][]netip.Addr
}

// members returns the workers and how long they may be remembered. With an
// error the members are those that are still known, if any.
func (l *lookup) members(ctx context.Context) (members []Member, ttl time.Duration, err error) {
	r, err := newResolver(l.source.Resolver)
	if err != nil {
		return nil, 0, err
	}
	if l.source.SRV != "" {
		return l.services(ctx, r)
	}
	addrs, ttl, err := l.addresses(ctx, r, l.source.DNS)
	for _, a := range addrs {
		members = append(members, Member{l.source.at(a.String(), l.source.Port), 1})
	}
	if err == nil && len(members) == 0 {
		err = fmt.Errorf("%s has no addresses", l.source.DNS)
	}
	return members, ttl, err
}

// addresses returns the addresses of a name, and how long they may be
// remembered.
func (l *lookup) addresses(ctx context.Context, r *resolver, name string) (addrs []netip.Addr, ttl time.Duration, err error) {
	ttl = forever
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		key := dns.TypeToString[kind] + " " + name
		answer, askErr := r.ask(ctx, name, kind)
		if askErr != nil {
			err = errors.Join(err, askErr)
			addrs = append(addrs, l.last[key]...)
			continue
		}
		if found := answer.addresses(); len(found) > 0 {
			l.last[key] = found
			addrs = append(addrs, found...)
		} else {
			delete(l.last, key)
		}
		ttl = min(ttl, answer.ttl)
	}
	return addrs, ttl, err
}

// services returns the workers that SRV records name.
func (l *lookup) services(ctx context.Context, r *resolver) (members []Member, ttl time.Duration, err error) {
	answer, err := r.ask(ctx, l.source.SRV, dns.TypeSRV)
	if err != nil {
		return nil, 0, err
	}
	ttl = answer.ttl
	services := answer.services()
	if len(services) == 0 {
		return nil, 0, fmt.Errorf("%s has no services", l.source.SRV)
	}
	for _, srv := range services {
		weight := max(int(srv.Weight), 1)
		if l.source.Scheme == "https" {
			host := strings.TrimSuffix(srv.Target, ".")
			members = append(members, Member{l.source.at(host, int(srv.Port)), weight})
			continue
		}
		addrs, addrTTL := answer.beside(srv.Target)
		if len(addrs) == 0 {
			var askErr error
			addrs, addrTTL, askErr = l.addresses(ctx, r, srv.Target)
			err = errors.Join(err, askErr)
		}
		ttl = min(ttl, addrTTL)
		for _, a := range addrs {
			members = append(members, Member{l.source.at(a.String(), int(srv.Port)), weight})
		}
	}
	if err == nil && len(members) == 0 {
		err = fmt.Errorf("the services of %s have no addresses", l.source.SRV)
	}
	return members, ttl, err
}

// forever is the TTL of nothing.
const forever = 1<<63 - 1

// answer is what a resolver said of a name.
type answer struct {
	records []dns.RR
	extra   []dns.RR
	ttl     time.Duration
}

// addresses returns the addresses of the answer. Aliases on the way to them are
// passed over.
func (a *answer) addresses() []netip.Addr {
	var found []netip.Addr
	for _, rr := range a.records {
		if addr, ok := addressOf(rr); ok {
			found = append(found, addr)
		}
	}
	return found
}

// beside returns the addresses of a service's target that came with the answer,
// and their TTL. A resolver that sends some is taken to send all.
func (a *answer) beside(target string) (addrs []netip.Addr, ttl time.Duration) {
	ttl = forever
	for _, rr := range a.extra {
		if !strings.EqualFold(rr.Header().Name, target) {
			continue
		}
		if addr, ok := addressOf(rr); ok {
			addrs = append(addrs, addr)
			ttl = min(ttl, ttlOf(rr))
		}
	}
	return addrs, ttl
}

func addressOf(rr dns.RR) (netip.Addr, bool) {
	switch rr := rr.(type) {
	case *dns.A:
		addr, ok := netip.AddrFromSlice(rr.A)
		return addr.Unmap(), ok
	case *dns.AAAA:
		return netip.AddrFromSlice(rr.AAAA)
	}
	return netip.Addr{}, false
}

func ttlOf(rr dns.RR) time.Duration { return time.Duration(rr.Header().Ttl) * time.Second }

// services returns the SRV records that come first: others are for when none of
// those can be reached (RFC 2782), which a router finds out by probes. A target
// "." says that there is no service.
func (a *answer) services() []*dns.SRV {
	var found []*dns.SRV
	for _, rr := range a.records {
		if srv, ok := rr.(*dns.SRV); ok && srv.Target != "." && srv.Port != 0 {
			found = append(found, srv)
		}
	}
	if len(found) == 0 {
		return nil
	}
	first := slices.MinFunc(found, func(a, b *dns.SRV) int { return int(a.Priority) - int(b.Priority) }).Priority
	return slices.DeleteFunc(found, func(srv *dns.SRV) bool { return srv.Priority != first })
}
