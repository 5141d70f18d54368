// Package h2c is an HTTP/2 client over plain TCP with prior knowledge (RFC 9113
// section 3.3): many exchanges of request and answer share one connection.
//
// It has two halves. The session does no I/O: bytes of the peer are fed in,
// cut at any place, and frames for the peer are appended to a buffer; it
// starts no goroutine, takes no lock and reads no clock, and the outcome
// depends on the bytes alone. [Conn] and [Stream] drive it over a net.Conn:
// one goroutine reads, and the requests themselves write. Who queues a frame
// while nobody writes writes everything that is queued, so that under load one
// system call carries the frames of many requests. Large bodies are written from
// where they are, in turns. No request costs a goroutine, a timer or, once its buffers have grown, an allocation, but for
// the values of fields that the peer does not put into its dynamic table.
//
// Flow control keeps a slow reader from stalling its siblings: the window of
// the connection is given back as soon as data comes, that of a stream when
// its data was consumed. So a stream holds at most its own window.
//
// The peer is not trusted with memory or time. Frames are limited to what we
// announce, header blocks and their fields to what the HTTP/1.1 client takes
// (package h1), and a peer that sends frames that serve nothing at a high rate
// is told ENHANCE_YOUR_CALM and left. Requests are encoded without the dynamic
// table, so that nothing of one request can be seen in another.
package h2c
