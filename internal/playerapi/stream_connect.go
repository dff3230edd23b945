package playerapi

import (
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
func (x *Streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if problem := upgradeWanted(r, subprotocol); problem != nil {
		writeProblem(w, problem)
		return
	}
	if !x.Allows(r) {
		writeProblem(w, refusal(flow.PermissionDenied, "origin %.100q is none of those that may open a stream", r.Header.Get("Origin")))
		return
	}
	after, _, problem := parseNumber(r.URL.Query(), "after_seq")
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	l, err := x.Auth.PlayerByToken(r.Context(), x.Auth.Stranger(r).Address, streamToken(r))
	code := closeCodeOf(err)
	if code == 0 {
		if _, ok := x.Buckets.take(classAttach, l.Player); !ok {
			code = closeRate
		}
	}
	if code == 0 && connlimit.Use(r.Context(), connlimit.PlayerStreams) != nil {
		code = closeRate
	}
	conn, err := frames.Upgrade(w, r, subprotocol)
	if err != nil {
		x.State.Log.Debug("upgrade of a player's stream failed", "err", err)
		return
	}
	s := &stream{of: x, number: max(rand.Uint64(), 1), player: l.Player, session: l.ID, epoch: l.Epoch, conn: conn}
	defer x.Panics.Confine(panicDoor, func() { // net/http does not know the connection any more
		s.drop()
		if x.leave(s) {
			x.lose(s)
		}
	})
	now := time.Now().UnixNano()
	s.heard.Store(now)
	// Many come at once after a restart. Their heartbeats, and the signs of life in the journal, spread from the first on.
	config := &x.State.Settings().Sessions
	s.promised = config
	s.pinged, s.renewed = now-rand.Int64N(int64(config.PingInterval)), now-rand.Int64N(int64(config.IdleExpiry/20))
	if code == 0 {
		code = x.attach(s, after)
	}
	if after, away := x.gate.away(); code == closeDraining && away {
		s.sayBye(after)
	} else if code != 0 {
		s.close(code)
	}
	if !x.reads(s) {
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

// beginning is what a client is sent first: the events that it missed, or everything there is, and then what was told meanwhile.
func (x *Streams) beginning(s *stream, cmd *cell.AttachStream, after uint64) (first []byte, events []told, head uint64, err error) {
	resume := resumeReplay
	if cmd.Sync != 0 {
		resume, after = resumeSnapshot, cmd.Sync-1
	}
	missed, head, _, err := x.State.EventsAfter(x.ctx, s.player, after)
	if err != nil {
		return nil, nil, 0, err
	}
	for i := range missed {
		events = append(events, told{missed[i].Seq, x.events.Tail(x.ctx, missed[i].Seq, &missed[i].Told, s.player)})
	}
	x.metrics.begun.WithLabelValues(resume).Inc()
	config := s.promised
	first, err = json.Marshal(Hello{
		"hello", objects.LoginSessionID(s.session), cmd.Login.Epoch, head, cmd.Flow.Rev, config.PingInterval.Milliseconds(), config.DeadAfter.Milliseconds(), resume,
	})
	return first, events, head, err
}
