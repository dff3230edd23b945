package cell

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// TestInvariantsFindRecordsThatDisagree damages the state where players, hosting and matchmaking refer to the same record.
func TestInvariantsFindRecordsThatDisagree(t *testing.T) {
	instance := func(w *flowWorld, player string) *flow.Instance {
		return w.cell.playerflow.Flow.Instances.Mut(w.member(player).InstanceRef())
	}
	for _, c := range []struct {
		name   string
		enter  func(w *flowWorld)
		damage func(w *flowWorld)
		want   string
	}{
		{"a placement has ended", func(w *flowWorld) { w.play(true, flow.ReconnectOptional, "me") }, func(w *flowWorld) {
			r, _ := w.cell.hosting.Placements.Placement(instance(w, "me").Placement)
			w.cell.hosting.Placements.Placements.Mut(r).Status = placement.TimedOut
		}, "looks for no host"},
		{"a game session is about to end", func(w *flowWorld) { w.play(false, flow.ReconnectOptional, "me") }, func(w *flowWorld) {
			r, _ := w.cell.hosting.Sessions.Game(session.ID(instance(w, "me").Game))
			w.cell.hosting.Sessions.Games.Mut(r).Status = session.Terminating
		}, "its game session TERMINATING"},
		{"a game session is gone", func(w *flowWorld) { w.play(false, flow.ReconnectOptional, "me") }, func(w *flowWorld) {
			instance(w, "me").Game += "x"
		}, "is not live"},
		{"a player session was accepted", func(w *flowWorld) { w.play(false, flow.ReconnectOptional, "me") }, func(w *flowWorld) {
			r, _ := w.cell.hosting.Sessions.PlayerByID(w.member("me").Session)
			w.cell.hosting.Sessions.Players.Mut(r).Status = session.PlayerActive
		}, "membership is RESERVED, its player session ACTIVE"},
		{"a ticket is for another player", func(w *flowWorld) { w.search("me") }, func(w *flowWorld) {
			r, _ := w.cell.playerflow.Flow.Party(w.keys("me").Party)
			p := w.cell.playerflow.Flow.Parties.Mut(r)
			p.Members = append(p.Members, flow.Member{Player: "me"})
		}, "those of its ticket"},
		{"a ticket has another end", func(w *flowWorld) { w.search("me") }, func(w *flowWorld) {
			r, _ := w.cell.matchmaking.Records.Ticket(w.keys("me").Ticket.String())
			x := w.cell.matchmaking.Records.Tickets.Mut(r)
			x.TimeoutAt = x.TimeoutAt.Add(time.Second)
		}, "it searches in duel until"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.online("me")
			c.enter(w)
			w.check()
			before := w.cell
			w.restart() // what is damaged is a copy
			c.damage(w)
			v := w.cell.View()
			var all []string
			for _, x := range v.Audit() {
				all = append(all, x.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("the audit says %q, want something with %q", all, c.want)
			}
			w.cell = before
		})
	}
}
