package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

const (
	livePace       = time.Second      // minimum time between two change events
	liveTick       = 3 * time.Second  // between two events to a page that ticks
	livePing       = 15 * time.Second // between two pings of a stream without events, so that proxies keep it open
	liveWrite      = 10 * time.Second // for a client to accept an event
	liveStreamsMax = 1000
	liveOfHolder   = liveStreamsMax / 2 // of one access key or person
)

// live notifies open pages that the state has changed. All streams share one check of the newest entry's number each second.
type live struct {
	applied func() uint64
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	pace    pace

	mu      sync.Mutex
	number  uint64         // at the last check
	changed chan struct{}  // closed at the next change
	open    int            // streams
	holders map[string]int // streams of each holder
}

func newLive(applied func() uint64) *live {
	l := &live{applied: applied, number: applied(), changed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(l.watch)
	return l
}

func (l *live) close() {
	l.mu.Lock() // so that enter adds no stream while Wait runs
	l.cancel()
	l.mu.Unlock()
	l.running.Wait()
}

func (l *live) watch() {
	ticker := time.NewTicker(livePace)
	defer ticker.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		l.mu.Lock()
		if now := l.applied(); now != l.number {
			l.number = now
			close(l.changed)
			l.changed = make(chan struct{})
		}
		l.mu.Unlock()
	}
}

// enter counts a stream of a holder. It returns false if there are too many.
func (l *live) enter(holder string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= liveStreamsMax || l.holders[holder] >= liveOfHolder || l.ctx.Err() != nil {
		return false
	}
	l.open++
	if l.holders == nil {
		l.holders = map[string]int{}
	}
	l.holders[holder]++
	l.running.Add(1)
	return true
}

func (l *live) leave(holder string) {
	l.mu.Lock()
	l.open--
	if l.holders[holder]--; l.holders[holder] == 0 {
		delete(l.holders, holder)
	}
	l.mu.Unlock()
	l.running.Done()
}

// look returns the number at the last check, and a channel that the next change closes.
func (l *live) look() (number uint64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number, l.changed
}

// tickParameter makes a stream send events without a change, too.
const tickParameter = "tick"

const (
	livePath   = Prefix + "/live"
	liveBegin  = "retry: 2000\n\n" // ms after which a browser reopens a stream that has ended
	liveChange = "event: changed\ndata: \n\n"
)

// leadToSignIn answers the stream of a page whose person is no longer signed in with a change event. The page then fetches itself, and the answer
// redirects to the sign-in.
func leadToSignIn(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, liveBegin+liveChange) // or the page is gone
}

// serveLive streams change events, each when the pace allows it, until the browser leaves, the sign-in ends, or the key is revoked. The query has the
// number at which the page was built, so a change between then and the start of the stream also counts.
func (d *Door) serveLive(w http.ResponseWriter, r *http.Request, key identity.AccessKey) {
	by := key.Principal("")
	holder := by.Holder()
	if !d.live.enter(holder) {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages follow the state of this node already, or %d of this access key.", liveStreamsMax, liveOfHolder), http.StatusServiceUnavailable)
		return
	}
	defer d.live.leave(holder)
	_, expires, _ := d.session(r)
	ctx, cancel := context.WithDeadline(r.Context(), expires)
	defer cancel()
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer events
	send := func(text string) bool {
		if err := stream.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil {
			return false
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return stream.Flush() == nil
	}
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	var tick <-chan time.Time // nil: only changes count
	if r.URL.Query().Has(tickParameter) {
		ticker := time.NewTicker(liveTick)
		defer ticker.Stop()
		tick = ticker.C
	}
	seen, err := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	known := err == nil
	var due <-chan time.Time // when an event may be sent; nil while none is pending
	for ok := send(liveBegin); ok; {
		number, changed := d.live.look()
		if due == nil && (!known || number != seen) {
			due = time.After(d.live.pace.reserve(time.Now()))
		}
		if due != nil {
			changed = nil // an event covers all changes before it
		}
		select {
		case <-changed:
		case <-tick:
			if due == nil {
				due = time.After(d.live.pace.reserve(time.Now()))
			}
		case <-due:
			seen, _ = d.live.look()
			known, due = true, nil
			ok = send(liveChange)
		case <-ping.C:
			ok = send(": still here\n\n")
		case <-key.Life().Done():
			return
		case <-ctx.Done():
			return
		case <-d.live.ctx.Done():
			return
		}
	}
}
