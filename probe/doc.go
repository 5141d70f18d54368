// Package probe reads request bodies and event streams without decoding them:
// bytes in, offsets out.
package probe
