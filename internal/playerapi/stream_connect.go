package playerapi

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// bearerProtocol lets browsers show the access token, which cannot set headers on a WebSocket: a second subprotocol.
const bearerProtocol = "bearer."

func streamToken(r *http.Request) string {
	if token := bearer(r); token != "" {
		return token
	}
	for _, name := range frames.Offered(r.Header) {
		if token, ok := strings.CutPrefix(name, bearerProtocol); ok {
			return token
		}
	}
	return ""
}

// serveStream opens a client's stream. Whoever may not have one is told by a close code: browsers do not see the status of
// an upgrade that failed.
func (d *Door) serveStream(w http.ResponseWriter, r *http.Request) {
	if problem := upgradeWanted(r, subprotocol); problem != nil {
		writeProblem(w, problem)
		return
	}
	if !d.allowsStream(r) {
		writeProblem(w, refusal(flow.PermissionDenied, "origin %.100q is none of those that may open a stream", r.Header.Get("Origin")))
		return
	}
	after, _, problem := numberIn(r, "after_seq")
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	l, err := d.loginByToken(r.Context(), streamToken(r))
	if err != nil {
		err = d.refusedToken(d.proxies().Of(r), err)
	}
	code := closeCodeOf(err)
	if code == 0 {
		if _, ok := d.buckets.take(classAttach, l.Player); !ok {
			code = closeRate
		}
	}
	if code == 0 && connlimit.Use(r.Context(), connlimit.PlayerStreams) != nil {
		code = closeRate
	}
	conn, err := frames.Upgrade(w, r, subprotocol)
	if err != nil {
		d.log.Debug("upgrade of a player's stream failed", "err", err)
		return
	}
	s := &stream{door: d, number: max(rand.Uint64(), 1), player: l.Player, session: l.ID, epoch: l.Epoch, conn: conn}
	defer d.config.Panics.Confine(panicDoor, func() { // net/http does not know the connection any more
		s.drop()
		if d.streams.leave(s) {
			d.streams.lose(s)
		}
	})
	now := time.Now().UnixNano()
	s.heard.Store(now)
	// Many come at once after a restart. Their heartbeats, and the signs of life in the journal, spread from the first on.
	config := &d.settings().Sessions
	s.promised = config
	s.pinged, s.renewed = now-rand.Int64N(int64(config.PingInterval)), now-rand.Int64N(int64(config.IdleExpiry/20))
	if code == 0 {
		code = d.streams.attach(s, after)
	}
	if after, away := d.gate.away(); code == closeDraining && away {
		s.sayBye(after)
	} else if code != 0 {
		s.close(code)
	}
	if !d.streams.reads(s) {
		s.drop()
	}
}

// closeCodeOf is how a stream is refused; 0 for no error.
func closeCodeOf(err error) uint16 {
	if err == nil {
		return 0
	}
	p, ok := err.(*Problem)
	switch {
	case !ok:
		switch flow.CodeOf(err) {
		case flow.SessionNotFound:
			return closeEnded
		case flow.SessionReplaced:
			return closeReplaced
		}
		return closeDraining
	case p.Code == Code(flow.SessionReplaced):
		return closeReplaced
	case p.Code == Code(flow.RateLimited):
		return closeRate
	}
	return closeUnauthenticated
}

// Hello is the first frame.
type Hello struct {
	Type           string `json:"type" enum:"hello"`
	SessionID      string `json:"session_id"`
	Epoch          uint32 `json:"epoch"`
	HeadSeq        uint64 `json:"head_seq"`
	Rev            uint64 `json:"rev"`
	PingIntervalMS int64  `json:"ping_interval_ms"`
	DeadAfterMS    int64  `json:"dead_after_ms" doc:"A stream that is silent for so long is closed, and the player is offline."`
	Resume         string `json:"resume" enum:"REPLAY,SNAPSHOT" doc:"REPLAY: what was missed follows. SNAPSHOT: one OnSync does."`
}

// beginning is what a client is sent first: the events that it missed, or everything there is, and then what was told meanwhile.
func (x *streams) beginning(s *stream, cmd *cell.AttachStream, after uint64) (first []byte, events []told, head uint64, err error) {
	d := x.door
	resume := resumeReplay
	if cmd.Sync != 0 {
		resume, after = resumeSnapshot, cmd.Sync-1
	}
	missed, head, _, err := d.since(x.ctx, s.player, after)
	if err != nil {
		return nil, nil, 0, err
	}
	for i := range missed {
		events = append(events, told{missed[i].Seq, d.eventTail(missed[i].Seq, &missed[i].Told, s.player)})
	}
	d.numbers.begun.WithLabelValues(resume).Inc()
	config := s.promised
	first, err = json.Marshal(Hello{
		"hello", objects.LoginSessionID(s.session), cmd.Login.Epoch, head, cmd.Flow.Rev, config.PingInterval.Milliseconds(), config.DeadAfter.Milliseconds(), resume,
	})
	return first, events, head, err
}

// since is what a client missed that has the events up to a number, and the number of the last one there is. Not ok: it is not
// all there any more, or the number is ahead of the head.
func (d *Door) since(ctx context.Context, player string, after uint64) (missed []cell.PlayerEvent, head uint64, ok bool, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		missed, head, ok = v.EventsAfter(player, after, flow.EventsLimit)
		return nil
	})
	return missed, head, ok, err
}
