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
	// A bracket that is closed at once, or around others of which that is true,
	// changes nothing.
	closed := uint64(0)
	for inner, n := opens<<1, 1; inner != 0; n += 2 {
		inner = opens & (shuts >> (n & 63)) & (inner >> 1) &^ (curlies ^ curlies>>(n&63))
		closed |= inner | inner<<(n&63)
	}
	opens, shuts = opens&^closed, shuts&^closed
	if bits.OnesCount64(opens|shuts) <= 12 {
		return o.readFew(opens, shuts, curlies)
	}
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
	if curlies&marks == marks {
		kinds = ^kinds
	}
	n := uint(bits.OnesCount64(marks))
	switch mixed := (curlies ^ kinds) & marks; uint64(0) {
	case marks:
		return 0
	case shuts | mixed: // all of them open
		if o.held > 32 {
			o.spill()
		}
		o.top = o.top<<n | kinds&(1<<n-1)
		o.held += int(n)
		return 0
	case opens | mixed: // all of them close
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
	if o.held+bits.OnesCount64(opens) > 64 {
		o.spill()
	}
	return o.readSteps(opens, shuts, curlies)
}

// readSteps is read for half a block, four bytes in each turn, by a table of what
// they do as a whole. There must be room in top for all that open.
//
// NOTE: what the time of a body full of brackets is spent on; each instruction counts.
func (o *brackets) readSteps(opens, shuts, curlies uint64) int {
	const low = 0x0F0F_0F0F
	even, odd := opens&low|shuts&low<<4, opens>>4&low|shuts&(low<<4)
	top, held, wrong, kinds := o.top, o.held, uint64(0), curlies
	at := 0
	for ; at < 32; at += 8 {
		step := bracketSteps[even&0xFF|kinds&0x0F<<8]
		if held <= int(step&0xFF) {
			break
		}
		wrong |= (top ^ step>>8) & (step >> 60)
		top = top>>(step&63)<<(step>>16&63) | step>>24&0xF
		held += int(int8(step >> 32))
		step = bracketSteps[odd&0xFF|kinds&0xF0<<4]
		if held <= int(step&0xFF) {
			at += 4
			break
		}
		wrong |= (top ^ step>>8) & (step >> 60)
		top = top>>(step&63)<<(step>>16&63) | step>>24&0xF
		held += int(int8(step >> 32))
		even, odd, kinds = even>>8, odd>>8, kinds>>8
	}
	o.top, o.held = top, held
	if wrong != 0 {
		return -1
	}
	// The last bracket may be closed, top may be empty, or a kind is wrong.
	return o.readFew(opens>>at<<at, shuts>>at<<at, curlies)
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

// bracketSteps holds what each four bytes do as a whole: four bits say which are
// opening brackets, four which are closing ones, four which are curly. They close
// some that were open before and open some that stay open. From the lowest bit up
// that is, how many they close, or more than there can be where one is closed by
// one of the other kind; from bit 8 the kinds of those closed, the first one lowest;
// from bit 16 how many they open, from bit 24 their kinds, the last one lowest; from
// bit 32 how many more they open than close; from bit 60 a bit for each that they
// close.
var bracketSteps = func() (steps [1 << 12]uint64) {
	for i := range steps {
		var pops, pushes, popKinds, pushKinds uint64
		bad := uint64(0)
		for bit := range 4 {
			kind := uint64(i >> (8 + bit) & 1)
			switch opens, shuts := i>>bit&1 != 0, i>>(4+bit)&1 != 0; {
			case opens:
				pushKinds = pushKinds<<1 | kind
				pushes++
			case shuts && pushes > 0:
				bad |= pushKinds&1 ^ kind
				pushKinds >>= 1
				pushes--
			case shuts:
				popKinds |= kind << pops
				pops++
			}
		}
		steps[i] = pops | 0xFF*bad | popKinds<<8 | pushes<<16 | pushKinds<<24 | (pushes-pops)&0xFF<<32 | (1<<pops-1)<<60
	}
	return steps
}()
