package operators

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// Why is part of every operator call; it goes to the log.
type Why struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" pattern:"\\S" patternDescription:"something to read" doc:"The reason for the call; it goes to the log."`
}

func (w Why) why() string { return w.Reason }

// OnePlayerRequest is about a player.
type OnePlayerRequest struct {
	Why
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
}

// ForceReleaseRequest takes keys from a player.
type ForceReleaseRequest struct {
	Why
	PlayerID string   `json:"player_id" minLength:"1" maxLength:"128"`
	Keys     []string `json:"keys" minItems:"1" enum:"PARTY_ID,MATCHMAKING_ID,GAME_INSTANCE_ID"`
}

// OneInstanceRequest is about a game instance.
type OneInstanceRequest struct {
	Why
	GameInstanceID string `json:"game_instance_id" maxLength:"64"`
}

// OnePartyRequest is about a party.
type OnePartyRequest struct {
	Why
	PartyID string `json:"party_id" maxLength:"64"`
}

// SetQueueRequest opens a queue for players or closes it.
type SetQueueRequest struct {
	Why
	Queue string `json:"queue" minLength:"1" maxLength:"128"`
	Open  bool   `json:"open"`
}

// PenaltyRequest puts a player on a penalty scale.
type PenaltyRequest struct {
	Why
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
	Kind     string `json:"kind" enum:"DODGE,LEAVE,AFK,REQUEUE,OPERATOR"`
	Level    int32  `json:"level,omitempty" minimum:"0" maximum:"100" doc:"Step of the scale, from 0, which is that of the first offence; the next offence counts from it. Of OPERATOR, which has no scale, it is only shown."`
	LockMS   int64  `json:"lock_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"How long the player may not search."`
}

// ClearPenaltyRequest takes a player off a penalty scale.
type ClearPenaltyRequest struct {
	Why
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
	Kind     string `json:"kind" enum:"DODGE,LEAVE,AFK,REQUEUE,OPERATOR"`
}

// BanRequest refuses a player's logins, or allows them again.
type BanRequest struct {
	Why
	PlayerID string `json:"player_id" minLength:"1" maxLength:"128"`
	Banned   bool   `json:"banned"`
}

// AuditAnswer lists violated invariants; it should be empty.
type AuditAnswer struct {
	Violations []Violation `json:"violations"`
	Players    int         `json:"players"`
	Parties    int         `json:"parties"`
	Games      int         `json:"game_instances"`
}

// StuckAnswer lists what holds a player; empty if nothing does.
type StuckAnswer struct {
	Holdings []Holding `json:"holdings"`
}

// Holding is a record that holds a player, with the event that will release the player.
type Holding struct {
	Key    string `json:"key" enum:"PARTY_ID,MATCHMAKING_ID,GAME_INSTANCE_ID,LOGIN,LOCK,BANNED"`
	By     string `json:"by,omitempty" doc:"The party, ticket or game instance."`
	Status string `json:"status,omitempty"`
	Ends   string `json:"ends,omitempty" doc:"The earliest deadline that ends it; absent: only a call of a player, a game server or an operator ends it."`
	Until  string `json:"until,omitempty" format:"date-time" doc:"Absent when no deadline will end it."`
}

// Violation is an invariant that does not hold, which is a defect of the service.
type Violation struct {
	Invariant string `json:"invariant" doc:"Its number, such as I12, or a word."`
	Meaning   string `json:"meaning" doc:"What should hold."`
	Subject   string `json:"subject"`
	Detail    string `json:"detail"`
}

// operatorCall declares a call of operators, which is logged before it is executed.
func operatorCall[B interface{ why() string }, A any](d *door, name, summary string, f func(ctx context.Context, body *B) (*A, error)) {
	calls.Partner(d.realm, name, summary, func(ctx context.Context, _ string, body *B) (*A, error) {
		said, err := json.Marshal(body) // as JSON, because a text log would show pointers instead of some values
		if err != nil {
			return nil, err
		}
		d.State.Log.Info("operator call", "call", name, "principal", principal.Of(ctx).ID, "reason", (*body).why(), "request", json.RawMessage(said))
		by := principal.Of(ctx)
		ctx = audit.With(ctx, audit.Origin{Principal: by.ID, Door: audit.DoorPlayers, Address: by.Address, Operation: name, Reason: (*body).why()})
		answer, err := f(ctx, body)
		d.Audit.Refused(ctx, err)
		return answer, err
	})
}

func (d *door) declareOperator() {
	d.declareOperatorLooks()
	operatorCall(d, "Operator.ForceLogout", "Ends the login session of a player. The keys stay.",
		func(ctx context.Context, body *OnePlayerRequest) (*calls.None, error) {
			return &calls.None{}, d.State.Do(ctx, &playerflow.ForceLogout{Player: body.PlayerID})
		})
	operatorCall(d, "Operator.ForceRelease", "Removes keys of a player, with all consequences.",
		func(ctx context.Context, body *ForceReleaseRequest) (*calls.None, error) {
			cmd := playerflow.ForceRelease{Player: body.PlayerID}
			for _, key := range body.Keys {
				cmd.Party = cmd.Party || key == "PARTY_ID"
				cmd.Ticket = cmd.Ticket || key == "MATCHMAKING_ID"
				cmd.Game = cmd.Game || key == "GAME_INSTANCE_ID"
			}
			return &calls.None{}, d.State.Do(ctx, &cmd)
		})
	operatorCall(d, "Operator.ForceEnd", "Ends a game instance and asks its host to end.",
		func(ctx context.Context, body *OneInstanceRequest) (*calls.None, error) {
			instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.ForceEnd{Instance: instance})
		})
	operatorCall(d, "Operator.ShutDownParty", "Ends a party for all its members.",
		func(ctx context.Context, body *OnePartyRequest) (*calls.None, error) {
			party, err := problem.ParseID[flow.PartyID]("party_id", body.PartyID)
			if err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.ShutDownParty{Party: party})
		})
	operatorCall(d, "Operator.SetQueue", "Opens a queue for players, or closes it and ends the searches in it.",
		func(ctx context.Context, body *SetQueueRequest) (*calls.None, error) {
			return &calls.None{}, d.State.Do(ctx, &playerflow.SetQueue{Name: body.Queue, Closed: !body.Open})
		})
	operatorCall(d, "Operator.SetPenalty", "Puts a player on a scale.",
		func(ctx context.Context, body *PenaltyRequest) (*calls.None, error) {
			p := flow.Penalty{Kind: penaltyKindOf(body.Kind), Reason: flow.ByTheOperator}
			p.Level = flow.LevelAt(p.Kind, body.Level)
			if body.LockMS > 0 {
				p.Until = d.State.Instant().Add(time.Duration(body.LockMS) * time.Millisecond)
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.SetPenalty{Player: body.PlayerID, Penalty: p})
		})
	operatorCall(d, "Operator.ClearPenalty", "Takes a player off a scale.",
		func(ctx context.Context, body *ClearPenaltyRequest) (*calls.None, error) {
			return &calls.None{}, d.State.Do(ctx, &playerflow.SetPenalty{Player: body.PlayerID, Penalty: flow.Penalty{Kind: penaltyKindOf(body.Kind)}})
		})
	operatorCall(d, "Operator.BanPlayer", "Refuses a player's logins and removes the player from party, search and game; or allows logins again.",
		func(ctx context.Context, body *BanRequest) (*calls.None, error) {
			return &calls.None{}, d.State.Do(ctx, &playerflow.BanPlayer{Player: body.PlayerID, Banned: body.Banned})
		})
	operatorCall(d, "Operator.ExplainStuck", "What prevents the player from continuing, and the deadline that will end that.",
		func(ctx context.Context, body *OnePlayerRequest) (*StuckAnswer, error) {
			answer := &StuckAnswer{Holdings: []Holding{}}
			err := d.State.Read(ctx, func(v *cell.View) error {
				all, ok := v.ExplainStuck(body.PlayerID, d.State.Instant())
				if !ok {
					return problem.New(flow.PlayerNotFound, "player %s not found", body.PlayerID)
				}
				for _, h := range all {
					answer.Holdings = append(answer.Holdings, Holding{h.Key, h.By, h.Status, h.Ends, objects.Stamp(h.Until)})
				}
				return nil
			})
			return answer, err
		})
	operatorCall(d, "Operator.Audit", "Looks at the whole state and lists invariants that do not hold.",
		func(ctx context.Context, _ *Why) (*AuditAnswer, error) {
			answer := &AuditAnswer{Violations: []Violation{}}
			return answer, d.State.Read(ctx, func(v *cell.View) error {
				for _, x := range v.Audit() {
					answer.Violations = append(answer.Violations, Violation{x.Invariant, x.Meaning(), x.Subject, x.Detail})
				}
				totals := v.FlowTotals()
				answer.Players, answer.Parties, answer.Games = totals.Players, totals.Parties, totals.Instances
				return nil
			})
		})
}

func penaltyKindOf(name string) flow.PenaltyKind {
	for _, k := range []flow.PenaltyKind{flow.Dodge, flow.Leave, flow.AFK, flow.Requeue, flow.ByOperator} {
		if k.String() == name {
			return k
		}
	}
	return 0
}
