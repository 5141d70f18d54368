package discover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
)

const (
	// resolvConf names the servers of the system.
	resolvConf = "/etc/resolv.conf"
	// askTimeout bounds one question to one server over one transport.
	askTimeout = 2 * time.Second
	// udpSize is the largest answer over UDP that no network cuts up (DNS Flag
	// Day 2020). A larger one is asked for over TCP.
	udpSize = 1232
)

// resolver asks DNS servers. We ask ourselves, because Go's net does not tell
// the TTL.
type resolver struct {
	servers []string // host:port
	config  *dns.ClientConfig
}

// newResolver returns one for server, or for those of the system.
func newResolver(server string) (*resolver, error) {
	if server != "" {
		return &resolver{servers: []string{server}}, nil
	}
	config, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return nil, err
	}
	r := &resolver{config: config}
	for _, s := range config.Servers {
		r.servers = append(r.servers, net.JoinHostPort(s, config.Port))
	}
	if len(r.servers) == 0 {
		return nil, fmt.Errorf("%s names no server", resolvConf)
	}
	return r, nil
}

// names returns what a name may stand for, by the search list of the system.
func (r *resolver) names(name string) []string {
	if r.config == nil {
		return []string{dns.Fqdn(name)}
	}
	return r.config.NameList(name)
}

// ask returns the records of a type that a name has. That it has none is no
// error: the answer is empty then.
func (r *resolver) ask(ctx context.Context, name string, kind uint16) (*answer, error) {
	none := &answer{ttl: forever}
	for _, n := range r.names(name) {
		a, err := r.askServers(ctx, n, kind)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", dns.TypeToString[kind], n, err)
		}
		if len(a.records) > 0 {
			return a, nil
		}
		none.ttl = min(none.ttl, a.ttl)
	}
	return none, nil
}

// askServers asks one server after the other, until one knows.
func (r *resolver) askServers(ctx context.Context, name string, kind uint16) (*answer, error) {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	m.SetEdns0(udpSize, false)
	var all error
	for _, server := range r.servers {
		reply, err := exchange(ctx, m, server)
		if err == nil {
			switch reply.Rcode {
			case dns.RcodeSuccess, dns.RcodeNameError:
				return newAnswer(reply), nil
			}
			err = errors.New(dns.RcodeToString[reply.Rcode])
		}
		all = errors.Join(all, fmt.Errorf("%s: %w", server, err))
	}
	return nil, all
}

// exchange asks over UDP, and over TCP where the answer is too long.
func exchange(ctx context.Context, m *dns.Msg, server string) (*dns.Msg, error) {
	udp := &dns.Client{Net: "udp", UDPSize: udpSize, Timeout: askTimeout}
	reply, _, err := udp.ExchangeContext(ctx, m, server)
	if err == nil && !reply.Truncated {
		return reply, nil
	}
	tcp := &dns.Client{Net: "tcp", Timeout: askTimeout}
	if whole, _, tcpErr := tcp.ExchangeContext(ctx, m, server); tcpErr == nil {
		return whole, nil
	} else if err == nil {
		err = tcpErr
	}
	return nil, err
}

// newAnswer returns what a reply says, and for how long: the least TTL of its
// records, or that of there being none (RFC 2308 section 5).
func newAnswer(reply *dns.Msg) *answer {
	a := &answer{records: reply.Answer, extra: reply.Extra, ttl: forever}
	for _, rr := range reply.Answer {
		a.ttl = min(a.ttl, ttlOf(rr))
	}
	if len(reply.Answer) > 0 {
		return a
	}
	for _, rr := range reply.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			a.ttl = min(ttlOf(soa), time.Duration(soa.Minttl)*time.Second)
		}
	}
	return a
}
