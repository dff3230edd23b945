package agentlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// Bounds of the streams of output. Together they buffer at most streamsMax × streamBytes = 16 MiB.
const (
	streamsMax       = 64        // concurrent ones
	streamsOfHostMax = 8         // concurrent ones of one host
	streamBytes      = 256 << 10 // bytes that may wait for a stream's reader
	streamOverhead   = 100       // bytes counted per message besides its output
	streamFirstMax   = 20 * time.Second
	streamSilenceMax = time.Minute // agents send something every 15 seconds while connected
)

// Piece is a part of a server process's output.
type Piece struct {
	Text    string
	Skipped bool // output before this piece was skipped, because it was written faster than it could be sent
}

// Output is the output of a server process, as its agent sends it. What waits for the reader is bounded: the agent sends the rest once there is room,
// and skips what has left the process's files by then.
type Output struct {
	server  *Server
	compute compute
	id      string
	more    chan struct{} // has an element if there may be something to read

	mu     sync.Mutex
	pieces []Piece
	bytes  int
	number int64 // of the last message
	over   bool
	why    string // the agent's reason for an early end
}

// streams holds the open streams by id.
type streams struct {
	mu   sync.Mutex
	open map[string]*Output
}

// Connected reports whether a compute's agent that keeps output is connected to this node.
func (s *Server) Connected(fleet, name string) bool {
	l := s.current(compute{fleet, name})
	return l != nil && l.native
}

// Output asks the agent of a server process for its output: the last lines (0: all) within so many bytes, and, with follow, what the process writes
// until it ends. The caller must call Close. Refusals: Conflict if no agent that supports this is connected to this node; Overloaded.
func (s *Server) Output(process fleet.Key, bytes, lines int, follow bool) (*Output, error) {
	c := compute{process.Fleet, process.Compute}
	l := s.current(c)
	switch {
	case l == nil:
		return nil, domain.Refuse(domain.Conflict, "no agent of compute %s is connected", c.name)
	case !l.native:
		return nil, domain.Refuse(domain.Conflict, "the agent of compute %s is not `muster agent`: it keeps no output", c.name)
	}
	o := &Output{server: s, compute: c, id: uuid.NewString(), more: make(chan struct{}, 1)}
	if err := s.outputs.add(o); err != nil {
		return nil, err
	}
	l.push(&agentproto.StartOutput{StreamID: o.id, ProcessID: process.Process, TailBytes: bytes, TailLines: lines, Follow: follow})
	return o, nil
}

func (x *streams) add(o *Output) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	ofHost := 0
	for _, other := range x.open {
		if other.compute == o.compute {
			ofHost++
		}
	}
	switch {
	case ofHost >= streamsOfHostMax:
		return domain.Refuse(domain.Overloaded, "%d readers follow the output of processes of compute %s, which is the limit", ofHost, o.compute.name)
	case len(x.open) >= streamsMax:
		return domain.Refuse(domain.Overloaded, "%d readers follow the output of processes, which is the limit", len(x.open))
	}
	if x.open == nil {
		x.open = map[string]*Output{}
	}
	x.open[o.id] = o
	return nil
}

func (x *streams) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.open)
}

func (x *streams) find(id string) *Output {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open[id]
}

// Close ends the stream.
func (o *Output) Close() {
	x := &o.server.outputs
	x.mu.Lock()
	delete(x.open, o.id)
	x.mu.Unlock()
	o.mu.Lock()
	over := o.over
	o.over, o.pieces = true, nil
	o.mu.Unlock()
	if over {
		return
	}
	if l := o.server.current(o.compute); l != nil {
		l.push(&agentproto.StopOutput{StreamID: o.id})
	}
}

// Next returns the next part of the output, which may be empty, or io.EOF at its end. If the stream ends early, the error says why, or is that of ctx.
func (o *Output) Next(ctx context.Context) (Piece, error) {
	for {
		switch p, err := o.take(); {
		case err != nil:
			return Piece{}, err
		case p != nil:
			return *p, nil
		}
		if err := o.wait(ctx); err != nil {
			return Piece{}, err
		}
	}
}

// take returns what is buffered, or nil.
func (o *Output) take() (*Piece, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.pieces) > 0:
		p := o.pieces[0]
		o.pieces = o.pieces[1:]
		o.bytes -= len(p.Text) + streamOverhead
		return &p, nil
	case o.over && o.why != "":
		return nil, errors.New(o.why)
	case o.over:
		return nil, io.EOF
	}
	return nil, nil
}

func (o *Output) wait(ctx context.Context) error {
	o.mu.Lock()
	most := streamSilenceMax
	if o.number == 0 {
		most = streamFirstMax
	}
	o.mu.Unlock()
	silence := time.NewTimer(most)
	defer silence.Stop()
	select {
	case <-o.more:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-o.server.stopping.Done():
		return errors.New("the service is stopping")
	case <-silence.C:
		return fmt.Errorf("the agent of compute %s has sent nothing for %s", o.compute.name, most)
	}
}

// output handles a message of a stream.
func (l *link) output(m *agentproto.SendOutput) error {
	o := l.server.outputs.find(m.StreamID)
	if o == nil || o.compute != l.compute() {
		return &failure{404, "this stream has no reader"}
	}
	return o.put(m)
}

func (o *Output) put(m *agentproto.SendOutput) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := len(m.Output) + streamOverhead
	switch {
	case m.Number != 0 && m.Number == o.number:
		return nil // the answer was lost
	case o.over:
		return &failure{404, "this stream has no reader"}
	case len(o.pieces) > 0 && o.bytes+size > streamBytes:
		return &failure{429, "the reader has not taken enough yet; send this again later"}
	}
	o.number = max(m.Number, 1)
	if m.Output != "" || m.Truncated || !m.End {
		o.pieces = append(o.pieces, Piece{m.Output, m.Truncated})
		o.bytes += size
	}
	if m.End {
		o.over, o.why = true, m.Error
	}
	select {
	case o.more <- struct{}{}:
	default: // the reader has not been woken yet
	}
	return nil
}
