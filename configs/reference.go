package configs

import _ "embed" // see Schema and Reference

// Both are made from the structs of this package and their comments, by
// go test ./configs -run TestReference -update; without -update the test fails
// where they do not say what the structs do.
var (
	//go:embed schema.json
	schemaText string
	//go:embed REFERENCE.md
	referenceText string
)

// Schema returns the JSON Schema (draft 2020-12) of a configuration, for editors.
// Load takes nothing that it refuses; what depends on more than one value, Load
// alone refuses.
func Schema() string { return schemaText }

// Reference returns the page on every key, in Markdown.
func Reference() string { return referenceText }
