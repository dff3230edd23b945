package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
	"github.com/musterhq/muster/internal/plural"
)

// flowID parses an id of player flow, with or without its prefix.
func flowID[T interface{ domain.ID[K] }, K domain.Kind](what, text string) (T, error) {
	id, err := domain.ParseID[T, K](text)
	if u, ok := domain.ParseUUID(text); ok {
		return T(u), nil
	}
	if err != nil {
		return id, domain.Refuse(domain.Invalid, "%s id %s: %v", what, text, err)
	}
	return id, nil
}

// explainParty explains a party: its members and deadlines.
func (d *Door) explainParty(ctx context.Context, text string) (*Explanation, error) {
	id, err := flowID[flow.PartyID]("party", text)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "party", ID: id.String()}
	err = d.engine.Read(ctx, func(v *cell.View) error {
		p, ok := v.Party(id)
		if !ok {
			return domain.Refuse(domain.NotFound, "party %s not found: it never existed, or has ended", x.ID)
		}
		x.Status, x.Why = "IN_PARTY", fmt.Sprintf("It has %d of at most %d members, and does not search.", len(p.Members), p.MembersMax)
		of := []string{x.ID}
		if s := p.Search; s != nil {
			of = append(of, s.Ticket.String())
			x.Status, x.Why = s.Status.String(), "It searches in queue "+s.Queue+": muster explain ticket "+s.Ticket.String()+" says what it waits for."
		}
		x.fact("created", clock(p.Created))
		partyFacts(x, &p)
		x.Deadlines = membersDeadlines(v, partyMembers(&p), domain.TimeOf(d.engine.Now()), of...)
		x.moment(p.Created, "CREATED", "")
		for _, m := range p.Members {
			x.moment(m.Joined, "JOINED", m.Player)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return x.sorted(), nil
}

func partyMembers(p *flow.PartyView) (players []string) {
	for _, m := range p.Members {
		players = append(players, m.Player)
	}
	return players
}

// membersDeadlines returns the deadlines of players, without duplicates and without those of their login sessions.
func membersDeadlines(v *cell.View, players []string, now domain.Time, of ...string) (all []Deadline) {
	seen := map[inspection.Timer]bool{}
	for _, player := range players {
		for _, t := range v.FlowTimers(player, now) {
			if t.Of != player && !slices.Contains(of, t.Of) || seen[t] {
				continue
			}
			seen[t] = true
			all = append(all, deadlineOf(&t))
		}
	}
	slices.SortStableFunc(all, func(a, b Deadline) int {
		switch {
		case a.At == nil || b.At == nil: // clocks that stand still come last
			return cmp.Compare(a.Left, b.Left)
		}
		return a.At.Compare(*b.At)
	})
	return all
}

// explainGameInstance explains a game instance: its players and its host.
func (d *Door) explainGameInstance(ctx context.Context, text string) (*Explanation, error) {
	id, err := flowID[flow.InstanceID]("game instance", text)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "game-instance", ID: id.String()}
	err = d.engine.Read(ctx, func(v *cell.View) error {
		g, members, ok := v.GameInstance(id)
		if !ok {
			return domain.Refuse(domain.NotFound, "game instance %s not found: it never existed, or ended a while ago", x.ID)
		}
		x.Status, x.Why = g.Status.String(), whyGame(&g, len(members))
		x.fact("queue", g.Queue)
		x.fact("match", g.Match)
		x.fact("placement", g.Placement)
		x.fact("game session", g.Game)
		x.fact("reconnect", g.Rules.Reconnect.String())
		var players []string
		for _, m := range members {
			players = append(players, m.Player)
			x.fact("member", m.Player+", "+membershipInWords(&m))
			x.moment(m.Joined, "MEMBER", m.Player)
		}
		x.Deadlines = membersDeadlines(v, players, domain.TimeOf(d.engine.Now()), x.ID)
		x.moment(g.Created, "CREATED", "")
		x.moment(g.Ended, "ENDED", g.EndReason.String())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return x.sorted(), nil
}

func whyGame(g *flow.Instance, members int) string {
	switch {
	case g.Status == flow.InstancePending && g.Placement != "":
		return "It has no host yet: muster explain placement " + g.Placement + " says why."
	case g.Status == flow.InstancePending:
		return "It has no host yet."
	case g.Status == flow.InstanceEnded:
		return "It has ended: " + g.EndReason.String() + "."
	case g.Suspect != 0:
		return fmt.Sprintf("Its host is suspected to be lost; %s for its return: muster explain game-session %s.", plural.Of(members, "player waits", "players wait"), g.Game)
	}
	return "It has a host and " + plural.Of(members, "player", "players") + "."
}
