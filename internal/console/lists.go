package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
)

// listPages registers the pages of all lists.
func (d *Door) listPages() {
	listPage(d, "fleets", &fleetList, d.plain(content{Title: "Fleets", Section: "fleets", page: "fleets", Command: "aws gamelift list-fleets"}))
	listPage(d, "fleets/{id}/computes", &computeList, d.inFleet("Computes", "aws gamelift list-compute --fleet-id "))
	listPage(d, "fleets/{id}/processes", &processList, d.inFleet("Server processes", "muster explain fleet "))
	listPage(d, "fleets/{id}/events", &eventList, d.inFleet("Events", "aws gamelift describe-fleet-events --fleet-id "))
	listPage(d, "builds", &buildList, d.plain(content{Title: "Builds", Section: "builds", page: "list", Command: "aws gamelift list-builds"}))
	listPage(d, "builds/{id}", &buildFleetList, d.build)
	listPage(d, "hosts", &hostList, d.plain(content{Title: "Hosts", Section: "hosts", page: "list", Command: "muster hosts"}))
	listPage(d, "game-sessions", &gameSessionList, d.gameSessions)
	listPage(d, "game-sessions/search", &foundGameList, d.searchGames)
	listPage(d, "player-sessions/{player...}", &playerSessionList, d.playerSessions)
	listPage(d, "players-in/{id...}", &playersInGame, d.gamePlayers)
	listPage(d, "parties", &partyList, d.parties)
	listPage(d, "cluster", &memberList, d.clusterPage)
	listPage(d, "aliases", &aliasList, d.plain(content{Title: "Aliases", Section: "aliases", page: "list", Command: "aws gamelift list-aliases"}))
	listPage(d, "queues", &queueList, d.plain(content{Title: "Queues", Section: "queues", page: "queues", Command: "aws gamelift describe-game-session-queues"}))
	listPage(d, "queues/{name}/placements", &pendingList, d.inQueue("Placements that wait in ", "muster events queue "))
	listPage(d, "queues/{name}/ended", &endedPlacements, d.inQueue("Placements that have ended in ", "muster events queue "))
	listPage(d, "matchmaking/{name}/tickets", &ticketList, d.tickets)
	listPage(d, "matchmaking", &configurationList, d.plain(content{Title: "Matchmaking", Section: "matchmaking", page: "matchmaking", Command: "aws gamelift describe-matchmaking-configurations"}))
	listPage(d, "audit", &auditList, d.audit)
	listPage(d, "keys", &keyList, d.plain(content{Title: "Access keys", Section: "keys", page: "keys", Command: "muster keys list"}))
	listPage(d, "policies", &policyList, d.plain(content{Title: "Policies", Section: "policies", page: "policies", Command: "muster policies list"}))
	listPage(d, "people", &signInList, d.people)
	listPage(d, "settings", &settingList, d.plain(content{Title: "Settings", Section: "settings", page: "settings", Command: "muster config"}))
}

// plain returns the build function of a page that shows only a list.
func (*Door) plain(page content) func(*http.Request, *table) (*content, error) {
	return func(_ *http.Request, t *table) (*content, error) {
		c := page
		c.Data = t
		return &c, nil
	}
}

// cut returns the rows of a page, given one row more than fit, and the place after the last one.
func cut[R any](all []R, most int, place func(last *R) url.Values) ([]R, url.Values) {
	if len(all) <= most {
		return all, nil
	}
	return all[:most], place(&all[most-1])
}

// after returns the place of a row in a list that is ordered by name.
func after(id string) url.Values { return url.Values{"after": {id}} }

// since returns the place of a row in a list that is ordered by creation time.
func since(created domain.Time, id string) url.Values {
	return url.Values{"after": {id}, "at": {strconv.FormatInt(int64(created), 10)}}
}

// place parses the parameters of since. Without them it returns zero, which is before the first row.
func place(query url.Values) catalog.Place {
	at, err := strconv.ParseInt(query.Get("at"), 10, 64)
	if err != nil {
		return catalog.Place{}
	}
	return catalog.Place{Created: domain.Time(at), ID: query.Get("after")}
}

type queueRow struct {
	placement.Queue
	Waiting int // placements
}

var queueList = list[queueRow]{
	name: "queues", label: "Queues", most: 200, empty: "There is no queue.",
	columns: []column[queueRow]{
		{name: "name", head: "Queue", value: func(q *queueRow) value { return linked(q.Name, objectPath("queue", q.Name)) }},
		{name: "destinations", head: "Destinations", value: func(q *queueRow) value { return several(q.Destinations) }},
		{name: "waiting", head: "Placements that wait", value: func(q *queueRow) value { return number(q.Waiting) }},
		{name: "timeout", head: "Time-out", value: func(q *queueRow) value { return lasting(q.Timeout) }},
		{name: "locations", head: "Allowed locations", hidden: true, value: func(q *queueRow) value { return several(q.AllowedLocations) }},
		{name: "location-order", head: "Location order", hidden: true, value: func(q *queueRow) value { return several(q.LocationOrder) }},
		{name: "notifies", head: "Notifies", hidden: true, value: func(q *queueRow) value { return words(q.NotificationTarget) }},
		{name: "created", head: "Created", value: func(q *queueRow) value { return instant(q.Created) }},
	},
	offers: func(q *queueRow) []offered {
		return []offered{metricsOf("queues", q.Name), eventsOfRow("queue", q.Name), {action: "change-queue", id: q.Name}, {action: "delete-queue", id: q.Name}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []queueRow, next url.Values, err error) {
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			page, behind := cut(v.Queues(query.Get("after"), most+1), most, func(q *placement.Queue) url.Values { return after(q.Name) })
			for _, q := range page {
				all = append(all, queueRow{q, v.QueueDepth(q.Name).Placements})
			}
			next = behind
			return nil
		})
		return all, next, err
	},
}

// metricsOf returns a link to the graphs of a queue or a matchmaking configuration.
func metricsOf(kind, name string) offered {
	return offered{link: link{"Metrics", Prefix + "/" + kind + "/" + url.PathEscape(name) + "/metrics"}}
}

type configurationRow struct {
	matchmaking.Configuration
	Active int // tickets
}

var configurationList = list[configurationRow]{
	name: "matchmaking-configurations", label: "Matchmaking configurations", most: 200, empty: "There is no matchmaking configuration.",
	columns: []column[configurationRow]{
		{name: "name", head: "Configuration", value: func(c *configurationRow) value { return linked(c.Name, objectPath("configuration", c.Name)) }},
		{name: "rule-set", head: "Rule set", value: func(c *configurationRow) value {
			return linked(c.RuleSet, "do/create-rule-set?from="+url.QueryEscape(c.RuleSet))
		}},
		{name: "mode", head: "Mode", value: func(c *configurationRow) value {
			if c.Standalone {
				return words("STANDALONE")
			}
			return words("WITH_QUEUE")
		}},
		{name: "active-tickets", head: "Active tickets", value: func(c *configurationRow) value { return number(c.Active) }},
		{name: "timeout", head: "Time-out", value: func(c *configurationRow) value { return lasting(c.RequestTimeout) }},
		{name: "acceptance", head: "Acceptance", value: func(c *configurationRow) value {
			if !c.AcceptanceRequired {
				return words("not required")
			}
			return words("within " + c.AcceptanceTimeout.String())
		}},
		{name: "queues", head: "Queues", hidden: true, value: func(c *configurationRow) value { return several(c.Queues) }},
		{name: "additional-players", head: "Additional players", hidden: true, value: func(c *configurationRow) value { return number(c.AdditionalPlayers) }},
		{name: "description", head: "Description", hidden: true, value: func(c *configurationRow) value { return words(c.Description) }},
		{name: "created", head: "Created", value: func(c *configurationRow) value { return instant(c.Created) }},
	},
	offers: func(c *configurationRow) []offered {
		return []offered{metricsOf("matchmaking", c.Name), eventsOfRow("configuration", c.Name)}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []configurationRow, next url.Values, err error) {
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			page, behind := cut(v.Configurations(query.Get("after"), "", most+1), most, func(c *matchmaking.Configuration) url.Values { return after(c.Name) })
			for _, c := range page {
				all = append(all, configurationRow{c, v.TicketCounts(c.Name).Active})
			}
			next = behind
			return nil
		})
		return all, next, err
	},
}
