package console

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// Bounds of pages of events; the operators' API returns at most feedMost at once.
const (
	eventsPage = 50
	feedMost   = 200
)

// feed is a page of the events of an object and its surroundings, as the operators' API answers.
type feed struct {
	Entries []feedEntry
	Next    string
	LeftOut []string
}

type feedEntry struct {
	At                                 time.Time
	What, Detail, Kind, ID, By, Reason string
	Audit                              uint64
}

type eventsView struct {
	Since, Until, What, Of string
	Kinds                  []string
	Problem                string // with a time that cannot be parsed
	LeftOut                []string
	Back                   link
	Table                  *table
}

// eventsOf shows the events of an object, page by page.
func (d *Door) eventsOf(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	var leftOut []string
	l := feedList(&leftOut)
	l.serve(d, w, r, by, func(r *http.Request, t *table) (*content, error) {
		kind, id, q := r.PathValue("kind"), r.PathValue("id"), r.URL.Query()
		x := &eventsView{Since: q.Get("since"), Until: q.Get("until"), What: q.Get("what"), Of: q.Get("of"), Kinds: slices.Sorted(maps.Keys(titles)), LeftOut: leftOut, Table: t}
		if path := objectPath(kind, id); path != "" {
			x.Back = link{titles[kind] + " " + id, Prefix + "/" + path}
		}
		since, until, problem := period(q)
		x.Problem = problem
		if t.Next != "" && len(t.Rows) == 0 {
			t.Empty = "No events so far. The next page goes further back."
		}
		command := terminal("muster events "+kind+" "+shellWord(id), option{name: "--since", value: inUTC(since)}, option{name: "--until", value: inUTC(until)}, option{name: "--what", value: x.What}, option{name: "--of", value: x.Of})
		return &content{Title: "Events of " + strings.ToLower(titles[kind]) + " " + id, Section: sections[kind], page: "events", Data: x, Command: command}, nil
	})
}

// feedList lists the events of the object named in a request, newest first. It sets leftOut to what is too much for a page, or not for the role.
func feedList(leftOut *[]string) *list[feedEntry] {
	return &list[feedEntry]{
		name: "events", label: "Events", most: eventsPage, empty: "No event.",
		columns: []column[feedEntry]{
			{name: "at", head: "When", value: func(e *feedEntry) value { return moment(e.At) }},
			{name: "what", head: "What", value: func(e *feedEntry) value { return words(e.What) }},
			{name: "kind", head: "Kind", value: func(e *feedEntry) value { return words(e.Kind) }},
			{name: "id", head: "Of", value: func(e *feedEntry) value {
				if path := objectPath(e.Kind, e.ID); path != "" {
					return linked(e.ID, path)
				}
				return words(e.ID)
			}},
			{name: "detail", head: "Detail", value: func(e *feedEntry) value { return words(e.Detail) }},
			{name: "by", head: "By", value: func(e *feedEntry) value { return words(e.By) }},
			{name: "reason", head: "Reason", value: func(e *feedEntry) value { return words(e.Reason) }},
			{name: "audit", head: "No. in the audit log", hidden: true, value: func(e *feedEntry) value {
				if e.Audit == 0 {
					return words("")
				}
				return number(e.Audit)
			}},
		},
		rows: func(d *Door, r *http.Request, query url.Values, most int) ([]feedEntry, url.Values, error) {
			since, until, problem := period(query)
			switch {
			case problem != "" && isExport(r):
				return nil, nil, domain.Refuse(domain.Invalid, "%s", problem)
			case problem != "": // the page shows it
				return nil, nil, nil
			}
			f, err := d.feed(r.Context(), url.Values{
				"kind": {r.PathValue("kind")}, "id": {r.PathValue("id")}, "what": {query.Get("what")}, "of": {query.Get("of")},
				"since": {inUTC(since)}, "until": {inUTC(until)}, "after": {query.Get("after")}, "limit": {strconv.Itoa(min(most, feedMost))},
			}, d.forAdmins(r, "audit log", "muster:Service.ListAudit") == nil)
			if err != nil {
				return nil, nil, err
			}
			*leftOut = f.LeftOut
			if f.Next == "" {
				return f.Entries, nil, nil
			}
			return f.Entries, after(f.Next), nil
		},
	}
}

// feed requests a page of events, for administrators including those of the audit log.
func (d *Door) feed(ctx context.Context, query url.Values, mayAudit bool) (*feed, error) {
	document, err := d.config.Feed(ctx, query, mayAudit)
	if err != nil {
		return nil, err
	}
	f := &feed{}
	return f, json.Unmarshal(document, f)
}

// inUTC formats a time for commands and the operators' API; the zero time is empty.
func inUTC(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// objectPath returns the path of an object's page, or of its row in a list; empty: it has none.
func objectPath(kind, id string) string {
	switch kind {
	case "fleet":
		return "fleets/" + escaped(id)
	case "build":
		return "builds/" + escaped(id)
	case "host":
		return "hosts#" + escaped(id)
	case "alias":
		return "aliases#" + escaped(id)
	case "queue":
		return "queues/" + url.PathEscape(id)
	case "configuration":
		return "matchmaking/" + url.PathEscape(id)
	case "player":
		return "player/" + escaped(id)
	}
	if slices.Contains(explained, kind) {
		return kind + "/" + escaped(id)
	}
	return ""
}

// eventsOfRow links a row of a list to the events of its object.
func eventsOfRow(kind, id string) offered { return offered{link: eventsLink(kind, id)} }

// eventsLink links to the events of an object.
func eventsLink(kind, id string) link {
	return link{"Events", Prefix + "/events/" + kind + "/" + escaped(id)}
}

// Events links to the events of an explanation's object.
func (x *explanation) Events() link { return eventsLink(x.Kind, x.ID) }
