package playerflow

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// GamePlan is the description of a game instance to create, by the studio or a player.
type GamePlan struct {
	ID         flow.InstanceID // of the new game instance; a repeat with the same one changes nothing
	Players    []PlannedPlayer
	Queue      string // a game session queue
	PlayersMax int32
	Reconnect  flow.Reconnect // 0: the service's setting
	Name       string
	Data       string
	Properties []session.Property
	Latencies  []placement.Latency
	Attributes string   // a JSON object; empty for none
	Regions    []string // locations, best first; empty: the queue's order
	Holder     quota.Holder
}

// PlannedPlayer is a player to be seated.
type PlannedPlayer struct {
	Player string
	Team   string
	Data   string // PlayerData of the player session
}

// checkPlan checks a plan against the state and returns a function that executes it, which cannot fail.
func (t *Games) checkPlan(plan *GamePlan) (begin func(), err error) {
	if len(plan.Players) == 0 {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "players: empty")
	}
	var members []newMember
	for _, x := range plan.Players {
		r, err := t.playerNamed(x.Player)
		if err == nil {
			err = t.mayPlayDirectly(r)
		}
		if err == nil && slices.ContainsFunc(members, func(m newMember) bool { return m.player == r }) {
			err = flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Players: []string{x.Player}}, "players: %s is named twice", x.Player)
		}
		if err != nil {
			return nil, err
		}
		members = append(members, newMember{player: r, team: x.Team, data: x.Data})
	}
	rules := t.Config.Games.Rules
	if plan.Reconnect != 0 {
		rules.Reconnect = plan.Reconnect
	}
	start := placement.Placement{
		ID: plan.ID.String(), Queue: plan.Queue, PlayersMax: plan.PlayersMax, Name: plan.Name, Data: plan.Data,
		Properties: flowProperties(plan.Properties, plan.ID, rules.Reconnect, ""), Latencies: plan.Latencies, Regions: plan.Regions, Holder: plan.Holder,
	}
	if !rules.ManualReady {
		for _, x := range plan.Players {
			start.Players = append(start.Players, placement.Player{Player: x.Player, Data: x.Data, ID: domain.PlayerSessionID(t.NewID())})
		}
	}
	if int32(len(plan.Players)) > plan.PlayersMax {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "players: %d, but the maximum is %d", len(plan.Players), plan.PlayersMax)
	}
	if err := t.hosting.CheckPlacement(&start); err != nil {
		return nil, err
	}
	if err := t.hosting.CheckPlacementRoom(&start); err != nil {
		return nil, err
	}
	return func() {
		t.begin(flow.Instance{ID: plan.ID, Rules: rules, Placement: start.ID, Attributes: plan.Attributes}, members)
		t.hosting.BeginPlacement(&start)
	}, nil
}

// InstanceProperty is the property of a game session that names its game instance.
const InstanceProperty = "pf.instance"

// flowProperties adds the properties of all game sessions of player flow to others.
func flowProperties(own []session.Property, id flow.InstanceID, mode flow.Reconnect, queue string) []session.Property {
	own = slices.DeleteFunc(slices.Clone(own), func(p session.Property) bool { return strings.HasPrefix(p.Key, "pf.") })
	own = append(own, keyvalue.Pair{Key: InstanceProperty, Value: id.String()}, keyvalue.Pair{Key: "pf.reconnect", Value: mode.String()})
	if queue != "" {
		own = append(own, keyvalue.Pair{Key: "pf.queue", Value: queue})
	}
	return own
}

// completePlan fills in the service's defaults for what a player's plan leaves open.
func (t *Games) completePlan(plan *GamePlan, r flow.PlayerRef, size int32) error {
	config := &t.Config.Games
	if !config.DirectCreate {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "players may not create game instances: the option directCreate is off")
	}
	if plan.Queue == "" {
		plan.Queue = config.DirectQueue
	}
	if size < 0 || size > config.DirectPlayersMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "max_players: %d, want 1 to %d", size, config.DirectPlayersMax)
	}
	switch {
	case plan.PlayersMax != 0:
	case size != 0:
		plan.PlayersMax = size
	default:
		plan.PlayersMax = config.DirectPlayersMax
	}
	if plan.Latencies == nil {
		p := t.Flow.Players.Get(r)
		for _, l := range profileOf(p).Latencies {
			plan.Latencies = append(plan.Latencies, placement.Latency{Player: p.ID, Location: l.Region, Milliseconds: float32(l.Milliseconds)})
		}
	}
	return nil
}
