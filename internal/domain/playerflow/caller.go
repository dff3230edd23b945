package playerflow

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Caller is the player who makes a call, from a logged-in client.
type Caller struct {
	Player         string
	LoginSessionID flow.LoginSessionID
	Request        string  // X-Request-Id: a repeat within ten minutes gets the same answer; empty: none
	IfRev          *uint64 // the call is refused for any other revision of the flow record
	Look           bool    // change nothing, only report whether the call would succeed; not every command supports it

	// Result
	Flow     flow.Record // after the call
	Made     domain.UUID // id of what the call created, if anything: a party, an invite, a game instance or a player session
	Repeated bool        // this request was executed before; Flow and Made are those of the first time
	Would    bool        // with Look: the call would succeed and change something

	kind  string      // separates calls whose answers contain a secret; empty for all other calls
	proof domain.UUID // of a login: the credential that it uses up
}

// caller finds the player who makes a call, and detects the repeat of an executed call.
func (t *transaction) caller(by *Caller, cause string) (r flow.PlayerRef, done bool, err error) {
	if err := t.flowOn(); err != nil {
		return 0, false, err
	}
	r, err = t.controls(by.Player, by.LoginSessionID)
	if err != nil {
		return 0, false, err
	}
	if by.Request != "" {
		if x, ok := t.Remembered(by); ok {
			by.Flow, by.Made, by.Repeated = x.Flow, x.Made, true
			return r, true, nil
		}
	}
	if p := t.Flow.Players.Get(r); by.IfRev != nil && *by.IfRev != p.Rev {
		return 0, false, flow.Refuse(flow.Refusal{Code: flow.RevConflict}, "the flow record of %s has revision %d, not %d", p.ID, p.Rev, *by.IfRev)
	}
	t.Cause = cause
	if !by.Look {
		t.own().caller = by
		t.answerTo(by.Player, &by.Flow)
	}
	return r, false, nil
}

// looks reports whether the caller only wants the result of the checks. Commands call it after their last check.
func (by *Caller) looks() bool {
	by.Would = by.Look
	return by.Look
}

// answerTo makes Settle write a player's flow record, as of the end of the transaction, to `to`.
func (t *transaction) answerTo(player string, to *flow.Record) {
	t.own().of, t.own().record = player, to
}

func RequestKey(by *Caller) uint64 {
	return kernel.RequestHash(by.Player + "\x00" + by.kind + by.Request)
}

// Remembered finds the answer to an earlier call with the same request id. It also compares the player, because the key is short
// and not secret.
func (t *transaction) Remembered(by *Caller) (*flow.Request, bool) {
	x, ok := t.Flow.Request(RequestKey(by))
	return x, ok && by.Request != "" && x.Player == by.Player && x.Proof == by.proof && x.At.Add(RequestsKept) > t.Now
}

// flowOn refuses a command while player flow is not enabled.
func (t *transaction) flowOn() error {
	if t.Limits.Flow == nil {
		return flow.Refuse(flow.Refusal{Code: flow.Unavailable}, "player flow is not enabled")
	}
	return nil
}

// controls checks that a login session is the one that controls a player.
func (t *transaction) controls(player string, id flow.LoginSessionID) (flow.PlayerRef, error) {
	r, ok := t.Flow.Login(id)
	if !ok || t.Flow.Logins.Get(r).Player != player {
		return 0, flow.Refuse(flow.Refusal{Code: flow.SessionNotFound}, "login session %s of player %s not found", id, player)
	}
	if t.Flow.Logins.Get(r).State != flow.LoginLive {
		return 0, flow.Refuse(flow.Refusal{Code: flow.SessionReplaced}, "login session %s of player %s was replaced by a later one", id, player)
	}
	p, _ := t.Flow.Player(player)
	return p, nil
}

// playerNamed finds a player whom a trusted caller names.
func (t *transaction) playerNamed(id string) (flow.PlayerRef, error) {
	r, ok := t.Flow.Player(id)
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.PlayerNotFound, Players: []string{id}}, "player %s not found", id)
	}
	return r, nil
}

// roomForPlayer refuses a new player if the service has reached its limit of players.
func (t *transaction) roomForPlayer() error {
	if n, most := t.Flow.Players.Len(), t.Limits.PlayersMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d players are known; the limit is %d", n, most)
	}
	return nil
}

// roomForDescribed refuses a new player who is described by the studio and never logged in, when the remaining room is reserved
// for players who log in.
func (t *transaction) roomForDescribed() error {
	if n, most := t.Flow.Players.Len(), quota.Most(t.Limits.PlayersMax); n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d players are known; new ones can be described up to %d, and those who log in have the rest of the limit of %d", n, most, t.Limits.PlayersMax)
	}
	return nil
}

// operated finds the player named in an operator's command.
func (t *transaction) operated(player, cause string) (flow.PlayerRef, error) {
	if err := t.flowOn(); err != nil {
		return 0, err
	}
	t.Cause = cause
	return t.playerNamed(player)
}

// CheckPlayerID checks the shape of a player's id.
func CheckPlayerID(id string) error { return checkPlayerID("player_id", id) }

// checkPlayerID checks the shape of a player's id.
func checkPlayerID(field, id string) error {
	if len(id) == 0 || len(id) > 128 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "%s: %d characters, want 1 to 128", field, len(id))
	}
	for _, c := range []byte(id) {
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
		if !ok {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "%s: %q, want letters, digits and . _ : @ -", field, id)
		}
	}
	return nil
}

// inGame returns the refusal of a call because players are in a game. It lists those who may decline to return.
func (t *transaction) inGame(players ...flow.PlayerRef) error {
	refusal := flow.Refusal{Code: flow.PlayerInGame}
	for _, r := range players {
		p := t.Flow.Players.Get(r)
		refusal.Players = append(refusal.Players, p.ID)
		if t.mayDecline(t.Flow.Memberships.Get(p.Membership())) {
			refusal.Decliners = append(refusal.Decliners, p.ID)
		}
	}
	return flow.Refuse(refusal, "in a game: %s", strings.Join(refusal.Players, ", "))
}

// mayPlayDirectly checks that a player is free for a game without matchmaking.
func (t *transaction) mayPlayDirectly(r flow.PlayerRef) error {
	p := t.Flow.Players.Get(r)
	switch {
	case p.Keys.Phase() == flow.Matchmaking:
		return flow.Refuse(flow.Refusal{Code: flow.InMatchmaking, Players: []string{p.ID}}, "player %s is in matchmaking", p.ID)
	case !p.Keys.Game.IsZero():
		return t.inGame(r)
	}
	return nil
}
