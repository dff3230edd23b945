package sessionapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
)

// streamKey names an event stream: clients of one access key choose their names themselves.
type streamKey struct{ owner, client string }

// stream has the events of one client. It has no queue for each reader: a slow reader misses events that are dropped at the front, and
// gets a notice of that; an absent one costs no more than the kept events.
type stream struct {
	key     streamKey
	events  []*event
	dropped uint64        // number of the newest event that was dropped, or might have been
	wake    chan struct{} // closed when there are more events
	users   int           // readers, and calls that will end here
}

// stream returns the stream of a client. c.mu is locked.
func (c *calls) stream(key streamKey) *stream {
	s := c.streams[key]
	if s == nil { // it may have had events before it was forgotten
		s = &stream{key: key, dropped: c.dropped, wake: make(chan struct{})}
		c.streams[key] = s
	}
	return s
}

// tidy forgets an unused stream. c.mu is locked.
func (c *calls) tidy(s *stream) {
	if s.users == 0 && len(s.events) == 0 && c.streams[s.key] == s {
		delete(c.streams, s.key)
	}
}

func (s *stream) append(e *event) {
	s.events = append(s.events, e)
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *stream) dropOldest() {
	s.dropped = s.events[0].number
	s.events[0] = nil
	s.events = s.events[1:]
}

const (
	// keepAlive is the interval of empty comment lines, which make proxies keep a quiet stream open.
	keepAlive = 15 * time.Second
	// readerPatience is the time that a reader has to read a write. After that the stream ends, and the reader may come back with
	// Last-Event-ID.
	readerPatience = 10 * time.Second
	// batchBytes is the size of a write, for each of which the reader has readerPatience.
	batchBytes = 64 << 10
)

// missedEvent is for a reader that was away or slow for too long.
const missedEvent = "OnEventsMissed"

// serveEvents follows a client's stream with server-sent events. It begins with the kept events, after Last-Event-ID if that is given.
func (d *Door) serveEvents(w http.ResponseWriter, r *http.Request) {
	by, problem := d.authorize(r, identity.MayPlayOrLook, eventsName)
	var client string
	if problem == nil {
		problem = d.mayDo(r.Context(), eventsName, &request{principal: by}, nil)
	}
	if problem == nil {
		client, problem = clientOf(r)
	}
	if problem == nil && client == "" {
		problem = missing("X-Client-Id", "the name that the calls were made with")
	}
	if problem != nil {
		refuse(w, problem)
		return
	}
	dropped := d.dropping() // before checking the node's registration, which ends first
	if d.config.Registered != nil && !d.config.Registered() {
		refuse(w, &Problem{status: http.StatusServiceUnavailable, Name: unavailable, Message: "this node of the cluster has no contact with the others; use another one, or try again"})
		return
	}
	if err := connlimit.UseFor(r.Context(), connlimit.EventStreams, by.Holder()); err != nil {
		refuse(w, &Problem{status: http.StatusServiceUnavailable, Name: overloaded, Message: err.Error()})
		return
	}
	defer connlimit.Leave(r.Context())
	s, after, problem := d.calls.read(by, client)
	if problem != nil {
		refuse(w, problem)
		return
	}
	defer d.calls.endRead(by, s)
	patient(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies would buffer events for minutes
	if last, ok := d.calls.after(r.Header.Get("Last-Event-ID")); ok {
		after = last
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	writer := http.NewResponseController(w)
	ctx, cancel := by.Within(r.Context())
	defer cancel()
	// A reader that does not read must not keep the stream of a revoked key open.
	defer context.AfterFunc(ctx, func() { _ = writer.SetWriteDeadline(time.Now()) })()
	text := bytes.NewBufferString(":\n\n") // the reader sees at once that it is connected
	for ctx.Err() == nil {
		_ = writer.SetWriteDeadline(time.Now().Add(readerPatience)) // never fails on this port
		if _, err := w.Write(text.Bytes()); err != nil || writer.Flush() != nil {
			return // the reader has gone or does not read
		}
		text.Reset()
		var more <-chan struct{}
		if after, more = d.calls.next(s, after, text); text.Len() > 0 {
			continue
		}
		select {
		case <-more:
		case <-alive.C:
			text.WriteString(":\n\n")
		case <-ctx.Done():
			return
		case <-dropped:
			return
		case <-d.ctx.Done():
			return
		}
	}
}

// read opens a stream for a reader, which begins with the oldest kept event.
func (c *calls) read(by *identity.Principal, client string) (s *stream, after uint64, problem *Problem) {
	if !c.readers.Take(by, 1) {
		return nil, 0, &Problem{status: http.StatusServiceUnavailable, Name: overloaded,
			Message: fmt.Sprintf("%d event streams are open, and this access key or address has used its share of them", c.readers.Keys.Taken())}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s = c.stream(streamKey{by.ID, client})
	s.users++
	return s, s.dropped, nil
}

func (c *calls) endRead(by *identity.Principal, s *stream) {
	c.readers.Give(by, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	c.tidy(s)
}

// after parses a Last-Event-ID. It does not accept an id from another run of the service.
func (c *calls) after(id string) (number uint64, ok bool) {
	epoch, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && epoch == c.epoch
}

// next writes some events after a number, and returns the number of the last one. If there is none, more is closed once there is one.
func (c *calls) next(s *stream, after uint64, text *bytes.Buffer) (last uint64, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after < s.dropped {
		fmt.Fprintf(text, "id: %s-%d\nevent: %s\ndata: {\"message\":\"some events are no longer kept; ask for the calls themselves\"}\n\n",
			c.epoch, s.dropped, missedEvent)
		return s.dropped, nil
	}
	for _, e := range s.events {
		if e.number <= after {
			continue
		}
		if text.Len() > batchBytes {
			break
		}
		fmt.Fprintf(text, "id: %s-%d\nevent: %s\ndata: %s\n\n", c.epoch, e.number, e.name, bytes.TrimSpace(e.data))
		after = e.number
	}
	return after, s.wake
}
