package players

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerhooks"
)

// This file calls the studio's hooks. First the core checks whether it would execute the call, so that no hook is called in vain and
// refusals keep their order. Then the hooks are called. Finally the core checks everything again and executes the call.

// askedMax is how often hooks are called for one call while the party keeps changing.
const askedMax = 3

// consulted executes a player's call after ask has called the hooks that apply. by is the caller of the command.
func (d *door) consulted(ctx context.Context, by *playerflow.Caller, cmd kernel.Command, hooked bool, ask func() error) error {
	if !hooked {
		return d.State.Do(ctx, cmd)
	}
	for tries := 1; ; tries++ {
		by.Look = true
		err := d.State.Do(ctx, cmd)
		by.Look = false
		if err != nil || by.Repeated {
			return err
		}
		if by.Would {
			if err := ask(); err != nil {
				return err
			}
		}
		if err = d.State.Do(ctx, cmd); flow.CodeOf(err) != flow.RevConflict || tries == askedMax {
			return err
		}
	}
}

// searchOf returns the data for hooks about a player and all who search together.
func (d *door) searchOf(ctx context.Context, player, purpose string) (q playerhooks.Search, err error) {
	q.PlayerID, q.Purpose = player, purpose
	err = d.State.Read(ctx, func(v *cell.View) error {
		now := d.State.Instant()
		s, _ := v.FlowOf(player, now)
		players := []string{player}
		if s.Party != nil && purpose == purposeMatchmaking {
			q.PartyID, q.PartyAttributes, q.Regions = objects.ID(s.Party.ID), playerhooks.Object(s.Party.Attributes), s.Party.Regions
			players = nil
			for _, m := range s.Party.Members {
				players = append(players, m.Player)
			}
		}
		for _, id := range players {
			s, _ := v.FlowOf(id, now)
			x := playerhooks.Searcher{
				PlayerID: id, ClientVersion: s.Profile.ClientVersion, Attributes: playerhooks.Object(s.Profile.Attributes),
				Trusted: playerhooks.Object(s.Profile.Trusted), LatencyMS: map[string]int32{},
			}
			for _, l := range s.Profile.Latencies {
				x.LatencyMS[l.Region] = l.Milliseconds
			}
			q.Players = append(q.Players, x)
		}
		return nil
	})
	return q, err
}

// The purposes of a search.
const (
	purposeMatchmaking = "MATCHMAKING"
	purposeCreate      = "CREATE"
	purposeJoin        = "JOIN"
	purposeReconnect   = "RECONNECT"
)

// adviseSearch makes all hook calls about a search that is about to begin.
func (d *door) adviseSearch(ctx context.Context, cmd *playerflow.EnterMatchmaking) error {
	q, err := d.searchOf(ctx, cmd.Player, purposeMatchmaking)
	if err != nil {
		return err
	}
	cmd.Queue = cmd.Search.Queue
	q.Queue, q.Attributes = cmd.Queue, playerhooks.Object(cmd.Advice.Attributes)
	enter, err := playerhooks.Ask[playerhooks.EnterAnswer](ctx, d.Hooks, playerhooks.BeforeEnterMatchmaking, q)
	if err != nil {
		return err
	}
	data, err := playerhooks.Ask[playerhooks.PlayerDataAnswer](ctx, d.Hooks, playerhooks.BuildPlayerData, q)
	if err != nil {
		return err
	}
	regions, err := playerhooks.Ask[playerhooks.RegionsAnswer](ctx, d.Hooks, playerhooks.ChooseRegions, q)
	if err != nil {
		return err
	}
	cmd.About, cmd.Advice.Players = nil, nil
	cmd.Advice.Trusted, cmd.Advice.Regions = enter.Attributes.Text(), regions.Regions
	for _, p := range q.Players {
		cmd.About = append(cmd.About, p.PlayerID)
		x := flow.PlayerAdvice{Player: p.PlayerID, Trusted: enter.Players[p.PlayerID].Attributes.Text(), Data: data.Players[p.PlayerID]}
		if x.Trusted != "" || x.Data != "" {
			cmd.Advice.Players = append(cmd.Advice.Players, x)
		}
	}
	return nil
}

// playerData calls the hook for the PlayerData of a player session. known is false if the hook is off or has provided no data.
func (d *door) playerData(ctx context.Context, player, purpose, instance string) (data string, known bool, err error) {
	if !d.Hooks.On(playerhooks.BuildPlayerData) {
		return "", false, nil
	}
	q, err := d.searchOf(ctx, player, purpose)
	if err != nil {
		return "", false, err
	}
	q.GameInstanceID = instance
	answer, err := playerhooks.Ask[playerhooks.PlayerDataAnswer](ctx, d.Hooks, playerhooks.BuildPlayerData, q)
	data, known = answer.Players[player]
	return data, known, err
}

func (d *door) createParty(ctx context.Context, cmd *playerflow.CreateParty) error {
	return d.consulted(ctx, &cmd.Caller, cmd, d.Hooks.On(playerhooks.BeforeCreateParty), func() error {
		q := playerhooks.PartyMade{PlayerID: cmd.Player, MaxMembers: cmd.MembersMax, Attributes: playerhooks.Object(cmd.Attributes)}
		if cmd.Joinability != 0 {
			q.Joinability = cmd.Joinability.String()
		}
		_, err := playerhooks.Ask[playerhooks.Verdict](ctx, d.Hooks, playerhooks.BeforeCreateParty, q)
		return err
	})
}

func (d *door) joinParty(ctx context.Context, cmd *playerflow.JoinParty, way string) error {
	return d.consulted(ctx, &cmd.Caller, cmd, d.Hooks.On(playerhooks.BeforeJoinParty), func() error {
		q := playerhooks.PartyJoined{PlayerID: cmd.Player, PartyID: objects.ID(flow.PartyID(cmd.Made)), By: way, Members: []string{}}
		err := d.State.Read(ctx, func(v *cell.View) error {
			party, _ := v.Party(flow.PartyID(cmd.Made))
			for _, m := range party.Members {
				q.Members = append(q.Members, m.Player)
			}
			return nil
		})
		if err == nil {
			_, err = playerhooks.Ask[playerhooks.Verdict](ctx, d.Hooks, playerhooks.BeforeJoinParty, q)
		}
		return err
	})
}

func (d *door) sendInvite(ctx context.Context, cmd *playerflow.SendInvite) error {
	return d.consulted(ctx, &cmd.Caller, cmd, d.Hooks.On(playerhooks.BeforeInvite), func() error {
		var party flow.PartyID
		err := d.State.Read(ctx, func(v *cell.View) error {
			s, _ := v.Record(cmd.Player)
			party = s.Keys.Party
			return nil
		})
		if err == nil {
			_, err = playerhooks.Ask[playerhooks.Verdict](ctx, d.Hooks, playerhooks.BeforeInvite, playerhooks.PlayerInvited{
				PlayerID: cmd.Player, PartyID: objects.ID(party), TargetID: cmd.Target,
			})
		}
		return err
	})
}
