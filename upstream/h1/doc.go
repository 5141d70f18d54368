// Package h1 is the wire half of an HTTP/1.1 client, without any I/O: request
// heads are appended to a buffer, bytes of an answer are fed in as they come.
//
// The package opens no connection, starts no goroutine and reads no clock.
// Whoever drives it (a goroutine with a net.Conn, an event loop, a test)
// reads bytes from wherever they come from and calls [Response.FeedHead] and
// then [Response.FeedBody] with them, cut at any place: the outcome depends
// only on the bytes, never on where the reads divided them.
//
// Parsing follows RFC 9112 and takes the strict side wherever two parsers
// could read the same bytes differently: such an answer is an error, and the
// connection it came on must be closed. What is refused, and why, stands next
// to the code that refuses it. Memory is bounded for every input: a head by
// [MaxHead] and [MaxFields], a chunk line and a trailer section by constants
// that cost no memory at all, a body by the buffer of the caller.
//
// Nothing is allocated once the buffers of a [Response] have grown to the
// size of the heads it sees.
package h1
