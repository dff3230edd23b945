package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sync/semaphore"
)

// ErrLost means that the connection ended before the answer came.
var ErrLost = errors.New("the connection to the other node was lost")

// Limits of questions of one connection that are being answered: their number and total size.
const (
	workingMax   = 4096
	workingBytes = 4 * messageMax
)

// Serve answers the questions of a connection, each in a goroutine of its own, until the connection or ctx ends. It returns after all of
// these goroutines. A nil error means that the peer closed the connection.
func Serve(ctx context.Context, conn net.Conn, answer func(ctx context.Context, kind byte, body []byte) (outcome byte, answer []byte)) error {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	to, from := newWriter(conn), bufio.NewReaderSize(conn, 64<<10)
	room, bytes := make(chan struct{}, workingMax), semaphore.NewWeighted(workingBytes)
	for {
		question, err := read(from)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		room <- struct{}{}
		size := int64(len(question.body))
		if err := bytes.Acquire(ctx, size); err != nil {
			return err
		}
		working.Go(func() {
			outcome, body := answer(ctx, question.kind, question.body)
			if to.write(message{question.no, outcome, body}) != nil { // the peer must not wait for an answer that will not arrive
				_ = conn.Close()
			}
			bytes.Release(size)
			<-room
		})
	}
}

// Client asks questions over one connection. All methods may be called concurrently.
type Client struct {
	to   *writer
	ends chan struct{} // closed when the connection ends

	lock  sync.Mutex
	no    uint64
	asked map[uint64]chan message // nil: the connection has ended
}

// NewClient takes over a connection.
func NewClient(conn net.Conn) *Client {
	c := &Client{to: newWriter(conn), ends: make(chan struct{}), asked: map[uint64]chan message{}}
	go c.receive()
	return c
}

// Ended is closed when the connection has ended.
func (c *Client) Ended() <-chan struct{} { return c.ends }

// Close ends the connection. Callers that wait for an answer get ErrLost.
func (c *Client) Close() { _ = c.to.conn.Close() }

func (c *Client) receive() {
	from := bufio.NewReaderSize(c.to.conn, 64<<10)
	for {
		m, err := read(from)
		if err != nil {
			break
		}
		c.lock.Lock()
		waits := c.asked[m.no]
		delete(c.asked, m.no)
		c.lock.Unlock()
		if waits != nil {
			waits <- m
		}
	}
	c.Close()
	c.lock.Lock()
	defer c.lock.Unlock()
	c.asked = nil
	close(c.ends)
}

// Ask asks a question and waits for the answer. The error is ErrLost, or that of ctx.
func (c *Client) Ask(ctx context.Context, kind byte, body []byte) (outcome byte, answer []byte, err error) {
	waits := make(chan message, 1)
	c.lock.Lock()
	if c.asked == nil {
		c.lock.Unlock()
		return 0, nil, ErrLost
	}
	c.no++
	no := c.no
	c.asked[no] = waits
	c.lock.Unlock()
	if err := c.to.write(message{no, kind, body}); err != nil {
		c.forget(no)
		return 0, nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	select {
	case m := <-waits:
		return m.kind, m.body, nil
	case <-c.ends:
		select { // the answer may have been the last message
		case m := <-waits:
			return m.kind, m.body, nil
		default:
			return 0, nil, ErrLost
		}
	case <-ctx.Done():
		c.forget(no)
		return 0, nil, ctx.Err()
	}
}

func (c *Client) forget(no uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.asked, no)
}
