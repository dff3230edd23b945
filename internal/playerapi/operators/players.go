package operators

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// ListPlayersRequest selects players; an omitted field does not restrict the selection.
type ListPlayersRequest struct {
	Why
	Phase       string `json:"phase,omitempty" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME,IN_GAME_WITH_PARTY,IN_GAME_WITHOUT_PARTY" doc:"IN_GAME: with or without a party."`
	OlderThanMS int64  `json:"older_than_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"Only players whose keys have not changed for this time."`
	HostLost    *bool  `json:"host_lost,omitempty" doc:"Only players in a game whose host may be lost; false: only the others."`
	After       uint32 `json:"after,omitempty" doc:"The next of the answer before."`
	Limit       int    `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"0: a hundred."`
}

// ListPlayersAnswer is one page of players.
type ListPlayersAnswer struct {
	PlayerIDs []string       `json:"player_ids"`
	Players   []ListedPlayer `json:"players" doc:"The same players, with their states."`
	Next      uint32         `json:"next,omitempty" doc:"Absent when there are no more. A page with few players, or none, may have one: a call looks at a part of all players only."`
}

// ListedPlayer is a player in a list.
type ListedPlayer struct {
	PlayerID string       `json:"player_id"`
	Phase    string       `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
	Keys     objects.Keys `json:"keys"`
	Since    string       `json:"since,omitempty" format:"date-time" doc:"When the keys were changed last. Absent: never, or by a release that did not note it."`
	Presence string       `json:"presence" enum:"OFFLINE,ONLINE,UNKNOWN"`
	HostLost bool         `json:"host_lost"`
}

// GetPlayerRequest is about a player.
type GetPlayerRequest struct {
	Why
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
	Commits  int    `json:"commits,omitempty" minimum:"0" maximum:"1000" doc:"How many of the last commits that changed the player's keys; 0: a thousand."`
}

// PlayerAnswer has the state of a player, pending deadlines, and recent commits.
type PlayerAnswer struct {
	Player   objects.FlowSnapshot `json:"player"`
	Presence string               `json:"presence" enum:"OFFLINE,ONLINE,UNKNOWN"`
	Banned   bool                 `json:"banned"`
	Timers   []Timer              `json:"timers" doc:"Every deadline that concerns the player, the next first."`
	Commits  []Commit             `json:"commits" doc:"The last commits that changed the player's keys, the latest first; those of the last 30 days."`
}

// Timer is a deadline that concerns a player.
type Timer struct {
	Kind   string `json:"kind" doc:"The setting that determines it, or its purpose."`
	Of     string `json:"of" doc:"The record with the deadline: the player, a party, ticket, game instance, player session, login session or invite."`
	Until  string `json:"until,omitempty" format:"date-time" doc:"Absent while the clock is stopped."`
	LeftMS int64  `json:"left_ms,omitempty" doc:"Time left on a clock that is stopped because the host of the game may be lost."`
	Then   string `json:"then" doc:"What happens."`
}

// Commit is a commit that changed a player's keys.
type Commit struct {
	Commit      uint64       `json:"commit" doc:"Number of the journal entry."`
	Transaction uint32       `json:"transaction,omitempty" doc:"Number of the transaction in it. Events of this commit have the commit COMMIT.TRANSACTION."`
	At          string       `json:"at" format:"date-time"`
	Rev         uint64       `json:"rev" doc:"Of the flow record after it."`
	Phase       string       `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
	Keys        objects.Keys `json:"keys" doc:"After it."`
	Cause       string       `json:"cause" doc:"The call, the deadline, or the event of the game."`
	Caller      Actor        `json:"caller"`
}

// Actor is the principal that caused a commit.
type Actor struct {
	Kind string `json:"kind" enum:"UNKNOWN,PLAYER,PARTNER,OPERATOR,GAME_SERVER,DEADLINE,MATCHMAKER,AWS_CLIENT"`
	ID   string `json:"id,omitempty" doc:"A login session, an access key, a game instance, or a server process as FLEET/COMPUTE/PROCESS."`
}

const commitsMax = 1000

var phases = map[string][]flow.Phase{
	"IDLE": {flow.Idle}, "IN_PARTY": {flow.InParty}, "MATCHMAKING": {flow.Matchmaking}, "IN_GAME": {flow.InGameWithParty, flow.InGame},
	"IN_GAME_WITH_PARTY": {flow.InGameWithParty}, "IN_GAME_WITHOUT_PARTY": {flow.InGame},
}

// declareOperatorLooks declares the calls that only read players.
func (d *door) declareOperatorLooks() {
	operatorCall(d, "Operator.ListPlayers", "Players by phase, by the time since their keys changed, and by the loss of their host.", d.listPlayers)
	operatorCall(d, "Operator.GetPlayer", "The state of a player, all deadlines of the player, and the last commits that changed the keys.", d.getPlayer)
}

func (d *door) getPlayer(ctx context.Context, body *GetPlayerRequest) (*PlayerAnswer, error) {
	answer := &PlayerAnswer{Timers: []Timer{}, Commits: []Commit{}}
	err := d.State.Read(ctx, func(v *cell.View) error {
		now := d.State.Instant()
		s, ok := v.FlowOf(body.PlayerID, now)
		if !ok {
			return problem.New(flow.PlayerNotFound, "player %s not found", body.PlayerID)
		}
		answer.Player, answer.Presence, answer.Banned = d.State.Objects.SnapshotForOthers(&s, d.State.Instant()), s.Presence.String(), s.Banned
		for _, t := range v.FlowTimers(body.PlayerID, now) {
			answer.Timers = append(answer.Timers, Timer{t.Kind, t.Of, objects.Stamp(t.Until), t.Left.Milliseconds(), t.Then})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	body.Commits = cmp.Or(body.Commits, commitsMax)
	changes, err := d.State.ChangesOf(ctx, body.PlayerID, body.Commits)
	for _, x := range changes {
		answer.Commits = append(answer.Commits, Commit{
			x.Commit, x.Part, objects.Stamp(x.At), x.Rev, x.Keys.Phase().String(), objects.KeysOf(x.Keys), x.Cause, Actor{x.By.Kind.String(), x.By.ID},
		})
	}
	return answer, err
}

const (
	listStep = 1024      // players read under one lock
	listMost = 256 << 10 // players read for one call
)

func (d *door) listPlayers(ctx context.Context, body *ListPlayersRequest) (*ListPlayersAnswer, error) {
	limit := cmp.Or(body.Limit, 100)
	filter := inspection.PlayerFilter{Phases: phases[body.Phase], OlderThan: time.Duration(body.OlderThanMS) * time.Millisecond, HostLost: body.HostLost}
	answer := &ListPlayersAnswer{PlayerIDs: []string{}, Players: []ListedPlayer{}}
	last, more := flow.PlayerRef(body.After), true
	for looked := 0; more && looked < listMost && len(answer.Players) < limit; looked += listStep {
		err := d.State.Read(ctx, func(v *cell.View) error {
			var page []inspection.PlayerLine
			page, last, more = v.FindPlayers(&filter, d.State.Instant(), last, limit-len(answer.Players), listStep)
			for _, x := range page {
				answer.PlayerIDs = append(answer.PlayerIDs, x.ID)
				answer.Players = append(answer.Players, ListedPlayer{
					x.ID, x.Keys.Phase().String(), objects.KeysOf(x.Keys), objects.Stamp(x.Since), x.Presence.String(), x.HostLost,
				})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if more {
		answer.Next = uint32(last)
	}
	return answer, nil
}
