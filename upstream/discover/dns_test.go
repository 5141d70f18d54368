package discover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// quick looks as often as it may.
func quick(s Source) Source {
	s.MinInterval, s.MaxInterval = time.Millisecond, time.Millisecond
	return s
}

func TestDNS_Addresses(t *testing.T) {
	z := startZone(t)
	z.set(func(z *zone) {
		z.records["A e.test."] = []string{"e.test. 1 IN CNAME f.test.", "f.test. 1 IN A 10.0.0.2", "f.test. 1 IN A 10.0.0.1"}
	})
	reports := watch(t, quick(Source{DNS: "e.test", Port: 30000, Resolver: z.addr}))
	wantMembers(t, reports, "http://10.0.0.1:30000", "http://10.0.0.2:30000")
	z.set(func(z *zone) { z.records["AAAA e.test."] = []string{"e.test. 1 IN AAAA fd00::1"} })
	wantMembers(t, reports, "http://10.0.0.1:30000", "http://10.0.0.2:30000", "http://[fd00::1]:30000")
	z.set(func(z *zone) { z.records["A e.test."] = z.records["A e.test."][2:] })
	wantMembers(t, reports, "http://10.0.0.1:30000", "http://[fd00::1]:30000")
}

// What was found last stands while the DNS fails, type by type, and a name
// without records is a failure.
func TestDNS_FailureKeepsTheLastAnswer(t *testing.T) {
	z := startZone(t)
	z.set(func(z *zone) {
		z.records["A e.test."] = []string{"e.test. 1 IN A 10.0.0.1"}
		z.records["AAAA e.test."] = []string{"e.test. 1 IN AAAA fd00::1"}
	})
	reports := watch(t, quick(Source{DNS: "e.test.", Port: 80, Scheme: "https", Resolver: z.addr}))
	wantMembers(t, reports, "https://10.0.0.1:80", "https://[fd00::1]:80")
	z.set(func(z *zone) {
		z.rcodes["AAAA"] = dns.RcodeServerFailure
		z.records["A e.test."] = []string{"e.test. 1 IN A 10.0.0.2"}
	})
	wantError(t, reports, "AAAA e.test.: "+z.addr+": SERVFAIL")
	wantMembers(t, reports, "https://10.0.0.2:80", "https://[fd00::1]:80")
	z.set(func(z *zone) {
		clear(z.rcodes)
		clear(z.records)
	})
	wantError(t, reports, "e.test. has no addresses")
	z.set(func(z *zone) { z.records["A e.test."] = []string{"e.test. 1 IN A 10.0.0.3"} })
	r := <-reports
	for ; r.err != nil; r = <-reports { // and nobody was told of an empty list
		if !strings.Contains(r.err.Error(), "e.test") {
			t.Fatalf("unexpected error %v", r.err)
		}
	}
	if r.members != "https://10.0.0.3:80" {
		t.Fatalf("unexpected members %q", r.members)
	}
}

// The same members are told again after a failure, so that who listens knows
// that it is over.
func TestDNS_RecoveryIsTold(t *testing.T) {
	z := startZone(t)
	z.set(func(z *zone) { z.records["A e.test."] = []string{"e.test. 1 IN A 10.0.0.1"} })
	reports := watch(t, quick(Source{DNS: "e.test", Port: 80, Resolver: z.addr}))
	wantMembers(t, reports, "http://10.0.0.1:80")
	z.set(func(z *zone) { z.rcodes["A"], z.rcodes["AAAA"] = dns.RcodeRefused, dns.RcodeRefused })
	wantError(t, reports, "REFUSED")
	z.set(func(z *zone) { clear(z.rcodes) })
	wantMembers(t, reports, "http://10.0.0.1:80")
}

func TestDNS_LongAnswer(t *testing.T) {
	z := startZone(t)
	var want []string
	z.set(func(z *zone) {
		z.cut = true
		for i := range 200 {
			z.records["A e.test."] = append(z.records["A e.test."], fmt.Sprintf("e.test. 1 IN A 10.0.0.%d", i))
			want = append(want, fmt.Sprintf("http://10.0.0.%d:80", i))
		}
	})
	members := make([]Member, len(want))
	for i := range want {
		members[i] = Member{want[i], 1}
	}
	wantMembers(t, watch(t, quick(Source{DNS: "e.test", Port: 80, Resolver: z.addr})), textOf(canonical(members)))
}

func TestDNS_Services(t *testing.T) {
	z := startZone(t)
	z.set(func(z *zone) {
		z.records["SRV _http._tcp.e.test."] = []string{
			"_http._tcp.e.test. 1 IN SRV 10 5 8001 a.test.",
			"_http._tcp.e.test. 1 IN SRV 10 0 8002 b.test.",
			"_http._tcp.e.test. 1 IN SRV 20 9 8003 spare.test.",
		}
		z.extra["SRV _http._tcp.e.test."] = []string{"a.test. 1 IN A 10.0.0.1"}
		z.records["A b.test."] = []string{"b.test. 1 IN A 10.0.0.2", "b.test. 1 IN A 10.0.0.3"}
		z.records["A spare.test."] = []string{"spare.test. 1 IN A 10.0.0.4"}
	})
	s := Source{SRV: "_http._tcp.e.test", Resolver: z.addr}
	reports := watch(t, quick(s))
	wantMembers(t, reports, "http://10.0.0.1:8001 weight=5", "http://10.0.0.2:8002", "http://10.0.0.3:8002")
	s.Scheme = "https"
	wantMembers(t, watch(t, quick(s)), "https://a.test:8001 weight=5", "https://b.test:8002")
	z.set(func(z *zone) {
		z.records["SRV _http._tcp.e.test."] = []string{"_http._tcp.e.test. 1 IN SRV 0 0 0 ."}
	})
	wantError(t, reports, "_http._tcp.e.test has no services")
	z.set(func(z *zone) { z.rcodes["SRV"] = dns.RcodeServerFailure })
	wantError(t, reports, "SRV _http._tcp.e.test.: "+z.addr+": SERVFAIL")
}

func TestDNS_Wait(t *testing.T) {
	s := Source{MinInterval: 2 * time.Second, MaxInterval: time.Minute}
	f := func(ttl time.Duration, failed int, want time.Duration) {
		t.Helper()
		if got := s.wait(ttl, failed); got != want {
			t.Errorf("ttl %v, %d failed: unexpected wait; got %v; want %v", ttl, failed, got, want)
		}
	}
	f(30*time.Second, 0, 30*time.Second)
	f(0, 0, 2*time.Second)
	f(time.Hour, 0, time.Minute)
	f(forever, 0, time.Minute)
	f(30*time.Second, 1, 2*time.Second)
	f(0, 2, 4*time.Second)
	f(0, 5, 32*time.Second)
	f(0, 1000, time.Minute)
}

// The least TTL counts, aliases included, and where there are no records that
// of their absence.
func TestDNS_TTL(t *testing.T) {
	f := func(want time.Duration, answer, ns []string) {
		t.Helper()
		if got := newAnswer(&dns.Msg{Answer: rrs(answer), Ns: rrs(ns)}).ttl; got != want {
			t.Errorf("unexpected ttl; got %v; want %v", got, want)
		}
	}
	f(5*time.Second, []string{"a. 5 IN CNAME b.", "b. 7 IN A 10.0.0.1"}, nil)
	f(7*time.Second, []string{"a. 9 IN CNAME b.", "b. 7 IN A 10.0.0.1"}, nil)
	f(3*time.Second, nil, []string{"test. 9 IN SOA a. b. 1 1 1 1 3"})
	f(forever, nil, nil)
}

// Nobody answers: the end of the watch does not wait for it.
func TestDNS_EndsWhileItAsks(t *testing.T) {
	z := startZone(t)
	z.mu.Lock() // who asks waits
	t.Cleanup(z.mu.Unlock)
	watch(t, quick(Source{DNS: "e.test", Port: 80, Resolver: z.addr}))
}

func TestSource_Check(t *testing.T) {
	f := func(want string, s Source) {
		t.Helper()
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("unexpected error; got %v; want %q", err, want)
		}
	}
	f("must be one of", Source{})
	f("must be one of", Source{File: "a", SRV: "b"})
	f("port from 1 to 65535, got 0", Source{DNS: "a"})
	f("port from 1 to 65535, got 65536", Source{DNS: "a", Port: 65536})
	f(`http or https, got "ftp"`, Source{SRV: "a", Scheme: "ftp"})
	f("host:port", Source{SRV: "a", Resolver: "10.0.0.1"})
	f("negative", Source{SRV: "a", MinInterval: -1})
}
