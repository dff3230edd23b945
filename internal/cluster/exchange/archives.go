package exchange

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/engine"
)

// Node is a node of the cluster, with the address of its port for other nodes.
type Node struct{ ID, Address string }

// Archives implements engine.Archives with one connection to each node that is asked.
type Archives struct {
	others func() []Node
	dial   func(ctx context.Context, address, node string) (net.Conn, error)

	lock   sync.Mutex
	closed bool
	lines  map[string]*line
	last   string // the node that answered last
}

// line is the connection to one node.
type line struct {
	turn sync.Mutex // held while it is being dialed

	// The fields below are guarded by Archives.lock.
	client *Client
	failed time.Time // when it last could not be reached
}

// redial is how long a node that could not be reached is not dialed again.
const redial = time.Second

// NewArchives returns the archives of the other nodes, which others returns. dial connects to a node at an address.
func NewArchives(others func() []Node, dial func(ctx context.Context, address, node string) (net.Conn, error)) *Archives {
	return &Archives{others: others, dial: dial, lines: map[string]*line{}}
}

// Nodes implements engine.Archives. The node that last answered comes first.
func (x *Archives) Nodes() (ids []string) {
	for _, n := range x.others() {
		ids = append(ids, n.ID)
	}
	x.lock.Lock()
	defer x.lock.Unlock()
	if i := slices.Index(ids, x.last); i > 0 {
		ids[0], ids[i] = ids[i], ids[0]
	}
	return ids
}

// Ask implements engine.Archives.
func (x *Archives) Ask(ctx context.Context, node string, q *engine.ArchiveQuestion) (*engine.ArchiveAnswer, error) {
	body, err := cbor.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	c, err := x.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	outcome, answer, err := c.Ask(ctx, ended, body)
	switch {
	case err != nil:
		return nil, err
	case outcome == lacking:
		return nil, engine.ErrArchiveLacks
	case outcome != done:
		return nil, fmt.Errorf("the other node: %s", answer)
	}
	var a engine.ArchiveAnswer
	if err := decoding.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("the answer of the other node: %w", err)
	}
	x.lock.Lock()
	x.last = node
	x.lock.Unlock()
	return &a, nil
}

// Close ends all connections.
func (x *Archives) Close() {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.closed = true
	for _, l := range x.lines {
		if l.client != nil {
			l.client.Close()
		}
	}
}

var errUnreachable = errors.New("the node could not be reached a moment ago")

func (x *Archives) connect(ctx context.Context, node string) (*Client, error) {
	x.lock.Lock()
	l := x.lines[node]
	if l == nil {
		l = &line{}
		x.lines[node] = l
	}
	x.lock.Unlock()
	if c, err := x.present(l); c != nil || err != nil {
		return c, err
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if c, err := x.present(l); c != nil || err != nil { // another caller was faster
		return c, err
	}
	c, err := x.reach(ctx, node)
	x.lock.Lock()
	defer x.lock.Unlock()
	switch {
	case err != nil:
		if ctx.Err() == nil { // otherwise the caller has given up, which says nothing about the node
			l.failed = time.Now()
		}
		return nil, err
	case x.closed:
		c.Close()
		return nil, net.ErrClosed
	}
	l.client = c
	return c, nil
}

// present returns the open connection, if any; an error means that none may be opened now.
func (x *Archives) present(l *line) (*Client, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if x.closed {
		return nil, net.ErrClosed
	}
	if l.client != nil {
		select {
		case <-l.client.Ended():
			l.client = nil
		default:
			return l.client, nil
		}
	}
	if time.Since(l.failed) < redial {
		return nil, errUnreachable
	}
	return nil, nil
}

func (x *Archives) reach(ctx context.Context, node string) (*Client, error) {
	for _, n := range x.others() {
		if n.ID != node {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, dialWait)
		defer cancel()
		conn, err := x.dial(ctx, n.Address, node)
		if err != nil {
			return nil, err
		}
		return NewClient(conn), nil
	}
	return nil, fmt.Errorf("%s is not a node of the cluster", node)
}

func answerArchive(ctx context.Context, e *engine.Engine, body []byte) (byte, []byte) {
	var q engine.ArchiveQuestion
	if err := decoding.Unmarshal(body, &q); err != nil {
		return unknown, fmt.Append(nil, err)
	}
	a, err := e.AnswerArchive(ctx, &q)
	if errors.Is(err, engine.ErrArchiveLacks) {
		return lacking, nil
	}
	var answer []byte
	if err == nil {
		answer, err = cbor.Marshal(a)
	}
	return outcome(answer, err)
}
