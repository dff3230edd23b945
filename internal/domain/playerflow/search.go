package playerflow

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// mayEnter makes the first checks, in the order of docs/spec/player-flow.md#t1-note-9. again reports that the party is already in this
// queue.
func (t *searches) mayEnter(p *flow.Player, x *flow.Party, inParty bool, queue, named string) (again bool, err error) {
	config := &t.Config
	if !inParty && p.Keys.Game.IsZero() && config.Search.NoSoloParty {
		return false, flow.Refuse(flow.Refusal{Code: flow.NotInParty}, "player %s is in no party", p.ID)
	}
	if !x.Leads(p.ID) {
		return false, flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "player %s does not lead party %s", p.ID, x.ID)
	}
	var playing []flow.PlayerRef
	var away, unready []string
	for _, m := range x.Members {
		r, _ := t.Flow.Player(m.Player)
		member := t.Flow.Players.Get(r)
		if !member.Keys.Game.IsZero() {
			playing = append(playing, r)
		}
		if !member.Here() {
			away = append(away, m.Player)
		}
		if !m.Ready {
			unready = append(unready, m.Player)
		}
	}
	switch {
	case len(playing) > 0:
		return false, t.inGame(playing...)
	case x.Search != nil && (named == "" || x.Search.Queue == queue):
		return true, nil
	case x.Search != nil:
		return false, flow.Refuse(flow.Refusal{Code: flow.InMatchmaking}, "party %s is in queue %s", x.ID, x.Search.Queue)
	case len(away) > 0:
		return false, flow.Refuse(flow.Refusal{Code: flow.MembersOffline, Players: away}, "offline: %s", strings.Join(away, ", "))
	case len(unready) > 0 && len(x.Members) > 1 && !config.Parties.NoReadyRequired:
		return false, flow.Refuse(flow.Refusal{Code: flow.PlayersNotReady, Players: unready}, "not ready: %s", strings.Join(unready, ", "))
	}
	return false, nil
}

// enterable makes the checks of docs/spec/player-flow.md#t1-note-9 that need the queue, and returns the players as the matchmaker sees them.
func (t *searches) enterable(x *flow.Party, queue string, advice *flow.Advice) (*matchmaking.Configuration, []matchmaking.Player, error) {
	settings, open := t.Config.Queue(queue)
	if err := t.checkVersions(x, settings.ClientVersions); err != nil {
		return nil, nil, err
	}
	c, ok := t.matchmaking.Configuration(queue)
	if !ok || !open || !t.takesParties(c) {
		return nil, nil, flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %q not found", queue)
	}
	if t.Flow.Closed(queue) {
		return nil, nil, flow.Refuse(flow.Refusal{Code: flow.QueueIsClosed}, "queue %s is closed", queue)
	}
	if n, most := len(x.Members), t.partyMax(c, &settings); n > most {
		return nil, nil, flow.Refuse(flow.Refusal{Code: flow.PartyTooLarge}, "party %s has %d members; queue %s takes %d", x.ID, n, queue, most)
	}
	players := t.players(x, t.matchmaking.Compiled(c.RuleSet), advice)
	if err := t.matchmaking.CheckPlayers(c, players); err != nil {
		refusal := flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "%v", err)
		return nil, nil, refusal
	}
	return c, players, nil
}

func (t *searches) checkVersions(x *flow.Party, supported []string) error {
	if len(supported) == 0 {
		supported = t.Config.Parties.SupportedClientVersions
	}
	first := ""
	for _, m := range x.Members {
		v := versionOf(t.member(m.Player))
		switch {
		case len(supported) > 0 && !slices.Contains(supported, v):
			return flow.Refuse(flow.Refusal{Code: flow.ClientVersionUnsupported, Players: []string{m.Player}}, "client version %q of %s is not supported", v, m.Player)
		case first != "" && v != "" && v != first:
			return flow.Refuse(flow.Refusal{Code: flow.PartyVersionMismatch, Players: []string{m.Player}}, "client version %s of %s is not %s", v, m.Player, first)
		case first == "":
			first = v
		}
	}
	return nil
}

// partyMax returns the size of the largest party that a queue accepts, limited by the largest team and the players per ticket.
func (c *State) partyMax(of *matchmaking.Configuration, settings *flow.QueueConfig) int {
	most := matchmaking.PlayersInTicketMax
	if settings.PartyMax > 0 {
		most = min(most, int(settings.PartyMax))
	}
	rules := c.matchmaking.Compiled(of.RuleSet)
	if rules == nil {
		return most
	}
	largest := 0
	for level := range rules.Waits() {
		for _, size := range rules.Level(level).Teams {
			largest = max(largest, int(size.Max))
		}
	}
	return min(most, largest)
}

// checkLocks makes the last check: no member may be locked. The refusal names the lock that ends last, because the party cannot search before.
func (t *searches) checkLocks(x *flow.Party) error {
	var last *flow.Penalty
	var who string
	for _, m := range x.Members {
		if lock := t.lockAt(t.member(m.Player), t.Now); lock != nil && (last == nil || lock.Until > last.Until) {
			last, who = lock, m.Player
		}
	}
	if last == nil {
		return nil
	}
	return flow.Refuse(flow.Refusal{Code: flow.MatchmakingLocked, Players: []string{who}, Lock: last, Until: last.Until},
		"player %s is locked: %s", who, last.Kind)
}

// players returns the members as the matchmaker sees them, with the attributes that the rule set declares. Precedence: the studio's value
// for this search, the studio's for the player, the client's for this search, for the player, for the party.
func (t *searches) players(x *flow.Party, rules *ruleset.RuleSet, advice *flow.Advice) []matchmaking.Player {
	players := make([]matchmaking.Player, len(x.Members))
	studio, search, party := readAttributes(advice.Trusted), readAttributes(advice.Attributes), readAttributes(x.Attributes)
	for i, m := range x.Members {
		profile := profileOf(t.member(m.Player))
		p := matchmaking.Player{ID: m.Player}
		for _, l := range profile.Latencies {
			p.Latencies = append(p.Latencies, matchmaking.Latency{Region: l.Region, Milliseconds: l.Milliseconds})
		}
		if rules != nil {
			p.Attributes = chooseAttributes(rules, readAttributes(advice.Of(m.Player).Trusted), studio,
				readAttributes(profile.Trusted), search, readAttributes(profile.Attributes), party)
		}
		players[i] = p
	}
	return players
}

// begin starts the ticket of a party and gives it to all members.
func (t *searches) begin(r flow.PartyRef, c *matchmaking.Configuration, ticket matchmaking.Ticket) flow.Search {
	if ticket.TimeoutAt == 0 {
		ticket.TimeoutAt = t.Now.Add(t.timeout(c))
	}
	made := *t.matchmaking.Ticket(t.matchmaking.StartTicket(c, ticket))
	p := *t.Flow.Parties.Get(r)
	search := &flow.Search{
		Ticket: ticketID(&made), Queue: c.Name, Entered: made.Start, Expires: made.TimeoutAt, Status: flow.Queued,
	}
	search.EstimateMS = t.estimate(c.Name)
	p.Search = search
	t.Emit(&PartyChanged{p})
	for _, m := range p.Members {
		member, _ := t.Flow.Player(m.Player)
		t.setKeys(member, func(k *flow.Keys) { k.Ticket = search.Ticket })
	}
	t.tellPlayers(flow.OnEnteredMatchmaking, flow.Message{Ticket: search.Ticket, Search: search}, p.Players()...)
	return *search
}

// timeout returns how long a party may search.
func (t *searches) timeout(c *matchmaking.Configuration) time.Duration {
	return cmp.Or(t.Config.Of(c.Name).Search.TicketTimeout, c.RequestTimeout)
}

// ticketID returns the id of a party's ticket in the form that its players see.
func ticketID(x *matchmaking.Ticket) domain.TicketID {
	id, _ := domain.ParseID[domain.TicketID](x.ID) // player flow made the id
	return id
}

// leave ends the search at a member's request. While a match waits for acceptance it counts as a decline.
func (t *searches) leave(r flow.PlayerRef, why flow.Reason) error {
	p := t.Flow.Players.Get(r)
	party, _ := t.Flow.Party(p.Keys.Party)
	x := t.Flow.Parties.Get(party)
	if t.Config.Search.LeaderCancels && !x.Leads(p.ID) {
		return flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "only the leader ends the search of party %s", x.ID)
	}
	t.declines(r, party, func() {
		t.end(party, flow.OnLeftMatchmaking, why, p.ID)
		t.noteLeave(r)
	})
	return nil
}

// declines runs do, which ends the search of a party. While a match waits for acceptance, this counts as a decline; otherwise there would be
// ways to decline without a penalty.
func (t *searches) declines(r flow.PlayerRef, party flow.PartyRef, do func()) {
	search := t.Flow.Parties.Get(party).Search
	do()
	if search != nil && search.Status == flow.RequiresAcceptance {
		t.penalties.add(r, flow.Dodge, flow.InstanceID{}, flow.AcceptDeclined)
	}
}

// noteLeave counts searches ended by a player, and locks a player who enters and leaves repeatedly.
func (t *searches) noteLeave(r flow.PlayerRef) {
	config := &t.Config.Search
	var locked *flow.Penalty
	t.changePlayer(r, func(e *PlayerChanged) {
		most := int(min(config.RequeueCount, flow.LeavesKept))
		e.Left = slide(e.Left, e.Leaves, e.LeavesSince, t.Now, config.RequeueWindow, most)
		e.Leaves, e.LeavesSince = int32(len(e.Left)), e.Left[0]
		if e.RequeueUntil != 0 && e.RequeueUntil.Add(config.RequeueForget) <= t.Now {
			e.RequeueLevel, e.RequeueUntil = 0, 0
		}
		if e.Leaves >= config.RequeueCount {
			lock := min(config.RequeueLock<<min(e.RequeueLevel, 16), config.RequeueLockMax)
			e.RequeueLevel++
			e.RequeueUntil = t.Now.Add(lock)
			locked = &flow.Penalty{Kind: flow.Requeue, Level: e.RequeueLevel, Since: e.LeavesSince, Until: e.RequeueUntil, Reason: flow.Requested}
		}
	})
	if locked != nil { // it applies in every penalty mode
		t.tellPlayers(flow.OnPenaltyApplied, flow.Message{Penalty: locked}, t.Flow.Players.Get(r).ID)
	}
}

// end takes a party out of matchmaking and tells its members why; the ticket ends in the same transaction. A member who ended the search is
// no longer ready; the others keep their readiness.
func (t *searches) end(r flow.PartyRef, told flow.MessageType, why flow.Reason, by string) {
	p := *t.Flow.Parties.Get(r)
	search := *p.Search
	p.Search = nil
	t.Emit(&PartyChanged{p})
	players := p.Players()
	for _, player := range players {
		m, _ := t.Flow.Player(player)
		t.setKeys(m, func(k *flow.Keys) { k.Ticket = domain.TicketID{} })
	}
	t.advices.drop(search.Ticket)
	t.tellPlayers(told, flow.Message{Ticket: search.Ticket, Reason: why, Player: by}, players...)
	if i, ok := p.Member(by); ok && (why == flow.Requested || why == flow.NotReady) && p.Members[i].Ready {
		t.changeParty(r, flow.ReadyChanged, by, func(p *flow.Party) { p.Members[i].Ready = false })
	}
	ticket, ok := t.matchmaking.FindTicket(search.Ticket.String())
	if !ok {
		return
	}
	if x := t.matchmaking.Ticket(ticket); x.Status.Active() && x.Status != matchmaking.Placing {
		t.matchmaking.CancelTicket(ticket, matchmaking.StoppedByRequest)
	}
}

// requeue puts parties of a game instance without a host back into the queue at their original age. It does so for parties that are online,
// have the same members as when they were matched, and have search time left. Search time passes while the placement is pending, but not
// while the service is down. It returns their players, sorted.
func (t *searches) requeue(x *flow.Instance, out []flow.Membership, advices map[domain.TicketID]flow.Advice, down time.Duration) (again []string) {
	c, ok := t.matchmaking.Configuration(x.Queue)
	_, open := t.Config.Queue(x.Queue)
	if !x.Rules.Requeue || !ok || !open || !t.takesParties(c) || t.Flow.Closed(x.Queue) {
		return nil
	}
	var tried []domain.TicketID
	for _, m := range out {
		if m.Ticket.IsZero() || slices.Contains(tried, m.Ticket) { // a member who joined without a search has none to continue
			continue
		}
		tried = append(tried, m.Ticket)
		party, ok := t.Flow.Party(m.Party)
		if !ok || !t.asMatched(party, m.Ticket, out) {
			continue
		}
		by := m.Entered.Add(t.timeout(c))
		if old, ok := t.matchmaking.FindTicket(m.Ticket.String()); ok {
			by = t.matchmaking.Ticket(old).TimeoutAt // moved by downtime before the match
		}
		if by = by.Add(down); by <= t.Now {
			continue
		}
		p := *t.Flow.Parties.Get(party)
		advice := advices[m.Ticket]
		players := t.players(&p, t.matchmaking.Compiled(c.RuleSet), &advice)
		if t.matchmaking.CheckPlayers(c, players) != nil {
			continue
		}
		id := domain.TicketID(t.NewID())
		advice.Ticket = id
		t.advices.keep(advice)
		t.begin(party, c, matchmaking.Ticket{
			ID: id.String(), Owner: matchmaking.PartyOwned, Configuration: c.Name, Players: int32(len(players)), Roster: matchmaking.EncodeRoster(players),
			Holder: t.HolderFor(quota.Players, 0), Start: m.Entered, TimeoutAt: by,
		})
		again = append(again, p.Players()...)
	}
	slices.Sort(again)
	return again
}

// asMatched reports whether a party has the same members as when its ticket was matched, all of them online.
func (t *searches) asMatched(party flow.PartyRef, ticket domain.TicketID, out []flow.Membership) bool {
	p := t.Flow.Parties.Get(party)
	n := 0
	for _, m := range out {
		if m.Ticket != ticket {
			continue
		}
		if _, ok := p.Member(m.Player); !ok || t.member(m.Player).Presence != flow.Online {
			return false
		}
		n++
	}
	return n == len(p.Members) && p.Search == nil
}

// drainStep is how many searches of a closed queue one transaction ends.
const drainStep = 64

// drain ends some of the searches of a closed queue.
func (t *searches) drain(r flow.QueueRef) {
	q := *t.Flow.Queues.Get(r)
	var searching []flow.PartyRef
	t.Flow.SearchingIn(q.Name, domain.TicketID{}, func(party flow.PartyRef) bool {
		searching = append(searching, party)
		return len(searching) < drainStep
	})
	t.Cause = "QueueClosed"
	for _, party := range searching {
		t.end(party, flow.OnMatchmakingFailed, flow.QueueClosed, "")
	}
	if len(searching) < drainStep {
		q.Drained = true
		t.Emit(&FlowQueueChanged{q})
	}
}
