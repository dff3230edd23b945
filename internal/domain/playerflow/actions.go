package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// AllowedActions returns the actions that a player may take now. These are the rows of tables T1 and T4 (docs/spec/player-flow.md#t1) that this state
// would not refuse, as far as can be determined without parameters.
func (c *State) AllowedActions(r flow.PlayerRef) flow.Actions {
	config := &c.Config
	p := c.Flow.Players.Get(r)
	a := flow.CanRespondToInvite | flow.CanLogout
	phase := p.Keys.Phase()
	inGame := phase == flow.InGame || phase == flow.InGameWithParty
	if phase != flow.Matchmaking && (!inGame || !config.Parties.NoChangeInGame) {
		a |= flow.CanCreateParty | flow.CanJoinParty
	}
	if party, ok := c.Flow.Party(p.Keys.Party); ok {
		a |= c.partyActions(c.Flow.Parties.Get(party), p)
	} else if phase == flow.Idle && !config.Search.NoSoloParty && p.Here() && c.lockAt(p, c.Last()) == nil {
		a |= flow.CanEnterMatchmaking
	}
	if !inGame && phase != flow.Matchmaking {
		if config.Games.DirectCreate {
			a |= flow.CanCreateGameInstance
		}
		if config.Games.DirectJoin {
			a |= flow.CanJoinGameInstance
		}
	}
	if p.Membership() != 0 {
		a |= c.gameActions(c.Flow.Memberships.Get(p.Membership()))
	}
	return a
}

func (c *State) partyActions(x *flow.Party, p *flow.Player) flow.Actions {
	config := &c.Config
	a := flow.CanLeaveParty | flow.CanSendInvite
	leads, searching, inGame := x.Leads(p.ID), x.Search != nil, !p.Keys.Game.IsZero()
	if !inGame {
		a |= flow.CanSetReady
	}
	if !searching {
		a |= flow.CanSetPlayerPreferences
	}
	if leads {
		a |= flow.CanRotateInviteCode | flow.CanDisbandParty
		if len(x.Members) > 1 {
			a |= flow.CanKickPlayer | flow.CanPromoteLeader
		}
		if !searching {
			a |= flow.CanSetPartyPreferences
			if c.mayAllEnter(x) {
				a |= flow.CanEnterMatchmaking
			}
		}
	}
	if searching && (leads || !config.Search.LeaderCancels) {
		a |= flow.CanLeaveMatchmaking
	}
	if searching && x.Search.Status == flow.RequiresAcceptance {
		a |= flow.CanAcceptMatch
	}
	return a
}

// mayAllEnter reports whether every member of a party may enter matchmaking.
func (c *State) mayAllEnter(x *flow.Party) bool {
	for _, m := range x.Members {
		r, _ := c.Flow.Player(m.Player)
		p := c.Flow.Players.Get(r)
		ready := m.Ready || len(x.Members) == 1 || c.Config.Parties.NoReadyRequired
		if !p.Keys.Game.IsZero() || !p.Here() || !ready || c.lockAt(p, c.Last()) != nil {
			return false
		}
	}
	return true
}

func (c *State) gameActions(m *flow.Membership) (a flow.Actions) {
	x := c.Flow.Instances.Get(m.InstanceRef())
	if m.Status != flow.MemberPending && x.Status == flow.InstanceActive && !(m.Status == flow.MemberActive && x.Rules.DenyTakeover) {
		a |= flow.CanGetHostConnectionDetails
	}
	if c.mayDecline(m) {
		a |= flow.CanDeclineReconnect
	}
	if x.Rules.Reconnect != flow.ReconnectRequired {
		a |= flow.CanLeaveGame
	}
	return a
}
