package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// Bounds of pages of placements.
const (
	placementsPage = 100
	placementRows  = 10 // of those that wait, on the page of a queue
)

// destinationLine is a destination of a queue.
type destinationLine struct {
	ARN, Text, Link string
	Fleet           string // to which it leads; empty: none
	FleetName       string
	Free            int32  // server processes in the queue's locations
	Capacity        string // in words
	Problem         string // why it leads nowhere; empty: there is no problem
}

// queueView is the page of a queue.
type queueView struct {
	placement.Queue
	Waiting      int
	Average      string // wait of those
	Why, Next    string // why the oldest placement finds no place, and what to do; empty: no such placement
	WhyPlacement string
	Destinations []destinationLine
	Policies     []string
	Priorities   []string
	Ended        string // URL of the ended placements
	Placements   *table
	Events       link
}

// criteria are the API's names.
var criteria = map[placement.Criterion]string{placement.ByLatency: "LATENCY", placement.ByCost: "COST", placement.ByDestination: "DESTINATION", placement.ByLocation: "LOCATION"}

func (d *Door) queue(r *http.Request) (*content, error) {
	name := r.PathValue("name")
	x := queueView{Events: eventsLink("queue", name), Ended: Prefix + "/queues/" + url.PathEscape(name) + "/ended"}
	now := domain.TimeOf(d.engine.Now())
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		var ok bool
		if x.Queue, ok = v.Queue(name); !ok {
			return gone(domain.Refuse(domain.NotFound, "There is no queue %.128q.", name), "queue", name)
		}
		depth := v.QueueDepth(name)
		x.Waiting, x.Average = depth.Placements, span(depth.AverageWait(now))
		for _, arn := range x.Queue.Destinations {
			x.Destinations = append(x.Destinations, destinationOf(v, &x.Queue, arn))
		}
		for _, p := range v.PendingIn(name, 3) {
			if x.Why, x.Next = attention.Nowhere(v, &x.Queue, &p, now); x.Why != "" {
				x.WhyPlacement = p.ID
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, p := range x.LatencyPolicies {
		text := fmt.Sprintf("at most %d ms", p.Cap)
		if p.Duration > 0 {
			text += " for " + p.Duration.String()
		} else if i > 0 {
			text += " from then on"
		}
		x.Policies = append(x.Policies, text)
	}
	for _, c := range x.PriorityOrder {
		x.Priorities = append(x.Priorities, criteria[c])
	}
	key, _, _ := d.session(r)
	short := pendingList
	short.most = placementRows
	if x.Placements, err = short.table(d, r, url.Values{}, key.Role); err != nil {
		return nil, err
	}
	x.Placements.Whole = Prefix + "/queues/" + url.PathEscape(name) + "/placements"
	return &content{Title: "Queue " + name, Section: "queues", page: "queue", Data: &x, Command: "aws gamelift describe-game-session-queues --names " + shellWord(name)}, nil
}

// destinationOf returns where a destination leads and what is free there.
func destinationOf(v *cell.View, q *placement.Queue, arn string) destinationLine {
	kind, id, _ := strings.Cut(arn[strings.LastIndexByte(arn, ':')+1:], "/")
	x := destinationLine{ARN: arn, Text: id, Fleet: id, Link: "fleets/" + escaped(id)}
	if kind == "alias" {
		a, ok := v.Alias(id)
		x.Text, x.Link, x.Fleet = cmp.Or(a.Name, id), "aliases#"+escaped(id), a.Fleet
		switch {
		case !ok:
			x.Problem = "the alias is gone"
			return x
		case a.Terminal:
			x.Problem = "the alias is paused: " + a.Message
			return x
		}
	}
	f, ok := v.Fleet(x.Fleet)
	if !ok {
		x.Problem, x.Fleet = "the fleet is gone", ""
		return x
	}
	x.FleetName = cmp.Or(f.Name, f.ID)
	var all hosting.PlaceCounts
	looked := 0
	for _, p := range v.Places(f.ID) {
		if len(q.AllowedLocations) > 0 && !slices.Contains(q.AllowedLocations, p.Location) {
			continue
		}
		all.Hosts.Add(&p.Hosts)
		looked++
	}
	x.Free = all.Hosts.Idle
	if x.Capacity = hosting.Capacity(&all.Hosts, "there"); looked == 0 {
		x.Problem = "it has no location that the queue allows"
	}
	return x
}

// placementColumns returns the columns of lists of placements.
func placementColumns(hidden ...string) []column[placement.Placement] {
	all := []column[placement.Placement]{
		{name: "placement", head: "Placement", value: func(p *placement.Placement) value { return linked(p.ID, "placement/"+escaped(p.ID)) }},
		{name: "status", head: "Status", value: func(p *placement.Placement) value { return state(p.Status.String()) }},
		{name: "players", head: "Players", value: func(p *placement.Placement) value { return number(len(p.Players)) }},
		{name: "seats", head: "Seats", value: func(p *placement.Placement) value { return number(p.PlayersMax) }},
		{name: "started", head: "Started", value: func(p *placement.Placement) value { return instant(p.Start) }},
		{name: "times-out", head: "Times out", value: func(p *placement.Placement) value { return instant(p.TimeoutAt) }},
		{name: "ended", head: "Ended", value: func(p *placement.Placement) value { return instant(p.End) }},
		{name: "took", head: "Took", value: func(p *placement.Placement) value {
			if p.End == 0 {
				return words("")
			}
			return words(milliseconds(p.End.Sub(p.Start).Milliseconds()))
		}},
		{name: "game-session", head: "Game session", value: func(p *placement.Placement) value {
			if p.Game == "" {
				return words("")
			}
			return shortened(tail(session.ID(p.Game)), p.Game, "game-session/"+escaped(p.Game))
		}},
		{name: "location", head: "Location", value: func(p *placement.Placement) value { return words(p.Location) }},
		{name: "name", head: "Name", value: func(p *placement.Placement) value { return words(p.Name) }},
	}
	for i := range all {
		all[i].hidden = slices.Contains(hidden, all[i].name)
	}
	return all
}

// pendingList lists the waiting placements of the queue in the path, the oldest first.
var pendingList = list[placement.Placement]{
	name: "placements", label: "Placements that wait", most: placementsPage, empty: "No placement waits.",
	columns: placementColumns("ended", "took", "location", "name"),
	offers: func(p *placement.Placement) []offered {
		return []offered{{link: link{"Why it waits", Prefix + "/placement/" + escaped(p.ID)}}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []placement.Placement, next url.Values, err error) {
		name := r.PathValue("name")
		no, _ := strconv.ParseUint(query.Get("no"), 10, 64) // 0: all that started at that instant
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			if _, ok := v.Queue(name); !ok {
				return domain.Refuse(domain.NotFound, "There is no queue %.128q.", name)
			}
			all, next = cut(v.PendingAfter(name, place(query).Created, no, most+1), most, func(p *placement.Placement) url.Values {
				return with(since(p.Start, p.ID), url.Values{"no": {strconv.FormatUint(p.No, 10)}})
			})
			return nil
		})
		return all, next, err
	},
}

// endedPlacements lists the ended placements of the queue in the path, the latest first. A page never splits an instant, so it may have more rows
// than requested, or fewer although more follow.
var endedPlacements = list[placement.Placement]{
	name: "ended-placements", label: "Placements that have ended", most: placementsPage, empty: "No placement has ended.",
	columns: placementColumns("times-out", "name"),
	offers:  func(p *placement.Placement) []offered { return []offered{eventsOfRow("placement", p.ID)} },
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]placement.Placement, url.Values, error) {
		until := domain.TimeOf(d.engine.Now())
		if text := query.Get("until"); text != "" {
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, nil, domain.Refuse(domain.Invalid, "until is none that a page of this console gave.")
			}
			until = min(until, domain.Time(at))
		}
		x, err := engine.PlacementsUntil(r.Context(), d.engine, r.PathValue("name"), until, most)
		if err != nil {
			return nil, nil, err
		}
		all := slices.DeleteFunc(x.All, func(p placement.Placement) bool { return p.End < x.Since })
		if len(all) > most { // keep the placements of the last instant together
			last := all[most-1].End
			end := most
			for end < len(all) && all[end].End == last {
				end++
			}
			if end < len(all) {
				return all[:end], url.Values{"until": {strconv.FormatInt(int64(last)-1, 10)}}, nil
			}
		}
		if x.Since == 0 {
			return all, nil, nil
		}
		return all, url.Values{"until": {strconv.FormatInt(int64(x.Since)-1, 10)}}, nil
	},
}

// inQueue returns the build function of a page that lists the placements of a queue.
func (d *Door) inQueue(title, command string) func(*http.Request, *table) (*content, error) {
	return func(r *http.Request, t *table) (*content, error) {
		name := r.PathValue("name")
		if t.Next != "" && len(t.Rows) == 0 {
			t.Empty = "No placements so far. The next page goes further back."
		}
		return &content{Title: title + name, Section: "queues", page: "list-with-back", Command: command + shellWord(name), Data: &listWithBack{t, link{"Queue " + name, Prefix + "/queues/" + url.PathEscape(name)}}}, nil
	}
}
