package cache

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// Why Wait gave no entry.
var (
	// ErrAlone: the request that was waited for will not be stored, or does not
	// serve this one.
	ErrAlone = errors.New("the equal request under way brings no answer to share")
	// ErrWaited: it did not end in time.
	ErrWaited = errors.New("the equal request under way takes too long")
	// ErrCanceled: Seat.Cancel was called.
	ErrCanceled = errors.New("canceled while waiting for an equal request")
)

// Seat is a request's place among equal ones that are under way at the same time.
// The first to Join leads: it goes to the engine, and must Land. Those that come
// meanwhile follow, and must Wait, once. Whoever gets no entry goes to the engine
// by itself and does not join again, so that a failure does not make a queue of
// those it fails.
//
// The caller owns a Seat and may use it again after it has landed, or after Wait
// has returned; the zero value is ready. Cancel is safe for concurrent use.
type Seat struct {
	landed   chan *Entry   // of one place
	canceled chan struct{} // of one place
	timer    *time.Timer
	stats    *Stats

	flight *flightShard // where it leads or follows
	key    Key

	// Of flight.mu.
	leads      bool
	waits      bool
	leader     *Seat // of one that waits
	first      *Seat // of one that leads: those that wait
	prev, next *Seat // among those that wait
}

// flights are the requests that lead, by key.
type flights struct {
	shards [numFlights]flightShard
}

const numFlights = 32

type flightShard struct {
	mu      sync.Mutex
	leaders map[Key]*Seat
	_       [64]byte
}

func (f *flights) init() {
	for i := range f.shards {
		f.shards[i].leaders = make(map[Key]*Seat)
	}
}

// Join enters a request with the key k and reports whether it leads.
func (c *Cache) Join(k *Key, s *Seat) (leads bool) {
	if s.leads {
		panic("BUG: a Seat that leads joins again without having landed")
	}
	f := &c.flights.shards[binary.LittleEndian.Uint32(k[:])%numFlights]
	s.flight, s.key, s.stats = f, *k, c.stats
	f.mu.Lock()
	defer f.mu.Unlock()
	leader := f.leaders[*k]
	if leader == nil {
		f.leaders[*k] = s
		s.leads = true
		return true
	}
	s.leader, s.waits = leader, true
	s.prev, s.next = nil, leader.first
	if leader.first != nil {
		leader.first.prev = s
	}
	leader.first = s
	if s.landed == nil {
		s.landed = make(chan *Entry, 1)
	}
	return false
}

// Land ends the lead of s: those that wait get e, or go on alone if it is nil.
// That may be known before the request ends: when its answer turns out to be no
// answer to store. Only the first Land after a Join counts; without one, as after
// a Wait, it does nothing.
func (s *Seat) Land(e *Entry) {
	if s.flight == nil {
		return
	}
	s.flight.mu.Lock()
	defer s.flight.mu.Unlock()
	if !s.leads {
		return
	}
	delete(s.flight.leaders, s.key)
	for f := s.first; f != nil; {
		next := f.next
		f.leader, f.prev, f.next, f.waits = nil, nil, nil, false
		f.landed <- e
		f = next
	}
	s.first, s.leads = nil, false
}

// Prepare makes s ready to be canceled, before the Wait that Cancel may come
// before.
func (s *Seat) Prepare() {
	if s.canceled == nil {
		s.canceled = make(chan struct{}, 1)
	}
	select {
	case <-s.canceled: // of an earlier use
	default:
	}
}

// Cancel makes Wait return ErrCanceled. It does not block and may be called from
// any goroutine after Prepare.
func (s *Seat) Cancel() {
	select {
	case s.canceled <- struct{}{}:
	default:
	}
}

// Wait waits, after a Join that does not lead, for the entry of the one that does,
// at most for d. usage is as for Cache.Get. Without an entry the error says why.
func (s *Seat) Wait(d time.Duration, usage bool) (*Entry, error) {
	if s.timer == nil {
		s.timer = time.NewTimer(d)
	} else {
		s.timer.Reset(d)
	}
	defer s.timer.Stop()
	select {
	case e := <-s.landed:
		return s.landing(e, usage)
	case <-s.timer.C:
		if e, landed := s.leave(); landed {
			return s.landing(e, usage)
		}
		return nil, ErrWaited
	case <-s.canceled:
		s.leave()
		return nil, ErrCanceled
	}
}

// landing judges what the leader brought.
func (s *Seat) landing(e *Entry, usage bool) (*Entry, error) {
	if e == nil || !e.Serves(usage) {
		return nil, ErrAlone
	}
	s.stats.Coalesced.Add(1)
	return e, nil
}

// leave takes s from those that wait, or returns what landed at that moment.
func (s *Seat) leave() (e *Entry, landed bool) {
	s.flight.mu.Lock()
	defer s.flight.mu.Unlock()
	if !s.waits {
		return <-s.landed, true
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		s.leader.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.leader, s.prev, s.next, s.waits = nil, nil, nil, false
	return nil, false
}
