package upstream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

func fleet(t *testing.T, balance string, n int, change func(*PoolSpec)) *Pool {
	t.Helper()
	spec := withBalance(PoolSpec{Name: "p", Balance: balance})
	for i := range n {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: fmt.Sprintf("http://w%d:1", i)})
	}
	if change != nil {
		change(&spec)
	}
	p, err := NewPool(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// choose picks a worker for k and gives it back.
func choose(t *testing.T, p *Pool, k *Key) *Worker {
	t.Helper()
	w, err := p.Acquire(k)
	if err != nil {
		t.Fatal(err)
	}
	w.Release()
	return w
}

func session(i int) *Key { return &Key{Session: SessionKey(fmt.Appendf(nil, "session-%d", i))} }

// Over a cycle every worker is chosen exactly as often as it weighs, and never
// much more often in a row than it must.
func TestRoundRobin_WeightsAreExact(t *testing.T) {
	weights := []int{5, 1, 1, 3}
	p := fleet(t, RoundRobin, len(weights), func(s *PoolSpec) {
		for i, w := range weights {
			s.Workers[i].Weight = w
		}
	})
	for range 3 {
		got := map[*Worker]int{}
		var last *Worker
		row, longest := 0, 0
		for range 10 {
			w := choose(t, p, nil)
			got[w]++
			if row++; w != last {
				row = 1
			}
			last, longest = w, max(longest, row)
		}
		for i, w := range p.Workers() {
			if got[w] != weights[i] {
				t.Errorf("worker %d of weight %d was chosen %d times in 10", i, weights[i], got[w])
			}
		}
		if longest > 2 {
			t.Errorf("one worker was chosen %d times in a row", longest)
		}
	}
}

// At any time a worker has been chosen about as often as its weight says.
func TestRoundRobin_WeightsAreSmooth(t *testing.T) {
	for _, weights := range [][]int{{1, 2}, {5, 1, 1}, {1000, 1, 1, 1}, {300, 200, 100}, {7, 11, 13, 17, 19, 23}, {999, 1000, 998}} {
		p := newPool(t, RoundRobin, weights)
		total, chosen := 0, make([]int, len(weights))
		for _, w := range weights {
			total += w
		}
		for n := 1; n <= total; n++ {
			chosen[choose(t, p, nil).id]++
			for i, w := range weights {
				if due := float64(n*w) / float64(total); math.Abs(float64(chosen[i])-due) > 3 {
					t.Fatalf("%v: worker %d was chosen %d times in %d; want about %.1f", weights, i, chosen[i], n, due)
				}
			}
		}
		for i, w := range weights {
			if chosen[i] != w {
				t.Errorf("%v: worker %d was chosen %d times in a cycle of %d", weights, i, chosen[i], total)
			}
		}
	}
}

// Every place leads to the worker that a search from the first one finds.
func TestRoster_PlacesAreWeights(t *testing.T) {
	for range 50 {
		weights := weights(1+rand.IntN(40), func(int) int { return 2 * (1 + rand.IntN(1+rand.IntN(500))) })
		r := newRoster(newPool(t, Random, weights).Workers())
		covers := make([]uint64, len(weights))
		last := 0
		for place := range r.places {
			id := r.at(place).id
			if id < last {
				t.Fatalf("place %d of %v belongs to worker %d, the one before to %d", place, weights, id, last)
			}
			last = id
			covers[id]++
		}
		for i, n := range covers {
			if n*uint64(weights[0]) != covers[0]*uint64(weights[i]) || n == 0 {
				t.Fatalf("%v: worker %d covers %d places, the first one %d", weights, i, n, covers[0])
			}
		}
	}
}

func TestWeights_AreSharesOfLoad(t *testing.T) {
	for _, balance := range []string{LeastRequests, PowerOfTwo, Random} {
		p := fleet(t, balance, 3, func(s *PoolSpec) { s.Workers[0].Weight = 4 })
		for range 3000 {
			p.Pick()
		}
		for i, w := range p.Workers() {
			want := []float64{2000, 500, 500}[i]
			if got := float64(w.Load()); math.Abs(got-want) > want*.25 {
				t.Errorf("%s: worker %d has %v of 3000; want about %v", balance, i, got, want)
			}
			w.load.Store(0)
		}
	}
}

// power_of_two keeps the largest load far nearer to the mean than one draw.
func TestPowerOfTwo_Balances(t *testing.T) {
	p := fleet(t, PowerOfTwo, 100, nil)
	for range 10_000 {
		p.Pick()
	}
	for i, w := range p.Workers() {
		if n := w.Load(); n > 110 {
			t.Errorf("worker %d has load %d at a mean of 100", i, n)
		}
		w.load.Store(0)
	}
}

func TestConsistentHash_SticksAndSpreads(t *testing.T) {
	const workers, sessions = 20, 20_000
	p, twin := fleet(t, ConsistentHash, workers, nil), fleet(t, ConsistentHash, workers, nil)
	got := map[*Worker]int{}
	home := make([]*Worker, sessions)
	for i := range home {
		home[i] = choose(t, p, session(i))
		got[home[i]]++
		if choose(t, p, session(i)) != home[i] || choose(t, twin, session(i)).URL() != home[i].URL() {
			t.Fatalf("session %d does not stay, or another router sends it elsewhere", i)
		}
	}
	for _, w := range p.Workers() {
		if n := got[w]; n < sessions/workers/2 || n > sessions/workers*2 {
			t.Errorf("%s has %d of %d sessions", w.URL(), n, sessions)
		}
	}
	// A worker that goes takes nobody else's sessions with it, and gets its own
	// back.
	gone := p.Workers()[3]
	p.setHealthy(t.Context(), gone, false)
	for i := range home {
		switch w := choose(t, p, session(i)); {
		case w == gone:
			t.Fatalf("session %d is sent to a worker that is not well", i)
		case home[i] != gone && w != home[i]:
			t.Fatalf("session %d has moved without need", i)
		}
	}
	p.setHealthy(t.Context(), gone, true)
	for i := range home {
		if choose(t, p, session(i)) != home[i] {
			t.Fatalf("session %d does not come back", i)
		}
	}
	// A worker more moves about its share.
	bigger, moved := fleet(t, ConsistentHash, workers+1, nil), 0
	for i := range home {
		if choose(t, bigger, session(i)).URL() != home[i].URL() {
			moved++
		}
	}
	if share := sessions / (workers + 1); moved < share/2 || moved > share*2 {
		t.Errorf("one worker more moved %d of %d sessions; want about %d", moved, sessions, share)
	}
}

// Sessions are spread by weight.
func TestConsistentHash_Weights(t *testing.T) {
	const sessions = 30_000
	p := newPool(t, ConsistentHash, []int{1, 1, 3, 5})
	for i := range sessions {
		choose(t, p, session(i))
	}
	for i, w := range p.Workers() {
		want := float64(sessions*w.Weight()) / 10
		if got := float64(w.Picks()); math.Abs(got-want) > want*.3 {
			t.Errorf("worker %d has %v sessions; want about %v", i, got, want)
		}
	}
}

// In a large fleet with one worker in a hundred down, only the sessions of those
// move, to many others, and on two routers alike.
func TestConsistentHash_SomeAreDown(t *testing.T) {
	const workers, sessions = 1000, 20_000
	p, twin := newFleet(t, ConsistentHash, workers), newFleet(t, ConsistentHash, workers)
	home := make([]*Worker, sessions)
	for i := range home {
		home[i] = choose(t, p, session(i))
	}
	for i := 0; i < workers; i += 100 {
		p.setHealthy(t.Context(), p.Workers()[i], false)
		twin.setHealthy(t.Context(), twin.Workers()[i], false)
	}
	moved, to := 0, map[*Worker]bool{}
	for i := range home {
		w := choose(t, p, session(i))
		if w.URL() != choose(t, twin, session(i)).URL() {
			t.Fatalf("session %d is sent elsewhere by another router", i)
		}
		switch down := !home[i].Healthy(); {
		case !down && w != home[i]:
			t.Fatalf("session %d has moved without need", i)
		case down:
			moved++
			to[w] = true
		}
	}
	if moved < sessions/200 || moved > sessions/50 || len(to) < moved/2 {
		t.Errorf("%d of %d sessions have moved to %d workers", moved, sessions, len(to))
	}
}

// A retry is sent to another worker, of which all routers say that it is next.
func TestConsistentHash_Retry(t *testing.T) {
	retry := func(s *PoolSpec) { s.Retry = Retry{Attempts: 2, Budget: 1} }
	p, twin := fleet(t, ConsistentHash, 5, retry), fleet(t, ConsistentHash, 5, retry)
	for i := range 200 {
		failed := choose(t, p, session(i))
		w := p.Retry(2, failed, session(i))
		other := twin.Retry(2, choose(t, twin, session(i)), session(i))
		if w == nil || w == failed || other.URL() != w.URL() {
			t.Fatalf("session %d is sent to %v after %v failed, by another router to %v", i, w, failed, other)
		}
		w.Release()
		other.Release()
	}
}

// No worker gets more than its share times the load factor, however hot a
// session is.
func TestConsistentHash_LoadIsBounded(t *testing.T) {
	for _, balance := range []string{ConsistentHash, PrefixAware} {
		p := fleet(t, balance, 10, nil)
		hot := &Key{Session: SessionKey([]byte("hot"))}
		if balance == PrefixAware {
			hot = &Key{Blocks: []uint64{SessionKey([]byte("hot"))}}
		}
		var taken []*Worker
		for range 1000 {
			w, err := p.Acquire(hot)
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, w)
		}
		for _, w := range p.Workers() {
			if n := w.Load(); n > 126 {
				t.Errorf("%s: %s has load %d at a mean of 100", balance, w.URL(), n)
			}
		}
		if w := p.Retry(2, taken[0], hot); w != nil {
			t.Errorf("%s: a retry that the pool does not allow", balance)
		}
		for _, w := range taken {
			w.Release()
		}
	}
}

// conversation is a chat that grows by a turn at a time.
type conversation struct {
	text   []byte
	served map[*Worker]int // by worker, how much of it it has seen
}

// TestPrefixAware_HitRate plays many conversations of several turns at once,
// and counts which share of their bytes a worker is sent that it has served
// before, as the engine's own cache would see it.
func TestPrefixAware_HitRate(t *testing.T) {
	rate := func(balance string, sessions bool) float64 {
		p := fleet(t, balance, 16, nil)
		r := rand.New(rand.NewPCG(1, 2))
		system := make([]byte, 2000)
		for i := range system {
			system[i] = byte('a' + r.IntN(26))
		}
		chats := make([]conversation, 400)
		for i := range chats {
			chats[i] = conversation{append([]byte(nil), system...), map[*Worker]int{}}
		}
		seen := map[*Worker]bool{} // who has served the common beginning
		var sent, hits float64
		var under []*Worker
		for turn := range 8 * len(chats) {
			c := &chats[(turn*7919)%len(chats)]
			for range 300 + r.IntN(900) {
				c.text = append(c.text, byte('a'+r.IntN(26)))
			}
			var k Key
			if sessions {
				k = *session((turn * 7919) % len(chats))
			} else {
				k.Blocks = p.Affinity().AppendBlocks(nil, 1, c.text, false)
			}
			w, err := p.Acquire(&k)
			if err != nil {
				t.Fatal(err)
			}
			if under = append(under, w); len(under) > 64 {
				under[0].Release()
				under = under[1:]
			}
			known := c.served[w]
			if known == 0 && seen[w] {
				known = len(system)
			}
			sent, hits = sent+float64(len(c.text)), hits+float64(known)
			c.served[w], seen[w] = len(c.text), true
		}
		for _, w := range under {
			w.Release()
		}
		return hits / sent
	}
	aware, hashed, random := rate(PrefixAware, false), rate(ConsistentHash, true), rate(Random, false)
	t.Logf("share of bytes that the worker has served before: prefix_aware %.2f, consistent_hash with sessions %.2f, random %.2f", aware, hashed, random)
	if aware < hashed-.05 || aware < random+.2 {
		t.Errorf("unexpected hit rates: prefix_aware %.2f, consistent_hash %.2f, random %.2f", aware, hashed, random)
	}
}

func TestPrefixAware_FollowsTheLongestPrefix(t *testing.T) {
	p := fleet(t, PrefixAware, 8, nil)
	a, b := []uint64{10, 11, 12}, []uint64{10, 21, 22}
	first := choose(t, p, &Key{Blocks: a})
	if w := choose(t, p, &Key{Blocks: append(a[:3:3], 13)}); w != first {
		t.Errorf("a turn more is sent elsewhere")
	}
	if w := choose(t, p, &Key{Blocks: b}); w != first {
		t.Errorf("what begins alike is sent elsewhere")
	}
	if w := choose(t, p, &Key{Session: 7, Blocks: a}); w != choose(t, p, &Key{Session: 7}) {
		t.Errorf("a session does not come first")
	}
	p.setHealthy(t.Context(), first, false)
	if w := choose(t, p, &Key{Blocks: a}); w == first {
		t.Errorf("a worker that is not well is chosen")
	}
}

// A conversation whose worker has more than its share goes to the least loaded
// one, and stays there.
func TestPrefixAware_Spills(t *testing.T) {
	p := newFleet(t, PrefixAware, 3)
	k := &Key{Blocks: []uint64{1 << 60, 2 << 60, 3 << 60}}
	first := choose(t, p, k)
	var taken []*Worker
	for range freeLoad {
		w, err := p.Acquire(k)
		if err != nil || w != first {
			t.Fatalf("unexpected worker %v, %v; want %s", w, err, first.URL())
		}
		taken = append(taken, w)
	}
	second := choose(t, p, k)
	if second == first {
		t.Errorf("%s is chosen beyond its share", first.URL())
	}
	for _, w := range taken {
		w.Release()
	}
	if w := choose(t, p, k); w != second {
		t.Errorf("unexpected worker %s; want %s, which has served it last", w.URL(), second.URL())
	}
}

func TestAppendBlocks(t *testing.T) {
	a := Affinity{Session: true, Block: 64}
	text := make([]byte, 20_000)
	for i := range text {
		text[i] = byte(rand.IntN(256))
	}
	whole := a.AppendBlocks(nil, 1, text, false)
	if len(whole) < blocksOfASize || len(whole) > 200 {
		t.Errorf("unexpected number of blocks %d", len(whole))
	}
	for n := range 2000 {
		got := a.AppendBlocks(nil, 1, text[:n], false)
		for i, b := range got {
			if b != whole[i] {
				t.Fatalf("%d bytes: block %d is not that of the whole", n, i)
			}
		}
	}
	if x, y := a.AppendBlocks(nil, 1, text[:63], false), a.AppendBlocks(nil, 1, text[:63], true); len(x) != 0 || len(y) != 1 {
		t.Errorf("unexpected blocks of a short part: %v, %v", x, y)
	}
	if a.AppendBlocks(nil, 1, text[:64], false)[0] == a.AppendBlocks(nil, 2, text[:64], false)[0] {
		t.Error("the seed has no effect")
	}
}

// What conversations come back to is kept while others pass by once.
func TestPrefixes_SecondChance(t *testing.T) {
	p := newPrefixes(64 << 10)
	w := &Worker{backend: &backend{id: 2}}
	r := rand.New(rand.NewPCG(3, 4))
	live := make([]uint64, 500)
	for i := range live {
		live[i] = r.Uint64()
		p.served(live[i:i+1], w)
	}
	kept := 0
	for round := range 20 {
		kept = 0
		for i := range live {
			if p.server(live[i]) == w.id {
				kept++
			}
			p.served(live[i:i+1], w)
		}
		for range 2000 {
			p.served([]uint64{r.Uint64()}, &Worker{backend: &backend{id: round}})
		}
	}
	if kept < len(live)*8/10 {
		t.Errorf("%d of %d conversations are remembered", kept, len(live))
	}
}

func TestPrefixes_MemoryIsBoundedAndRaceFree(t *testing.T) {
	p := fleet(t, PrefixAware, 8, func(s *PoolSpec) { s.Prefix = Prefix{MaxBytes: 64 << 10, Block: 64} })
	if n := len(p.conf.Load().prefixes.sets) * setBytes; n != 64<<10 {
		t.Errorf("unexpected memory of %d bytes", n)
	}
	var all sync.WaitGroup
	for c := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for range 2000 {
				k := Key{Blocks: []uint64{r.Uint64(), r.Uint64(), r.Uint64N(50) << 50}}
				w, err := p.Acquire(&k)
				if err != nil {
					t.Error(err)
					return
				}
				w.Release()
			}
		})
	}
	all.Wait()
}
