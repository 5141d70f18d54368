package router

import (
	"bytes"

	"sluice/probe"
)

// endpoint is what the router does on one path.
type endpoint struct {
	surface probe.Surface
	kind    endpointKind
	// methods is the value of the Allow field.
	methods   string
	multipart bool // takes multipart/form-data beside JSON
}

type endpointKind uint8

const (
	kindForward endpointKind = iota // governed and forwarded
	kindPass                        // forwarded on purpose: server.passthrough_paths
	kindModels                      // GET /v1/models
	kindModel                       // GET /v1/models/{id}
	kindAlive
	kindReady
)

var (
	epChat        = endpoint{surface: probe.SurfaceChat, methods: "POST"}
	epCompletions = endpoint{surface: probe.SurfaceCompletions, methods: "POST"}
	epResponses   = endpoint{surface: probe.SurfaceResponses, methods: "POST"}
	epMessages    = endpoint{surface: probe.SurfaceMessages, methods: "POST"}
	epGenerate    = endpoint{surface: probe.SurfaceGenerate, methods: "POST, PUT"}
	epEmbeddings  = endpoint{surface: probe.SurfaceEmbeddings, methods: "POST"}
	epRerank      = endpoint{surface: probe.SurfaceRerank, methods: "POST"}
	epScore       = endpoint{surface: probe.SurfaceScore, methods: "POST"}
	epClassify    = endpoint{surface: probe.SurfaceClassify, methods: "POST"}
	epModerations = endpoint{surface: probe.SurfaceModerations, methods: "POST"}
	epAudio       = endpoint{surface: probe.SurfaceAudio, methods: "POST", multipart: true}
	epImages      = endpoint{surface: probe.SurfaceImages, methods: "POST", multipart: true}
	epOCR         = endpoint{surface: probe.SurfaceOCR, methods: "POST", multipart: true}
	epTokenize    = endpoint{surface: probe.SurfaceTokenize, methods: "POST"}
	epDetokenize  = endpoint{surface: probe.SurfaceDetokenize, methods: "POST"}
	epPass        = endpoint{kind: kindPass}
	epModels      = endpoint{kind: kindModels, methods: "GET, HEAD"}
	epModel       = endpoint{kind: kindModel, methods: "GET, HEAD"}
	epAlive       = endpoint{kind: kindAlive, methods: "GET, HEAD"}
	epReady       = endpoint{kind: kindReady, methods: "GET, HEAD"}
)

// lookup returns the endpoint of a raw path, or nil. The path is compared byte
// for byte, as the worker will see it: `/v1//models`, `/v1/./chat/completions`
// and percent-encoded spellings are other paths, and not served. What is
// judged and what is forwarded is one representation.
func lookup(path []byte) *endpoint {
	switch string(path) {
	case "/v1/chat/completions":
		return &epChat
	case "/v1/completions":
		return &epCompletions
	case "/v1/responses":
		return &epResponses
	case "/v1/messages":
		return &epMessages
	case "/generate":
		return &epGenerate
	case "/v1/embeddings":
		return &epEmbeddings
	case "/v1/rerank":
		return &epRerank
	case "/v1/score":
		return &epScore
	case "/v1/classify":
		return &epClassify
	case "/v1/moderations":
		return &epModerations
	case "/v1/ocr":
		return &epOCR
	case "/tokenize", "/v1/tokenize":
		return &epTokenize
	case "/detokenize", "/v1/detokenize":
		return &epDetokenize
	case "/v1/models":
		return &epModels
	case "/health", "/healthz", "/liveness":
		return &epAlive
	case "/ready", "/readyz", "/readiness":
		return &epReady
	}
	switch {
	case below(path, "/v1/audio/"):
		return &epAudio
	case below(path, "/v1/images/"):
		return &epImages
	case len(path) > len(modelsPrefix) && bytes.HasPrefix(path, []byte(modelsPrefix)):
		return &epModel
	}
	return nil
}

const modelsPrefix = "/v1/models/"

// below reports whether path is prefix and one or more plain segments: nothing
// that a worker could resolve to a path outside of prefix.
func below(path []byte, prefix string) bool {
	if len(path) <= len(prefix) || string(path[:len(prefix)]) != prefix {
		return false
	}
	for i := len(prefix); i < len(path); i++ {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		case c == '/' && path[i-1] != '/' && i+1 < len(path):
		default:
			return false
		}
	}
	return true
}

// allows reports whether the endpoint takes the method.
func (e *endpoint) allows(method []byte) bool {
	switch e.methods {
	case "POST":
		return string(method) == "POST"
	case "POST, PUT":
		return string(method) == "POST" || string(method) == "PUT"
	case "GET, HEAD":
		return string(method) == "GET" || string(method) == "HEAD"
	}
	return true
}
