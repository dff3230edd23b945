package playerflow

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Caller is the player who wishes something, by a client that is logged in.
type Caller struct {
	Player  string
	Session flow.LoginSessionID
	Request string  // X-Request-Id: a repeat within ten minutes gets the same answer; empty: none
	IfRev   *uint64 // the wish holds only for this revision of the flow record
	Look    bool    // change nothing: only say whether the wish would be fulfilled. Not every command can

	// Result
	Flow     flow.Record // after the call
	Made     domain.UUID // what the call made, if it made something: a party, an invite, a game instance, a player session
	Repeated bool        // this very request was carried out before; Flow and Made are those of then
	Would    bool        // of a look: the wish would be fulfilled, and change something

	kind  string      // keeps calls apart whose answers hold a secret; empty: together with all others
	proof domain.UUID // of a login: what it uses up
}

// caller finds the player who wishes something and recognises a wish that was fulfilled before.
func (t *transaction) caller(by *Caller, cause string) (r flow.PlayerRef, done bool, err error) {
	if err := t.flowOn(); err != nil {
		return 0, false, err
	}
	r, err = t.controls(by.Player, by.Session)
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

// looks reports, behind the last check of a command, whether its caller only wants to know how the checks end.
func (by *Caller) looks() bool {
	by.Would = by.Look
	return by.Look
}

// answerTo says where the answer goes that tells how a player stands after everything.
func (t *transaction) answerTo(player string, to *flow.Record) {
	t.own().of, t.own().record = player, to
}

func RequestKey(by *Caller) uint64 {
	return kernel.RequestHash(by.Player + "\x00" + by.kind + by.Request)
}

// Remembered finds the answer of an earlier call with the same request id. The key is short and no secret: that it is the same
// player's is looked at, too.
func (t *transaction) Remembered(by *Caller) (*flow.Request, bool) {
	x, ok := t.Flow.Request(RequestKey(by))
	return x, ok && by.Request != "" && x.Player == by.Player && x.Proof == by.proof && x.At.Add(RequestsKept) > t.Now
}

// flowOn refuses what needs player flow when there is none.
func (t *transaction) flowOn() error {
	if t.Limits.Flow == nil {
		return flow.Refuse(flow.Refusal{Code: flow.Unavailable}, "player flow is not enabled")
	}
	return nil
}

// controls checks that a login session is the one that acts for a player.
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

// roomForPlayer refuses a player whom the service does not know yet when it knows as many as it may.
func (t *transaction) roomForPlayer() error {
	if n, most := t.Flow.Players.Len(), t.Limits.PlayersMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d players are known; the limit is %d", n, most)
	}
	return nil
}

// operated finds a player whom an operator acts upon.
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

// inGame refuses what players who are in a game cannot do, and says which of them could get out of it.
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
