package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Key names an entry. It is a SHA-256: nobody can make a request whose key is
// that of another client's. It depends on nothing but the parts, so that routers
// that share a server agree, and so does one with itself after a restart.
type Key [sha256.Size]byte

// Part is something that changes an answer, and so takes part in a Key.
type Part uint8

// The parts. Their numbers are in every key that is stored: never change one.
const (
	// PartPool is the Fingerprint of the pools that may answer.
	PartPool Part = 1 + iota
	// PartSurface is the surface's name; Builder.Body adds it.
	PartSurface
	// PartBody is the digest of the body; Builder.Body adds it.
	PartBody
	// PartNamespace is the plugin's namespace, or what stands for the tenant.
	PartNamespace
	// PartSalt is the plugin's salt.
	PartSalt
	// PartSampling is the snapshot of the sampling intent.
	PartSampling
	// PartPolicy is what the policy does to the body: its edits, or a digest. The
	// model that stands for an alias is one of them: the body has the alias.
	PartPolicy
	// PartThinking is the thinking profile that was asked for by header.
	PartThinking
	// PartTarget is the request target, where it is not settled by the surface:
	// it has a query, or is one of several paths.
	PartTarget
	// PartField is a request header field that engines look at: its name in
	// lower case, its value. Several may be fed, in a fixed order.
	PartField
	numParts
)

// keyVersion begins what is hashed. Another one is another key for everything.
const keyVersion = "sluice response cache 1\n"

// Builder makes keys. The zero value is ready; it is reused from request to
// request and allocates nothing once it has grown. It keeps no reference to what
// it was fed. Not safe for concurrent use.
type Builder struct {
	hash  hash.Hash
	parts [numParts][]byte // framed values
	sum   [sha256.Size]byte

	order  []member // of the body
	keys   []byte   // un-escaped keys of the body
	staged int      // bytes of stage
	stage  [stageSize]byte
}

// Reset begins a new key.
func (b *Builder) Reset() {
	for i := range b.parts {
		b.parts[i] = b.parts[i][:0]
	}
}

// Part feeds a part that consists of the given values. If all of them are empty
// it takes no part. A part that is fed again has one more set of values. In
// which order different parts are fed does not matter. The values are copied.
//
// Every value is framed by its length, every set by its count and every part by
// its number, so that no two different feeds are hashed as the same bytes.
func (b *Builder) Part(p Part, values ...[]byte) {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	if n == 0 {
		return
	}
	dst := binary.LittleEndian.AppendUint32(b.parts[p], uint32(len(values)))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(v)))
		dst = append(dst, v...)
	}
	b.parts[p] = dst
}

// Sum returns the key of all that was fed since Reset.
func (b *Builder) Sum() Key {
	b.begin()
	b.staged = copy(b.stage[:], keyVersion)
	for p, part := range b.parts {
		if len(part) == 0 {
			continue
		}
		var head [9]byte
		head[0] = byte(p)
		binary.LittleEndian.PutUint64(head[1:], uint64(len(part)))
		b.writeShort(head[:])
		b.write(part)
	}
	return b.end()
}

// begin begins a hash.
func (b *Builder) begin() {
	if b.hash == nil {
		b.hash = sha256.New()
	}
	b.hash.Reset()
	b.staged = 0
}

// end returns the hash of what was written since begin.
func (b *Builder) end() Key {
	b.flush()
	b.hash.Sum(b.sum[:0])
	return b.sum
}

const (
	// stageSize is how much is gathered before it is hashed: the hash is slow at
	// many small pieces.
	stageSize = 4 << 10
	// direct is the length from which a piece is hashed where it stands.
	direct = 512
)

// write hashes p.
func (b *Builder) write(p []byte) {
	if len(p) >= direct {
		b.flush()
		b.writeHash(p)
		return
	}
	if len(p) > stageSize-b.staged {
		b.flush()
	}
	b.staged += copy(b.stage[b.staged:], p)
}

// writeShort is write for a few bytes, which may be on the caller's stack.
func (b *Builder) writeShort(p []byte) {
	if len(p) > stageSize-b.staged {
		b.flush()
	}
	b.staged += copy(b.stage[b.staged:], p)
}

func (b *Builder) flush() {
	b.writeHash(b.stage[:b.staged])
	b.staged = 0
}

func (b *Builder) writeHash(p []byte) {
	if _, err := b.hash.Write(p); err != nil {
		panic("BUG: a hash never returns an error: " + err.Error())
	}
}
