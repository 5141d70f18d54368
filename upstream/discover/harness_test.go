package discover

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what a test waits for; no test depends on its value.
const patience = 20 * time.Second

// report is what Watch said.
type report struct {
	members string
	err     error
}

// watch watches s until the end of the test.
func watch(t *testing.T, s Source) <-chan report {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	reports := make(chan report, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		Watch(ctx, s, func(members []Member, err error) { reports <- report{textOf(members), err} })
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return reports
}

// textOf returns members as the lines of a file, with weights other than 1.
func textOf(members []Member) string {
	var all []string
	for _, m := range members {
		s := m.URL
		if m.Weight != 1 {
			s += fmt.Sprintf(" weight=%d", m.Weight)
		}
		all = append(all, s)
	}
	return strings.Join(all, "\n")
}

// wantMembers waits for members, and passes over those that are reported before.
func wantMembers(t *testing.T, reports <-chan report, want ...string) {
	t.Helper()
	var got []report
	end := time.After(patience)
	for {
		select {
		case r := <-reports:
			if r.err == nil && r.members == strings.Join(want, "\n") {
				return
			}
			got = append(got, r)
		case <-end:
			t.Fatalf("unexpected reports; got %v; want %q", got, want)
		}
	}
}

// wantError waits for an error that has text in it.
func wantError(t *testing.T, reports <-chan report, text string) {
	t.Helper()
	var got []report
	end := time.After(patience)
	for {
		select {
		case r := <-reports:
			if r.err != nil && strings.Contains(r.err.Error(), text) {
				return
			}
			got = append(got, r)
		case <-end:
			t.Fatalf("unexpected reports; got %v; want an error with %q", got, text)
		}
	}
}

// zone is a DNS server whose records change.
type zone struct {
	addr    string
	mu      sync.Mutex
	records map[string][]string // by "TYPE name."
	extra   map[string][]string
	rcodes  map[string]int // faults, by type
	overTCP map[string]int // questions, by type
	cut     bool           // answers over UDP
}

func startZone(t *testing.T) *zone {
	t.Helper()
	z := &zone{records: map[string][]string{}, extra: map[string][]string{}, rcodes: map[string]int{}, overTCP: map[string]int{}}
	ln, pc := listen(t)
	z.addr = ln.Addr().String()
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: z}, {Listener: ln, Handler: z}} {
		up := make(chan struct{})
		s.NotifyStartedFunc = func() { close(up) }
		ended := make(chan error, 1)
		go func() { ended <- s.ActivateAndServe() }()
		<-up
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	return z
}

// listen returns a port of both transports.
func listen(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if pc, err := net.ListenPacket("udp", ln.Addr().String()); err == nil {
			return ln, pc
		}
		_ = ln.Close() // somebody else has the other one
	}
	t.Fatal("no port is free in both transports")
	return nil, nil
}

// set changes the records, which are in the form of a zone file.
func (z *zone) set(change func(z *zone)) {
	z.mu.Lock()
	defer z.mu.Unlock()
	change(z)
}

func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	kind := dns.TypeToString[q.Question[0].Qtype]
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	key := kind + " " + q.Question[0].Name
	switch rcode, faulty := z.rcodes[kind]; {
	case faulty:
		m.Rcode = rcode
	case z.cut && udp:
		m.Truncated = true
	default:
		if !udp {
			z.overTCP[kind]++
		}
		m.Answer, m.Extra = rrs(z.records[key]), rrs(z.extra[key])
		if len(m.Answer) == 0 {
			m.Rcode = dns.RcodeNameError
		}
	}
	_ = w.WriteMsg(m) // who asked may have left
}

func rrs(lines []string) []dns.RR {
	var all []dns.RR
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		all = append(all, rr)
	}
	return all
}
