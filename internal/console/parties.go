package console

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// Bounds of the page of parties.
const (
	partiesPage = 100
	partiesLook = 4096 // parties that one read examines
)

// partyOrders are the orders of parties. Each ranks a party; lower ranks come first.
var partyOrders = []struct {
	Name, Text string
	rank       func(p *flow.Party) int64
}{
	{"oldest", "oldest first", func(p *flow.Party) int64 { return int64(p.Created) }},
	{"newest", "newest first", func(p *flow.Party) int64 { return -int64(p.Created) }},
	{"largest", "most members first", func(p *flow.Party) int64 { return -int64(len(p.Members)) }},
	{"waiting", "longest search first", func(p *flow.Party) int64 {
		if p.Search == nil {
			return math.MaxInt64
		}
		return int64(p.Search.Entered)
	}},
}

// partyPlace is the place of a party in an order.
type partyPlace struct {
	rank int64
	id   flow.PartyID
}

func (a partyPlace) compare(b partyPlace) int {
	if c := cmp.Compare(a.rank, b.rank); c != 0 {
		return c
	}
	return slices.Compare(a.id[:], b.id[:])
}

var partyList = list[inspection.PartyLine]{
	name: "parties", label: "Parties", most: partiesPage, empty: "No party.",
	columns: []column[inspection.PartyLine]{
		{name: "party", head: "Party", value: func(p *inspection.PartyLine) value {
			id := p.ID.String()
			prefix, rest, _ := strings.Cut(id, "-")
			first, _, _ := strings.Cut(rest, "-")
			return shortened(prefix+"-"+first, id, "party/"+id)
		}},
		{name: "state", head: "State", value: func(p *inspection.PartyLine) value { return state(p.State) }},
		{name: "members", head: "Members", value: func(p *inspection.PartyLine) value { return number(len(p.Players)) }},
		{name: "seats", head: "of at most", value: func(p *inspection.PartyLine) value { return number(p.MembersMax) }},
		{name: "online", head: "Online", value: func(p *inspection.PartyLine) value { return number(p.Online) }},
		{name: "ready", head: "Ready", hidden: true, value: func(p *inspection.PartyLine) value { return number(p.Ready) }},
		{name: "leader", head: "Leader", value: func(p *inspection.PartyLine) value { return linked(p.Leader, "player/"+escaped(p.Leader)) }},
		{name: "players", head: "Players", hidden: true, value: func(p *inspection.PartyLine) value { return several(p.Players) }},
		{name: "queue", head: "Queue", value: func(p *inspection.PartyLine) value {
			if p.Queue == "" {
				return words("")
			}
			return linked(p.Queue, objectPath("configuration", p.Queue))
		}},
		{name: "ticket", head: "Ticket", hidden: true, value: func(p *inspection.PartyLine) value {
			if p.Ticket.IsZero() {
				return words("")
			}
			return linked(p.Ticket.String(), "ticket/"+p.Ticket.String())
		}},
		{name: "searches", head: "Searches since", value: func(p *inspection.PartyLine) value { return instant(p.Searches) }},
		{name: "game", head: "Game instance", hidden: true, value: func(p *inspection.PartyLine) value {
			if p.Game.IsZero() {
				return words("")
			}
			return linked(p.Game.String(), "game-instance/"+p.Game.String())
		}},
		{name: "joinable", head: "Joinable", value: func(p *inspection.PartyLine) value { return words(p.Joinability.String()) }},
		{name: "invites", head: "Open invites", hidden: true, value: func(p *inspection.PartyLine) value { return number(p.Invites) }},
		{name: "stale", head: "Shut down at", hidden: true, value: func(p *inspection.PartyLine) value { return instant(p.StaleBy) }},
		{name: "created", head: "Created", value: func(p *inspection.PartyLine) value { return instant(p.Created) }},
	},
	offers: func(p *inspection.PartyLine) []offered { return []offered{eventsOfRow("party", p.ID.String())} },
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]inspection.PartyLine, url.Values, error) {
		f, rank, err := partiesOf(query)
		if err != nil {
			return nil, nil, err
		}
		first := ranking[partyPlace]{most: most, compare: partyPlace.compare}
		if after := query.Get("after"); after != "" {
			id, err := domain.ParseID[flow.PartyID](after)
			if err != nil {
				return nil, nil, domain.Refuse(domain.Invalid, "after is none that a page of this console gave.")
			}
			first.from = &partyPlace{int64(place(query).Created), id}
		}
		// All parties are scanned, in steps between which commands can run.
		for at, begun := flow.PartyRef(0), false; at != 0 || !begun; begun = true {
			err := d.engine.Read(r.Context(), func(v *cell.View) error {
				at = v.Parties(&f, at, partiesLook, func(p *flow.Party) { first.add(partyPlace{rank(p), p.ID}) })
				return nil
			})
			if err != nil {
				return nil, nil, err
			}
		}
		places, more := first.first()
		var all []inspection.PartyLine
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			for _, p := range places {
				if line, ok := v.PartyLine(p.id); ok { // it may have ended meanwhile
					all = append(all, line)
				}
			}
			return nil
		})
		if err != nil || !more {
			return all, nil, err
		}
		last := places[len(places)-1]
		return all, since(domain.Time(last.rank), last.id.String()), nil
	},
}

// partiesOf parses from a query which parties it wants, and in which order.
func partiesOf(query url.Values) (f inspection.PartyFilter, rank func(*flow.Party) int64, err error) {
	f = inspection.PartyFilter{State: query.Get("state"), Queue: query.Get("queue"), Player: strings.ToLower(strings.TrimSpace(query.Get("player")))}
	if states := inspection.PartyStates(); f.State != "" && !slices.Contains(states, f.State) {
		return f, nil, domain.Refuse(domain.Invalid, "state is %.40q; want one of %s.", f.State, strings.Join(states, ", "))
	}
	name := cmp.Or(query.Get("order"), partyOrders[0].Name)
	for _, o := range partyOrders {
		if o.Name == name {
			return f, o.rank, nil
		}
	}
	return f, nil, domain.Refuse(domain.Invalid, "order is %.40q; want oldest, newest, largest or waiting.", name)
}

// partiesView is the page of the parties.
type partiesView struct {
	Off                          bool // there is no player flow
	State, Queue, Player, Order  string
	States                       []string
	Queues                       []string
	Orders                       []pick
	Parties, Searching, LoggedIn int
	Table                        *table
}

func (d *Door) parties(r *http.Request, t *table) (*content, error) {
	q := r.URL.Query()
	x := &partiesView{State: q.Get("state"), Queue: q.Get("queue"), Player: q.Get("player"), Order: cmp.Or(q.Get("order"), partyOrders[0].Name), States: inspection.PartyStates(), Table: t}
	for _, o := range partyOrders {
		x.Orders = append(x.Orders, pick{o.Name, o.Text})
	}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		if x.Off = !v.FlowEnabled(); x.Off {
			return nil
		}
		totals := v.FlowTotals()
		x.Parties, x.LoggedIn = totals.Parties, totals.LoggedIn
		for _, q := range v.FlowQueues(domain.TimeOf(d.engine.Now())) {
			x.Queues = append(x.Queues, q.Name)
		}
		return nil
	})
	return &content{Title: "Parties", Section: "parties", page: "parties", Data: x, Command: "muster explain party PARTY"}, err
}

// memberLine is a member of a party.
type memberLine struct {
	Player, DisplayName, ClientVersion string
	Leader, Ready, Online              bool
	Phase                              string
	Joined, OfflineSince               domain.Time
	Latency                            string
}

// partyView is the page of one party.
type partyView struct {
	*explanation
	Line       inspection.PartyLine
	Members    []memberLine
	Regions    []string
	Attributes string // JSON object
	Search     *flow.Search
	Estimate   string // of the search
}

func (d *Door) party(r *http.Request) (*content, error) {
	id := r.PathValue("id")
	c := &content{Title: "Party " + id, Section: "parties", page: "party", Command: "muster explain party " + shellWord(id)}
	off := false
	if err := d.engine.Read(r.Context(), func(v *cell.View) error { off = !v.FlowEnabled(); return nil }); err != nil {
		return nil, err
	}
	if off {
		c.page, c.Data = "parties", &partiesView{Off: true}
		return c, nil
	}
	x := &partyView{}
	var err error
	if x.explanation, err = d.explain(r.Context(), "party", id, false); err != nil {
		return nil, gone(err, "party", id)
	}
	party, err := domain.ParseID[flow.PartyID](x.ID)
	if err != nil {
		return nil, err
	}
	err = d.engine.Read(r.Context(), func(v *cell.View) error {
		p, ok := v.Party(party)
		if !ok {
			return gone(domain.Refuse(domain.NotFound, "Party %s has ended.", x.ID), "party", id)
		}
		x.Line, _ = v.PartyLine(party)
		x.Regions, x.Attributes = slices.Clone(p.Regions), p.Attributes
		if p.Search != nil {
			x.Search = new(*p.Search)
			if s := x.Search; s.EstimateMS > 0 {
				x.Estimate = milliseconds(s.EstimateMS)
			}
		}
		for i, m := range p.Members {
			who := p.People[i]
			x.Members = append(x.Members, memberLine{m.Player, who.DisplayName, who.ClientVersion, m.Leader, m.Ready, who.Online, who.Phase.String(), m.Joined, who.OfflineSince, latencyInWords(who.Latencies)})
		}
		return nil
	})
	x.Facts = nil // the page shows them with links
	c.Title, c.Data = "Party "+x.ID, x
	return c, err
}

// latencyInWords returns the lowest latency of a player, with its region.
func latencyInWords(all []flow.Latency) string {
	if len(all) == 0 {
		return ""
	}
	least := slices.MinFunc(all, func(a, b flow.Latency) int { return cmp.Compare(a.Milliseconds, b.Milliseconds) })
	return strconv.Itoa(int(least.Milliseconds)) + " ms to " + least.Region
}
