package upstream

import (
	"bytes"

	"sluice/upstream/h1"
)

// FieldEdits are what a pool changes in the header of everything that is sent to
// its workers, requests, probes and aborts alike. The zero value changes
// nothing. Names must be tokens and values valid; names that the exchange writes
// itself (see Request.Fields) must not be among them.
type FieldEdits struct {
	// Set are added. A field of the same name, in any case, is replaced.
	Set []h1.Field
	// Remove are the names of fields that are left out, in any case.
	Remove [][]byte
}

// Apply edits fields in place and returns the slice, which it may have grown.
// It allocates only for that. The added fields alias e, which must not change.
func (e *FieldEdits) Apply(fields []h1.Field) []h1.Field {
	if len(e.Set)+len(e.Remove) == 0 {
		return fields
	}
	kept := fields[:0]
	for i := range fields {
		if !e.drops(fields[i].Name) {
			kept = append(kept, fields[i])
		}
	}
	return append(kept, e.Set...)
}

func (e *FieldEdits) drops(name []byte) bool {
	for i := range e.Set {
		if bytes.EqualFold(e.Set[i].Name, name) {
			return true
		}
	}
	for _, n := range e.Remove {
		if bytes.EqualFold(n, name) {
			return true
		}
	}
	return false
}
