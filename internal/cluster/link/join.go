package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
)

const (
	// joinBytesMax bounds the request and the answer.
	joinBytesMax = 64 << 10

	// joinBytesBelow is the overhead of TLS and the length for a request.
	joinBytesBelow = 8 << 10

	joinsMax        = 16 // requests answered at a time
	joinsPerAddress = 4
)

// joins counts the requests that are being answered.
type joins struct {
	mu   sync.Mutex
	all  int
	from map[netip.Addr]int
}

func (j *joins) begin(from netip.Addr) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all >= joinsMax || j.from[from] >= joinsPerAddress {
		return false
	}
	if j.from == nil {
		j.from = map[netip.Addr]int{}
	}
	j.all++
	j.from[from]++
	return true
}

func (j *joins) end(from netip.Addr) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all--
	if j.from[from]--; j.from[from] == 0 {
		delete(j.from, from)
	}
}

// joinError is the reason why a request was not answered.
type joinError struct{ err error }

func (e *joinError) Error() string { return "request to join: " + e.err.Error() }

// serveJoin answers one request. The connection stays unproven throughout: it may be closed to make room for others.
func (l *Link) serveJoin(c *conn, began time.Time) error {
	until := began.Add(l.options.joinWait)
	c.below.left = joinBytesMax + joinBytesBelow
	if err := c.SetDeadline(until); err != nil {
		return &joinError{err}
	}
	request, err := readMessage(c)
	if err != nil {
		return &joinError{err}
	}
	// Counted only from here, because a peer can be slow in sending its request, but not in reading the answer.
	from := addressOf(c.below.tcp)
	if !l.joins.begin(from) {
		return &joinError{errors.New("too many are being answered")}
	}
	defer l.joins.end(from)
	ctx, cancel := context.WithDeadline(c.ctx, until)
	defer cancel()
	answer, err := l.options.Join(ctx, from, request)
	if err == nil {
		err = writeMessage(c, answer)
	}
	if err != nil {
		return &joinError{err}
	}
	return nil
}

// Join sends the request of a joining node to the first reachable address of a token, and returns the answer. If the error is
// ErrUnanswered, the request may have had its effect. now is the clock; nil: time.Now.
func Join(ctx context.Context, token trust.Token, now func() time.Time, request []byte) (answer []byte, err error) {
	return join(ctx, token, now, request, handshakeWait, joinWait)
}

// join is Join with handshakeWait for each address, and joinWait for the first that is a node.
func join(ctx context.Context, token trust.Token, now func() time.Time, request []byte, handshakeWait, joinWait time.Duration) (answer []byte, err error) {
	config := token.Client(now)
	config.NextProtos = []string{string(joining)}
	var failed []error
	for _, address := range token.Addresses {
		within, cancel := context.WithTimeout(ctx, handshakeWait)
		c, below, err := handshake(within, address, config)
		cancel()
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", address, err))
			continue
		}
		defer below.reset()
		ctx, cancel := context.WithTimeout(ctx, joinWait)
		defer cancel()
		defer context.AfterFunc(ctx, below.reset)()
		below.left = joinBytesMax + joinBytesBelow
		if err = writeMessage(c, request); err == nil {
			answer, err = readMessage(c)
		}
		if err != nil {
			return nil, fmt.Errorf("join the cluster at %s: %w: %w", address, ErrUnanswered, err)
		}
		return answer, nil
	}
	return nil, fmt.Errorf("join the cluster: %w", errors.Join(failed...))
}

// ErrUnanswered is the error of Join if a node of the cluster was reached but did not answer.
var ErrUnanswered = errors.New("the node gave no answer")

// A message consists of its length (4 bytes, big-endian) and its content, a JSON document.

func writeMessage(to io.Writer, content []byte) error {
	if len(content) == 0 || len(content) > joinBytesMax {
		return fmt.Errorf("a message of %d bytes; want 1 to %d", len(content), joinBytesMax)
	}
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...))
	return err
}

// readMessage allocates memory only for data that has arrived.
func readMessage(from io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > joinBytesMax {
		return nil, fmt.Errorf("a message of %d bytes; want 1 to %d", n, joinBytesMax)
	}
	content, err := io.ReadAll(io.LimitReader(from, int64(n)))
	if err == nil && len(content) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return content, err
}
