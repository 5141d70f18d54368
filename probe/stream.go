package probe

import (
	"bytes"
	"math/bits"
)

// Stream follows an event stream (WHATWG HTML, section 9.2.6) as it is relayed,
// and reads from it what the router must know. It is fed the bytes of the body
// in order, cut anywhere, and says the same for every cut. It never changes or
// holds back a byte.
//
// Line ends may be LF, CRLF, CR or a mix. Comments and fields other than data
// and event are passed over. An event ends at its empty line. Memory is bounded:
// an event whose line or data is longer than MaxEvent is counted and not read.
//
// The zero value is ready for a stream of SurfaceNone; Reset starts another one
// and keeps the buffers. Not safe for concurrent use. Feed does not keep p. It
// allocates only to grow the buffer for an event that ends in a later Feed.
type Stream struct {
	// Events is the number of events with data so far. That it is not 0 is the
	// sign of the first one; comments do not count.
	Events int
	// Done reports the end that the surface's streams have: [DONE], message_stop,
	// or response.completed, incomplete and failed.
	Done bool
	// Failed reports an event named error, or one whose data holds an error.
	Failed bool
	// UsageOnly reports that the last event holds the usage of a chat or
	// completion and no choice.
	UsageOnly bool
	// Usage is that of the last event which has one, never a sum. On
	// SurfaceMessages, which tells it in parts, each number is the last told.
	Usage Usage

	surface Surface
	line    []byte // the unfinished line
	data    []byte // the data of the unfinished event
	// held is the data of the unfinished event while it is one line in the bytes
	// that are being fed.
	held []byte
	// hasData reports a data field in the unfinished event, lost that its data
	// was too long to keep.
	hasData, lost bool
	// skip reports an unfinished line that was too long to keep.
	skip bool
	// ends and fails are what the unfinished event's name says.
	ends, fails bool
	named       bool
	// lineTells says what is known of the line, heldTells what of held.
	lineTells, heldTells tells
	started              bool // the first line is over
	cr                   bool // the last byte was a CR, whose LF may follow
}

const (
	// MaxEvent bounds a line, and the data of an event, that is read.
	MaxEvent = 1 << 20
	// keepEvent is the size up to which a buffer is kept from event to event.
	keepEvent = 64 << 10
)

// Reset makes s follow a new stream, an answer of the surface.
func (s *Stream) Reset(surface Surface) {
	*s = Stream{surface: surface, line: s.line[:0], data: s.data[:0]}
}

// Feed reads the next bytes of the stream.
func (s *Stream) Feed(p []byte) {
	for len(p) > 0 {
		n, _ := s.Next(p)
		p = p[n:]
	}
}

// Next reads the bytes of p up to the end of the first event that ends in it,
// and returns how many these are and whether an event with data ended. If none
// ends it reads all of p.
func (s *Stream) Next(p []byte) (n int, event bool) {
	for n < len(p) {
		if s.cr {
			s.cr = false
			if p[n] == '\n' {
				n++
				continue
			}
		}
		size, tells := nextLine(p[n:])
		if size < 0 {
			s.keepLine(p[n:])
			n = len(p)
			break
		}
		line := p[n : n+size]
		s.cr = p[n+size] == '\r'
		n += size + 1
		if s.plainEvent(line, p[n:]) { // Fast path
			s.endData(dataOf(line), tells)
			return n + 1, true
		}
		s.lineTells = tells
		if s.endLine(line) {
			if s.cr && n < len(p) && p[n] == '\n' {
				s.cr = false
				n++
			}
			return n, true
		}
	}
	if s.held != nil {
		s.data = append(s.data[:0], s.held...)
		s.held = nil
	}
	return n, false
}

// plainEvent reports whether line is the data of a whole event, as most are: the
// first field of that name, with an empty line behind it in rest, all with LF.
func (s *Stream) plainEvent(line, rest []byte) bool {
	return len(rest) > 0 && rest[0] == '\n' && len(line) > 5 && string(line[:5]) == "data:" &&
		s.started && !s.cr && !s.hasData && !s.skip && len(s.line) == 0 && len(line) <= MaxEvent
}

// dataOf returns the value of line, a data field.
func dataOf(line []byte) []byte {
	if line = line[len("data:"):]; line[0] == ' ' {
		return line[1:]
	}
	return line
}

// End tells s that the stream is over. An event that lacks only its last line
// end or its empty line is read all the same, which browsers do not do: what an
// engine said before it closed the connection counts.
func (s *Stream) End() {
	if len(s.line) > 0 || s.skip {
		s.endLine(nil)
	}
	s.endEvent()
}

// tells says whether one of the tellingKeys stands in a line.
type tells uint8

const (
	tellsUnknown tells = iota
	tellsNothing
	tellsSomething
)

// nextLine returns the length of the first line of p without its end, or -1 if it
// has none, and whether it tells something.
func nextLine(p []byte) (n int, t tells) {
	if p[0] == '\n' || p[0] == '\r' { // Fast path: the end of an event
		return 0, tellsNothing
	}
	if !hasVectors || len(p) < blockSize {
		return lineLen(p), tellsUnknown
	}
	n, something := vectorLine(p)
	if something {
		return n, tellsSomething
	}
	return n, tellsNothing
}

// lineLen returns the length of the first line of p without its end, or -1 if it
// has none. The windows keep the search for one kind of line end from going over
// the whole of p for each line of the other kind.
func lineLen(p []byte) int {
	const window = 4096
	for from := 0; from < len(p); from += window {
		part := p[from:min(from+window, len(p))]
		lf := bytes.IndexByte(part, '\n')
		if lf >= 0 {
			part = part[:lf]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
	}
	return -1
}

// keepLine keeps p, a part of a line whose end was not seen yet.
func (s *Stream) keepLine(p []byte) {
	switch {
	case s.skip:
	case len(s.line)+len(p) > MaxEvent:
		// The first bytes say which field is lost.
		s.skip = true
		s.line = append(s.line, p[:min(len(p), 16)]...)
	default:
		s.line = append(s.line, p...)
	}
}

// endLine reads a line whose end was seen; line is the part of it that was not
// kept yet. It reports whether an event with data ended.
func (s *Stream) endLine(line []byte) bool {
	fresh := len(s.line) == 0 && !s.skip && len(line) <= MaxEvent
	if !fresh {
		s.keepLine(line)
		line = s.line
	}
	if !s.started {
		s.started = true
		line = TrimBOM(line)
	}
	event := false
	if len(line) == 0 {
		event = s.endEvent()
	} else {
		s.field(line, fresh)
	}
	if !fresh {
		s.line, s.skip = emptied(s.line), false
	}
	return event
}

// emptied returns b without its content, or nil if it is too large to keep.
func emptied(b []byte) []byte {
	if cap(b) > keepEvent {
		return nil
	}
	return b[:0]
}

// field reads a line that is not empty. fresh reports that it lies in the bytes
// that are being fed.
func (s *Stream) field(line []byte, fresh bool) {
	name, value := line, []byte(nil)
	if len(line) > 4 && line[4] == ':' { // Fast path: data
		name, value = line[:4], line[5:]
	} else if n := bytes.IndexByte(line[:min(len(line), 16)], ':'); n >= 0 {
		name, value = line[:n], line[n+1:]
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.addData(value, fresh)
	case "event":
		if !s.skip {
			s.named = true
			s.ends, s.fails = endOfEvent(s.surface, value)
		}
	}
}

// addData adds a data field to the unfinished event.
func (s *Stream) addData(value []byte, fresh bool) {
	first := !s.hasData
	s.hasData = true
	switch {
	case s.skip, s.lost:
		s.lost = true
	case first && fresh:
		s.held, s.heldTells = value, s.lineTells
		if value == nil {
			s.held = noData
		}
	default:
		if s.held != nil {
			s.data = append(s.data[:0], s.held...)
			s.held = nil
		}
		if !first {
			s.data = append(s.data, '\n')
		}
		s.lost = len(s.data)+len(value) > MaxEvent
		if !s.lost {
			s.data = append(s.data, value...)
		}
	}
}

var noData = []byte{}

// endEvent ends the unfinished event and reports whether it had data.
func (s *Stream) endEvent() bool {
	if !s.hasData {
		s.Failed = s.Failed || s.fails
		s.named, s.ends, s.fails = false, false, false
		return false
	}
	data, tells := s.held, s.heldTells
	if data == nil {
		data, tells = s.data, tellsUnknown
	}
	if s.lost {
		data = nil
	}
	s.endData(data, tells)
	s.hasData, s.lost, s.held = false, false, nil
	if len(s.data) > 0 {
		s.data = emptied(s.data)
	}
	return true
}

// endData ends an event with the data.
func (s *Stream) endData(data []byte, t tells) {
	s.Events++
	s.UsageOnly = false
	s.Done = s.Done || s.ends
	s.Failed = s.Failed || s.fails
	s.readData(data, t)
	s.named, s.ends, s.fails = false, false, false
}

// readData reads the data of an event.
func (s *Stream) readData(data []byte, t tells) {
	i := skipSpace(data, 0)
	if i == len(data) {
		return
	}
	switch data[i] {
	case '[':
		if string(trimBlank(data)) == "[DONE]" {
			s.Done = true
		}
	case '{':
		if s.telling(data, t) {
			s.readObject(data)
		}
	}
}

// telling reports whether there may be anything to read in data, an object. Most
// events only carry a token, and are told by a search for the few keys that
// matter, spelled as every encoder spells them.
func (s *Stream) telling(data []byte, t tells) bool {
	switch s.surface {
	case SurfaceGenerate:
		return true
	case SurfaceMessages, SurfaceResponses:
		// Without its name the event's type must be looked for.
		if !s.named || s.ends || s.fails {
			return true
		}
	}
	if t == tellsUnknown {
		return tellsIn(data)
	}
	return t == tellsSomething
}

// tellsIn reports whether one of the tellingKeys stands in data.
func tellsIn(data []byte) bool {
	i := 0
	for ; len(data)-i > 8; i += 8 {
		// A quote, and behind it a letter of a to g or p to w. What is marked above
		// a true mark may be false.
		quote := load64(data[i:]) ^ lowBits*'"'
		letter := load64(data[i+1:])&(lowBits*0x68) ^ lowBits*0x60
		marks := (quote - lowBits) &^ quote & ((letter - lowBits) &^ letter) & highBits
		for ; marks != 0; marks &= marks - 1 {
			if tellingKey(data[i+bits.TrailingZeros64(marks)>>3:]) {
				return true
			}
		}
	}
	for ; i < len(data); i++ {
		if tellingKey(data[i:]) {
			return true
		}
	}
	return false
}

// tellingKey reports whether b begins with one of the keys, with its quotes, that
// make an event worth reading: usage, finish_reason and stop_reason with a value
// other than null, and error, or the value "error".
func tellingKey(b []byte) bool {
	if len(b) < len(`"usage":`) || b[0] != '"' {
		return false
	}
	size := 0
	switch b[1] {
	case 'u':
		if size = len(`"usage"`); string(b[:size]) != `"usage"` {
			return false
		}
	case 'f':
		if size = len(`"finish_reason"`); len(b) < size || string(b[:size]) != `"finish_reason"` {
			return false
		}
	case 's':
		if size = len(`"stop_reason"`); len(b) < size || string(b[:size]) != `"stop_reason"` {
			return false
		}
	case 'e':
		return string(b[:len(`"error"`)]) == `"error"`
	default:
		return false
	}
	i := skipSpace(b, size)
	if i == len(b) || b[i] != ':' {
		return false
	}
	i = skipSpace(b, i+1)
	return i < len(b) && b[i] != 'n'
}

// readObject reads the data of an event that is an object.
func (s *Stream) readObject(data []byte) {
	var a answer
	if s.surface == SurfaceMessages {
		a.usage, a.has = s.Usage, s.has()
	}
	if !a.read(data, s.surface) {
		return
	}
	s.Done = s.Done || a.done
	s.Failed = s.Failed || a.failed
	s.UsageOnly = a.usageOnly()
	finish := a.usage.Finish
	if finish == "" {
		finish = s.Usage.Finish
	}
	if a.usage.Seen {
		s.Usage = a.usage
	}
	s.Usage.Finish = finish
}

// has returns the set of numbers from which the usage so far is made up.
func (s *Stream) has() uint8 {
	if s.Usage.Seen {
		return hasPrompt | hasCached | hasCompletion
	}
	return 0
}
