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
func (o *brackets) read(opens, shuts, curlies uint64) int {
	if bits.OnesCount64(opens|shuts) <= 8 || o.held == 0 || o.held+bits.OnesCount64(opens) > o.limit {
		return o.readFew(opens, shuts, curlies)
	}
	// A bracket that is closed at once, or around one other that is, changes
	// nothing.
	pairs := opens & (shuts >> 1) &^ (curlies ^ curlies>>1)
	around := opens & (shuts >> 3) & (pairs >> 1) &^ (curlies ^ curlies>>3)
	opens &^= pairs | around
	shuts &^= pairs<<1 | around<<3
	const half = 1<<32 - 1
	if end := o.readHalf(opens&half, shuts&half, curlies&half); end != 0 {
		return end
	}
	end := o.readHalf(opens>>32, shuts>>32, curlies>>32)
	if end > 0 {
		end += 32
	}
	return end
}

// readFew is read, one bracket in each turn.
func (o *brackets) readFew(opens, shuts, curlies uint64) int {
	for marks := opens | shuts; marks != 0; marks &= marks - 1 {
		at := bits.TrailingZeros64(marks)
		kind := curlies >> at & 1
		if opens>>at&1 != 0 {
			if o.held == 64 {
				o.spill()
			}
			if o.held >= o.limit {
				return -1
			}
			o.top = o.top<<1 | kind
			o.held++
			continue
		}
		if o.held == 0 && o.spills > 0 {
			o.fetch()
		}
		if o.held == 0 || o.top&1 != kind {
			return -1
		}
		o.top >>= 1
		if o.held--; o.held == 0 && o.spills == 0 {
			return at + 1
		}
	}
	return 0
}

// readHalf is read for half a block.
func (o *brackets) readHalf(opens, shuts, curlies uint64) int {
	marks := opens | shuts
	kinds := uint64(0)
	switch {
	case marks == 0:
		return 0
	case curlies&marks == marks:
		kinds = ^kinds
	case curlies&marks != 0:
		return o.readSteps(opens, shuts, curlies)
	}
	n := uint(bits.OnesCount64(marks))
	switch uint64(0) {
	case shuts: // all of them open
		if o.held > 32 {
			o.spill()
		}
		o.top = o.top<<n | kinds&(1<<n-1)
		o.held += int(n)
		return 0
	case opens: // all of them close
		if o.held <= int(n) && o.spills > 0 {
			o.fetch()
		}
		if o.held <= int(n) {
			return o.readFew(opens, shuts, curlies)
		}
		if (o.top^kinds)&(1<<n-1) != 0 {
			return -1
		}
		o.top >>= n
		o.held -= int(n)
		return 0
	}
	return o.readSteps(opens, shuts, curlies)
}

// readSteps is read, four bytes in each turn, by a table of what they do as a
// whole.
func (o *brackets) readSteps(opens, shuts, curlies uint64) int {
	top, held := o.top, o.held
	for at := 0; opens|shuts != 0; at += 4 {
		step := &bracketSteps[opens&15|shuts&15<<4|curlies&15<<8]
		pops, pushes := int(step.pops), int(step.pushes)
		if held <= pops || held+pushes > 64 {
			// Slow path: the last bracket may be closed, or top is empty or full.
			o.top, o.held = top, held
			if end := o.readFew(opens&15, shuts&15, curlies); end > 0 {
				return at + end
			} else if end < 0 {
				return end
			}
			top, held = o.top, o.held
		} else {
			if (top^uint64(step.popKinds))&uint64(step.popMask)|uint64(step.bad) != 0 {
				return -1
			}
			top = top>>(uint(pops)&63)<<(uint(pushes)&63) | uint64(step.pushKinds)
			held += pushes - pops
		}
		opens, shuts, curlies = opens>>4, shuts>>4, curlies>>4
	}
	o.top, o.held = top, held
	return 0
}

// spill makes room in top.
func (o *brackets) spill() {
	o.held -= spillBits
	o.limit -= spillBits
	o.spilled[o.spills] = uint32(o.top >> uint(o.held))
	o.spills++
}

// fetch undoes a spill.
func (o *brackets) fetch() {
	o.spills--
	o.top = o.top&(1<<uint(o.held)-1) | uint64(o.spilled[o.spills])<<uint(o.held)
	o.held += spillBits
	o.limit += spillBits
}

// A bracketStep is what the brackets among four bytes do as a whole: they close
// some that were open before and open some that stay open.
type bracketStep struct {
	pops, pushes        uint8
	popKinds, pushKinds uint8 // the lowest bit is the first popped, the last pushed
	popMask             uint8 // as many bits as there are popKinds
	bad                 uint8 // not 0 if one is closed by one of the other kind
}

// bracketSteps holds the step of each four bytes: four bits say which are opening
// brackets, four which are closing ones, four which are curly.
var bracketSteps = func() (steps [1 << 12]bracketStep) {
	for i := range steps {
		s := &steps[i]
		for bit := range 4 {
			kind := uint8(i >> (8 + bit) & 1)
			switch opens, shuts := i>>bit&1 != 0, i>>(4+bit)&1 != 0; {
			case opens:
				s.pushKinds = s.pushKinds<<1 | kind
				s.pushes++
			case shuts && s.pushes > 0:
				s.bad |= s.pushKinds&1 ^ kind
				s.pushKinds >>= 1
				s.pushes--
			case shuts:
				s.popKinds |= kind << s.pops
				s.pops++
			}
		}
		s.popMask = 1<<s.pops - 1
	}
	return steps
}()
