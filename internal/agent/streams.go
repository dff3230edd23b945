package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

const (
	streamsMax = 16                       // concurrent streams of output
	chunk      = agentproto.OutputMax / 2 // bytes of output in one message, which valid may at most double
	lookEvery  = 250 * time.Millisecond   // interval of checks for new output
	aliveEvery = 15 * time.Second         // interval of messages on a stream without output

	// If the service does not accept a message, it is sent again after resendFirst, then with doubled pauses up to resendLongest.
	resendFirst   = 100 * time.Millisecond
	resendLongest = 2 * time.Second
	// streamPatience is how long a stream waits for a connection. By then, the service has given it up.
	streamPatience = time.Minute
)

// outputRate bounds what all streams of the host send together, in bytes on the wire. Heartbeats and reports of ends share the connection, which the
// service reads at no more than 400 KiB per second. A stream skips output that its process writes faster than that.
var outputRate = rate.PerSecond(256<<10, 512<<10)

// pacer shares outputRate among the streams.
type pacer struct {
	mu   sync.Mutex
	full int64
}

// wait waits until `bytes` bytes may be sent. It returns false if ctx has ended.
func (p *pacer) wait(ctx context.Context, bytes int) bool {
	p.mu.Lock()
	next, early := outputRate.Next(p.full, steady.Now(), bytes)
	p.full = next
	p.mu.Unlock()
	if early <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(early):
		return true
	}
}

// outputStream is one stream of a process's output.
type outputStream struct {
	agent  *Agent
	id     string
	number int64 // of the last message
	sent   time.Time
}

// startStream starts to send the output of a process, running or ended.
func (a *Agent) startStream(p *agentproto.StartOutput) {
	if len(a.streams) >= streamsMax {
		a.reply(&agentproto.SendOutput{StreamID: p.StreamID, Number: 1, End: true, Error: "too many streams of output at this host; try again later"})
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
		x := &outputStream{agent: a, id: p.StreamID}
		if log == nil {
			x.send(ctx, agentproto.SendOutput{End: true, Error: "no such server process at this host"})
		} else {
			x.follow(ctx, p, log, done)
		}
		cancel()
		a.do(func() { delete(a.streams, p.StreamID) })
	}()
}

// valid returns output as text. It replaces each run of invalid bytes with one U+FFFD.
func valid(output []byte) string { return strings.ToValidUTF8(string(output), "\uFFFD") }

var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// known reports whether an id can be one of this agent's: a plain directory name.
func known(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-' {
			return false
		}
	}
	return len(id) == 36
}

// follow sends output until the process has ended and everything is sent, or the stream ends.
func (x *outputStream) follow(ctx context.Context, p *agentproto.StartOutput, log *output.Log, done <-chan struct{}) {
	tail, offset, err := log.TailEnd(int64(p.TailBytes))
	if err != nil {
		x.send(ctx, agentproto.SendOutput{End: true, Error: "the output of this server process is no longer kept"})
		return
	}
	tail = tail[begin(tail, p.TailBytes, p.TailLines):]
	for first := true; first || len(tail) > 0; first = false { // the first message announces the stream, even without output
		n := whole(tail[:min(chunk, len(tail))])
		if !x.send(ctx, agentproto.SendOutput{Output: valid(tail[:n])}) {
			return
		}
		tail = tail[n:]
	}
	buffer := make([]byte, chunk)
	for p.Follow {
		ended := isClosed(done) // checked before the read, so that the last output is read
		n, next, err := log.Read(buffer, offset)
		if err != nil || ended && n == 0 {
			break
		}
		skipped := next-int64(n) > offset
		if used := whole(buffer[:n]); !ended && used < n { // the rest of the character comes with the next read
			next -= int64(n - used)
			n = used
		}
		offset = next
		if n > 0 || skipped || time.Since(x.sent) >= aliveEvery {
			if !x.send(ctx, agentproto.SendOutput{Output: valid(buffer[:n]), Truncated: skipped}) {
				return
			}
		}
		if n < len(buffer)-utf8.UTFMax {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookEvery):
			}
		}
	}
	x.send(ctx, agentproto.SendOutput{End: true})
}

// begin returns the offset of the last lines of a tail. If the tail has the requested length, it starts in the middle of a line.
func begin(tail []byte, bytesMax, lines int) int {
	from := 0
	if len(tail) == bytesMax {
		for from < min(len(tail), utf8.UTFMax) && !utf8.RuneStart(tail[from]) {
			from++
		}
	}
	if lines == 0 {
		return from
	}
	return max(from, agentproto.LastLines(tail, lines))
}

// whole returns the length without an incomplete character at the end. Invalid bytes are included.
func whole(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) && n < len(text) {
				return len(text) - n
			}
			break
		}
	}
	return len(text)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// send sends one message of the stream, and reports whether the service still wants the stream. While the reader is slow or the connection is lost,
// it waits with this message; further output stays in the process's files.
func (x *outputStream) send(ctx context.Context, m agentproto.SendOutput) bool {
	if !x.agent.pace.wait(ctx, wireBytes(m.Output)) {
		return false
	}
	x.number++
	m.StreamID, m.Number = x.id, x.number
	lost := time.Now()
	for wait := resendFirst; ; wait = min(2*wait, resendLongest) {
		err := x.agent.link.Call(ctx, &m, nil)
		if err == nil {
			x.sent = time.Now()
			return true
		}
		refused, answered := errors.AsType[*link.StatusError](err)
		switch {
		case answered && refused.Status == 429:
			lost = time.Now()
		case answered && refused.Status == 404 || ctx.Err() != nil:
			return false
		case answered || time.Since(lost) > streamPatience:
			x.agent.config.Log.Warn("output of a server process cannot be sent: the stream ends", "stream", x.id, "error", err)
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// wireBytes returns the length of a text in JSON, plus some overhead.
func wireBytes(text string) int {
	n := 200 + len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n' || c == '\t' || c == '\r' || c == '"' || c == '\\':
			n++
		case c < 0x20:
			n += 5 // \u0000
		}
	}
	return n
}
