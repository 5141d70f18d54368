//go:build goexperiment.simd && amd64

package probe

import "math/bits"

// brackets are the open brackets of a nested value, one bit each: 1 for '{' and 0
// for '['. The innermost, up to 64, are at hand, the others spilled.
type brackets struct {
	top     uint64 // the lowest bit is the innermost bracket
	held    int    // how many are in top; the bits above have no meaning
	limit   int    // how many may be in top and those to come
	spills  int
	spilled *[MaxDepth / spillBits]uint32
}

// spillBits is the number of brackets that are spilled at once.
const spillBits = 32

// read opens and closes the brackets of a block: opens and shuts are where they
// stand, curlies says of each which kind it is. It returns 0 if some are open
// after the block, the number of bytes up to the one that closed the last, or -1
// for a fault.
//
// Four bytes are read in one step, by a table of what they do as a whole.
func (o *brackets) read(opens, shuts, curlies uint64) int {
	top, held, at := o.top, o.held, 0
	for {
		marks := opens | shuts
		if marks&15 == 0 {
			if marks == 0 {
				break
			}
			skip := bits.TrailingZeros64(marks) & 60
			opens, shuts, curlies = opens>>skip, shuts>>skip, curlies>>skip
			at += skip
		}
		step := &bracketSteps[opens&15|shuts&15<<4|curlies&15<<8]
		pops, pushes := int(step.pops), int(step.pushes)
		if held <= pops || held+pushes > 64 {
			// Slow path: the last bracket may be closed, or top is empty or full.
			o.top, o.held = top, held
			end, done := o.readFew(opens, shuts, curlies, pops)
			top, held = o.top, o.held
			if end != 0 {
				if end > 0 {
					end += at
				}
				return end
			}
			if !done {
				continue
			}
		} else {
			if (top^uint64(step.popKinds))&uint64(step.popMask) != 0 || held+int(step.rise) > o.limit {
				return -1
			}
			top = top>>(uint(pops)&63)<<(uint(pushes)&63) | uint64(step.pushKinds)
			held += pushes - pops
		}
		opens, shuts, curlies = opens>>4, shuts>>4, curlies>>4
		at += 4
	}
	o.top, o.held = top, held
	return 0
}

// readFew reads the first four bytes if none is spilled and the last bracket may
// be closed; else it makes room in top, or fetches what was spilled, and reports
// that it has not read them.
func (o *brackets) readFew(opens, shuts, curlies uint64, pops int) (end int, done bool) {
	switch {
	case o.held > pops: // full
		o.held -= spillBits
		o.limit -= spillBits
		o.spilled[o.spills] = uint32(o.top >> uint(o.held))
		o.spills++
		return 0, false
	case o.spills > 0:
		o.spills--
		o.top = o.top&(1<<uint(o.held)-1) | uint64(o.spilled[o.spills])<<uint(o.held)
		o.held += spillBits
		o.limit += spillBits
		return 0, false
	}
	for i := range 4 {
		kind := curlies >> i & 1
		switch {
		case opens>>i&1 != 0:
			if o.held == o.limit {
				return -1, true
			}
			o.top = o.top<<1 | kind
			o.held++
		case shuts>>i&1 != 0:
			if o.held == 0 || o.top&1 != kind {
				return -1, true
			}
			o.top >>= 1
			if o.held--; o.held == 0 {
				return i + 1, true
			}
		}
	}
	return 0, true
}

// A bracketStep is what the brackets among four bytes do as a whole: they close
// some that were open before and open some that stay open.
type bracketStep struct {
	pops, pushes        uint8
	popKinds, pushKinds uint8 // the lowest bit is the first popped, the last pushed
	popMask             uint8 // as many bits as there are popKinds
	// rise is how many more are open at the most in between. It is beyond any
	// limit where a bracket is closed by one of the other kind.
	rise uint16
}

// bracketSteps holds the step of each four bytes: four bits say which are opening
// brackets, four which are closing ones, four which are curly.
var bracketSteps = func() (steps [1 << 12]bracketStep) {
	for i := range steps {
		var s bracketStep
		depth, bad := 0, false
		for bit := range 4 {
			kind := uint8(i >> (8 + bit) & 1)
			switch {
			case i>>bit&1 != 0:
				s.pushKinds = s.pushKinds<<1 | kind
				s.pushes++
				depth++
				s.rise = max(s.rise, uint16(max(depth, 0)))
			case i>>(4+bit)&1 != 0 && s.pushes > 0:
				bad = bad || s.pushKinds&1 != kind
				s.pushKinds >>= 1
				s.pushes--
				depth--
			case i>>(4+bit)&1 != 0:
				s.popKinds |= kind << s.pops
				s.pops++
				depth--
			}
		}
		s.popMask = 1<<s.pops - 1
		if bad {
			s.rise = MaxDepth + 1
		}
		steps[i] = s
	}
	return steps
}()
