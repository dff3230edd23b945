package playerapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// None is a call without parameters.
type None struct{}

// Done is an answer with nothing but how the player stands.
type Done struct {
	Flow Stand `json:"flow"`
}

// LoginRequest begins a login session.
type LoginRequest struct {
	Provider      string   `json:"provider" maxLength:"64" doc:"Who says who the player is: a name of the configuration, or backend for a login ticket and for a token that the studio's backend has signed."`
	Token         string   `json:"token" maxLength:"16384" doc:"What the provider gave to the player."`
	ClientVersion string   `json:"client_version,omitempty" maxLength:"64"`
	DeviceLabel   string   `json:"device_label,omitempty" maxLength:"64"`
	Capabilities  []string `json:"capabilities,omitempty" maxItems:"16" doc:"auto_reconnect: details of a running game are sent at once, without a call for them."`
}

// LoginAnswer is a new login session. It controls the player from now on.
type LoginAnswer struct {
	AccessToken  string       `json:"access_token"`
	SessionID    string       `json:"session_id"`
	Epoch        uint32       `json:"epoch"`
	ExpiresAt    string       `json:"expires_at" format:"date-time" doc:"Moves on with every sign of life."`
	StreamURL    string       `json:"stream_url" doc:"Of the event stream, a WebSocket."`
	FlowSnapshot FlowSnapshot `json:"flow_snapshot"`
	Flow         Stand        `json:"flow"`
}

// RefreshAnswer is a new access token.
type RefreshAnswer struct {
	AccessToken string `json:"access_token"`
	ExpiresAt   string `json:"expires_at" format:"date-time"`
	Flow        Stand  `json:"flow"`
}

// GetFlowRequest asks for everything, or for some parts.
type GetFlowRequest struct {
	Include []string `json:"include,omitempty" enum:"party,ticket,game_instance,invites,locks,last_game,foreign_sessions" doc:"The parts that are wanted beside the keys; none: all."`
}

// SnapshotAnswer is everything about the player.
type SnapshotAnswer struct {
	FlowSnapshot FlowSnapshot `json:"flow_snapshot"`
	Flow         Stand        `json:"flow"`
}

// PollRequest asks for events.
type PollRequest struct {
	AfterSeq uint64 `json:"after_seq,omitempty" doc:"The last event that the client has; 0 for none."`
	WaitMS   int64  `json:"wait_ms,omitempty" minimum:"0" maximum:"25000" doc:"How long to wait while there is none."`
}

// PollAnswer is events, in order and without a gap.
type PollAnswer struct {
	Events  []Event `json:"events" doc:"As on the stream. With SNAPSHOT the first is an OnSync."`
	HeadSeq uint64  `json:"head_seq"`
	Resume  string  `json:"resume" enum:"REPLAY,SNAPSHOT"`
	Flow    Stand   `json:"flow"`
}

// AckRequest says what the client has.
type AckRequest struct {
	Seq uint64 `json:"seq"`
}

const autoReconnect = "auto_reconnect"

func (d *Door) declareSession() {
	playerCall(d, "Session.Login", classLogin, "Begins a login session. Never refused because of what the player is in.", d.login)
	playerCall(d, "Session.Refresh", classOther, "A new access token; the old one is good for a while more.",
		func(ctx context.Context, by *cell.Caller, _ *None) (*RefreshAnswer, error) {
			cmd := cell.RefreshLogin{Caller: *by, Nonce: newID()}
			cmd.Token = authentication.Hash(d.accessToken(by.Session, cmd.Nonce))
			if err := d.engine.Do(ctx, &cmd); err != nil {
				return nil, err
			}
			answer := &RefreshAnswer{AccessToken: d.accessToken(by.Session, cmd.Made), Flow: standOf(cmd.Flow)}
			return answer, d.engine.Read(ctx, func(v *cell.View) error {
				answer.ExpiresAt = objects.Stamp(v.LoginExpires(&cmd.Login))
				return nil
			})
		})
	playerCall(d, "Session.Logout", classLogout, "Ends the login session. A game goes on without it.",
		func(ctx context.Context, by *cell.Caller, _ *None) (*Done, error) {
			cmd := cell.Logout{Caller: *by}
			err := d.engine.Do(ctx, &cmd)
			return &Done{standOf(cmd.Flow)}, err
		})
	playerCall(d, "Session.GetFlow", classGetFlow, "Everything about the player, as of one moment.",
		func(ctx context.Context, by *cell.Caller, body *GetFlowRequest) (*SnapshotAnswer, error) {
			s, err := d.snapshot(ctx, by.Player)
			if err != nil {
				return nil, err
			}
			answer := &SnapshotAnswer{FlowSnapshot: s, Flow: standOfSnapshot(&s)}
			keepParts(&answer.FlowSnapshot, body.Include)
			return answer, nil
		})
	playerCall(d, "Session.PollEvents", classOther, "Events by long poll, for clients that cannot keep a stream open.", d.poll)
	playerCall(d, "Session.Ack", classOther, "The client has the events up to a number.",
		func(ctx context.Context, by *cell.Caller, body *AckRequest) (*Done, error) {
			if err := d.engine.Do(ctx, &cell.AckEvents{Player: by.Player, Session: by.Session, Seq: body.Seq}); err != nil {
				return nil, err
			}
			return d.done(ctx, by.Player)
		})
}

// done is the answer of a call that gives nothing else.
func (d *Door) done(ctx context.Context, player string) (*Done, error) {
	stand, err := d.stand(ctx, player)
	return &Done{stand}, err
}

func (d *Door) stand(ctx context.Context, player string) (stand Stand, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		s, _ := v.Stand(player)
		stand = standOf(s)
		return nil
	})
	return stand, err
}

func (d *Door) snapshot(ctx context.Context, player string) (FlowSnapshot, error) {
	var s cell.FlowSnapshot
	var ok bool
	err := d.engine.Read(ctx, func(v *cell.View) error {
		s, ok = v.FlowOf(player, domain.TimeOf(d.engine.Now()))
		return nil
	})
	switch {
	case err != nil:
		return FlowSnapshot{}, err
	case !ok:
		return FlowSnapshot{}, refusal(flow.PlayerNotFound, "player %s not found", player)
	}
	return d.snapshotOf(&s), nil
}

func standOfSnapshot(s *FlowSnapshot) Stand { return Stand{s.Rev, s.Seq, s.Phase, s.Keys} }

// keepParts leaves the rest out.
func keepParts(s *FlowSnapshot, include []string) {
	if len(include) == 0 {
		return
	}
	wants := func(part string) bool { return slices.Contains(include, part) }
	if !wants("party") {
		s.Party = nil
	}
	if !wants("ticket") {
		s.Ticket = nil
	}
	if !wants("game_instance") {
		s.GameInstance = nil
	}
	if !wants("invites") {
		s.Invites = []Invite{}
	}
	if !wants("locks") {
		s.Locks = []Lock{}
	}
	if !wants("last_game") {
		s.LastGame = nil
	}
	if !wants("foreign_sessions") {
		s.ForeignSessions = nil
	}
}

// accessPrefix makes access tokens known for what they are, when one is found where it should not be.
const accessPrefix = "pfa_"

// accessToken is the token of a login session; a repeated call gets the one of the first call again.
func (d *Door) accessToken(session, refresh domain.UUID) string {
	return accessPrefix + d.config.Secret.AccessToken(session, refresh)
}

func (d *Door) login(ctx context.Context, by *cell.Caller, body *LoginRequest) (*LoginAnswer, error) {
	x := whoOf(ctx)
	if err := d.gate.refuse(); err != nil {
		return nil, err
	}
	if n := len(body.Token); n > authentication.TokenBytesMax {
		return nil, refusal(flow.InvalidArgument, "token: %d bytes, want at most %d", n, authentication.TokenBytesMax)
	}
	if wait, ok := d.buckets.takeFor(classLoginAddress, x.address, x.answer); !ok {
		return nil, later(flow.RateLimited, wait, "too many logins from one address")
	}
	claim, err := d.identify(ctx, body)
	if err != nil {
		return nil, err
	}
	cmd := cell.Login{
		Player: claim.Player, Ticket: claim.Ticket, Once: claim.Once, Until: claim.Until, Request: by.Request, Session: newID(),
		Device: body.DeviceLabel, ClientVersion: body.ClientVersion, DisplayName: claim.DisplayName,
		AutoReconnect: slices.Contains(body.Capabilities, autoReconnect), Insecure: claim.Insecure,
	}
	cmd.Token = authentication.Hash(d.accessToken(cmd.Session, domain.UUID{}))
	if err := d.checkTicket(ctx, &cmd); err != nil {
		return nil, err
	}
	if wait, ok := d.buckets.takeFor(classLogin, claim.Player, x.answer); !ok {
		return nil, later(flow.RateLimited, wait, "too many logins of one player")
	}
	if err := d.queueLogin(ctx, claim.Player); err != nil {
		return nil, err
	}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		if flow.CodeOf(err) == flow.Unauthenticated { // a ticket or token that was used meanwhile
			return nil, d.failedLogin(ctx, err)
		}
		return nil, err
	}
	connlimit.Prove(ctx)
	s, err := d.snapshot(ctx, cmd.Made.Player)
	if err != nil {
		return nil, err
	}
	answer := &LoginAnswer{
		AccessToken: d.accessToken(cmd.Made.ID, domain.UUID{}), SessionID: objects.LoginSessionID(cmd.Made.ID), Epoch: cmd.Made.Epoch, StreamURL: d.streamURL(x),
		FlowSnapshot: s, Flow: standOf(cmd.Flow),
	}
	if s.Session != nil {
		answer.ExpiresAt = s.Session.ExpiresAt
	}
	return answer, nil
}

// checkTicket refuses a login ticket that cannot be good before anything is counted for the player whom it names: that name
// is believed only with the ticket.
func (d *Door) checkTicket(ctx context.Context, cmd *cell.Login) error {
	if cmd.Ticket.IsZero() {
		return nil
	}
	known := false
	err := d.engine.Read(ctx, func(v *cell.View) error {
		known = v.KnowsTicket(cmd, domain.TimeOf(d.engine.Now()))
		return nil
	})
	if err == nil && !known {
		return d.failedLogin(ctx, nil)
	}
	return err
}

// queueLogin lets a player in, or says when to come back. Players who are in a game go first.
func (d *Door) queueLogin(ctx context.Context, player string) error {
	inGame, online, logins := false, 0, &d.settings().Logins
	err := d.engine.Read(ctx, func(v *cell.View) error {
		if s, ok := v.Stand(player); ok {
			inGame = !s.Keys.Game.IsZero() && !logins.QueueInGame
		}
		if logins.OnlineMax > 0 {
			online = v.FlowTotals().Logins
		}
		return nil
	})
	if err != nil {
		return err
	}
	if most := logins.OnlineMax; most > 0 && online >= most && !inGame {
		return later(codeLoginQueued, fullRetry, "%d players are logged in; the limit is %d", online, most)
	}
	position, wait, ok := d.logins.admit(player, inGame)
	if ok {
		return nil
	}
	p := later(codeLoginQueued, wait, "%d players log in before this one", position)
	p.Details = Details{Position: position}
	return p
}

// fullRetry is how long a player waits for another one to go.
const fullRetry = 5 * time.Second

// streamURL is where a client opens its stream.
func (d *Door) streamURL(x *who) string {
	if base := strings.TrimRight(d.config.PublicURL, "/"); base != "" {
		if rest, ok := strings.CutPrefix(base, "http"); ok {
			base = "ws" + rest
		}
		return base + StreamPath
	}
	scheme := "ws://"
	if x.tls {
		scheme = "wss://"
	}
	return scheme + x.host + StreamPath
}
