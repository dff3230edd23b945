package inspection

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// FlowCounts counts the records of player flow; it returns none while player flow is off.
func (v *View) FlowCounts() []kernel.RecordCount {
	limits, f := v.c.Limits, v.c.Flow
	if limits.Flow == nil {
		return nil
	}
	return []kernel.RecordCount{
		{Kind: "players", Count: f.Players.Len(), Most: limits.PlayersMax},
		{Kind: "players_logged_in", Count: f.LoggedIn()},
		{Kind: "login_sessions", Count: f.Logins.Len()},
		{Kind: "login_tickets", Count: f.Tickets.Len(), Most: limits.LoginTicketsMax},
		{Kind: "remembered_requests", Count: f.Requests.Len(), Most: limits.RequestsMax},
		{Kind: "parties", Count: f.Parties.Len()},
		{Kind: "invites", Count: f.Invites.Len()},
		{Kind: "game_instances", Count: f.Instances.Len()},
		{Kind: "memberships", Count: f.Memberships.Len()},
		{Kind: "event_subscriptions", Count: len(f.Studio.Subscriptions()), Most: playerflow.SubscriptionsMax},
		{Kind: "kept_events", Count: f.Studio.Kept(), Most: flow.StudioEventsMax},
	}
}

// FlowTotals counts the records of player flow, for metrics and logs.
type FlowTotals struct {
	Players, Logins, Parties, Invites, Instances, Memberships, Requests int

	LoggedIn int // players with a login session; Logins includes those that were replaced recently
}

// FlowTotals counts the records of player flow.
func (v *View) FlowTotals() FlowTotals {
	f := v.c.Flow
	return FlowTotals{
		f.Players.Len(), f.Logins.Len(), f.Parties.Len(), f.Invites.Len(), f.Instances.Len(), f.Memberships.Len(), f.Requests.Len(), f.LoggedIn(),
	}
}
