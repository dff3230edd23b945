package gamelift

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/smithy-go"
)

const (
	// bodyMax leaves room for the model's largest input, a script of 5 MB in base64. Each operation has a lower bound of its own.
	bodyMax = 8 << 20

	// drainMax is how much of a refused body is read and discarded to keep the connection, and drainWait the time for that.
	drainMax  = 2 * bodyMax
	drainWait = 5 * time.Second

	// slowAfter is how long a body may arrive at any rate. After that, it must have averaged at least slowRate bytes per second since its
	// beginning. A phone with a bad connection sends several times that.
	slowAfter = 10 * time.Second
	slowRate  = 32 << 10

	// bodyStep is the first buffer size for a body of unknown or large size; the size then doubles. So a client that announces 4 MiB and
	// sends nothing takes no memory.
	bodyStep = smallRequest
)

// body is the arriving body of one request. Its memory is taken from the pool of arriving bodies, on the account of the client's address,
// because the signature cannot be verified before the body is complete.
type body struct {
	w       http.ResponseWriter
	r       *http.Request
	most    int64
	pool    *admission
	address string
	taken   int64 // from the pool
	began   time.Time
	timed   bool // a read deadline is set
}

// read reads the whole body into the pooled buffer.
func (b *body) read(pooled *buffers) smithy.APIError {
	size := b.r.ContentLength
	if size > b.most {
		discard(b.w, b.r)
		return b.tooLarge()
	}
	text := pooled.body[:0]
	if size >= 0 && int64(cap(text)) <= size && size < bodyStep { // one byte more, so that the end is detected without growing
		text = make([]byte, 0, size+1)
	}
	for {
		if len(text) == cap(text) {
			room := b.grown(len(text), size)
			if !b.take(int64(room)) {
				discard(b.w, b.r)
				return throttled()
			}
			text = append(make([]byte, 0, room), text...)
		}
		n, err := b.r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		pooled.body = text
		switch {
		case int64(len(text)) > b.most:
			discard(b.w, b.r)
			return b.tooLarge()
		case errors.Is(err, io.EOF):
			b.untimed()
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			b.w.Header()["Connection"] = []string{"close"}
			return commonError(codeRequestTimeout, "the body arrived too slowly: want %d bytes a second", slowRate)
		case err != nil:
			return commonError(codeSerialization, "the body ended early")
		}
		if int64(len(text)) != size { // otherwise only the end has to be detected
			b.limitTime(len(text))
		}
	}
}

// grown returns the next buffer size for a partial body: twice the current one, but no more than the body can need.
func (b *body) grown(have int, size int64) int {
	room := max(2*have, bodyStep)
	if size >= 0 {
		return min(room, int(size)+1)
	}
	return min(room, int(b.most)+1)
}

// take takes memory from the pool; small bodies need none. By then the previous buffer is garbage and is not counted.
func (b *body) take(room int64) bool {
	if room <= smallRequest {
		return true
	}
	if !b.pool.arriving.Take(b.address, room-b.taken) {
		return false
	}
	b.taken = room
	return true
}

// done returns the body's memory.
func (b *body) done() {
	if b.taken > 0 {
		b.pool.arriving.Give(b.address, b.taken)
	}
}

// limitTime sets the deadline for the next bytes. It is not called for a body that arrived together with its header.
func (b *body) limitTime(have int) {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	wait := slowAfter + time.Duration(have)*time.Second/slowRate
	b.timed = http.NewResponseController(b.w).SetReadDeadline(b.began.Add(wait)) == nil
}

// untimed removes the deadline, because net/http continues to read in the background to detect that the client closes the connection.
func (b *body) untimed() {
	if b.timed {
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{}) // setting it worked before, so this cannot fail
	}
}

func (b *body) tooLarge() smithy.APIError {
	return commonError(codeEntityTooLarge, "the body is larger than %d bytes", b.most)
}

// discard reads and discards the rest of a body, up to drainMax, so that the client reads the answer and keeps its connection.
func discard(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainWait)) // fails in tests without a connection
	if n, err := io.CopyN(io.Discard, r.Body, drainMax); n == drainMax || !errors.Is(err, io.EOF) {
		w.Header()["Connection"] = []string{"close"}
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}
