package streams

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/steady"
)

// bearerProtocol begins a second subprotocol that carries the access token, because browsers cannot set headers on a WebSocket.
const bearerProtocol = "bearer."

func streamToken(r *http.Request) string {
	if token := authentication.Bearer(r); token != "" {
		return token
	}
	for _, name := range frames.Offered(r.Header) {
		if token, ok := strings.CutPrefix(name, bearerProtocol); ok {
			return token
		}
	}
	return ""
}

// ServeHTTP opens a client's stream. It refuses a client with a close code, because browsers do not reveal the status of a failed upgrade.
func (x *Streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refused := socket.Check(r, subprotocol); refused != nil {
		problem.Write(w, refused)
		return
	}
	if !x.Allows(r) {
		problem.Write(w, problem.New(flow.PermissionDenied, "origin %.100q may not open a stream; the setting player-origins lists the allowed ones", r.Header.Get("Origin")))
		return
	}
	after, _, refused := problem.ParseNumber(r.URL.Query(), "after_seq")
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	l, err := x.Auth.PlayerByToken(r.Context(), x.Auth.Stranger(r).Address, streamToken(r))
	code := closeCodeOf(err)
	if code == 0 {
		if _, ok := x.Buckets.Take(rates.Attach, l.Player); !ok {
			code = socket.RateLimited
		}
	}
	if code == 0 && connlimit.Use(r.Context(), connlimit.PlayerStreams) != nil {
		code = socket.RateLimited
	}
	conn, err := frames.Upgrade(w, r, subprotocol)
	if err != nil {
		x.State.Log.Debug("upgrade of a player's stream failed", "error", err)
		return
	}
	s := &stream{of: x, number: max(rand.Uint64(), 1), player: l.Player, session: l.ID, epoch: l.Epoch, node: x.Node(), conn: conn}
	defer x.Panics.Confine(state.PanicDoor, func() { // net/http no longer knows the connection
		s.drop()
		if x.leave(s) {
			x.lose(s)
		}
	})
	now := steady.Now()
	s.heard.Store(now)
	// After a restart many clients come at once. Their heartbeats, and their signs of life in the journal, are spread from the start.
	config := &x.State.Settings().Sessions
	s.promised = config
	s.pinged, s.renewed = now-rand.Int64N(int64(config.PingInterval)), now-rand.Int64N(int64(config.IdleExpiry/20))
	if code == 0 {
		code = x.attach(s, after)
	}
	if after, away := x.gate.away(); code == socket.Draining && away {
		s.sayBye(after)
	} else if code != 0 {
		s.close(code)
	}
	if !x.reads(s) {
		s.end(false, 0)
	}
}

// closeCodeOf returns the close code with which a stream is refused; 0 for no error.
func closeCodeOf(err error) uint16 {
	if err == nil {
		return 0
	}
	p, ok := err.(*problem.Problem)
	switch {
	case !ok:
		switch flow.CodeOf(err) {
		case flow.SessionNotFound:
			return socket.Ended
		case flow.SessionReplaced:
			return socket.Replaced
		}
		return socket.Draining
	case p.Code == problem.Code(flow.SessionReplaced):
		return socket.Replaced
	case p.Code == problem.Code(flow.RateLimited):
		return socket.RateLimited
	}
	return socket.Unauthenticated
}

// beginning returns what a client is sent first: the events that it missed, or its complete state, followed by the events since.
func (x *Streams) beginning(s *stream, cmd *playerflow.AttachStream, after uint64) (first []byte, all []told, head uint64, err error) {
	resume := events.ResumeReplay
	if cmd.Sync != 0 {
		resume, after = events.ResumeSnapshot, cmd.Sync-1
	}
	missed, head, _, err := x.State.EventsAfter(x.ctx, s.player, after)
	if err != nil {
		return nil, nil, 0, err
	}
	for i := range missed {
		tail, err := x.events.Tail(x.ctx, missed[i].Seq, &missed[i].Told, s.player)
		if err != nil {
			return nil, nil, 0, err
		}
		all = append(all, told{missed[i].Seq, tail})
	}
	x.metrics.begun.WithLabelValues(resume).Inc()
	config := s.promised
	first, err = json.Marshal(events.Hello{
		Type: "hello", SessionID: objects.ID(s.session), Epoch: cmd.Login.Epoch, HeadSeq: head, Rev: cmd.Flow.Rev,
		PingIntervalMS: config.PingInterval.Milliseconds(), DeadAfterMS: config.DeadAfter.Milliseconds(), Resume: resume,
	})
	return first, all, head, err
}
