package h1

// Limits of the chunked coding, for what is read and thrown away.
const (
	maxChunkDigits    = 16       // of a chunk size
	maxChunkExtension = 1 << 10  // bytes after a chunk size, for one chunk
	maxTrailer        = 16 << 10 // bytes of the trailer section
)

// FeedBody reads body bytes from p. n is how many bytes of p belonged to the
// answer, done whether it ended there: p[n:] is then excess, and a connection
// that has any must not be reused. While done is false, n is len(p).
//
// payload is what those bytes say without their framing, and is part of p: the
// data of the first chunk stays where it is and that of the others is moved up
// behind it, so p[:n] is overwritten. When there is an error, payload is what
// came before the fault. Trailers are checked and dropped.
//
// FeedBody must not be called before FeedHead has returned done. A body that is
// read to EOF never gets done here: [Response.EOF] ends it. After done, and for
// an answer without a body, FeedBody consumes nothing and returns done.
func (r *Response) FeedBody(p []byte) (payload []byte, n int, done bool, err error) {
	lo, hi := 0, 0
	for n < len(p) && r.bodyOpen() {
		m, data := r.advance(p[n:])
		n += m
		switch {
		case data == 0:
		case lo == hi:
			lo, hi = n-data, n
		default:
			hi += copy(p[hi:], p[n-data:n])
		}
	}
	return p[lo:hi:hi], n, r.phase == phaseDone && r.err == nil, r.err
}

// Follow is FeedBody for a caller that passes the bytes on with their framing:
// it only looks for the end of the answer and leaves p as it is. Every byte of
// p[:n] has been checked, trailers and chunk extensions too, and may be sent to
// an HTTP/1.1 client as it is. FeedBody and Follow may take turns.
func (r *Response) Follow(p []byte) (n int, done bool, err error) {
	for n < len(p) && r.bodyOpen() {
		m, _ := r.advance(p[n:])
		n += m
	}
	return n, r.phase == phaseDone && r.err == nil, r.err
}

func (r *Response) bodyOpen() bool {
	if r.phase == phaseHead && r.err == nil {
		panic("BUG: h1: body fed before the end of the head")
	}
	return r.phase == phaseBody && r.err == nil
}

// advance consumes n bytes of p, which is not empty: framing, and then at most
// one run of payload, which is the last data bytes of p[:n].
func (r *Response) advance(p []byte) (n, data int) {
	switch r.framing {
	case framedChunked:
		return r.advanceChunked(p)
	case framedLength:
		n = int(min(int64(len(p)), r.left))
		if r.left -= int64(n); r.left == 0 {
			r.phase = phaseDone
		}
		return n, n
	default: // framedEOF; without a body phase is phaseDone
		return len(p), len(p)
	}
}

// chunkState is the place within a chunked body (RFC 9112 §7.1) of the next byte.
type chunkState uint8

const (
	chunkSize      chunkState = iota // digits of a size, or what follows them
	chunkSpace                       // white space between size and extension
	chunkExtension                   // after a semicolon
	chunkSizeLF                      // after the CR of a size line
	chunkData                        // in the data
	chunkDataCR                      // after the data
	chunkDataLF                      // after the CR after the data
	trailerStart                     // at the beginning of a trailer line
	trailerName                      // in the name of a trailer field
	trailerValue                     // after the colon of a trailer field
	trailerLF                        // after the CR of a trailer line
	trailerEndLF                     // after the CR of the last, empty line
)

// advanceChunked is advance for the chunked coding. Sizes take no sign and no
// prefix, every line ends in CRLF, and white space after a size is only taken
// in front of an extension, where RFC 9112 §7.1.1 allows it.
func (r *Response) advanceChunked(p []byte) (n, data int) {
	for n < len(p) && r.err == nil {
		if r.chunk == chunkData {
			data = int(min(int64(len(p)-n), r.left))
			if r.left -= int64(data); r.left == 0 {
				r.chunk = chunkDataCR
			}
			return n + data, data
		}
		c := p[n]
		n++
		switch r.chunk {
		case chunkSize:
			r.err = r.sizeByte(c)
		case chunkSpace:
			switch c {
			case ' ', '\t':
				r.err = r.skip(maxChunkExtension, ErrChunkExtension)
			case ';':
				r.chunk = chunkExtension
			default:
				r.err = ErrChunkSize
			}
		case chunkExtension:
			if c == '\r' {
				r.chunk = chunkSizeLF
			} else if r.err = r.skip(maxChunkExtension, ErrChunkExtension); !textChar(c) {
				r.err = ErrChunkExtension
			}
		case chunkSizeLF:
			r.err = r.expectLF(c, chunkData, ErrChunkSize)
			if r.digits, r.skipped = 0, 0; r.left == 0 {
				r.chunk = trailerStart
			}
		case chunkDataCR:
			if r.chunk = chunkDataLF; c != '\r' {
				r.err = ErrChunkEnd
			}
		case chunkDataLF:
			r.err = r.expectLF(c, chunkSize, ErrChunkEnd)
		case trailerStart:
			r.err = r.skip(maxTrailer, ErrTrailer)
			switch {
			case c == '\r':
				r.chunk = trailerEndLF
			case tokenChar[c]:
				r.chunk = trailerName
			default:
				r.err = ErrTrailer
			}
		case trailerName:
			r.err = r.skip(maxTrailer, ErrTrailer)
			if c == ':' {
				r.chunk = trailerValue
			} else if !tokenChar[c] {
				r.err = ErrTrailer
			}
		case trailerValue:
			r.err = r.skip(maxTrailer, ErrTrailer)
			if c == '\r' {
				r.chunk = trailerLF
			} else if !textChar(c) {
				r.err = ErrTrailer
			}
		case trailerLF:
			r.err = r.expectLF(c, trailerStart, ErrTrailer)
		case trailerEndLF:
			if r.err = r.expectLF(c, chunkSize, ErrTrailer); r.err == nil {
				r.phase = phaseDone
				return n, 0
			}
		}
	}
	return n, 0
}

// sizeByte reads a digit of the chunk size or what ends it.
func (r *Response) sizeByte(c byte) error {
	d := hexDigit(c)
	switch {
	case d >= 0:
		// left has at most 59 bits, or the next digit would reach the sign.
		if r.digits++; r.digits > maxChunkDigits || r.left >= 1<<59 {
			return ErrChunkSize
		}
		r.left = r.left<<4 | int64(d)
	case r.digits == 0:
		return ErrChunkSize
	case c == '\r':
		r.chunk = chunkSizeLF
	case c == ';':
		r.chunk = chunkExtension
	case c == ' ' || c == '\t':
		r.chunk = chunkSpace
		return r.skip(maxChunkExtension, ErrChunkExtension)
	default:
		return ErrChunkSize
	}
	return nil
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// skip counts a byte that is thrown away.
func (r *Response) skip(limit int, tooMany error) error {
	if r.skipped++; r.skipped > limit {
		return tooMany
	}
	return nil
}

// expectLF goes on to next if c is LF.
func (r *Response) expectLF(c byte, next chunkState, otherwise error) error {
	if c != '\n' {
		return otherwise
	}
	r.chunk = next
	return nil
}
