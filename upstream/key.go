package upstream

// Key is what of a request the choice of its worker may depend on. The zero Key
// depends on nothing. The caller owns it; it must not change while a call that
// was given it runs.
type Key struct {
	// Session tells the requests that belong together, see Hash. Zero is none.
	Session uint64
	// Blocks stand for the beginnings of the conversation, a shorter one first.
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
