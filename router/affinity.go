package router

import "sluice/upstream"

// affinityKey returns what of the request the choice of its worker depends on.
func (q *request) affinityKey() *upstream.Key { return &q.key }
