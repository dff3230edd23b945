package playerapi

import (
	"context"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerhooks"
)

// EnterMatchmakingRequest begins a search.
type EnterMatchmakingRequest struct {
	Queue      string  `json:"queue,omitempty" maxLength:"128" doc:"A matchmaking configuration; empty: the party's preference."`
	Attributes *Object `json:"attributes,omitempty" doc:"Of this search: above those of the player and the party, below those of the studio."`
}

// TicketAnswer is the search of the party; absent when there is none any more.
type TicketAnswer struct {
	Ticket *Ticket `json:"ticket,omitempty"`
	Flow   Stand   `json:"flow"`
}

// AcceptMatchRequest says yes or no to a match.
type AcceptMatchRequest struct {
	MatchmakingID string `json:"matchmaking_id" maxLength:"64"`
	Accept        bool   `json:"accept"`
}

// QueuesAnswer is the queues that players may enter.
type QueuesAnswer struct {
	Queues []Queue `json:"queues"`
	Flow   Stand   `json:"flow"`
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

func (d *playersDoor) declareMatchmaking() {
	declarePlayer(d.realm, "Matchmaking.EnterMatchmaking", classEnter, "Begins the search of the party.",
		d.enterMatchmaking)
	declarePlayer(d.realm, "Matchmaking.LeaveMatchmaking", classLeaveMatchmaking, "Ends the search. A success is final: no match follows.",
		func(ctx context.Context, by *cell.Caller, _ *None) (*Done, error) {
			cmd := cell.LeaveMatchmaking{Caller: *by}
			err := d.State.Do(ctx, &cmd)
			return &Done{standOf(cmd.Flow)}, err
		})
	declarePlayer(d.realm, "Matchmaking.AcceptMatch", classAcceptMatch, "Accepts a match that was found, or declines it.",
		func(ctx context.Context, by *cell.Caller, body *AcceptMatchRequest) (*TicketAnswer, error) {
			ticket, err := parseID("matchmaking_id", "mm-", body.MatchmakingID)
			if err != nil {
				return nil, err
			}
			cmd := cell.AnswerMatch{Caller: *by, Ticket: ticket, Accept: body.Accept}
			if err := d.State.Do(ctx, &cmd); err != nil {
				return nil, err
			}
			answer := &TicketAnswer{Flow: standOf(cmd.Flow)}
			if cmd.Search != nil {
				answer.Ticket = ticketOf(cmd.Search)
			}
			return answer, nil
		})
	declarePlayer(d.realm, "Matchmaking.GetMatchmaking", classOther, "The search of the party.",
		func(ctx context.Context, by *cell.Caller, _ *None) (*TicketAnswer, error) {
			s, err := d.State.Snapshot(ctx, by.Player)
			if err == nil && s.Ticket == nil {
				return nil, refusal(flow.NotInMatchmaking, "player %s is not in matchmaking", by.Player)
			}
			return &TicketAnswer{s.Ticket, standOfSnapshot(&s)}, err
		})
	declarePlayer(d.realm, "Matchmaking.ListQueues", classOther, "The queues that players may enter.", d.listQueues)
}

func (d *playersDoor) enterMatchmaking(ctx context.Context, by *cell.Caller, body *EnterMatchmakingRequest) (*TicketAnswer, error) {
	if err := checkSize("attributes", body.Attributes, partyAttributesMax); err != nil {
		return nil, err
	}
	cmd := cell.EnterMatchmaking{Caller: *by, Ticket: newID(), Party: newID(), Queue: body.Queue}
	if body.Attributes != nil {
		cmd.Advice.Attributes = string(*body.Attributes)
	}
	hooks := d.Hooks
	hooked := hooks.On(playerhooks.BeforeEnterMatchmaking) || hooks.On(playerhooks.BuildPlayerData) || hooks.On(playerhooks.ChooseRegions)
	if err := d.consulted(ctx, &cmd.Caller, &cmd, hooked, func() error { return d.adviseSearch(ctx, &cmd) }); err != nil {
		return nil, err
	}
	answer := &TicketAnswer{Flow: standOf(cmd.Flow)}
	if !cmd.Search.Ticket.IsZero() {
		answer.Ticket = ticketOf(&cmd.Search)
	}
	return answer, nil
}

func (d *playersDoor) listQueues(ctx context.Context, by *cell.Caller, _ *None) (*QueuesAnswer, error) {
	answer := &QueuesAnswer{Queues: []Queue{}}
	err := d.State.Read(ctx, func(v *cell.View) error {
		s, _ := v.Stand(by.Player)
		answer.Flow = standOf(s)
		for _, q := range v.FlowQueues(d.State.Instant()) {
			answer.Queues = append(answer.Queues, Queue{q.Name, q.Open, q.PartyMax, q.AcceptanceRequired, q.Reconnect.String(), int64(q.EstimatedSeconds) * 1000})
		}
		return nil
	})
	return answer, err
}

// latenciesMax bounds what a client may measure.
const latenciesMax = 64

func latenciesOf(measured map[string]int32) ([]flow.Latency, error) {
	if len(measured) > latenciesMax {
		return nil, refusal(flow.InvalidArgument, "latency_ms: %d regions, want at most %d", len(measured), latenciesMax)
	}
	all := make([]flow.Latency, 0, len(measured))
	for _, region := range slices.Sorted(maps.Keys(measured)) {
		if ms := measured[region]; ms < 0 || len(region) == 0 || len(region) > 64 {
			return nil, refusal(flow.InvalidArgument, "latency_ms: %.64q: %d, want a region and a time that is not negative", region, ms)
		}
		all = append(all, flow.Latency{Region: region, Milliseconds: measured[region]})
	}
	return all, nil
}
