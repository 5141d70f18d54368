// Package gone notices that a client has gone while the router waits for a
// worker on its behalf, so that the work can be cancelled.
//
// A [Watcher] wraps the listener. Each connection it accepts is a [Conn], which
// is watched from accept to close; a request that wants to know Arms it with
// what is to be cancelled, and Disarms it when it is done. On Linux all
// connections share one epoll set and one goroutine, and a request costs two
// uncontended mutexes; on other systems one goroutine looks at the armed
// connections four times a second.
//
// A client counts as gone when it has closed or reset the connection, or has
// closed only its sending side. The last cannot be told from the first by
// anything but an attempt to write; nginx draws the same conclusion. A client
// that shuts down its sending side and still waits for an answer gets none.
//
// A Conn does two more things that only the owner of the socket can do for the
// server above it. It refuses a request head with bare LF line endings, which
// that server would wait for until its timeout ([ErrBareLF]), and it can close
// in a way that lets an answer be read that was sent before the request was
// ([Conn.Linger]).
//
// The package builds on unix systems.
package gone
