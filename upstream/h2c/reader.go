package h2c

// event is what a reader has found in the bytes.
type event uint8

const (
	eventNone  event = iota // more bytes are needed
	eventBegin              // the header of a frame is complete
	eventData               // a piece of the content of a DATA frame
	eventEnd                // a frame is complete
	eventBad                // the padding of a DATA frame is longer than the frame
)

// place is where in a frame the next byte belongs.
type place uint8

const (
	placeHeader  place = iota
	placePadSize       // the byte of a DATA frame that holds the length of its padding
	placeData          // content of a DATA frame
	placePadding       // of a DATA frame
	placeWhole         // payload of a frame that is handed out in one piece
)

// reader cuts bytes into frames. DATA is handed out as it comes and costs no
// memory; the payload of every other frame is collected first. The size of a
// frame is for the caller to judge at eventBegin, before a byte is collected.
type reader struct {
	h     header // the frame under way, valid from eventBegin on
	place place
	raw   [headerLen]byte
	have  int // bytes in raw
	left  int // bytes of the place still to come
	pad   int // padding that follows the content
	buf   []byte
}

// next reads from p until something is found and returns how many bytes that
// took. payload comes with eventData and, but for DATA, with eventEnd; it is
// valid until the next call and as long as p. It must be called again until it
// returns eventNone, with whatever is left of p: also with nothing.
func (r *reader) next(p []byte) (n int, ev event, payload []byte) {
	switch r.place {
	case placeHeader:
		n = copy(r.raw[r.have:], p)
		if r.have += n; r.have < headerLen {
			return n, eventNone, nil
		}
		r.begin()
		return n, eventBegin, nil
	case placePadSize:
		if len(p) == 0 {
			return 0, eventNone, nil
		}
		r.pad = int(p[0])
		if r.left -= 1 + r.pad; r.left < 0 {
			return 1, eventBad, nil
		}
		r.place = placeData
		n, ev, payload = r.next(p[1:])
		return 1 + n, ev, payload
	case placeData:
		if r.left == 0 {
			r.place, r.left = placePadding, r.pad
			return r.next(p)
		}
		n = min(r.left, len(p))
		if n == 0 {
			return 0, eventNone, nil
		}
		r.left -= n
		return n, eventData, p[:n]
	case placePadding:
		n = min(r.left, len(p))
		if r.left -= n; r.left > 0 {
			return n, eventNone, nil
		}
		return n, r.end(), nil
	default:
		return r.whole(p)
	}
}

func (r *reader) begin() {
	r.h = parseHeader(&r.raw)
	r.have, r.left, r.pad, r.buf = 0, r.h.length, 0, r.buf[:0]
	switch {
	case r.h.kind != frameData:
		r.place = placeWhole
	case r.h.has(flagPadded):
		r.place = placePadSize
	default:
		r.place = placeData
	}
}

func (r *reader) whole(p []byte) (n int, ev event, payload []byte) {
	n = min(r.left, len(p))
	r.left -= n
	if r.left == 0 && len(r.buf) == 0 {
		return n, r.end(), p[:n] // Fast path: it came in one piece.
	}
	r.buf = append(r.buf, p[:n]...)
	if r.left > 0 {
		return n, eventNone, nil
	}
	return n, r.end(), r.buf
}

func (r *reader) end() event {
	r.place = placeHeader
	return eventEnd
}
