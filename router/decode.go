package router

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// decoder decodes one Content-Encoding. It is pooled, since each holds large
// windows.
type decoder interface {
	io.Reader
	// start begins a new body.
	start(src *bytes.Reader) error
	// stop lets go of the body.
	stop()
}

var (
	gzipDecoders   = sync.Pool{New: func() any { return new(gzipDecoder) }}
	deflateDecoder = sync.Pool{New: func() any { return new(deflater) }}
	brotliDecoders = sync.Pool{New: func() any { return &brotliDecoder{brotli.NewReader(nil)} }}
	zstdDecoders   = sync.Pool{New: func() any { return new(zstdDecoder) }}
)

// coding returns the pool of decoders for a Content-Encoding. identity reports
// one that needs none. A list of codings is none of ours.
func coding(name []byte) (pool *sync.Pool, identity bool) {
	name = bytes.TrimSpace(name)
	switch {
	case len(name) == 0, bytes.EqualFold(name, []byte("identity")):
		return nil, true
	case bytes.EqualFold(name, []byte("gzip")), bytes.EqualFold(name, []byte("x-gzip")):
		return &gzipDecoders, false
	case bytes.EqualFold(name, []byte("deflate")):
		return &deflateDecoder, false
	case bytes.EqualFold(name, []byte("br")):
		return &brotliDecoders, false
	case bytes.EqualFold(name, []byte("zstd")):
		return &zstdDecoders, false
	}
	return nil, false
}

// decodeBody replaces q.body by what its Content-Encoding holds, under limit.
// It returns false after it has answered the request itself.
func (q *request) decodeBody(limit int64) bool {
	names := q.ctx.Request.Header.PeekAll("Content-Encoding")
	if len(names) == 0 {
		return true
	}
	pool, identity := coding(names[0])
	if len(names) > 1 || (pool == nil && !identity) {
		return q.refuse(fasthttp.StatusUnsupportedMediaType, codeUnsupportedMedia,
			"content encoding is not supported; use gzip, br, zstd or deflate", "")
	}
	q.decoded = true
	if identity {
		return true
	}
	d := pool.Get().(decoder)
	defer pool.Put(d)
	b := getBuffer(4 * len(q.body))
	err := d.start(bytes.NewReader(q.body))
	if err == nil {
		b, err = readAll(d, b, 0, limit)
	}
	d.stop()
	if err != nil {
		putBuffer(b)
		if errors.Is(err, errTooLarge) {
			return q.tooLarge()
		}
		return q.refuse(fasthttp.StatusBadRequest, codeBadRequest, "invalid request: the body does not match its content encoding", "")
	}
	q.holdBody(b)
	return true
}

type gzipDecoder struct{ r gzip.Reader }

func (d *gzipDecoder) start(src *bytes.Reader) error { return d.r.Reset(src) }
func (d *gzipDecoder) Read(p []byte) (int, error)    { return d.r.Read(p) }
func (d *gzipDecoder) stop()                         {}

// deflater reads zlib, which is what RFC 9110 means by deflate, and the bare
// deflate stream that some clients send under that name.
type deflater struct {
	r    io.ReadCloser
	zlib io.ReadCloser
	bare io.ReadCloser
	buf  bufio.Reader
}

func (d *deflater) start(src *bytes.Reader) (err error) {
	d.buf.Reset(src)
	head, _ := d.buf.Peek(2) // a shorter body fails below
	if len(head) == 2 && head[0]&0x0f == 8 && (uint16(head[0])<<8|uint16(head[1]))%31 == 0 {
		if d.zlib == nil {
			d.zlib, err = zlib.NewReader(&d.buf)
		} else {
			err = d.zlib.(zlib.Resetter).Reset(&d.buf, nil)
		}
		d.r = d.zlib
		return err
	}
	if d.bare == nil {
		d.bare = flate.NewReader(&d.buf)
	} else {
		err = d.bare.(flate.Resetter).Reset(&d.buf, nil)
	}
	d.r = d.bare
	return err
}

func (d *deflater) Read(p []byte) (int, error) { return d.r.Read(p) }
func (d *deflater) stop()                      { d.buf.Reset(nil) }

type brotliDecoder struct{ r *brotli.Reader }

func (d *brotliDecoder) start(src *bytes.Reader) error { return d.r.Reset(src) }
func (d *brotliDecoder) Read(p []byte) (int, error)    { return d.r.Read(p) }
func (d *brotliDecoder) stop()                         {}

// zstdWindow bounds the memory that a zstd frame may ask for.
const zstdWindow = 8 << 20

type zstdDecoder struct{ r *zstd.Decoder }

func (d *zstdDecoder) start(src *bytes.Reader) (err error) {
	if d.r == nil {
		d.r, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		return err
	}
	return d.r.Reset(src)
}

func (d *zstdDecoder) Read(p []byte) (int, error) { return d.r.Read(p) }

// stop lets go of the source; resetting to nothing cannot fail.
func (d *zstdDecoder) stop() {
	if d.r != nil {
		_ = d.r.Reset(nil)
	}
}
