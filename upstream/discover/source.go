// Package discover finds workers while the router runs: in a file that somebody
// else writes, or in the DNS. It knows addresses and nothing of pools; whoever
// watches a source tells them.
//
// What was found last stands until something better is found: a file that is
// empty or cannot be read, and a name that does not resolve or has no records,
// are faults to report and no reason to leave a fleet without workers.
package discover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Member is a worker that a source names.
type Member struct {
	// URL is its base URL, http://host:port or https://host:port.
	URL string
	// Weight is its share of the requests relative to that of others, at least 1.
	Weight int
}

// Source says where workers are named. Exactly one of File, DNS and SRV is set.
type Source struct {
	// File is the path of a list, see parseList for its forms.
	File string
	// DNS is a name whose A and AAAA records are workers, at Port.
	DNS  string
	Port int
	// SRV is a name whose SRV records are workers (RFC 2782), those of the lowest
	// priority number, with the weights of the records.
	SRV string
	// Scheme, http or https, is that of workers in the DNS. Empty means http. The
	// target of an SRV record stays a name for https, which its certificate is
	// checked against, and otherwise each address of it is a worker.
	Scheme string
	// Resolver is the DNS server, host:port. Empty means those of
	// /etc/resolv.conf, which is read each time, with its search list.
	Resolver string
	// MinInterval and MaxInterval bound the time between two looks. In between
	// the least TTL of the records decides. A failed look is followed by another
	// after MinInterval, and then after twice the time each time. A file that
	// does not tell of its changes is looked at every MaxInterval. Zero means a
	// second and a minute.
	MinInterval, MaxInterval time.Duration
}

// The bounds of intervals that a Source does not give.
const (
	defaultMin = time.Second
	defaultMax = time.Minute
)

// Check returns why s cannot be watched, or nil.
func (s *Source) Check() error {
	n := 0
	for _, given := range []string{s.File, s.DNS, s.SRV} {
		if given != "" {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("a source must be one of file, dns and srv")
	case s.DNS != "" && (s.Port < 1 || s.Port > 65535):
		return fmt.Errorf("a name in the DNS needs a port from 1 to 65535, got %d", s.Port)
	case !slices.Contains([]string{"", "http", "https"}, s.Scheme):
		return fmt.Errorf("the scheme must be http or https, got %q", s.Scheme)
	case s.MinInterval < 0 || s.MaxInterval < 0:
		return errors.New("intervals must not be negative")
	}
	if s.Resolver != "" {
		if _, _, err := net.SplitHostPort(s.Resolver); err != nil {
			return fmt.Errorf("the resolver must be host:port: %w", err)
		}
	}
	return nil
}

// Watch looks at s at once, and then whenever it may have changed, until ctx
// ends. It calls report from its own goroutine, one call at a time: with the
// members, at least one, in the order of their URLs, when they are others than
// before or the look before failed; and with an error when one fails, after which
// the members are what they were. s must be one that Check has nothing against.
func Watch(ctx context.Context, s Source, report func(members []Member, err error)) {
	if s.MinInterval == 0 {
		s.MinInterval = defaultMin
	}
	if s.MaxInterval == 0 {
		s.MaxInterval = defaultMax
	}
	s.MaxInterval = max(s.MaxInterval, s.MinInterval)
	if s.Scheme == "" {
		s.Scheme = "http"
	}
	n := &news{ctx: ctx, report: report}
	if s.File != "" {
		watchFile(ctx, &s, n.tell)
	} else {
		watchDNS(ctx, &s, n.tell)
	}
}

// news reports what is new.
type news struct {
	ctx    context.Context
	report func([]Member, error)
	last   []Member
	failed bool
}

// tell takes what a look has found. An error may come with members: then only a
// part of them is new.
func (n *news) tell(members []Member, err error) {
	if n.ctx.Err() != nil {
		return
	}
	if err != nil {
		n.report(nil, err)
		n.failed = true
	}
	if len(members) == 0 {
		return
	}
	if members = canonical(members); slices.Equal(members, n.last) && (err != nil || !n.failed) {
		return
	}
	n.failed = err != nil
	n.last = members
	n.report(slices.Clone(members), nil)
}

// canonical returns members in the order of their URLs, each once.
func canonical(members []Member) []Member {
	slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.URL, b.URL) })
	return slices.CompactFunc(members, func(a, b Member) bool { return a.URL == b.URL })
}

// at returns the URL of a worker.
func (s *Source) at(host string, port int) string {
	return s.Scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}
