package configs

import (
	"maps"
	"slices"
	"strings"
)

const (
	// maxFieldValue bounds the value of a header field in bytes, maxFields the
	// fields of a pool.
	maxFieldValue = 8 << 10
	maxFields     = 64
)

// fixedFields are the header fields that no pool may set or remove: they frame
// the message or belong to one connection (RFC 9110 section 7.6.1), or they say
// how the body is to be read, which the router has decided.
var fixedFields = []string{
	"host", "content-length", "transfer-encoding", "content-encoding", "expect",
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "http2-settings",
	"proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
}

// headers checks the names and values of a pool's header fields.
func (v *validator) headers(h *Headers, path string) {
	seen := make(map[string]string, len(h.Set)+len(h.Remove)) // lower case: path
	check := func(name, at string) {
		lower := strings.ToLower(name)
		switch first, again := seen[lower]; {
		case !fieldName(name):
			v.fail(at, "must be the name of a header field, got %s", quote(name))
		case slices.Contains(fixedFields, lower):
			v.fail(at, "%s is the router's own to write", quote(name))
		case again:
			v.fail(at, "%s is named by %s already", quote(name), first)
		}
		seen[lower] = at
	}
	for _, name := range slices.Sorted(maps.Keys(h.Set)) {
		at := childPath(path+".set", name)
		check(name, at)
		if msg := fieldValueFault(string(h.Set[name])); msg != "" {
			v.fail(at, "%s", msg)
		}
	}
	for i, name := range h.Remove {
		check(name, itemPath(path+".remove", i))
	}
	if n := len(h.Set) + len(h.Remove); n > maxFields {
		v.fail(path, "must name at most %d fields, got %d", maxFields, n)
	}
}

// fieldName reports whether s is a token (RFC 9110 section 5.6.2).
func fieldName(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(s[i])) {
			return false
		}
	}
	return s != ""
}

// fieldValueFault says why s, which it does not show, is not the value of a
// header field (RFC 9110 section 5.5), or returns "".
func fieldValueFault(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > maxFieldValue:
		return "is too long for a header field"
	case strings.Trim(s, " \t") != s:
		return "must not begin or end with white space"
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "must not hold line breaks or other control characters"
		}
	}
	return ""
}
