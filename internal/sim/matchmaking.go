package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Configurations change between these rule sets, which differ in a team and in the type of an attribute, so that tickets of one may not
// fit the other.
var ruleSetBodies = []string{
	`{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":5}],
	"teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":0,"maxPlayers":2}]}`,
	`{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"string"}],
	"teams":[{"name":"red","minPlayers":1,"maxPlayers":3},{"name":"green","minPlayers":0,"maxPlayers":2}]}`,
}

var matchTeams = []string{"red", "blue", "green"}

func (w *Wishes) ruleSetName() string { return fmt.Sprint("rules-", w.chance.IntN(len(ruleSetBodies))) }

func (w *Wishes) matchmakerName() string { return fmt.Sprint("matchmaker-", w.chance.IntN(3)) }

func createRuleSet(w *Wishes, _ *cell.View) kernel.Command {
	at := w.chance.IntN(len(ruleSetBodies))
	rules, problems := ruleset.Parse(ruleSetBodies[at])
	if len(problems) > 0 {
		panic(problems[0].String())
	}
	return &matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: fmt.Sprint("rules-", at), Region: "us-east-1", Body: ruleSetBodies[at]}, Compiled: rules}
}

func deleteRuleSet(w *Wishes, _ *cell.View) kernel.Command {
	return &matchmaking.DeleteRuleSet{Name: w.ruleSetName()}
}

func createMatchmaker(w *Wishes, _ *cell.View) kernel.Command {
	x := matchmaking.Configuration{
		Name: w.matchmakerName(), Region: "us-east-1", Account: "1", RuleSet: w.ruleSetName(),
		RequestTimeout:     time.Duration(1+w.chance.IntN(120)) * time.Second,
		AcceptanceRequired: w.oneIn(2), AcceptanceTimeout: time.Duration(1+w.chance.IntN(30)) * time.Second,
		Standalone: w.oneIn(3), AdditionalPlayers: int32(w.chance.IntN(2)),
		NotificationTarget: topics[w.chance.IntN(len(topics))], CustomEventData: "season",
	}
	if !x.Standalone {
		x.Queues, x.AutoBackfill = []string{w.queueName()}, !w.oneIn(3)
	}
	for _, tag := range []keyvalue.Pair{
		{Key: matchmaking.PlacementTimeoutTag, Value: matchmaking.Fail}, {Key: matchmaking.PlacementFailureTag, Value: matchmaking.Requeue},
		{Key: matchmaking.BackfillLeaversTag, Value: "true"}, {Key: matchmaking.SilentCancelTag, Value: "true"},
	} {
		if w.oneIn(3) {
			x.Tags = append(x.Tags, tag)
		}
	}
	return &matchmaking.CreateConfiguration{Configuration: x}
}

func updateMatchmaker(w *Wishes, _ *cell.View) kernel.Command {
	cmd := &matchmaking.UpdateConfiguration{Name: w.matchmakerName()}
	switch w.chance.IntN(4) {
	case 0:
		cmd.RuleSet = new(w.ruleSetName())
	case 1:
		cmd.AcceptanceRequired = new(w.oneIn(2))
	case 2:
		cmd.RequestTimeout = new(time.Duration(1+w.chance.IntN(60)) * time.Second)
	case 3:
		cmd.Queues = &[]string{w.queueName()}
	}
	return cmd
}

func deleteMatchmaker(w *Wishes, _ *cell.View) kernel.Command {
	if !w.oneIn(3) {
		return nil
	}
	return &matchmaking.DeleteConfiguration{Name: w.matchmakerName()}
}

// matchPlayers draws from few players, some of them with attributes of either type.
func (w *Wishes) matchPlayers(most int) []matchmaking.Player {
	players := make([]matchmaking.Player, 1+w.chance.IntN(most))
	for i := range players {
		players[i].ID = fmt.Sprint("player-", w.chance.IntN(30))
		switch w.chance.IntN(4) {
		case 0:
			players[i].Attributes = []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: float64(w.chance.IntN(100))}}}
		case 1:
			players[i].Attributes = []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.String, Text: "good"}}}
		}
		if w.oneIn(3) {
			players[i].Latencies = []matchmaking.Latency{{Region: w.locationName(), Milliseconds: int32(1 + w.chance.IntN(100))}}
		}
	}
	return players
}

// ticketID returns a new id most of the time, else a used one.
func (w *Wishes) ticketID() string {
	if w.oneIn(8) {
		return fmt.Sprint("ticket-", w.chance.IntN(int(1+w.made/50)))
	}
	return fmt.Sprint("ticket-", w.number())
}

func startMatchmaking(w *Wishes, _ *cell.View) kernel.Command {
	return &matchmaking.StartMatchmaking{Configuration: w.matchmakerName(), ID: w.ticketID(), Chosen: true, Players: w.matchPlayers(2)}
}

func startBackfill(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	cmd := &matchmaking.StartMatchBackfill{Configuration: w.matchmakerName(), ID: w.ticketID(), Chosen: true, Players: w.matchPlayers(2), Game: string(g.ID)}
	for i := range cmd.Players {
		cmd.Players[i].Team = matchTeams[w.chance.IntN(2)]
	}
	return cmd
}

// waitingTickets returns all waiting tickets in random order.
func (w *Wishes) waitingTickets(v *cell.View) []matchmaking.Ticket {
	all, _ := v.WaitingTickets(0, 1<<20)
	w.chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (w *Wishes) ticketKey(t *matchmaking.Ticket) matchmaking.TicketKey {
	key := matchmaking.TicketKey{No: t.No, Generation: t.Generation}
	if w.oneIn(20) {
		key.Generation-- // as if it had been read too long ago
	}
	return key
}

func beginSearch(w *Wishes, v *cell.View) kernel.Command {
	cmd := &matchmaking.BeginSearch{}
	for _, t := range w.waitingTickets(v) {
		cmd.Tickets = append(cmd.Tickets, w.ticketKey(&t))
	}
	return cmd
}

func failTickets(w *Wishes, v *cell.View) kernel.Command {
	cmd := &matchmaking.FailTickets{}
	for _, t := range w.waitingTickets(v) {
		cmd.Tickets = append(cmd.Tickets, w.ticketKey(&t))
	}
	return cmd
}

// proposeMatches combines waiting tickets whether they fit or not, because the matcher judges that, not the core.
func proposeMatches(w *Wishes, v *cell.View) kernel.Command {
	waiting := w.waitingTickets(v)
	if len(waiting) == 0 {
		return nil
	}
	if cmd := proposeBackfill(w, v, waiting); cmd != nil && !w.oneIn(3) {
		return cmd
	}
	c, ok := v.Configuration(waiting[0].Configuration)
	if !ok {
		return nil
	}
	cmd := &matchmaking.ProposeMatches{Configuration: c.Name, Version: c.Version}
	if w.oneIn(20) {
		cmd.Version--
	}
	for range 1 + w.chance.IntN(2) {
		p := matchmaking.Proposal{ID: w.uuid(), PlayersMax: int32(3 + w.chance.IntN(8))}
		for range 1 + w.chance.IntN(3) {
			t := &waiting[w.chance.IntN(len(waiting))]
			x := matchmaking.ProposedTicket{TicketKey: w.ticketKey(t), Team: matchTeams[w.chance.IntN(2)]}
			if t.Backfill {
				x.Team = ""
			}
			p.Tickets = append(p.Tickets, x)
		}
		cmd.Proposals = append(cmd.Proposals, p)
	}
	return cmd
}

// proposeBackfill combines a backfill ticket with a new one of its configuration, if there are any.
func proposeBackfill(w *Wishes, v *cell.View, waiting []matchmaking.Ticket) kernel.Command {
	for i := range waiting {
		for j := range waiting {
			more, alone := &waiting[i], &waiting[j]
			c, ok := v.Configuration(more.Configuration)
			if !ok || !more.Backfill || alone.Backfill || alone.Configuration != more.Configuration {
				continue
			}
			return &matchmaking.ProposeMatches{Configuration: c.Name, Version: c.Version, Proposals: []matchmaking.Proposal{{
				ID: w.uuid(), PlayersMax: 4,
				Tickets: []matchmaking.ProposedTicket{{TicketKey: w.ticketKey(more)}, {TicketKey: w.ticketKey(alone), Team: matchTeams[w.chance.IntN(2)]}},
			}}}
		}
	}
	return nil
}

// someTicket returns the id of a ticket, most of the time of one in memory.
func (w *Wishes) someTicket(v *cell.View, of func(*matchmaking.TicketView) bool) (matchmaking.TicketView, bool) {
	for range 30 {
		if t, ok := v.Ticket(fmt.Sprint("ticket-", 1+w.made-min(w.made, uint64(w.chance.IntN(300))))); ok && of(&t) {
			return t, true
		}
	}
	return matchmaking.TicketView{}, false
}

func acceptMatch(w *Wishes, v *cell.View) kernel.Command {
	t, ok := w.someTicket(v, func(t *matchmaking.TicketView) bool { return t.Status == matchmaking.RequiresAcceptance })
	if !ok {
		return nil
	}
	cmd := &matchmaking.AcceptMatch{Ticket: t.ID, Accept: !w.oneIn(8)}
	for id := range t.EachPlayer {
		if !w.oneIn(6) {
			cmd.Players = append(cmd.Players, id)
		}
	}
	return cmd
}

func stopMatchmaking(w *Wishes, v *cell.View) kernel.Command {
	t, ok := w.someTicket(v, func(*matchmaking.TicketView) bool { return true })
	if !ok {
		return nil
	}
	return &matchmaking.StopMatchmaking{ID: t.ID}
}

func tellHosted(w *Wishes, v *cell.View) kernel.Command {
	g, _ := w.game(v)
	h, _ := v.Hosted(g.ID)
	return &matchmaking.TellHosted{Game: g.ID, Update: h.Updates}
}

// ticketBook follows the events of tickets: each ticket is in one match at a time, and ends once.
type ticketBook struct {
	match map[uint64]string   // of an active ticket; empty: it waits
	seats map[string][]uint64 // of a pending match
}

func (b *ticketBook) event(w *World, event kernel.Event) {
	if b.match == nil {
		b.match, b.seats = map[uint64]string{}, map[string][]uint64{}
	}
	switch e := event.(type) {
	case *matchmaking.TicketStarted:
		b.match[e.Ticket.No] = ""
	case *matchmaking.TicketEnded:
		b.end(w, uint64(e.Ticket))
	case *matchmaking.MatchProposed:
		for _, s := range e.Match.Seats {
			if in, ok := b.match[s.Ticket]; !ok || in != "" {
				w.violated("match %s has ticket number %d, which is in match %q, waits or was ever there: %t", e.Match.ID, s.Ticket, in, ok)
			}
			b.match[s.Ticket] = e.Match.ID
			b.seats[e.Match.ID] = append(b.seats[e.Match.ID], s.Ticket)
		}
	case *matchmaking.MatchDropped:
		for _, no := range e.Returned {
			if b.match[uint64(no)] != e.ID {
				w.violated("match %s gives ticket number %d back, which is in %q", e.ID, no, b.match[uint64(no)])
			}
			b.match[uint64(no)] = ""
		}
		for _, no := range b.seats[e.ID] {
			if b.match[no] == e.ID {
				w.violated("match %s is gone, and ticket number %d is still in it", e.ID, no)
			}
		}
		delete(b.seats, e.ID)
	case *matchmaking.MatchCompleted:
		seats, ok := b.seats[e.ID]
		if !ok {
			w.violated("match %s was completed, and is not on its way", e.ID)
		}
		delete(b.seats, e.ID)
		for _, no := range seats {
			b.end(w, no)
		}
	}
}

func (b *ticketBook) end(w *World, no uint64) {
	if _, ok := b.match[no]; !ok {
		w.violated("ticket number %d ended, and was not active", no)
	}
	delete(b.match, no)
}

// checkTickets checks the waiting tickets: a player has at most one, and none waits beyond its timeout.
func (w *World) checkTickets() {
	v := w.node.seq.Cell().View()
	waiting, _ := v.WaitingTickets(0, 1<<20)
	of := map[string]string{}
	for i := range waiting {
		t := &waiting[i]
		for id := range t.EachPlayer {
			if other := of[id]; other != "" {
				w.violated("player %s waits in %s and in %s", id, other, t.ID)
			}
			of[id] = t.ID
		}
		if _, ok := v.Configuration(t.Configuration); !ok {
			w.violated("%s waits in %s, which is gone", t.ID, t.Configuration)
		}
	}
}

// noTicketIsLate is checked directly after a tick had nothing left to do.
func (w *World) noTicketIsLate() {
	v := w.node.seq.Cell().View()
	waiting, _ := v.WaitingTickets(0, 1<<20)
	for i := range waiting {
		if t := &waiting[i]; t.TimeoutAt <= w.time() {
			w.violated("%s waits past its timeout at %v", t.ID, t.TimeoutAt)
		}
	}
}
