package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// playerCommits is how many of the latest commits that changed a player's keys an explanation shows.
const playerCommits = 50

// standing is the state of a player.
type standing struct {
	flow.Keys
	snapshot playerflow.FlowSnapshot
	line     inspection.PlayerLine
	holdings []inspection.Holding
	timers   []inspection.Timer
}

// explainPlayer explains where a player is, since when, and what ends that state.
func (d *Door) explainPlayer(ctx context.Context, id string) (*Explanation, error) {
	var s standing
	now := domain.TimeOf(d.engine.Now())
	err := d.engine.Read(ctx, func(v *cell.View) error {
		if !v.FlowEnabled() {
			return domain.Refuse(domain.Invalid, "player flow is off: muster serve --player-flow turns it on")
		}
		var ok bool
		if s.snapshot, ok = v.FlowOf(id, now); !ok {
			return domain.Refuse(domain.NotFound, "player %s not found: the player never logged in, or last did more than 30 days ago", id)
		}
		s.Keys = s.snapshot.Record.Keys
		s.line, _ = v.PlayerLine(id)
		s.holdings, _ = v.ExplainStuck(id, now)
		s.timers = v.FlowTimers(id, now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	changes, err := d.engine.ChangesOf(ctx, id, playerCommits)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "player", ID: id, Status: s.Phase().String() + ", " + s.snapshot.Presence.String(), Why: whyPlayer(&s, now)}
	playerFacts(x, &s)
	for _, t := range s.timers {
		x.Deadlines = append(x.Deadlines, deadlineOf(&t))
	}
	for _, c := range slices.Backward(changes) {
		x.moment(c.At, c.Cause, changeInWords(&c))
	}
	return x.sorted(), nil
}

// whyPlayer summarizes for operators where the player is, for how long, and what ends that state.
func whyPlayer(s *standing, now domain.Time) string {
	text := map[flow.Phase]string{
		flow.Idle: "The player is in no party, no search and no game.", flow.InParty: "The player is in a party.", flow.Matchmaking: "The player's party searches for a match.",
		flow.InGameWithParty: "The player is in a game.", flow.InGame: "The player is in a game, without a party.",
	}[s.Phase()]
	if s.line.Since != 0 {
		text = strings.TrimSuffix(text, ".") + ", unchanged for " + now.Sub(s.line.Since).Round(time.Second).String() + "."
	}
	for _, h := range s.holdings {
		switch {
		case h.Key == "BANNED":
			text += " The player is banned until an operator lifts the ban."
			continue
		case h.Ends == "":
			text += " " + h.Key + " (" + h.Status + ") ends only by a call of a player, a game server or an operator."
			continue
		}
		text += " " + h.Key
		if h.Status != "" {
			text += " (" + h.Status + ")"
		}
		text += " ends by " + h.Ends
		if h.Until != 0 {
			text += " in " + max(h.Until.Sub(now), 0).Round(time.Second).String()
		}
		text += "."
	}
	if g := s.snapshot.Game; g != nil && g.Status == flow.InstancePending && g.Placement != "" {
		text += " The game has no host yet: muster explain placement " + g.Placement + " says why."
	}
	return text
}

func playerFacts(x *Explanation, s *standing) {
	p := &s.snapshot
	if s.line.Since != 0 {
		x.fact("unchanged since", clock(s.line.Since))
	}
	x.fact("revision", strconv.FormatUint(p.Record.Rev, 10))
	if !p.Login.ID.IsZero() {
		x.fact("login session", p.Login.ID.String()+" on "+cmp.Or(p.Login.Device, "an unnamed device")+", since "+clock(p.Login.Created))
	} else {
		x.fact("login session", "none")
	}
	if p.Party != nil {
		partyFacts(x, p.Party)
	}
	if g := p.Game; g != nil {
		x.fact("game instance", g.ID.String()+" "+g.Status.String()+", reconnect "+g.Rules.Reconnect.String())
		x.fact("game session", g.Game)
		x.fact("placement", g.Placement)
		m := &g.Membership
		x.fact("membership", membershipInWords(m))
		if s.line.HostLost {
			x.fact("host", "suspected to be lost")
		}
	}
	if l := p.LastGame; l != nil {
		x.fact("last game", l.Instance.String()+" until "+clock(l.Ended)+": "+l.Membership.String())
	}
	for _, lock := range p.Locks {
		x.fact("lock", fmt.Sprintf("%s, level %d, until %s", lock.Kind, lock.Step(), clock(lock.Until)))
	}
	for _, f := range p.Foreign {
		x.fact("other player session", f.ID.String()+" "+f.Status.String()+" in "+string(f.GameID))
	}
}

func partyFacts(x *Explanation, p *flow.PartyView) {
	x.fact("party", p.ID.String())
	for i, m := range p.Members {
		who := p.People[i]
		words := []string{m.Player}
		for _, is := range []struct {
			so   bool
			word string
		}{{m.Leader, "leads"}, {m.Ready, "ready"}, {!who.Online, "offline since " + clock(who.OfflineSince)}} {
			if is.so {
				words = append(words, is.word)
			}
		}
		x.fact("member", strings.Join(append(words, who.Phase.String()), ", "))
	}
	if s := p.Search; s != nil {
		x.fact("ticket", s.Ticket.String()+" in queue "+s.Queue+": "+s.Status.String())
		x.fact("held by", strings.Join(s.HeldBy, ", "))
		x.fact("has accepted", strings.Join(s.Accepted, ", "))
		x.fact("has not answered", strings.Join(s.Pending, ", "))
	}
}

func membershipInWords(m *flow.Membership) string {
	text := fmt.Sprintf("%s, attempt %d", m.Status, m.Attempt)
	switch m.Disconnects {
	case 0:
		return text
	case 1:
		return text + ", lost the connection once"
	}
	return text + fmt.Sprintf(", lost the connection %d times", m.Disconnects)
}

func changeInWords(c *flow.Change) string {
	text := c.Keys.Phase().String() + ", by " + c.By.String()
	if !c.Keys.Game.IsZero() {
		text += ", " + c.Keys.Game.String()
	}
	if !c.Keys.Ticket.IsZero() {
		text += ", " + c.Keys.Ticket.String()
	}
	return text
}

func deadlineOf(t *inspection.Timer) Deadline {
	x := Deadline{Kind: t.Kind, Of: t.Of, Then: t.Then}
	if t.Left != 0 {
		x.Left = t.Left.Round(time.Second).String()
	} else {
		x.At = new(t.Until.Std())
	}
	return x
}
