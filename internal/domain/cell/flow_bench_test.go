package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// BenchmarkMatchOf60 commits a match of sixty players of fifteen parties: keys, memberships, placement, and everyone's events.
func BenchmarkMatchOf60(b *testing.B) {
	w := newFlowWorld(b, nil)
	w.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "large", Body: `{"name":"large","ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":1}],
		"algorithm":{"strategy":"balanced","balancedAttribute":"skill","batchingPreference":"largestPopulation"},"teams":[
		{"name":"red","minPlayers":1,"maxPlayers":32},{"name":"blue","minPlayers":1,"maxPlayers":32}]}`}})
	w.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "large", RuleSet: "large", RequestTimeout: time.Minute, Queues: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/q"},
	}})
	for b.Loop() {
		b.StopTimer()
		var tickets []matchmaking.ProposedTicket
		var players []string
		for party := range 15 {
			var members []string
			for i := range 4 {
				members = append(members, fmt.Sprintf("p%d-%d", party, i))
			}
			players = append(players, members...)
			w.party(members...)
			for _, m := range members {
				w.must(&playerflow.SetReady{Caller: w.as(m), Ready: true})
			}
			cmd := &playerflow.EnterMatchmaking{Caller: w.as(members[0]), Ticket: domain.TicketID(w.id()), Queue: "large"}
			w.must(cmd)
			x := w.ticket(domain.TicketID(cmd.Made))
			tickets = append(tickets, matchmaking.ProposedTicket{TicketKey: matchmaking.TicketKey{No: x.No, Generation: x.Generation}, Team: []string{"red", "blue"}[party%2]})
		}
		c, _ := w.cell.matchmaking.Records.Configuration("large")
		cmd := &matchmaking.ProposeMatches{Configuration: "large", Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 64, Tickets: tickets}}}
		b.StartTimer()
		w.must(cmd)
		b.StopTimer()
		if cmd.Refused[0] != nil {
			b.Fatal(cmd.Refused[0])
		}
		w.must(&playerflow.ForceEnd{Instance: w.keys(players[0]).Game})
		for party := range 15 {
			w.must(&playerflow.DisbandParty{Caller: w.as(fmt.Sprintf("p%d-0", party))})
		}
		w.journal = nil
		b.StartTimer()
	}
}

// BenchmarkPartyChange measures the core's cost of a stream of flow changes: SetReady in a party of four, told to all.
func BenchmarkPartyChange(b *testing.B) {
	w := newFlowWorld(b, nil)
	w.party("a", "b", "c", "d")
	ready := false
	for b.Loop() {
		ready = !ready
		w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: ready})
		w.journal = nil
	}
}

// BenchmarkIdlePlayers measures the cost of a player who has logged out.
func BenchmarkIdlePlayers(b *testing.B) {
	w := newFlowWorld(b, nil)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprint("player-", n)
		w.must(&playerflow.Login{Player: id, LoginSessionID: flow.LoginSessionID(w.id()), Token: w.id()})
		w.must(&playerflow.Logout{Caller: playerflow.Caller{Player: id, LoginSessionID: w.cell.playerflow.Flow.Logins.Get(w.player(id).Login()).ID}})
		w.journal = nil
	}
}
