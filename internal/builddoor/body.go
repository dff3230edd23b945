package builddoor

import (
	"bufio"
	"bytes"
	"crypto/md5"  //nolint:gosec // S3's ETag and Content-MD5 are defined with it; it protects nothing here
	"crypto/sha1" //nolint:gosec // one of S3's checksums of transport
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The values of X-Amz-Content-Sha256 that are not digests. Source: "Authenticating Requests: Using the Authorization Header" of the S3 API reference.
const (
	unsignedPayload  = "UNSIGNED-PAYLOAD"
	signedChunks     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	trailerSuffix    = "-TRAILER"
	unsignedTrailers = "STREAMING-UNSIGNED-PAYLOAD" + trailerSuffix
)

const (
	checksumPrefix = "x-amz-checksum-"
	trailersMax    = 8
	lineMax        = 1024 // bytes of the header of a chunk, or of a trailer
)

// checksums are the algorithms that clients may name. The polynomial of CRC64NVME is written with its lowest bit first, as hash/crc64 requires.
var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

// body is the content of a request. At its end it checks the client's statements about it: signature, digest, length and checksums. Only then does it
// return io.EOF, so content that differs from what the client signed is never stored.
type body struct {
	source io.Reader // the content without its framing
	chunks *chunks   // nil unless the body is chunked
	length int64     // that the client announced; -1: none
	read   int64
	limit  int64

	digest string // hexadecimal, of the content; empty: not signed
	sha256 hash.Hash
	md5    hash.Hash
	md5Of  string // Content-MD5; empty: none
	check  hash.Hash
	named  string // the checksum's header in lower case
	want   string // its value; empty: it is a trailer
	err    error
}

// newBody prepares to read the content of a signed request. limit is its maximum size in bytes.
func newBody(r *http.Request, s *signed, limit int64) (*body, error) {
	b := &body{source: r.Body, length: r.ContentLength, limit: limit, md5: md5.New(), md5Of: r.Header.Get("Content-Md5")} //nolint:gosec // see the import
	trailer := strings.ToLower(strings.TrimSpace(r.Header.Get("X-Amz-Trailer")))
	for name := range checksums {
		if value := r.Header.Get(checksumPrefix + name); value != "" {
			b.named, b.want = checksumPrefix+name, value
		}
		if trailer == checksumPrefix+name {
			b.named = trailer
		}
	}
	if b.named != "" {
		b.check = checksums[strings.TrimPrefix(b.named, checksumPrefix)]()
	}
	switch payload := s.payload; payload {
	case unsignedPayload:
	case signedChunks, signedChunks + trailerSuffix, unsignedTrailers:
		text := r.Header.Get("X-Amz-Decoded-Content-Length")
		length, err := strconv.ParseInt(text, 10, 64)
		if err != nil || length < 0 {
			return nil, fail(http.StatusLengthRequired, "MissingContentLength", "X-Amz-Decoded-Content-Length %.40q: want the length of the content in bytes", text)
		}
		b.length = length
		b.chunks = &chunks{in: bufio.NewReaderSize(r.Body, 64<<10), trailers: strings.HasSuffix(payload, trailerSuffix)}
		if payload != unsignedTrailers {
			b.chunks.signed, b.chunks.last, b.chunks.sum = s, s.signature, sha256.New()
		}
		b.source = b.chunks
	default:
		if raw, err := hex.DecodeString(payload); err != nil || len(raw) != sha256.Size {
			return nil, fail(http.StatusBadRequest, "InvalidArgument", "x-amz-content-sha256 %.80q: want %s, a STREAMING- form, or a SHA-256 in hexadecimal digits", payload, unsignedPayload)
		}
		b.digest, b.sha256 = payload, sha256.New()
	}
	if b.length > limit {
		return nil, tooLarge(limit)
	}
	return b, nil
}

func tooLarge(limit int64) error {
	return fail(http.StatusBadRequest, "EntityTooLarge", "the upload has more than %d bytes", limit)
}

func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err = b.source.Read(p)
	b.read += int64(n)
	for _, h := range []hash.Hash{b.md5, b.sha256, b.check} {
		if h != nil {
			h.Write(p[:n])
		}
	}
	switch {
	case b.read > b.limit:
		err = tooLarge(b.limit)
	case b.length >= 0 && b.read > b.length:
		err = fail(http.StatusBadRequest, "IncompleteBody", "the content has more than the announced %d bytes", b.length)
	case errors.Is(err, io.EOF):
		err = b.finish()
	}
	b.err = err
	return n, err
}

// finish returns io.EOF if the content matches the client's statements.
func (b *body) finish() error {
	if b.length >= 0 && b.read != b.length {
		return fail(http.StatusBadRequest, "IncompleteBody", "the content has %d bytes; the client announced %d", b.read, b.length)
	}
	if b.sha256 != nil && hex.EncodeToString(b.sha256.Sum(nil)) != b.digest {
		return fail(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "the SHA-256 of the content is not x-amz-content-sha256, which the client signed")
	}
	if b.md5Of != "" && base64.StdEncoding.EncodeToString(b.md5.Sum(nil)) != b.md5Of {
		return fail(http.StatusBadRequest, "BadDigest", "the MD5 of the content is not Content-MD5")
	}
	if b.check != nil {
		want := b.want
		if want == "" && b.chunks != nil {
			want = b.chunks.found[b.named]
		}
		if base64.StdEncoding.EncodeToString(b.check.Sum(nil)) != want {
			return fail(http.StatusBadRequest, "BadDigest", "the checksum of the content is not %s", b.named)
		}
	}
	return io.EOF
}

// etag returns the S3 tag of the content once it has been read: its MD5.
func (b *body) etag() string { return hex.EncodeToString(b.md5.Sum(nil)) }

// chunks reads a body of the form aws-chunked, and checks the signature of each chunk:
//
//	<size, hexadecimal>[;chunk-signature=<signature>]\r\n<content>\r\n … 0[;chunk-signature=<signature>]\r\n[<trailer>:<value>\r\n …]\r\n
type chunks struct {
	in       *bufio.Reader
	trailers bool
	signed   *signed // nil: the chunks have no signatures
	last     string  // the previous signature
	sum      hash.Hash

	left  int64  // of the chunk
	mine  string // its signature
	ended bool
	found map[string]string // trailers, by their names in lower case
}

func (c *chunks) Read(p []byte) (n int, err error) {
	if c.ended {
		return 0, io.EOF
	}
	if c.left == 0 {
		if err := c.head(); err != nil {
			return 0, broken(err)
		}
		if c.left == 0 {
			if err := c.end(); err != nil {
				return 0, broken(err)
			}
			return 0, io.EOF
		}
	}
	n, err = c.in.Read(p[:min(int64(len(p)), c.left)])
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	if c.left -= int64(n); c.left == 0 && err == nil {
		if err = c.verify(); err == nil {
			err = c.expectEmpty()
		}
	}
	return n, broken(err)
}

// broken turns the premature end of a body into an error other than io.EOF.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func malformed(format string, args ...any) error {
	return fail(http.StatusBadRequest, "IncompleteBody", "aws-chunked: "+format, args...)
}

// line reads a line without its \r\n.
func (c *chunks) line() (string, error) {
	text, err := c.in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	if err != nil || len(text) > lineMax || !bytes.HasSuffix(text, []byte("\r\n")) {
		return "", malformed("want a line of at most %d bytes with its end", lineMax)
	}
	return string(text[:len(text)-2]), nil
}

func (c *chunks) expectEmpty() error {
	text, err := c.line()
	if err == nil && text != "" {
		err = malformed("a chunk has more content than it announced")
	}
	return err
}

func (c *chunks) head() error {
	text, err := c.line()
	if err != nil {
		return err
	}
	size, extension, _ := strings.Cut(text, ";")
	if c.left, err = strconv.ParseInt(size, 16, 64); err != nil || c.left < 0 || size[0] == '+' {
		return malformed("the size %.40q of a chunk: want hexadecimal digits", size)
	}
	if c.signed == nil {
		return nil
	}
	var ok bool
	if c.mine, ok = strings.CutPrefix(extension, "chunk-signature="); !ok {
		return malformed("a chunk has no chunk-signature")
	}
	c.sum.Reset()
	return nil
}

// emptySum is the SHA-256 of nothing. It stands for the headers that a chunk does not have.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (c *chunks) verify() error {
	if c.signed == nil {
		return nil
	}
	text := "AWS4-HMAC-SHA256-PAYLOAD\n" + c.signed.date + "\n" + c.signed.scope + "\n" + c.last + "\n" + emptySum + "\n" + hex.EncodeToString(c.sum.Sum(nil))
	return c.matches(text, c.mine)
}

func (c *chunks) matches(text, signature string) error {
	if want := string(c.signed.key.Sum(nil, []byte(text))); !equal(want, signature) {
		return wrongSignature()
	}
	c.last = signature
	return nil
}

// end reads the trailers after the last chunk.
func (c *chunks) end() error {
	if err := c.verify(); err != nil {
		return err
	}
	c.ended, c.found = true, map[string]string{}
	canonical, signature := "", ""
	for n := 0; ; n++ {
		text, err := c.line()
		if err != nil && !(errors.Is(err, io.EOF) && n > 0) { // some clients omit the last empty line
			return err
		}
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok || n > trailersMax || !c.trailers {
			return malformed("trailers: want at most %d of the form name:value", trailersMax)
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "x-amz-trailer-signature" {
			signature = value
			continue
		}
		c.found[name] = value
		canonical += name + ":" + value + "\n"
	}
	if c.signed == nil || !c.trailers {
		return nil
	}
	sum := sha256.Sum256([]byte(canonical))
	return c.matches("AWS4-HMAC-SHA256-TRAILER\n"+c.signed.date+"\n"+c.signed.scope+"\n"+c.last+"\n"+hex.EncodeToString(sum[:]), signature)
}

// patient is a body without a total time limit: the client must only send something within each pauseMax.
type patient struct {
	io.ReadCloser
	control *http.ResponseController
	asked   time.Time
}

// pauseMax is the longest pause of a client within an upload or a download.
const pauseMax = 60 * time.Second

func (p *patient) Read(b []byte) (int, error) {
	if now := time.Now(); now.Sub(p.asked) > time.Second {
		p.asked = now
		// Only connections in tests have no deadlines.
		_ = p.control.SetReadDeadline(now.Add(pauseMax))
		_ = p.control.SetWriteDeadline(now.Add(2 * pauseMax))
	}
	return p.ReadCloser.Read(b)
}
