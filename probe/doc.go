// Package probe reads request bodies and event streams without decoding them:
// bytes in, offsets out. It does one pass, keeps no reference to what it read,
// and allocates nothing in steady state.
package probe
