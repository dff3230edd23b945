package cell_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// storyHidden lists kinds of events that are not part of the story: trimming of memory, clocks, answers that are kept
// for repeats.
var storyHidden = []string{
	"EventsTrimmed", "FlowCommitted", "PlayerDataWrapped", "PlayersAwaited", "RequestAnswered", "SearchAdvised",
	"SearchAdviceDropped", "FleetEventWritten", "Ticked", "GameSessionMatched", "GameSessionPrompted", "FlowResumed",
}

// printEvents prints the events of one transaction. It does not print OnGameSessionChanged, because every change of a player's keys
// sends one, but checks that it was sent (I9). OnAllowedActionsChanged follows from the rest.
func (s *story) printEvents(events []kernel.Emitted) {
	moved, told := map[string]int{}, map[string]int{}
	for i, e := range events {
		switch e := e.Event.(type) {
		case *playerflow.PresenceChanged:
			if slices.ContainsFunc(events[i+1:], func(later kernel.Emitted) bool {
				x, ok := later.Event.(*playerflow.PresenceChanged)
				return ok && x.Player == e.Player
			}) {
				continue // what follows it in the same transaction says it all
			}
		case *playerflow.PlayerKeysChanged:
			moved[e.Player] = 1
		case *playerflow.PlayersTold:
			if e.Type == flow.OnGameSessionChanged {
				for _, to := range e.To {
					told[to.Player]++
				}
			}
		}
		if text := s.event(e.Event); text != "" {
			s.printf("%s", text)
		}
	}
	for player := range told {
		if moved[player] != told[player] {
			s.t.Errorf("%s: %d times OnGameSessionChanged for %d changes of keys", player, told[player], moved[player])
		}
	}
	for player := range moved {
		if moved[player] != told[player] {
			s.t.Errorf("%s: %d times OnGameSessionChanged for %d changes of keys", player, told[player], moved[player])
		}
	}
}

// changed returns text, unless the same was printed for this record before.
func (s *story) changed(record, text string) string {
	if s.shown[record] == text {
		return ""
	}
	s.shown[record] = text
	if text == "" {
		return ""
	}
	return record + " " + text
}

// event describes an event in words. It returns "" if there is nothing new.
func (s *story) event(e kernel.Event) string {
	switch e := e.(type) {
	case *playerflow.PlayerKeysChanged:
		return fmt.Sprintf("%s is now %s %s", e.Player, e.Keys.Phase(), s.keys(e.Keys))
	case *playerflow.PlayerLoggedIn:
		s.shown[fmt.Sprintf("login %d of %s", e.Login.Epoch, e.Login.Player)] = "is live"
		return fmt.Sprintf("%s logs in, epoch %d", e.Login.Player, e.Login.Epoch)
	case *playerflow.LoginChanged:
		state := map[flow.LoginState]string{flow.LoginLive: "is live", flow.LoginReplaced: "is replaced"}[e.Login.State]
		return s.changed(fmt.Sprintf("login %d of %s", e.Login.Epoch, e.Login.Player), state)
	case *playerflow.LoginRemoved:
		return s.name(domain.UUID(e.ID), "login") + " is removed"
	case *playerflow.PresenceChanged:
		text := "is " + e.Presence.String()
		for _, x := range []struct {
			what string
			by   domain.ContactTime
		}{{"leaves the queue", e.LeaveQueueBy}, {"leaves the party", e.RemoveBy}} {
			if x.by != 0 {
				text += fmt.Sprintf("; %s at %s", x.what, s.by(x.by))
			}
		}
		return s.changed(e.Player, text)
	case *playerflow.PlayersTold:
		var to []string
		for _, x := range e.To {
			to = append(to, x.Player)
		}
		return s.message("tell "+strings.Join(to, ", "), e.Type, e.Body)
	case *playerflow.GameInstanceTold:
		return s.notice(e)
	case *playerflow.PlayerChanged:
		var penalties []string
		for _, p := range e.Penalties {
			penalties = append(penalties, fmt.Sprintf("%s step %d", p.Kind, p.Step())+storyWhen(p.Until != 0, ", locked until "+s.at(p.Until)))
		}
		return s.changed("penalties of "+e.Player, storyWhen(penalties != nil || s.shown["penalties of "+e.Player] != "", "["+strings.Join(penalties, "; ")+"]"))
	case *playerflow.PartyChanged:
		return s.changed(s.name(domain.UUID(e.Party.ID), "party"), s.party(&e.Party))
	case *playerflow.PartyRemoved:
		return s.name(domain.UUID(e.ID), "party") + " ends"
	case *playerflow.InviteChanged:
		x := e.Invite
		text := fmt.Sprintf("from %s to %s into %s, until %s", x.From, x.To, s.name(domain.UUID(x.Party), "party"), s.by(x.ExpireBy))
		if x.Expired {
			text = "has expired"
		}
		return s.changed(s.name(domain.UUID(x.ID), "invite"), text)
	case *playerflow.InviteRemoved:
		return s.name(domain.UUID(e.ID), "invite") + " is removed"
	case *playerflow.GameInstanceChanged:
		x := e.Instance
		text := "is " + x.Status.String() + storyWhen(x.EndReason != 0, " "+x.EndReason.String())
		switch {
		case x.Suspect != 0:
			text += ", host suspect"
		case x.Status == flow.InstancePending:
			text += ", host wanted by " + s.by(x.AllocateBy)
		}
		return s.changed(s.name(domain.UUID(x.ID), "game"), text)
	case *playerflow.MembershipChanged:
		m := e.Membership
		return s.changed(m.Player+" in "+s.name(domain.UUID(m.Instance), "game"), s.membership(&m))
	case *playerflow.MembershipEnded:
		record := e.Player + " in " + s.name(domain.UUID(e.LastGame.Instance), "game")
		delete(s.shown, record)
		return record + " ended " + e.LastGame.Membership.String()
	case *playerflow.FlowQueueChanged:
		return s.changed(e.Queue.Name, storyWhen(e.Queue.Closed, "is closed")+storyWhen(!e.Queue.Closed, "is open"))
	}
	return cmp.Or(s.eventOfHosting(e), s.eventOfMatchmaking(e), s.unknown(e))
}

// unknown returns the name of an event without a description, so that none is overlooked.
func (s *story) unknown(e kernel.Event) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "*")
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch e.(type) {
	case *matchmaking.HostedChanged, *hosting.GameSessionActivated, *hosting.ProcessHealthChanged, *hosting.ProcessConnected, *hosting.ProcessActivated:
		return ""
	}
	if slices.Contains(storyHidden, name) {
		return ""
	}
	return name
}

func (s *story) eventOfHosting(event kernel.Event) string {
	switch e := event.(type) {
	case *hosting.GameSessionCreated:
		s.server[e.ID], s.hosted[e.Process.Process] = e.Process.Process, e.ID
		return fmt.Sprintf("%s gets the game session of %s", e.Process.Process, e.ID)
	case *hosting.GameSessionActivated:
		return s.server[e.ID] + " has an ACTIVE game session"
	case *hosting.GameSessionTerminating:
		return s.server[e.ID] + " has a TERMINATING game session"
	case *hosting.GameSessionEnded:
		return fmt.Sprintf("%s has no game session any more: %s", s.server[e.ID], e.Cause)
	case *hosting.PlayerReserved:
		return fmt.Sprintf("%s is RESERVED for %s until %s", s.name(domain.UUID(e.PlayerSession), "ps"), e.Player, s.by(e.ReserveBy)) + storyWhen(e.Kept, ", on the kept seat")
	case *hosting.PlayerAccepted:
		return s.name(domain.UUID(e.PlayerSession), "ps") + " is ACTIVE"
	case *hosting.PlayerEnded:
		return fmt.Sprintf("%s is %s", s.name(domain.UUID(e.PlayerSession), "ps"), e.Status)
	case *hosting.ProcessConnected:
		return e.Process.Process + " is connected"
	case *hosting.ProcessActivated:
		return e.Process.Process + " is ready"
	case *hosting.ProcessLinkLost:
		return fmt.Sprintf("%s has lost its link; it is lost at %s", e.Process.Process, s.by(e.LostBy))
	case *hosting.ProcessEnded:
		return fmt.Sprintf("%s is %s", e.Process.Process, e.Reason)
	case *hosting.ProcessTerminationAsked:
		return e.Process.Process + " is asked to terminate"
	case *hosting.PlacementStarted:
		return "placement of " + e.Placement.ID + " starts"
	case *hosting.PlacementRetried:
		return "placement of " + e.ID + " tries again"
	case *hosting.PlacementEnded:
		return fmt.Sprintf("placement of %s is %s", e.ID, e.Status)
	case *hosting.Resumed:
		return fmt.Sprintf("the service was down for %s", s.now.Sub(domain.Time(int64(s.now)-e.Downtime)))
	}
	return ""
}

func (s *story) eventOfMatchmaking(event kernel.Event) string {
	switch e := event.(type) {
	case *matchmaking.TicketStarted:
		t := e.Ticket
		name := s.readable(t.ID)
		s.ticket[t.No], s.ticketIDs[name] = name, t.ID
		var players []string
		for _, p := range t.PlayersOf() {
			players = append(players, p.ID+storyWhen(p.Team != "", " in "+p.Team))
		}
		kind := storyWhen(t.Owner == matchmaking.ServiceOwned, "automatic ") + storyWhen(t.Backfill, "backfill ")
		return fmt.Sprintf("%s%s is QUEUED in %s with %s, until %s", kind, name, t.Configuration, strings.Join(players, ", "), s.at(t.TimeoutAt))
	case *matchmaking.TicketsSearching:
		return s.tickets(e.Tickets) + " SEARCHING"
	case *matchmaking.TicketEnded:
		return fmt.Sprintf("%s is %s: %s", s.ticket[uint64(e.Ticket)], e.Status, cmp.Or(e.Reason.Code(), "no reason"))
	case *matchmaking.MatchProposed:
		if id, ok := domain.ParseUUID(e.Match.ID); ok {
			s.name(id, "match")
		}
		var seats []string
		for _, x := range e.Match.Seats {
			seats = append(seats, fmt.Sprintf("%s %s", cmp.Or(x.Team, "backfill"), s.ticket[x.Ticket]))
		}
		return fmt.Sprintf("%s is proposed: %s", e.Match.ID, strings.Join(seats, ", ")) + storyWhen(e.Match.AcceptBy != 0, "; to be accepted by "+s.at(e.Match.AcceptBy))
	case *matchmaking.PlayersAnswered:
		var answers []string
		for _, x := range []byte(e.Answers) {
			answers = append(answers, [...]string{"?", "yes", "no"}[matchmaking.Answer(x)])
		}
		return fmt.Sprintf("%s answers %s", s.ticket[uint64(e.Ticket)], strings.Join(answers, ", "))
	case *matchmaking.MatchAccepted:
		return e.ID + " is accepted"
	case *matchmaking.MatchDropped:
		return e.ID + " is dropped" + storyWhen(len(e.Returned) > 0, "; "+s.tickets(e.Returned)+" SEARCHING again")
	case *matchmaking.MatchCompleted:
		return e.ID + " is COMPLETED"
	case *matchmaking.HostedChanged:
		h := e.Hosted
		return s.changed("the server of "+s.readable(h.Game), storyWhen(h.Updates > 0, fmt.Sprintf("is told of %s: %s, update %d", h.Ticket, h.Why, h.Updates)))
	case *notice.NoticeWritten:
		if m := e.Notice.Match; m != nil {
			var tickets []string
			for _, t := range m.Tickets {
				tickets = append(tickets, t.ID)
			}
			return fmt.Sprintf("notice %s{%s}", m.Type, strings.Join(append(tickets, storyWords(m.Acceptance, m.Reason)...), " "))
		}
		return "notice of placement " + e.Notice.Placement
	}
	return ""
}

func (s *story) tickets(numbers []matchmaking.TicketNo) string {
	var names []string
	for _, no := range numbers {
		names = append(names, s.ticket[uint64(no)])
	}
	return strings.Join(names, ", ") + storyWhen(len(names) == 1, " is") + storyWhen(len(names) != 1, " are")
}

// message describes a player's message, with the parts that a reader needs.
func (s *story) message(to string, kind flow.MessageType, body string) string {
	switch kind {
	case flow.OnGameSessionChanged, flow.OnAllowedActionsChanged, flow.OnSync:
		return ""
	}
	m, err := flow.DecodeMessage(body)
	if err != nil {
		s.t.Fatal(err)
	}
	parts := storyWords(m.Change.String(), m.Reason.String(), m.Player)
	if kind == flow.OnPartyMemberPresence {
		parts = append(parts, storyWhen(m.Online, "ONLINE")+storyWhen(!m.Online, "OFFLINE"))
	}
	if kind == flow.OnPartyInviteResponse {
		parts = append(parts, storyWhen(m.Accepted, "accepted")+storyWhen(!m.Accepted, "declined"))
	}
	if m.Search != nil && kind == flow.OnMatchmakingStatus {
		parts = append(parts, m.Search.Status.String())
		if m.Search.HeldBy != nil {
			parts = append(parts, "by "+strings.Join(m.Search.HeldBy, ","))
		}
	}
	if kind == flow.OnMatchAcceptanceChanged {
		parts = append(parts, fmt.Sprintf("%d accepted, %d pending", m.AcceptedCount, m.PendingCount))
	}
	if m.Status != 0 {
		parts = append(parts, storyWhen(m.OldStatus != 0, m.OldStatus.String()+" to ")+m.Status.String())
	}
	if m.Host != nil {
		parts = append(parts, s.name(domain.UUID(m.Host.Session), "ps"))
	}
	if m.Deadline > s.now {
		parts = append(parts, "until "+s.at(m.Deadline))
	}
	parts = append(parts, storyWords(storyWhen(m.Suspect, "host suspect"), storyWhen(m.Requeued, "requeued"))...)
	return fmt.Sprintf("  %s: %s", to, kind) + storyWhen(len(parts) > 0, "{"+strings.Join(parts, " ")+"}")
}

// notice describes a game server's message.
func (s *story) notice(e *playerflow.GameInstanceTold) string {
	n, err := flow.DecodeNotice(e.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var parts []string
	for _, x := range n.Added {
		parts = append(parts, x.Player)
	}
	parts = append(parts, storyWords(n.Player, n.Ticket, n.Reason)...)
	if !n.Session.IsZero() {
		parts = append(parts, s.name(domain.UUID(n.Session), "ps"))
	}
	if !n.Old.IsZero() {
		parts = append(parts, "for "+s.name(domain.UUID(n.Old), "ps"))
	}
	return fmt.Sprintf("  tell the server of %s: %s{%s}", s.name(domain.UUID(e.Instance), "game"), e.Type, strings.Join(parts, " "))
}

func (s *story) keys(k flow.Keys) string {
	var keys []string
	if !k.Party.IsZero() {
		keys = append(keys, s.name(domain.UUID(k.Party), "party"))
	}
	if !k.Ticket.IsZero() {
		keys = append(keys, s.name(domain.UUID(k.Ticket), "ticket"))
	}
	if !k.Game.IsZero() {
		keys = append(keys, s.name(domain.UUID(k.Game), "game"))
	}
	return "{" + strings.Join(keys, " ") + "}"
}

func (s *story) party(p *flow.Party) string {
	var members []string
	for _, m := range p.Members {
		members = append(members, m.Player+storyWhen(m.Leader, " leads")+storyWhen(m.Ready, " is ready"))
	}
	text := "has " + strings.Join(members, ", ")
	if p.Search != nil {
		text += "; " + s.name(domain.UUID(p.Search.Ticket), "ticket") + " is " + p.Search.Status.String()
	}
	if p.LeaderBy != 0 {
		text += "; another leader at " + s.by(p.LeaderBy)
	}
	return text
}

func (s *story) membership(m *flow.Membership) string {
	text := "is " + m.Status.String()
	if m.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", m.Attempt)
	}
	if !m.Next.IsZero() {
		text += ", " + s.name(domain.UUID(m.Next), "ps") + " may take over"
	}
	if m.HoldBy != 0 {
		text += ", to be back by " + s.by(m.HoldBy)
	}
	return text
}

// printResult prints a command's answer in addition to its events.
func (s *story) printResult(cmd kernel.Command, err error) {
	if err != nil {
		return
	}
	switch cmd := cmd.(type) {
	case *playerflow.GetHostConnectionDetails:
		if cmd.Lost {
			s.printf("refused %s: the seat is lost", flow.GameFull)
			return
		}
		h := cmd.Host
		s.printf("%s gets %s, attempt %d, until %s", cmd.Player, s.name(domain.UUID(h.Session), "ps"), h.Attempt, s.at(h.ReserveBy))
		if h.Suspect {
			s.printf("the host is suspect")
		}
		if cmd.Repeated {
			s.printf("a repeat of the same request")
		}
	case *playerflow.DisconnectMember:
		if cmd.Stale {
			s.printf("stale")
		}
	case *matchmaking.ProposeMatches:
		for _, r := range cmd.Refused {
			if r != nil {
				s.printf("refused %s: %s", r.Reason, r.Detail)
			}
		}
	}
}

// printReplay prints the beginning of a stream: the whole state, or the events that the client has not seen.
func (s *story) printReplay(cmd *playerflow.AttachStream) {
	if cmd.Sync != 0 {
		s.printf("  to %s: OnSync", cmd.Player)
		return
	}
	v := s.cell.View()
	events, _, _ := v.EventsAfter(cmd.Player, cmd.After, 1000)
	for _, e := range events {
		if text := s.message("again to "+cmd.Player, e.Type, e.Body); text != "" && e.Seq <= s.missed[cmd.Player] {
			s.printf("%s", text)
		}
	}
}

// printState prints every player, party, game instance and ticket that has a name in the script.
func (s *story) printState() {
	v := s.cell.View()
	for _, player := range storySorted(s.logins) {
		x := s.look(player)
		text := fmt.Sprintf("%s %s %s %s", player, x.Presence, x.Record.Keys.Phase(), s.keys(x.Record.Keys))
		if x.Game != nil {
			text += " " + strings.TrimPrefix(s.membership(&x.Game.Membership), "is ")
		}
		s.printf("%s", text)
	}
	for n := range s.kinds["party"] {
		name := fmt.Sprint("party", n+1)
		if p, ok := v.Party(flow.PartyID(s.ids[name])); ok {
			s.printf("%s %s", name, s.party(&p.Party))
		}
	}
	for n := range s.kinds["game"] {
		name := fmt.Sprint("game", n+1)
		x, members, ok := v.GameInstance(flow.InstanceID(s.ids[name]))
		if !ok {
			continue
		}
		text := fmt.Sprintf("%s %s%s", name, x.Status, storyWhen(x.EndReason != 0, " "+x.EndReason.String()))
		for _, m := range members {
			text += fmt.Sprintf(", %s %s", m.Player, m.Status)
		}
		for game, server := range s.server {
			if string(game) == x.Game && x.Live() {
				g, _ := v.GameSession(game)
				text += fmt.Sprintf("; %d of %d seats held, %d kept for a return, on %s", g.SeatsHeld, g.PlayersMax, g.SeatsEmpty, server)
			}
		}
		s.printf("%s", text)
	}
	if !s.withFlow {
		for _, no := range storySorted(s.ticket) {
			if t, ok := v.Ticket(s.ticket[no]); ok {
				s.printf("%s %s%s", t.ID, t.Status, storyWhen(t.Reason.Code() != "", " "+t.Reason.Code()))
			}
		}
	}
}

func storyWhen(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

// storyWords removes empty words.
func storyWords(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

func storySorted[K cmp.Ordered, V any](m map[K]V) []K {
	var keys []K
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
