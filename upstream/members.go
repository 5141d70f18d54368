package upstream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What Worker.Source names beside PoolSpec.Sources, which must not be equal to
// one of them.
const (
	// SourceConfig: PoolSpec.Workers has the worker.
	SourceConfig = "config"
	// SourceAdmin: it was added by hand, with Pool.Add.
	SourceAdmin = "admin"
)

// Why the members of a pool were not changed.
var (
	// ErrNotMember: no worker of the pool has the URL.
	ErrNotMember = errors.New("no such worker")
	// ErrUnknownSource: PoolSpec.Sources does not name it, or not any more.
	ErrUnknownSource = errors.New("no such source of workers")
	// ErrClosed: Pool.Close was called.
	ErrClosed = errors.New("the pool is closed")
)

// membership is the part of a pool that knows who its workers are.
type membership struct {
	changes sync.Mutex // held during each change; taken before qmu and mu
	members members
	leavers []*Worker // with requests under way
	// departed is what was counted by workers that are gone, so that the sums of
	// a pool do not shrink.
	departed Counters

	joined, left atomic.Uint64
}

// members says who shall be a member, and by whose word. A change makes a copy,
// so that it can fail.
type members struct {
	conf    *settings
	static  []WorkerSpec
	sources map[string]source
	// By hand: workers that were added, and URLs that were removed though a
	// source names them, or drained.
	added            []WorkerSpec
	removed, drained map[string]bool
}

// source is what one of PoolSpec.Sources said last.
type source struct {
	specs    []WorkerSpec
	updated  time.Time
	failures uint64
	err      error // nil after an update
}

// SourceStatus is how a source of workers fares.
type SourceStatus struct {
	Name string
	// Workers is how many it named last, and Updated when that was, zero for
	// never.
	Workers int
	Updated time.Time
	// Failures counts Pool.SourceFailed, and Err is the error of the last one,
	// nil where the source has been heard of since.
	Failures uint64
	Err      error
}

// Apply changes p to what spec says, without an interruption. On an error
// nothing has changed.
//
// A worker with the same URL, TLS and protocol keeps its load, health, breaker,
// connections and counters. Others join, or leave: they get no new requests, and
// when those under way have ended their connections are closed. Everything else
// holds for requests that begin after Apply, and those that wait in the queue
// wait on for a place under the new limits. What a source of spec.Sources has
// said so far stays.
//
// What was done by hand stays, too: a worker that was added until it is removed,
// and one that was removed or drained for as long as it is named at all. Nothing
// of it survives the process.
func (p *Pool) Apply(spec PoolSpec) error { return p.change(p.replace(&spec)) }

// Check returns the error that Apply would, and changes nothing: several pools
// that are to change together are checked first.
func (p *Pool) Check(spec PoolSpec) error {
	p.changes.Lock()
	defer p.changes.Unlock()
	if _, err := p.plan(p.replace(&spec)); err != nil {
		return fmt.Errorf("pool %q: %w", p.name, err)
	}
	return nil
}

// replace is the change that Apply makes.
func (p *Pool) replace(spec *PoolSpec) func(m *members) error {
	return func(m *members) error {
		if spec.Name != p.name {
			return fmt.Errorf("a pool keeps its name, got %q", spec.Name)
		}
		conf, err := newSettings(spec, m.conf)
		if err != nil {
			return err
		}
		m.conf, m.static = conf, slices.Clone(spec.Workers)
		known := m.sources
		m.sources = map[string]source{}
		for _, name := range spec.Sources {
			m.sources[name] = known[name]
		}
		if len(m.static)+len(m.sources)+len(m.added) == 0 {
			return errors.New("no workers")
		}
		return nil
	}
}

// SetMembers makes specs, none of which may be any, the workers that a source
// of PoolSpec.Sources names. A worker that several name is one, with the weight
// that it was given by hand, or else by the configuration, or else by the source
// with the first name. On an error nothing has changed.
func (p *Pool) SetMembers(name string, specs []WorkerSpec) error {
	return p.change(func(m *members) error {
		s, ok := m.sources[name]
		if !ok {
			return ErrUnknownSource
		}
		s.specs, s.updated, s.err = slices.Clone(specs), time.Now(), nil
		m.sources[name] = s
		return nil
	})
}

// SourceFailed notes that a source could not say who the workers are. They stay
// those that it named last.
func (p *Pool) SourceFailed(name string, err error) {
	p.changes.Lock()
	defer p.changes.Unlock()
	if s, ok := p.members.sources[name]; ok {
		s.failures, s.err = s.failures+1, err
		p.members.sources[name] = s
	}
}

// Sources returns how the sources fare, by name.
func (p *Pool) Sources() []SourceStatus {
	p.changes.Lock()
	defer p.changes.Unlock()
	var all []SourceStatus
	for _, name := range slices.Sorted(maps.Keys(p.members.sources)) {
		s := p.members.sources[name]
		all = append(all, SourceStatus{name, len(s.specs), s.updated, s.failures, s.err})
	}
	return all
}

// Add makes a worker a member by hand, or gives one another weight.
func (p *Pool) Add(spec WorkerSpec) error {
	return p.byHand(spec.URL, func(m *members, url string) error {
		m.dropAdded(url)
		m.added = append(m.added, spec)
		delete(m.removed, url)
		return nil
	})
}

// Remove makes a worker leave by hand, whoever made it a member.
func (p *Pool) Remove(url string) error {
	return p.byHand(url, func(m *members, url string) error {
		if p.member(url) == nil {
			return ErrNotMember
		}
		m.dropAdded(url)
		m.removed[url] = true // forgotten where no source names it, see merge
		return nil
	})
}

// Drain keeps new requests from a worker. It finishes what it has and is probed
// as before.
func (p *Pool) Drain(url string) error { return p.setDrained(url, true) }

// Undrain takes a Drain back.
func (p *Pool) Undrain(url string) error { return p.setDrained(url, false) }

func (p *Pool) setDrained(url string, drained bool) error {
	return p.byHand(url, func(m *members, url string) error {
		if p.member(url) == nil {
			return ErrNotMember
		}
		m.drained[url] = drained
		return nil
	})
}

// MembershipChanges returns how many workers have joined and how many have left.
// A worker whose TLS or protocol changed has done both.
func (p *Pool) MembershipChanges() (joined, left uint64) { return p.joined.Load(), p.left.Load() }

// Leaving returns the workers that are no members any more and have requests
// under way.
func (p *Pool) Leaving() []*Worker {
	p.changes.Lock()
	defer p.changes.Unlock()
	return slices.DeleteFunc(slices.Clone(p.leavers), func(w *Worker) bool { return w.load.Load() == 0 })
}

// byHand makes a change to the worker with the URL, which is given in its one
// form.
func (p *Pool) byHand(url string, edit func(m *members, url string) error) error {
	a, err := parseAddress(url)
	if err != nil {
		return fmt.Errorf("pool %q: %w", p.name, err)
	}
	return p.change(func(m *members) error { return edit(m, a.url) })
}

// member returns the worker with the URL in its one form, or nil.
func (p *Pool) member(url string) *Worker {
	for _, w := range p.Workers() {
		if w.url == url {
			return w
		}
	}
	return nil
}

// change has edit change a copy of the members, and makes it so.
func (p *Pool) change(edit func(m *members) error) error {
	p.changes.Lock()
	next, err := p.plan(edit)
	if err == nil {
		p.install(next)
	}
	p.changes.Unlock()
	if err != nil {
		return fmt.Errorf("pool %q: %w", p.name, err)
	}
	p.dispatch() // there may be room now for those who wait
	return nil
}

// plan is what a pool shall be.
type plan struct {
	members members
	workers []*Worker
	arrange arranger
}

// plan returns what edit makes of the pool. It is called with changes held.
func (p *Pool) plan(edit func(m *members) error) (*plan, error) {
	if p.closed {
		return nil, ErrClosed
	}
	m := p.members
	m.sources, m.removed, m.drained = clone(m.sources), clone(m.removed), clone(m.drained)
	if err := edit(&m); err != nil {
		return nil, err
	}
	known := p.known()
	list, err := m.merge(known)
	if err != nil {
		return nil, err
	}
	workers := p.enlist(&m, list, known)
	arrange, err := p.newArranger(m.conf, workers)
	if err != nil {
		return nil, err
	}
	return &plan{m, workers, arrange}, nil
}

// clone is maps.Clone that never returns nil.
func clone[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m))
	maps.Copy(c, m)
	return c
}

// dropAdded forgets what was added by hand with the URL. The slice is another
// one afterwards.
func (m *members) dropAdded(url string) {
	var kept []WorkerSpec
	for _, s := range m.added {
		if a, err := parseAddress(s.URL); err != nil || a.url != url {
			kept = append(kept, s)
		}
	}
	m.added = kept
}

// listed is a worker that shall be a member.
type listed struct {
	address
	weight int
	source string
}

// merge returns the workers that anybody names, each once, and forgets what was
// done by hand to others. known are workers by URL.
func (m *members) merge(known map[string]*Worker) ([]listed, error) {
	list := make([]listed, 0, len(m.static)+len(m.added))
	places := make(map[string]int, cap(list))
	removed := map[string]bool{}
	read := func(source string, specs []WorkerSpec) error {
		for _, s := range specs {
			a, err := parseKnown(s.URL, known)
			if err != nil {
				return err
			}
			if m.removed[a.url] {
				removed[a.url] = true
				continue
			}
			i, ok := places[a.url]
			if !ok {
				places[a.url] = len(list)
				list = append(list, listed{a, max(s.Weight, 1), source})
				continue
			}
			if at := &list[i]; !strings.HasSuffix(at.source, source) {
				at.source += "," + source
			}
			if source == SourceAdmin {
				list[i].weight = max(s.Weight, 1)
			}
		}
		return nil
	}
	err := read(SourceConfig, m.static)
	for _, name := range slices.Sorted(maps.Keys(m.sources)) {
		err = errors.Join(err, read(name, m.sources[name].specs))
	}
	if err = errors.Join(err, read(SourceAdmin, m.added)); err != nil {
		return nil, err
	}
	m.removed = removed
	maps.DeleteFunc(m.drained, func(url string, drained bool) bool {
		_, ok := places[url]
		return !ok || !drained
	})
	return list, nil
}

// parseKnown is parseAddress, at less than its price for most of a fleet.
func parseKnown(raw string, known map[string]*Worker) (address, error) {
	if w := known[raw]; w != nil {
		return w.address, nil
	}
	return parseAddress(raw)
}
