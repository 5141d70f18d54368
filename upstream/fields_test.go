package upstream

import (
	"fmt"
	"strings"
	"testing"

	"sluice/upstream/h1"
)

func fieldsOf(lines ...string) []h1.Field {
	var fields []h1.Field
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		fields = append(fields, h1.Field{Name: []byte(name), Value: []byte(value)})
	}
	return fields
}

func TestFieldEdits(t *testing.T) {
	set := fieldsOf("authorization: Bearer k", "x-set: 1")
	f := func(e FieldEdits, in, want []h1.Field) {
		t.Helper()
		if got := e.Apply(in); fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
			t.Errorf("unexpected fields; got %s; want %s", got, want)
		}
	}
	all := fieldsOf("Accept: */*", "AUTHORIZATION: Bearer client", "X-Internal: a", "x-internal: b", "Authorization: again", "Z: 1")
	f(FieldEdits{}, all, all)
	f(FieldEdits{Set: set}, nil, set)
	f(FieldEdits{Remove: [][]byte{[]byte("x-InternaL")}}, fieldsOf("X-Internal: a", "X-Internals: b"), fieldsOf("X-Internals: b"))
	f(FieldEdits{Set: set, Remove: [][]byte{[]byte("x-internal")}}, all,
		fieldsOf("Accept: */*", "Z: 1", "authorization: Bearer k", "x-set: 1"))
}
