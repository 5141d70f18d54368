package h2c

import "encoding/binary"

// The frame types (RFC 9113 section 6).
const (
	frameData uint8 = iota
	frameHeaders
	framePriority
	frameReset
	frameSettings
	framePush
	framePing
	frameGoAway
	frameWindow
	frameContinuation
)

// The flags. ACK and END_STREAM share a bit.
const (
	flagEndStream  uint8 = 1 << 0
	flagAck        uint8 = 1 << 0
	flagEndHeaders uint8 = 1 << 2
	flagPadded     uint8 = 1 << 3
	flagPriority   uint8 = 1 << 5
)

// The settings (RFC 9113 section 6.5.2).
const (
	settingTableSize    uint16 = 1
	settingPush         uint16 = 2
	settingMaxStreams   uint16 = 3
	settingWindow       uint16 = 4
	settingMaxFrame     uint16 = 5
	settingMaxHeadBytes uint16 = 6
)

const (
	// preface is what a client says first (RFC 9113 section 3.4).
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// headerLen is the length of a frame header.
	headerLen = 9
	// maxFrame is the largest payload in both directions: the least that every
	// peer must take, and what we announce.
	maxFrame = 16 << 10
	// maxWindow is the largest window (RFC 9113 section 6.9.1).
	maxWindow = 1<<31 - 1
	// firstWindow is the size of every window before it is changed.
	firstWindow = 1<<16 - 1
	// maxID is the last stream of a connection.
	maxID = 1<<31 - 1
)

// header is the header of a frame.
type header struct {
	length int
	kind   uint8
	flags  uint8
	id     uint32
}

func (h header) has(flag uint8) bool { return h.flags&flag != 0 }

func parseHeader(b *[headerLen]byte) header {
	return header{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   b[3],
		flags:  b[4],
		id:     binary.BigEndian.Uint32(b[5:]) & maxID,
	}
}

func appendHeader(dst []byte, h header) []byte {
	dst = append(dst, byte(h.length>>16), byte(h.length>>8), byte(h.length), h.kind, h.flags)
	return binary.BigEndian.AppendUint32(dst, h.id)
}

func appendSetting(dst []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, id), value)
}

func appendReset(dst []byte, id uint32, code Code) []byte {
	dst = appendHeader(dst, header{4, frameReset, 0, id})
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

func appendWindow(dst []byte, id uint32, n int) []byte {
	dst = appendHeader(dst, header{4, frameWindow, 0, id})
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

func appendPing(dst []byte, flags uint8, data uint64) []byte {
	dst = appendHeader(dst, header{8, framePing, flags, 0})
	return binary.BigEndian.AppendUint64(dst, data)
}

func appendGoAway(dst []byte, code Code) []byte {
	dst = appendHeader(dst, header{8, frameGoAway, 0, 0})
	dst = binary.BigEndian.AppendUint32(dst, 0) // the peer opens no streams
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

// appendBlock appends a header block as HEADERS and, where it is longer than a
// frame, CONTINUATION.
func appendBlock(dst []byte, id uint32, flags uint8, block []byte) []byte {
	kind := frameHeaders
	for len(block) > maxFrame {
		dst = appendHeader(dst, header{maxFrame, kind, flags, id})
		dst = append(dst, block[:maxFrame]...)
		block, kind, flags = block[maxFrame:], frameContinuation, 0
	}
	dst = appendHeader(dst, header{len(block), kind, flags | flagEndHeaders, id})
	return append(dst, block...)
}
