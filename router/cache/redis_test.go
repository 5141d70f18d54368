package cache

import (
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestRedis_StoresAndExpires(t *testing.T) {
	s := newServer(t)
	r, l := newRedis(t, RedisOptions{Addr: s.addr(), Prefix: "p:"})
	k, missing := testKey(1), testKey(2)
	for _, e := range []*Entry{testEntry("body"), streamEntry(), testEntry(""), testEntry(strings.Repeat("x", 2<<20))} {
		putAndSee(t, r, &k, e)
	}
	if r.Get(&missing) != nil {
		t.Error("a hit without an entry")
	}
	name := r.name(&k)
	if !strings.HasPrefix(name, "p:") || len(name) != 2+64 {
		t.Errorf("unexpected name %q", name)
	}
	if got := s.do("EXISTS", name); got != ":1" {
		t.Errorf("the entry is not at its name: %q", got)
	}
	if got := s.do("PTTL", name); len(got) != len(":3599999") || got > ":3600000" {
		t.Errorf("unexpected PTTL; got %q; want an hour", got)
	}
	short := testKey(3)
	r.Put(&short, testEntry("x"), time.Millisecond)
	eventually(t, "an entry that expires", func() bool { return s.do("EXISTS", r.name(&short)) == ":0" && r.pending.Load() == 0 })
	for kind := range NumErrors {
		if n := r.stats.Errors[kind].Load(); n != 0 && kind != ErrorDown { // before it is up
			t.Errorf("%d errors of kind %s", n, kind)
		}
	}
	if l.count("level=WARN") != 0 {
		t.Errorf("unexpected warnings:\n%s", l)
	}
}

func TestRedis_Options(t *testing.T) {
	cert, key, trust := certificate(t)
	f := func(name string, args []string, o RedisOptions) {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, args...)
			o.Addr = s.addr()
			r, l := newRedis(t, o)
			k := testKey(1)
			putAndSee(t, r, &k, testEntry("x"))
			if text := l.String(); strings.Contains(text, "secret") {
				t.Errorf("the password is logged:\n%s", text)
			}
		})
	}
	f("database", nil, RedisOptions{DB: 7})
	f("password", []string{"--requirepass", "secret"}, RedisOptions{Password: "secret"})
	f("user", []string{"--user", "router", "on", ">secret", "~sluice:*", "+@all"}, RedisOptions{Username: "router", Password: "secret", Prefix: "sluice:"})
	t.Run("tls", func(t *testing.T) {
		tlsPort := freePort(t)
		newServer(t, "--tls-port", strconv.Itoa(tlsPort), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
		r, _ := newRedis(t, RedisOptions{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(tlsPort)), TLS: trust})
		k := testKey(1)
		putAndSee(t, r, &k, testEntry("x"))
		untrusted, l := newRedis(t, RedisOptions{Addr: r.options.Addr, TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
		eventually(t, "a warning", func() bool { return l.count("level=WARN") == 1 })
		if untrusted.Get(&k) != nil {
			t.Error("a hit from a server whose certificate is not trusted")
		}
	})
}

func TestRedis_WrongPassword(t *testing.T) {
	s := newServer(t, "--requirepass", "right")
	r, l := newRedis(t, RedisOptions{Addr: s.addr(), Password: "wrong-secret"})
	k := testKey(1)
	eventually(t, "a warning", func() bool { return l.count("level=WARN") == 1 })
	if r.Get(&k) != nil {
		t.Error("a hit")
	}
	if text := l.String(); strings.Contains(text, "wrong-secret") || !strings.Contains(text, "WRONGPASS") {
		t.Errorf("unexpected log:\n%s", text)
	}
}

// TestRedis_StartsWithoutServer has the server come later.
func TestRedis_StartsWithoutServer(t *testing.T) {
	s := newServer(t)
	s.kill()
	r, l := newRedis(t, RedisOptions{Addr: s.addr()})
	k := testKey(1)
	for range 100 {
		if r.Get(&k) != nil {
			t.Fatal("a hit")
		}
		r.Put(&k, testEntry("x"), time.Hour)
	}
	if n := r.stats.Errors[ErrorDown].Load(); n != 200 {
		t.Errorf("unexpected errors; got %d; want 200", n)
	}
	eventually(t, "a warning", func() bool { return l.count("level=WARN") == 1 })
	s.start()
	putAndSee(t, r, &k, testEntry("x"))
	if l.count("level=WARN") != 1 || l.count("serves again") != 1 {
		t.Errorf("unexpected log:\n%s", l)
	}
}

// TestRedis_StoppedAndStarted stops the server under traffic.
func TestRedis_StoppedAndStarted(t *testing.T) {
	s := newServer(t)
	r, l := newRedis(t, RedisOptions{Addr: s.addr()})
	k := testKey(1)
	putAndSee(t, r, &k, testEntry("x"))
	for range 3 {
		s.kill()
		eventually(t, "a miss", func() bool { return r.Get(&k) == nil })
		before := r.stats.Errors[ErrorDown].Load()
		for range 50 {
			if r.Get(&k) != nil {
				t.Fatal("a hit from a server that is gone")
			}
		}
		if n := r.stats.Errors[ErrorDown].Load() - before; n != 50 {
			t.Errorf("unexpected errors; got %d; want 50", n)
		}
		s.start()
		putAndSee(t, r, &k, testEntry("x"))
	}
	if n := l.count("level=WARN"); n > 2 { // one for each kind: down, and perhaps timeout
		t.Errorf("%d warnings:\n%s", n, l)
	}
}

// TestRedis_Slow stops the process of the server, which goes on later.
func TestRedis_Slow(t *testing.T) {
	s := newServer(t)
	r, l := newRedis(t, RedisOptions{Addr: s.addr(), Timeout: 50 * time.Millisecond})
	k := testKey(1)
	putAndSee(t, r, &k, testEntry("x"))
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for range 20 {
				if r.Get(&k) != nil {
					t.Error("a hit from a server that does not answer")
				}
				r.Put(&k, testEntry("y"), time.Hour)
			}
		})
	}
	wg.Wait()
	if n := r.stats.Errors[ErrorTimeout].Load(); n < lateLimit {
		t.Errorf("%d timeouts", n)
	}
	if r.up.Load() {
		t.Error("the server is taken to be up")
	}
	total := r.stats.Errors[ErrorTimeout].Load() + r.stats.Errors[ErrorDown].Load() + r.stats.Errors[ErrorBusy].Load()
	if total < 200*20 {
		t.Errorf("%d errors are counted; want one for each Get, %d", total, 200*20)
	}
	eventually(t, "a warning", func() bool { return l.count("level=WARN") > 0 })
	s.signal(syscall.SIGCONT)
	putAndSee(t, r, &k, testEntry("z"))
	if n := l.count("level=WARN"); n > 3 { // timeout, busy, down
		t.Errorf("%d warnings:\n%s", n, l)
	}
}

// TestRedis_NeverAnswers has a server that takes connections and says nothing, and
// one that cannot be reached: no look-up waits at all.
func TestRedis_NeverAnswers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r, l := newRedis(t, RedisOptions{Addr: ln.Addr().String()})
	k := testKey(1)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if r.Get(&k) != nil {
				t.Error("a hit")
			}
		})
	}
	wg.Wait()
	if n := r.stats.Errors[ErrorDown].Load(); n != 50 {
		t.Errorf("unexpected errors; got %d; want 50", n)
	}
	eventually(t, "a warning", func() bool { return l.count("level=WARN") == 1 })
}

// TestRedis_Full fills a server that may not evict.
func TestRedis_Full(t *testing.T) {
	s := newServer(t, "--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
	r, l := newRedis(t, RedisOptions{Addr: s.addr()})
	k := testKey(0)
	putAndSee(t, r, &k, testEntry("x"))
	body := strings.Repeat("x", 256<<10)
	n := 0
	eventually(t, "a server that is full", func() bool {
		n++
		fill := testKey(n)
		r.Put(&fill, testEntry(body), time.Hour)
		return r.stats.Errors[ErrorFull].Load() > 3
	})
	if r.Get(&k) == nil {
		t.Error("a full server is not read any more")
	}
	if l.count("level=WARN") != 1 || l.count("kind=full") != 1 {
		t.Errorf("unexpected log:\n%s", l)
	}
	if got := s.do("FLUSHALL"); got != "+OK" {
		t.Fatal(got)
	}
	putAndSee(t, r, &k, testEntry("y"))
}

// TestRedis_Foreign has something else at the keys.
func TestRedis_Foreign(t *testing.T) {
	s := newServer(t)
	r, l := newRedis(t, RedisOptions{Addr: s.addr(), Prefix: "sluice:"})
	k := testKey(1)
	putAndSee(t, r, &k, testEntry("x"))
	name := r.name(&k)
	want := uint64(0)
	f := func(args ...string) {
		t.Helper()
		s.do("DEL", name)
		if got := s.do(args...); got[0] == '-' {
			t.Fatal(got)
		}
		want++
		if r.Get(&k) != nil {
			t.Errorf("%q: a hit", args)
		}
		if n := r.stats.Errors[ErrorForeign].Load(); n != want {
			t.Errorf("%q: unexpected errors; got %d; want %d", args, n, want)
		}
	}
	f("RPUSH", name, "a list")
	f("HSET", name, "a", "hash")
	f("SADD", name, "a set")
	f("ZADD", name, "1", "a sorted set")
	f("SET", name, "garbage")
	f("SET", name, "")
	f("SET", name, string(streamEntry().Encoded()[:40]))
	f("RPUSH", name, "a list")
	putAndSee(t, r, &k, testEntry("y")) // over the list
	if l.count("level=WARN") != 1 || l.count("kind=foreign") != 1 {
		t.Errorf("unexpected log:\n%s", l)
	}
}

// TestRedis_NotAllowed has a user that may not write.
func TestRedis_NotAllowed(t *testing.T) {
	s := newServer(t, "--user", "reader", "on", ">pw", "~*", "+@read", "+ping", "+hello", "+client")
	r, l := newRedis(t, RedisOptions{Addr: s.addr(), Username: "reader", Password: "pw"})
	k := testKey(1)
	eventually(t, "an error", func() bool {
		r.Put(&k, testEntry("x"), time.Hour)
		return r.stats.Errors[ErrorOther].Load() > 3
	})
	if !r.up.Load() {
		t.Error("the server is taken to be down")
	}
	if l.count("level=WARN") != 1 || l.count("kind=other") != 1 {
		t.Errorf("unexpected log:\n%s", l)
	}
}

// TestRedis_Loading has a server that is there and does not serve.
func TestRedis_Loading(t *testing.T) {
	s := newServer(t, "--masterauth", "x")
	r, _ := newRedis(t, RedisOptions{Addr: s.addr()})
	k := testKey(1)
	putAndSee(t, r, &k, testEntry("x"))
	// A replica without its master, told not to serve what may be old.
	s.do("CONFIG", "SET", "replica-serve-stale-data", "no")
	s.do("REPLICAOF", "127.0.0.1", "1")
	eventually(t, "a server that is down", func() bool { return r.Get(&k) == nil && !r.up.Load() })
	s.do("REPLICAOF", "NO", "ONE")
	putAndSee(t, r, &k, testEntry("y"))
}

// TestRedis_Concurrent has many clients read and write at once, with each its own
// entries.
func TestRedis_Concurrent(t *testing.T) {
	s := newServer(t)
	r, _ := newRedis(t, RedisOptions{Addr: s.addr(), Timeout: patience})
	up := testKey(-1)
	putAndSee(t, r, &up, testEntry("x"))
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			k := testKey(g)
			want := strings.Repeat(string(rune('a'+g)), 10+g*1000)
			e := testEntry(want)
			for range 30 {
				r.Put(&k, e, time.Hour)
				if got := r.Get(&k); got != nil && string(got.Body()) != want {
					t.Error("another's entry")
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all is written", func() bool { return r.pending.Load() == 0 })
	if n := r.inFlight.Load(); n != 0 {
		t.Errorf("%d commands are under way", n)
	}
}

// TestRedis_CloseUnderTraffic closes while the server is silent.
func TestRedis_CloseUnderTraffic(t *testing.T) {
	s := newServer(t)
	r, _ := newRedis(t, RedisOptions{Addr: s.addr()})
	k := testKey(1)
	putAndSee(t, r, &k, testEntry("x"))
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	for range 50 {
		r.Put(&k, testEntry("x"), time.Hour)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Get(&k)
	}()
	r.Close()
	<-done
}
