package h2c

import "time"

// One timer serves all deadlines of a connection. It is set to the earliest of
// them and looks at the others when it fires; a deadline that moves on, as
// that of a stream with every event, does not touch it.

// armLocked makes the timer fire at t at the latest.
func (c *Conn) armLocked(t time.Time) {
	if t.IsZero() || c.dead != nil || !c.armed.IsZero() && !t.Before(c.armed) {
		return
	}
	c.armed = t
	c.timer.Reset(time.Until(t))
}

// watchLocked begins to judge the peer's silence, as a stream is open.
func (c *Conn) watchLocked() {
	if c.checkAt.IsZero() {
		c.checkAt = time.Now().Add(c.cfg.PingAfter)
		c.heard, c.asked, c.wrote = c.ss.received, time.Time{}, -1
		c.armLocked(c.checkAt)
	}
}

// onTimer is what the timer does.
func (c *Conn) onTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return
	}
	now := time.Now()
	c.armed = time.Time{}
	if !c.checkAt.IsZero() && !now.Before(c.checkAt) {
		c.checkLocked(now)
	}
	for _, st := range c.ss.table {
		switch s := st.stream; {
		case s.deadline.IsZero() || s.expired:
		case now.Before(s.deadline):
			c.armLocked(s.deadline)
		default:
			s.expired = true
			c.rushLocked(s)
			s.wakeLocked()
		}
	}
	c.armLocked(c.checkAt)
	c.wakeTouchedLocked()
	c.kickLocked()
}

// checkLocked judges the silence of the peer, and whether it reads: one write
// must not take as long as from the check before the last one until now.
func (c *Conn) checkLocked(now time.Time) {
	if c.writing && c.wrote == c.writes {
		if c.stuck {
			c.dieLocked(ErrDeaf)
			return
		}
		c.stuck = true
	} else {
		c.stuck, c.wrote = false, c.writes
	}
	next := now.Add(c.cfg.PingAfter)
	switch {
	case c.ss.slots == 0:
		next = time.Time{}
	case c.ss.received != c.heard:
		c.heard, c.asked = c.ss.received, time.Time{}
	case c.asked.IsZero():
		c.asked = now
		c.ss.sendPing()
	case now.Sub(c.asked) >= c.cfg.PingTimeout:
		c.dieLocked(ErrNoAnswer)
		return
	}
	if end := c.asked.Add(c.cfg.PingTimeout); !c.asked.IsZero() && end.Before(next) {
		next = end
	}
	c.checkAt = next
}

// forgiveLocked lets a peer begin anew with frames that serve nothing, once a
// second at most: their number matters only for a time.
func (c *Conn) forgiveLocked() {
	if c.ss.junk <= maxJunk/2 {
		return
	}
	if now := time.Now(); now.Sub(c.forgiven) >= time.Second {
		c.forgiven, c.ss.junk = now, 0
	}
}
