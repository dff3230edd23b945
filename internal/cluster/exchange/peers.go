package exchange

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/panics"
)

// Kinds of questions.
const (
	execute = 'e' // an engine.Request: execute this command
	index   = 'i' // the entry that a read must have applied
	ended   = 'a' // an engine.ArchiveQuestion about ended records
)

// Questions for Handlers, because only the leader has the matchers' pools.
const (
	Explain   = 'x' // the explanation of a ticket
	Attention = 'n' // problems in matchmaking
)

// Cause is the question, for a Handler, for the trace that caused a record; the leader remembers it.
const Cause = 'w'

// Outcomes.
const (
	done       = 'd' // with the answer
	refused    = 'r' // with the refusal: nothing has changed
	undecided  = 'b' // with the refusal: this attempt was not executed, an earlier one may have been
	notLeading = 'n' // nothing has happened
	unknown    = 'u' // the outcome is unknown; with the reason, for people
	lacking    = 'l' // this node's archive is incomplete
)

// Office is this node's knowledge about leadership.
type Office interface {
	// VerifyRead returns the number of the entry that a linearizable read must have applied. It succeeds only on the leader.
	VerifyRead(ctx context.Context) (number uint64, err error)
	// Leader returns the leader and its address; empty if none is known or it does not decide yet.
	Leader() (id, address string)
}

// Peers implements engine.Peers with a connection to the current leader.
type Peers struct {
	self   string
	office Office
	dial   func(ctx context.Context, address, node string) (net.Conn, error)

	lock    sync.Mutex
	closed  bool
	leader  string // the leader to which client is connected
	client  *Client
	dialing *dialing // the latest attempt to connect; nil: it has ended
}

// dialing is an attempt to connect to a leader.
type dialing struct {
	to    string
	ended chan struct{} // closed when it has ended
	err   error         // why the leader could not be reached; nil also if the caller that dialed has given up
}

// NewPeers returns the peers of node self. dial connects to a node at an address.
func NewPeers(self string, office Office, dial func(ctx context.Context, address, node string) (net.Conn, error)) *Peers {
	return &Peers{self: self, office: office, dial: dial}
}

// Close ends the connection to the leader.
func (p *Peers) Close() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.closed = true
	if p.client != nil {
		p.client.Close()
	}
}

// The timeouts of calls, needed because a stalled node keeps its connections open. A question whose answer is late is asked again.
const (
	askWait  = 5 * time.Second
	dialWait = 3 * time.Second
)

// Execute implements engine.Peers.
func (p *Peers) Execute(ctx context.Context, r *engine.Request) ([]byte, error) {
	body, err := cbor.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(body) > bodyMax {
		return nil, &engine.Undecided{Refusal: domain.Refuse(domain.Invalid, "the request has %d bytes, at most %d can be sent to another node", len(body), bodyMax)}
	}
	return p.Ask(ctx, execute, body)
}

// Verify implements engine.Peers.
func (p *Peers) Verify(ctx context.Context) error {
	if _, err := p.office.VerifyRead(ctx); err != nil {
		return engine.ErrNotLeading
	}
	return nil
}

// Index implements engine.Peers.
func (p *Peers) Index(ctx context.Context) (uint64, error) {
	if id, _ := p.office.Leader(); id == p.self {
		number, err := p.office.VerifyRead(ctx)
		if err != nil && ctx.Err() == nil {
			err = engine.ErrNotLeading
		}
		return number, err
	}
	body, err := p.Ask(ctx, index, nil)
	if err != nil {
		return 0, err
	}
	if len(body) != 8 {
		return 0, fmt.Errorf("%w: the index of a read has %d bytes, want 8", engine.ErrNotLeading, len(body))
	}
	return binary.BigEndian.Uint64(body), nil
}

// Ask asks the leader one of the engine's questions, or one for which its Answer has a Handler. The error is that of the leader, ErrNotLeading if
// nothing has happened, or ErrStopped if the outcome is unknown. If this node leads, Ask returns ErrNotLeading, because the caller has the answer
// itself.
func (p *Peers) Ask(ctx context.Context, question byte, body []byte) ([]byte, error) {
	c, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	return c.AskFor(waiting, question, body)
}

// connect returns a connection to the current leader. Only one to the same leader is opened at a time, and all callers that wait for it share its failure.
// An attempt to connect to an earlier leader, whose machine may be gone, delays nothing.
func (p *Peers) connect(ctx context.Context) (*Client, error) {
	for {
		id, address := p.office.Leader()
		if id == "" || id == p.self {
			return nil, engine.ErrNotLeading
		}
		p.lock.Lock()
		if p.closed {
			p.lock.Unlock()
			return nil, engine.ErrNotLeading
		}
		if c := p.client; c != nil && p.leader == id {
			select {
			case <-c.Ended():
			default:
				p.lock.Unlock()
				return c, nil
			}
		}
		if d := p.dialing; d != nil && d.to == id {
			p.lock.Unlock()
			select {
			case <-d.ended:
				if d.err != nil {
					return nil, errors.Join(engine.ErrNotLeading, d.err)
				}
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		mine := &dialing{to: id, ended: make(chan struct{})}
		p.dialing = mine
		p.lock.Unlock()
		conn, err := p.dialFor(ctx, address, id)
		p.lock.Lock()
		latest := p.dialing == mine
		if latest {
			p.dialing = nil
		}
		if err == nil && (p.closed || !latest) {
			_ = conn.Close()
		} else if err == nil {
			if p.client != nil {
				p.client.Close()
			}
			p.leader, p.client = id, NewClient(conn)
		} else if ctx.Err() == nil {
			mine.err = err
		}
		close(mine.ended)
		p.lock.Unlock()
		if err != nil {
			return nil, errors.Join(engine.ErrNotLeading, err)
		}
	}
}

func (p *Peers) dialFor(ctx context.Context, address, node string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	return p.dial(ctx, address, node)
}

// AskFor is Ask of the node at the other end of this connection. Its errors are those of Peers.Ask.
func (c *Client) AskFor(ctx context.Context, question byte, body []byte) ([]byte, error) {
	outcome, answer, err := c.Ask(ctx, question, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engine.ErrStopped, err)
	}
	return answer, failure(outcome, answer)
}

// Handler answers a question that is not one of the engine's. Its refusals and ErrNotLeading reach the asker unchanged, other errors as ErrStopped
// with their text.
type Handler func(ctx context.Context, body []byte) (answer []byte, err error)

// panicDoor is the label of panics.
const panicDoor = "nodes"

// Answer returns a function for Serve: this node's answers to nodes that take it for the leader. more has the handlers for further questions. A panic
// makes the outcome of its question unknown. If it ended the node, the asker would ask the next leader, and end that, too.
func Answer(e *engine.Engine, office Office, more map[byte]Handler, guard *panics.Guard) func(ctx context.Context, kind byte, body []byte) (byte, []byte) {
	answer := answers(e, office, more)
	return func(ctx context.Context, kind byte, body []byte) (outcome byte, said []byte) {
		var panicked error
		func() {
			defer guard.Catch(panicDoor, &panicked)
			outcome, said = answer(ctx, kind, body)
		}()
		if panicked != nil {
			return unknown, fmt.Append(nil, panicked)
		}
		return outcome, said
	}
}

func answers(e *engine.Engine, office Office, more map[byte]Handler) func(ctx context.Context, kind byte, body []byte) (byte, []byte) {
	return func(ctx context.Context, kind byte, body []byte) (byte, []byte) {
		if handle := more[kind]; handle != nil {
			answer, err := handle(ctx, body)
			return outcome(answer, err)
		}
		switch kind {
		case execute:
			var r engine.Request
			if err := decoding.Unmarshal(body, &r); err != nil {
				return unknown, fmt.Append(nil, err)
			}
			answer, err := e.ExecuteFor(ctx, &r)
			return outcome(answer, err)
		case index:
			number, err := office.VerifyRead(ctx)
			if err != nil {
				return notLeading, nil
			}
			return done, binary.BigEndian.AppendUint64(nil, number)
		case ended:
			return answerArchive(ctx, e, body)
		}
		return unknown, fmt.Appendf(nil, "request %q is from a later release", kind)
	}
}

// Refusals repeat clients' texts, which need not be valid UTF-8.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// refusal is the wire form of a domain.Refusal.
type refusal struct {
	Reason domain.Reason
	Detail string
	Quota  string `cbor:",omitempty"`
	Cause  *flow.Refusal
}

func outcome(answer []byte, err error) (byte, []byte) {
	if err == nil && len(answer) > bodyMax {
		err = fmt.Errorf("the answer has %d bytes, at most %d can be sent to another node", len(answer), bodyMax)
	}
	if err == nil {
		return done, answer
	}
	if errors.Is(err, engine.ErrStopped) { // it may also wrap the refusal of a late request
		return unknown, fmt.Append(nil, err)
	}
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		travels := refusal{Reason: r.Reason, Detail: r.Detail, Quota: r.Quota}
		travels.Cause, _ = errors.AsType[*flow.Refusal](r.Cause)
		if b, failed := cbor.Marshal(travels); failed == nil {
			if _, early := errors.AsType[*engine.Undecided](err); early {
				return undecided, b
			}
			return refused, b
		}
	}
	if errors.Is(err, engine.ErrNotLeading) {
		return notLeading, nil
	}
	return unknown, fmt.Append(nil, err)
}

// failure converts an outcome to an error.
func failure(outcome byte, body []byte) error {
	switch outcome {
	case done:
		return nil
	case notLeading:
		return engine.ErrNotLeading
	case refused, undecided:
		var travels refusal
		if err := decoding.Unmarshal(body, &travels); err != nil {
			return fmt.Errorf("%w: the refusal of the other node: %w", engine.ErrStopped, err)
		}
		r := &domain.Refusal{Reason: travels.Reason, Detail: travels.Detail, Quota: travels.Quota}
		if travels.Cause != nil {
			r.Cause = travels.Cause
		}
		if outcome == undecided {
			return &engine.Undecided{Refusal: r}
		}
		return r
	}
	return fmt.Errorf("%w: the other node: %s", engine.ErrStopped, body)
}
