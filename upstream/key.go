package upstream

// Key is what of a request the choice of its worker may depend on; Pool.Affinity
// tells what of it the pool makes use of. The zero Key depends on nothing. The
// caller owns it; it must not change while a call that was given it runs.
type Key struct {
	// Session tells the requests that belong together, see SessionKey. Zero is
	// none.
	Session uint64
	// Blocks stand for the beginnings of the conversation, shorter ones first,
	// see Affinity.AppendBlocks. They have no effect beside a Session.
	Blocks []uint64
}

// noKey must not be changed.
var noKey Key

func (k *Key) orNone() *Key {
	if k == nil {
		return &noKey
	}
	return k
}

// SessionKey returns the Key.Session of requests that have b in common. It is
// never zero, and the same in every process.
func SessionKey(b []byte) uint64 { return max(hash(b, 0), 1) }

// Affinity says what of a Key a pool makes use of.
type Affinity struct {
	// Session reports that Key.Session is used.
	Session bool
	// Block is the size in bytes of the first blocks of a conversation. Zero
	// says that Key.Blocks is not used.
	Block int
}

// blocksOfASize is how many blocks of a conversation have the same size. The
// next ones have twice that: so a conversation has few blocks however long it
// is, and each is a small part of what it ends.
const blocksOfASize = 8

// AppendBlocks appends what stands for the beginnings of a conversation to dst
// and returns the extended slice. What comes first in a prompt is given first:
// a part continues those whose blocks are in dst, and the first part those with
// the same seed. The bytes behind the last full block of a part have an effect
// only where whole says that the part never grows. Nothing is appended where a
// makes no use of blocks.
func (a Affinity) AppendBlocks(dst []uint64, seed uint64, part []byte, whole bool) []uint64 {
	if a.Block == 0 {
		return dst
	}
	if len(dst) > 0 {
		seed = dst[len(dst)-1]
	}
	for len(part) > 0 {
		size := a.Block << (len(dst) / blocksOfASize)
		if len(part) < size && !whole {
			break
		}
		size = min(size, len(part))
		seed = hash(part[:size], seed)
		dst = append(dst, seed)
		part = part[size:]
	}
	return dst
}
