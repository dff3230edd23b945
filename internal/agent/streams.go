package agent

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agentproto"
)

const (
	streamsMax = 16                     // of output at a time
	chunk      = 32 << 10               // bytes of output in one message
	lookEvery  = 250 * time.Millisecond // for new output
)

// startStream sends the output of a process, running or ended.
func (a *Agent) startStream(p *agentproto.StartOutput) {
	if len(a.streams) >= streamsMax {
		a.reply(&agentproto.SendOutput{StreamID: p.StreamID, End: true, Error: "too many streams of output at this host; try again later"})
		return
	}
	if a.streams[p.StreamID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.context)
	a.streams[p.StreamID] = cancel
	var log *output.Log
	done := closed
	if s := a.running[p.ProcessID]; s != nil {
		log, done = s.log, s.process.Done()
	} else if known(p.ProcessID) {
		log = output.New(a.logDir(p.ProcessID), a.config.Output)
	}
	go func() {
		if log == nil {
			a.stream(ctx, &agentproto.SendOutput{StreamID: p.StreamID, End: true, Error: "no such server process at this host"})
		} else {
			a.follow(ctx, p, log, done)
		}
		cancel()
		a.do(func() { delete(a.streams, p.StreamID) })
	}()
}

var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// known returns whether an id can be one of this agent: the name of a directory, and nothing else.
func known(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-' {
			return false
		}
	}
	return len(id) == 36
}

// follow sends output until the process has ended and all of it is sent, or the stream ends.
func (a *Agent) follow(ctx context.Context, p *agentproto.StartOutput, log *output.Log, done <-chan struct{}) {
	tail, err := log.Tail(int64(p.TailBytes))
	offset, errEnd := log.End()
	if err := errors.Join(err, errEnd); err != nil {
		a.stream(ctx, &agentproto.SendOutput{StreamID: p.StreamID, End: true, Error: "the output of this server process is no longer kept"})
		return
	}
	for ; len(tail) > 0; tail = tail[min(chunk, len(tail)):] {
		if !a.stream(ctx, &agentproto.SendOutput{StreamID: p.StreamID, Output: string(tail[:min(chunk, len(tail))])}) {
			return
		}
	}
	buffer := make([]byte, chunk)
	for p.Follow {
		ended := isClosed(done) // before the read, so that what was written last is read
		n, next, err := log.Read(buffer, offset)
		if err != nil || ended && n == 0 {
			break
		}
		skipped := next-int64(n) > offset
		offset = next
		if n > 0 && !a.stream(ctx, &agentproto.SendOutput{StreamID: p.StreamID, Output: string(buffer[:n]), Truncated: skipped}) {
			return
		}
		if n < len(buffer) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookEvery):
			}
		}
	}
	a.stream(ctx, &agentproto.SendOutput{StreamID: p.StreamID, End: true})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stream sends one message of a stream, and returns whether the service still wants the stream.
func (a *Agent) stream(ctx context.Context, m *agentproto.SendOutput) bool {
	err := a.link.Call(ctx, m, nil)
	if refused, ok := errors.AsType[*link.StatusError](err); err != nil && (!ok || refused.Status != 404) && ctx.Err() == nil {
		a.config.Log.Warn("output of a server process cannot be sent", "stream", m.StreamID, "error", err)
	}
	return err == nil
}
