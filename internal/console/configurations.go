package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Bounds of pages of tickets.
const (
	ticketsPage = 100
	ticketsLook = 4096 // tickets examined in one read
	ticketRows  = 10   // oldest tickets, on the page of a configuration
)

// configurationView is the page of a matchmaking configuration.
type configurationView struct {
	matchmaking.Configuration
	Counts     [matchmaking.Placing + 1]int // active tickets by status
	Oldest     time.Duration                // wait of the oldest waiting ticket; 0: none
	Estimate   string                       // estimated wait of a new ticket; empty: unknown
	QueueNames []string                     // in the order of Queues
	Attributes []ruleset.Attribute
	Pool       *pool
	Tickets    *table
	Events     link
}

// Waiting returns the number of tickets in the pool.
func (x *configurationView) Waiting() int {
	return x.Counts[matchmaking.Queued] + x.Counts[matchmaking.Searching]
}

// Accepting returns the number of tickets in matches that await acceptance.
func (x *configurationView) Accepting() int { return x.Counts[matchmaking.RequiresAcceptance] }

// Placing returns the number of tickets in matches that wait for a game session.
func (x *configurationView) Placing() int { return x.Counts[matchmaking.Placing] }

// Mode returns the FlexMatchMode of the API.
func (x *configurationView) Mode() string {
	if x.Standalone {
		return "STANDALONE"
	}
	return "WITH_QUEUE"
}

func (d *Door) configuration(r *http.Request) (*content, error) {
	name, q := r.PathValue("name"), r.URL.Query()
	x := configurationView{Events: eventsLink("configuration", name)}
	var rules *ruleset.RuleSet
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		var ok bool
		if x.Configuration, ok = v.Configuration(name); !ok {
			return gone(domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.128q.", name), "configuration", name)
		}
		rules = v.CompiledRuleSet(x.RuleSet)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, arn := range x.Queues {
		x.QueueNames = append(x.QueueNames, arn[strings.LastIndexByte(arn, '/')+1:])
	}
	now := domain.TimeOf(d.engine.Now())
	all, err := d.openTickets(r, name, func(t *matchmaking.Ticket) { x.Counts[t.Status]++ })
	if err != nil {
		return nil, err
	}
	for i := range all {
		x.Oldest = max(x.Oldest, now.Sub(all[i].Start))
	}
	if rules != nil {
		x.Attributes = rules.Attributes
	}
	if x.Pool, err = poolOf(all, now, x.Attributes, q.Get("attribute"), q.Get("region")); err != nil {
		return nil, err
	}
	key, _, _ := d.session(r)
	short := ticketList
	short.most = ticketRows
	if x.Tickets, err = short.table(d, r, url.Values{}, key.Role); err != nil {
		return nil, err
	}
	x.Tickets.Whole = Prefix + "/matchmaking/" + url.PathEscape(name) + "/tickets"
	return &content{Title: "Matchmaking configuration " + name, Section: "matchmaking", page: "configuration", Data: &x, Command: "aws gamelift describe-matchmaking-configurations --names " + shellWord(name)}, nil
}

// openTickets returns the waiting tickets of a configuration, reduced to what the plots need. all also receives those in matches.
func (d *Door) openTickets(r *http.Request, name string, all func(*matchmaking.Ticket)) (waiting []matchmaking.Ticket, err error) {
	for at, begun := matchmaking.TicketRef(0), false; at != 0 || !begun; begun = true {
		err := d.engine.Read(r.Context(), func(v *cell.View) error {
			at = v.OpenTickets(at, ticketsLook, func(t *matchmaking.Ticket) {
				if t.Configuration != name {
					return
				}
				if all(t); t.Status.Waits() && !t.Backfill {
					waiting = append(waiting, matchmaking.Ticket{Start: t.Start, Roster: t.Roster, Players: t.Players})
				}
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return waiting, nil
}

// ticketPlace is a ticket's position in an order.
type ticketPlace struct {
	rank int64
	id   string
}

func (a ticketPlace) compare(b ticketPlace) int {
	if c := cmp.Compare(a.rank, b.rank); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// ticketOrders are the sort orders of tickets, like partyOrders.
var ticketOrders = []struct {
	Name, Text string
	rank       func(t *matchmaking.Ticket) int64
}{
	{"oldest", "longest wait first", func(t *matchmaking.Ticket) int64 { return int64(t.Start) }},
	{"newest", "newest first", func(t *matchmaking.Ticket) int64 { return -int64(t.Start) }},
	{"largest", "most players first", func(t *matchmaking.Ticket) int64 { return -int64(t.Players) }},
}

// openStatuses are the statuses of active tickets.
var openStatuses = []matchmaking.Status{matchmaking.Queued, matchmaking.Searching, matchmaking.RequiresAcceptance, matchmaking.Placing}

// ticketList lists the active tickets of the configuration named in the path.
var ticketList = list[matchmaking.TicketView]{
	name: "tickets", label: "Tickets", most: ticketsPage, empty: "No ticket.",
	columns: []column[matchmaking.TicketView]{
		{name: "ticket", head: "Ticket", value: func(t *matchmaking.TicketView) value { return linked(t.ID, "ticket/"+escaped(t.ID)) }},
		{name: "status", head: "Status", value: func(t *matchmaking.TicketView) value { return state(t.Status.String()) }},
		{name: "players", head: "Players", value: func(t *matchmaking.TicketView) value { return number(t.Ticket.Players) }},
		{name: "who", head: "Who", value: func(t *matchmaking.TicketView) value {
			var all []string
			for id := range t.EachPlayer {
				all = append(all, id)
			}
			return several(all)
		}},
		{name: "started", head: "Waits since", value: func(t *matchmaking.TicketView) value { return instant(t.Start) }},
		{name: "times-out", head: "Times out", value: func(t *matchmaking.TicketView) value {
			if !t.Status.Waits() {
				return instant(0)
			}
			return instant(t.TimeoutAt)
		}},
		{name: "backfills", head: "Backfill of", hidden: true, value: func(t *matchmaking.TicketView) value {
			if t.Game == "" {
				return words("")
			}
			return linked(t.Game, "game-session/"+escaped(t.Game))
		}},
		{name: "match", head: "Match", hidden: true, value: func(t *matchmaking.TicketView) value {
			if t.Outcome == nil {
				return words("")
			}
			return words(t.Outcome.Match)
		}},
	},
	offers: func(t *matchmaking.TicketView) []offered {
		return []offered{{link: link{"Why it waits", Prefix + "/ticket/" + escaped(t.ID)}}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]matchmaking.TicketView, url.Values, error) {
		name, status, player := r.PathValue("name"), query.Get("status"), strings.TrimSpace(query.Get("player"))
		known := func(s matchmaking.Status) bool { return s.String() == status }
		if status != "" && !slices.ContainsFunc(openStatuses, known) {
			return nil, nil, domain.Refuse(domain.Invalid, "status is %.40q; want one of %v.", status, openStatuses)
		}
		order := cmp.Or(query.Get("order"), ticketOrders[0].Name)
		o := slices.IndexFunc(ticketOrders, func(o struct {
			Name, Text string
			rank       func(t *matchmaking.Ticket) int64
		}) bool {
			return o.Name == order
		})
		if o < 0 {
			return nil, nil, domain.Refuse(domain.Invalid, "order is %.40q; want oldest, newest or largest.", order)
		}
		first := ranking[ticketPlace]{most: most, compare: ticketPlace.compare}
		if id := query.Get("after"); id != "" {
			first.from = &ticketPlace{int64(place(query).Created), id}
		}
		for at, begun := matchmaking.TicketRef(0), false; at != 0 || !begun; begun = true {
			err := d.engine.Read(r.Context(), func(v *cell.View) error {
				at = v.OpenTickets(at, ticketsLook, func(t *matchmaking.Ticket) {
					if t.Configuration == name && (status == "" || t.Status.String() == status) && (player == "" || hasPlayer(t, player)) {
						first.add(ticketPlace{ticketOrders[o].rank(t), t.ID})
					}
				})
				return nil
			})
			if err != nil {
				return nil, nil, err
			}
		}
		places, more := first.first()
		var all []matchmaking.TicketView
		err := d.engine.Read(r.Context(), func(v *cell.View) error {
			if _, ok := v.Configuration(name); !ok {
				return domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.128q.", name)
			}
			for _, p := range places {
				if t, ok := v.Ticket(p.id); ok {
					all = append(all, t)
				}
			}
			return nil
		})
		if err != nil || !more {
			return all, nil, err
		}
		last := places[len(places)-1]
		return all, since(domain.Time(last.rank), last.id), nil
	},
}

func hasPlayer(t *matchmaking.Ticket, part string) (found bool) {
	t.EachPlayer(func(id string) bool {
		found = strings.Contains(strings.ToLower(id), strings.ToLower(part))
		return !found
	})
	return found
}

// ticketsView is the page of the tickets of a configuration.
type ticketsView struct {
	Name, Status, Player, Order string
	Statuses                    []matchmaking.Status
	Orders                      []pick
	Table                       *table
}

func (d *Door) tickets(r *http.Request, t *table) (*content, error) {
	name, q := r.PathValue("name"), r.URL.Query()
	x := &ticketsView{Name: name, Status: q.Get("status"), Player: q.Get("player"), Order: cmp.Or(q.Get("order"), ticketOrders[0].Name), Statuses: openStatuses, Table: t}
	for _, o := range ticketOrders {
		x.Orders = append(x.Orders, pick{o.Name, o.Text})
	}
	return &content{Title: "Tickets of " + name, Section: "matchmaking", page: "tickets", Data: x, Command: "aws gamelift describe-matchmaking --ticket-ids TICKET"}, nil
}

// span formats a duration to the second.
func span(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(d/time.Second)) + " s"
	}
	return d.Round(time.Second).String()
}

// OldestWait returns how long the oldest ticket has waited.
func (x *configurationView) OldestWait() string {
	if x.Waiting() == 0 {
		return "–"
	}
	return span(x.Oldest)
}
