package players

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
)

// Done is an answer that contains only the state of the player.
type Done struct {
	Flow objects.Stand `json:"flow"`
}

// LoginRequest begins a login session.
type LoginRequest struct {
	Provider      string   `json:"provider" maxLength:"64" doc:"The authority for the player's identity: a name of the configuration, or backend for a login ticket and for a token that the studio's backend has signed."`
	Token         string   `json:"token" maxLength:"16384" doc:"What the provider gave to the player."`
	ClientVersion string   `json:"client_version,omitempty" maxLength:"64"`
	DeviceLabel   string   `json:"device_label,omitempty" maxLength:"64"`
	Capabilities  []string `json:"capabilities,omitempty" maxItems:"16" doc:"auto_reconnect: details of a running game are sent at once, without a call for them."`
}

// LoginAnswer is a new login session. From now on it controls the player.
type LoginAnswer struct {
	AccessToken  string               `json:"access_token"`
	SessionID    string               `json:"session_id"`
	Epoch        uint32               `json:"epoch"`
	ExpiresAt    string               `json:"expires_at" format:"date-time" doc:"Moves on with every sign of life."`
	StreamURL    string               `json:"stream_url" doc:"Of the event stream, a WebSocket."`
	FlowSnapshot objects.FlowSnapshot `json:"flow_snapshot"`
	Flow         objects.Stand        `json:"flow"`
}

// RefreshAnswer is a new access token.
type RefreshAnswer struct {
	AccessToken string        `json:"access_token"`
	ExpiresAt   string        `json:"expires_at" format:"date-time"`
	Flow        objects.Stand `json:"flow"`
}

// GetFlowRequest selects parts of the player's state, or all.
type GetFlowRequest struct {
	Include []string `json:"include,omitempty" enum:"party,ticket,game_instance,invites,locks,last_game,foreign_sessions" doc:"The parts that are wanted beside the keys; none: all."`
}

// SnapshotAnswer is the complete state of the player.
type SnapshotAnswer struct {
	FlowSnapshot objects.FlowSnapshot `json:"flow_snapshot"`
	Flow         objects.Stand        `json:"flow"`
}

// AckRequest acknowledges events.
type AckRequest struct {
	Seq uint64 `json:"seq"`
}

const autoReconnect = "auto_reconnect"

func (d *door) declareSession() {
	calls.Player(d.realm, "Session.Login", rates.Login, "Begins a login session. A party, search or game of the player is never a reason to refuse it.", d.login)
	calls.Player(d.realm, "Session.Refresh", rates.Other, "A new access token; the old one is good for a while more.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*RefreshAnswer, error) {
			cmd := playerflow.RefreshLogin{Caller: *by, Nonce: objects.NewID()}
			cmd.Token = authentication.Hash(d.Auth.AccessToken(by.LoginSessionID, cmd.Nonce))
			if err := d.State.Do(ctx, &cmd); err != nil {
				return nil, err
			}
			answer := &RefreshAnswer{AccessToken: d.Auth.AccessTokenOf(&cmd.Login, cmd.Made), Flow: objects.StandOf(cmd.Flow)}
			return answer, d.State.Read(ctx, func(v *cell.View) error {
				answer.ExpiresAt = objects.Stamp(v.LoginExpires(&cmd.Login))
				return nil
			})
		})
	calls.Player(d.realm, "Session.Logout", rates.Logout, "Ends the login session. A game goes on without it.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*Done, error) {
			cmd := playerflow.Logout{Caller: *by}
			err := d.State.Do(ctx, &cmd)
			return &Done{objects.StandOf(cmd.Flow)}, err
		})
	calls.Player(d.realm, "Session.GetFlow", rates.GetFlow, "Everything about the player, as of one moment.",
		func(ctx context.Context, by *playerflow.Caller, body *GetFlowRequest) (*SnapshotAnswer, error) {
			s, err := d.State.Snapshot(ctx, by.Player)
			if err != nil {
				return nil, err
			}
			answer := &SnapshotAnswer{FlowSnapshot: s, Flow: standOfSnapshot(&s)}
			keepParts(&answer.FlowSnapshot, body.Include)
			return answer, nil
		})
	calls.Player(d.realm, "Session.PollEvents", rates.Other, "Events by long poll, for clients that cannot keep a stream open.", d.Streams.Poll)
	calls.Player(d.realm, "Session.Ack", rates.Other, "The client has the events up to a number.",
		func(ctx context.Context, by *playerflow.Caller, body *AckRequest) (*Done, error) {
			if err := d.State.Do(ctx, &playerflow.AckEvents{Player: by.Player, LoginSessionID: by.LoginSessionID, Seq: body.Seq}); err != nil {
				return nil, err
			}
			return d.done(ctx, by.Player)
		})
}

// done returns the answer to a call without other results.
func (d *door) done(ctx context.Context, player string) (*Done, error) {
	stand, err := d.State.Stand(ctx, player)
	return &Done{stand}, err
}

func standOfSnapshot(s *objects.FlowSnapshot) objects.Stand {
	return objects.Stand{Rev: s.Rev, Seq: s.Seq, Phase: s.Phase, Keys: s.Keys}
}

// keepParts removes the parts that were not requested.
func keepParts(s *objects.FlowSnapshot, include []string) {
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
		s.Invites = []objects.Invite{}
	}
	if !wants("locks") {
		s.Locks = []objects.Lock{}
	}
	if !wants("last_game") {
		s.LastGame = nil
	}
	if !wants("foreign_sessions") {
		s.ForeignSessions = nil
	}
}

func (d *door) login(ctx context.Context, by *playerflow.Caller, body *LoginRequest) (*LoginAnswer, error) {
	x := principal.Of(ctx)
	if problem := d.Streams.Draining(); problem != nil {
		return nil, problem
	}
	if n := len(body.Token); n > authentication.TokenBytesMax {
		return nil, problem.Invalid("token", "%d bytes, want at most %d", n, authentication.TokenBytesMax)
	}
	if wait, ok := d.Buckets.TakeFor(rates.LoginAddress, x.Address, x.Answer.Header()); !ok {
		return nil, problem.Later(flow.RateLimited, wait, "too many logins from one address")
	}
	claim, err := d.Auth.Login(ctx, body.Provider, body.Token)
	if err != nil {
		return nil, err
	}
	cmd := playerflow.Login{
		Player: claim.Player, Ticket: claim.Ticket, Once: claim.Once, Until: claim.Until, Request: by.Request, LoginSessionID: flow.LoginSessionID(objects.NewID()),
		Device: body.DeviceLabel, ClientVersion: body.ClientVersion, DisplayName: claim.DisplayName,
		AutoReconnect: slices.Contains(body.Capabilities, autoReconnect), Insecure: claim.Insecure,
	}
	cmd.Token = authentication.Hash(d.Auth.AccessToken(cmd.LoginSessionID, domain.UUID{}))
	if err := d.checkTicket(ctx, &cmd); err != nil {
		return nil, err
	}
	if wait, ok := d.Buckets.TakeFor(rates.Login, claim.Player, x.Answer.Header()); !ok {
		return nil, problem.Later(flow.RateLimited, wait, "too many logins of one player")
	}
	if err := d.queueLogin(ctx, claim.Player); err != nil {
		return nil, err
	}
	if err := d.State.Do(ctx, &cmd); err != nil {
		if flow.CodeOf(err) == flow.Unauthenticated { // a ticket or token that was used meanwhile
			return nil, d.Auth.FailedLogin(ctx, err)
		}
		return nil, err
	}
	connlimit.Prove(ctx)
	s, err := d.State.Snapshot(ctx, cmd.Made.Player)
	if err != nil {
		return nil, err
	}
	answer := &LoginAnswer{
		AccessToken: d.Auth.AccessTokenOf(&cmd.Made, domain.UUID{}), SessionID: objects.ID(cmd.Made.ID), Epoch: cmd.Made.Epoch, StreamURL: d.streamURL(x),
		FlowSnapshot: s, Flow: objects.StandOf(cmd.Flow),
	}
	if s.Session != nil {
		answer.ExpiresAt = s.Session.ExpiresAt
	}
	return answer, nil
}

// checkTicket refuses an invalid login ticket before an attempt is counted for the player that it names, because only a valid ticket
// proves the name.
func (d *door) checkTicket(ctx context.Context, cmd *playerflow.Login) error {
	if cmd.Ticket.IsZero() {
		return nil
	}
	known := false
	err := d.State.Read(ctx, func(v *cell.View) error {
		known = v.KnowsTicket(cmd, d.State.Instant())
		return nil
	})
	if err == nil && !known {
		return d.Auth.FailedLogin(ctx, nil)
	}
	return err
}

// queueLogin admits a player, or returns when to come back. Players in a game have priority. A player who is logged in takes no further place.
func (d *door) queueLogin(ctx context.Context, player string) error {
	inGame, replaces, online, logins := false, false, 0, &d.State.Settings().Logins
	err := d.State.Read(ctx, func(v *cell.View) error {
		if s, ok := v.Record(player); ok {
			inGame = !s.Keys.Game.IsZero() && !logins.QueueInGame
		}
		if logins.OnlineMax > 0 {
			replaces, online = v.LoggedIn(player), v.FlowTotals().LoggedIn
		}
		return nil
	})
	if err != nil {
		return err
	}
	if most := logins.OnlineMax; most > 0 && online >= most && !inGame && !replaces {
		return problem.Later(problem.LoginQueued, fullRetry, "%d players are logged in; the limit is %d", online, most)
	}
	position, wait, ok := d.Logins.Admit(player, inGame)
	if ok {
		return nil
	}
	p := problem.Later(problem.LoginQueued, wait, "%d players are ahead in the login queue; try again after the wait", position)
	p.Details = problem.Details{Position: position}
	return p
}

// fullRetry is how long a player should wait while the service is full.
const fullRetry = 5 * time.Second

// streamURL returns the URL of a client's stream.
func (d *door) streamURL(x *principal.Principal) string {
	if base := strings.TrimRight(d.PublicURL, "/"); base != "" {
		if rest, ok := strings.CutPrefix(base, "http"); ok {
			base = "ws" + rest
		}
		return base + objects.StreamPath
	}
	scheme := "ws://"
	if x.TLS {
		scheme = "wss://"
	}
	return scheme + x.Host + objects.StreamPath
}
