package upstream

import (
	"slices"
	"time"
)

// known returns the workers by URL, those that leave as well.
func (p *Pool) known() map[string]*Worker {
	all := p.leavers
	if members := p.all.Load(); members != nil { // which come after leavers with the same URL
		all = slices.Concat(all, *members)
	}
	known := make(map[string]*Worker, len(all))
	for _, w := range all {
		known[w.url] = w
	}
	return known
}

// enlist returns the workers of a list. They are new where the settings or the
// list have changed, with the engines that are known already.
func (p *Pool) enlist(m *members, list []listed, known map[string]*Worker) []*Worker {
	used := make([]bool, len(known)+len(p.leavers)+len(list)+1)
	use := func(w *Worker) {
		if w.id < len(used) {
			used[w.id] = true
		}
	}
	for _, w := range known {
		use(w)
	}
	for _, w := range p.leavers { // of which a member may have the URL
		use(w)
	}
	free := 0
	workers := make([]*Worker, len(list))
	for i, l := range list {
		w := known[l.url]
		switch {
		case w == nil || !w.fits(m.conf):
			for used[free] {
				free++
			}
			used[free] = true
			w = &Worker{newBackend(l.address, m.conf.protocol, m.conf.tls), p, m.conf, l.weight, m.conf.timeouts, l.source}
			w.id = free
		case w.conf != m.conf || w.weight != l.weight || w.source != l.source:
			w = &Worker{w.backend, p, m.conf, l.weight, m.conf.timeouts, l.source}
		}
		workers[i] = w
	}
	return workers
}

// fits reports whether b is what a worker with the settings s would be.
func (b *backend) fits(s *settings) bool {
	if b.tls != nil { // in HTTP/1.1, whatever the protocol
		return sameTLS(b.base, s.tls)
	}
	return b.protocol == s.protocol
}

// install makes the pool what next says. It cannot fail.
func (p *Pool) install(next *plan) {
	p.members = next.members
	conf, workers := p.members.conf, next.workers
	before := map[*backend]*Worker{} // and who is left in it leaves
	if p.all.Load() != nil {
		for _, w := range p.Workers() {
			before[w.backend] = w
		}
	}
	var fresh []*Worker
	for _, w := range workers {
		if _, ok := before[w.backend]; !ok {
			fresh = append(fresh, w)
		}
		delete(before, w.backend)
	}
	p.stopOldProbes(workers, before)
	p.mu.Lock()
	p.conf.Store(conf)
	p.all.Store(&workers)
	p.workers, p.arrange = workers, next.arrange
	for _, w := range workers {
		w.leaving.Store(false) // it may have left and come back
		w.drained = p.members.drained[w.url]
		w.current.Store(w)
		if conf.health.Interval == 0 { // nobody would find it well
			w.healthy.Store(true)
		}
	}
	p.refreshLocked()
	// No pick of the workers that leave can succeed from here on, see admit.
	now := time.Now()
	for _, w := range before {
		w.leaving.Store(true)
		w.noteLocked(now)
	}
	p.mu.Unlock()
	p.leavers = slices.DeleteFunc(p.leavers, func(w *Worker) bool { return !w.leaving.Load() })
	for _, w := range before {
		p.leavers = append(p.leavers, w)
	}
	p.joined.Add(uint64(len(fresh)))
	p.left.Add(uint64(len(before)))
	p.wakeReaper()
	if conf.abortPath != "" {
		p.startAborts()
	}
	p.startProbes(workers)
	for _, w := range fresh {
		p.lookAgain(w)
	}
}
