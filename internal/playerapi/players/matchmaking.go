package players

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerhooks"
)

// EnterMatchmakingRequest begins a search.
type EnterMatchmakingRequest struct {
	Queue      string          `json:"queue,omitempty" maxLength:"128" doc:"A matchmaking configuration; empty: the party's preference."`
	Attributes *objects.Object `json:"attributes,omitempty" doc:"Attributes for this search: they override those of the player and the party, and the studio's override them."`
}

// TicketAnswer is the search of the party; absent if it no longer has one.
type TicketAnswer struct {
	Ticket *objects.Ticket `json:"ticket,omitempty"`
	Flow   objects.Stand   `json:"flow"`
}

// AcceptMatchRequest accepts or rejects a match.
type AcceptMatchRequest struct {
	MatchmakingID string `json:"matchmaking_id" maxLength:"64"`
	Accept        bool   `json:"accept"`
}

// QueuesAnswer lists the queues that players may enter.
type QueuesAnswer struct {
	Queues []Queue       `json:"queues"`
	Flow   objects.Stand `json:"flow"`
}

// Queue is a matchmaking configuration as players see it.
type Queue struct {
	Name               string `json:"name"`
	Open               bool   `json:"open"`
	MaxParty           int    `json:"max_party"`
	AcceptanceRequired bool   `json:"acceptance_required"`
	Reconnect          string `json:"reconnect" enum:"OFF,OPTIONAL,REQUIRED"`
	EstimatedWaitMS    int64  `json:"estimated_wait_ms,omitempty" doc:"Absent when it is not known."`
}

func (d *door) declareMatchmaking() {
	calls.Player(d.realm, "Matchmaking.EnterMatchmaking", rates.Enter, "Begins the search of the party.",
		d.enterMatchmaking)
	calls.Player(d.realm, "Matchmaking.LeaveMatchmaking", rates.LeaveMatchmaking, "Ends the search. A success is final: no match follows.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*Done, error) {
			cmd := playerflow.LeaveMatchmaking{Caller: *by}
			err := d.State.Do(ctx, &cmd)
			return &Done{objects.StandOf(cmd.Flow)}, err
		})
	calls.Player(d.realm, "Matchmaking.AcceptMatch", rates.AcceptMatch, "Accepts a match that was found, or declines it.",
		func(ctx context.Context, by *playerflow.Caller, body *AcceptMatchRequest) (*TicketAnswer, error) {
			ticket, err := problem.ParseID[domain.TicketID]("matchmaking_id", body.MatchmakingID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.AnswerMatch{Caller: *by, Ticket: ticket, Accept: body.Accept}
			if err := d.State.Do(ctx, &cmd); err != nil {
				return nil, err
			}
			answer := &TicketAnswer{Flow: objects.StandOf(cmd.Flow)}
			if cmd.Search != nil {
				answer.Ticket = objects.TicketOf(cmd.Search)
			}
			return answer, nil
		})
	calls.Player(d.realm, "Matchmaking.GetMatchmaking", rates.Other, "The search of the party.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*TicketAnswer, error) {
			s, err := d.State.Snapshot(ctx, by.Player)
			if err == nil && s.Ticket == nil {
				return nil, problem.New(flow.NotInMatchmaking, "player %s is not in matchmaking", by.Player)
			}
			return &TicketAnswer{s.Ticket, standOfSnapshot(&s)}, err
		})
	calls.Player(d.realm, "Matchmaking.ListQueues", rates.Other, "The queues that players may enter.", d.listQueues)
}

func (d *door) enterMatchmaking(ctx context.Context, by *playerflow.Caller, body *EnterMatchmakingRequest) (*TicketAnswer, error) {
	if err := problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax); err != nil {
		return nil, err
	}
	cmd := playerflow.EnterMatchmaking{Caller: *by, Ticket: domain.TicketID(objects.NewID()), Party: flow.PartyID(objects.NewID()), Queue: body.Queue}
	if body.Attributes != nil {
		cmd.Advice.Attributes = string(*body.Attributes)
	}
	hooks := d.Hooks
	hooked := hooks.On(playerhooks.BeforeEnterMatchmaking) || hooks.On(playerhooks.BuildPlayerData) || hooks.On(playerhooks.ChooseRegions)
	if err := d.consulted(ctx, &cmd.Caller, &cmd, hooked, func() error { return d.adviseSearch(ctx, &cmd) }); err != nil {
		return nil, err
	}
	answer := &TicketAnswer{Flow: objects.StandOf(cmd.Flow)}
	if !cmd.Search.Ticket.IsZero() {
		answer.Ticket = objects.TicketOf(&cmd.Search)
	}
	return answer, nil
}

func (d *door) listQueues(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*QueuesAnswer, error) {
	answer := &QueuesAnswer{Queues: []Queue{}}
	err := d.State.Read(ctx, func(v *cell.View) error {
		s, _ := v.Record(by.Player)
		answer.Flow = objects.StandOf(s)
		for _, q := range v.FlowQueues(d.State.Instant()) {
			answer.Queues = append(answer.Queues, Queue{q.Name, q.Open, q.PartyMax, q.AcceptanceRequired, q.Reconnect.String(), int64(q.EstimatedSeconds) * 1000})
		}
		return nil
	})
	return answer, err
}
