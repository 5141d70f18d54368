package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Source is a pool, as far as it changes what a model answers.
type Source struct {
	// Models are those that it may be asked for.
	Models []string
	// ExtraBody is the JSON that it adds to each body. Empty: none.
	ExtraBody []byte
}

// Fingerprint returns the value of PartPool for requests that any of the sources
// may answer: their sorted models and, when any source has an extra body, a hash
// of the sorted distinct pairs of model and extra body. Extra bodies count as
// written. It is made once for a configuration. The caller owns the result.
func Fingerprint(sources ...Source) []byte {
	var models, pairs []string
	extra := false
	for _, s := range sources {
		extra = extra || len(s.ExtraBody) > 0
		for _, model := range s.Models {
			models = append(models, model)
			pairs = append(pairs, string(appendFramed(appendFramed(nil, model), string(s.ExtraBody))))
		}
		if len(s.Models) == 0 { // it serves whatever is asked for
			pairs = append(pairs, string(appendFramed(appendFramed(nil, ""), string(s.ExtraBody))))
		}
	}
	fp := appendSet(nil, models)
	if extra {
		sum := sha256.Sum256(appendSet(nil, pairs))
		fp = append(fp, sum[:]...)
	}
	return fp
}

// appendSet appends the sorted distinct elements of list, and their number before
// them.
func appendSet(dst []byte, list []string) []byte {
	slices.Sort(list)
	list = slices.Compact(list)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(list)))
	for _, s := range list {
		dst = appendFramed(dst, s)
	}
	return dst
}

func appendFramed(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
}
