package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
)

// auditPage is the number of entries on a page.
const auditPage = 50

type auditView struct {
	Since, Until string // as entered
	Who, What    string
	Refused      bool
	Problem      string // with a time that cannot be parsed
	Table        *table
}

// auditList lists the audit log, newest first.
var auditList = list[audit.Document]{
	name: "audit-log", label: "Audit log", most: auditPage, empty: "No entry.",
	columns: []column[audit.Document]{
		{name: "no", head: "No.", value: func(e *audit.Document) value { return number(e.No) }},
		{name: "at", head: "When", value: func(e *audit.Document) value { return instant(domain.TimeOf(e.At)) }},
		{name: "who", head: "Who", value: func(e *audit.Document) value { return words(e.Who) }},
		{name: "door", head: "Door", value: func(e *audit.Document) value { return words(e.Door) }},
		{name: "address", head: "From", value: func(e *audit.Document) value { return words(e.Address) }},
		{name: "program", head: "Program", hidden: true, value: func(e *audit.Document) value { return words(e.Agent) }},
		{name: "operation", head: "Operation", value: func(e *audit.Document) value { return words(e.What) }},
		{name: "kind", head: "Kind", value: func(e *audit.Document) value { return words(e.Kind) }},
		{name: "id", head: "What", value: func(e *audit.Document) value { return words(e.ID) }},
		{name: "outcome", head: "Outcome", value: func(e *audit.Document) value { return words(e.Outcome) }},
		{name: "times", head: "Times", hidden: true, value: func(e *audit.Document) value { return number(max(e.Count, 1)) }},
		{name: "changes", head: "Changes", value: func(e *audit.Document) value {
			var all []string
			for _, c := range e.Changes {
				all = append(all, c.Field+": "+cmp.Or(c.Before, "–")+" → "+cmp.Or(c.After, "–"))
			}
			return several(all)
		}},
		{name: "reason", head: "Reason", value: func(e *audit.Document) value { return words(e.Reason) }},
		{name: "hash", head: "Hash", hidden: true, value: func(e *audit.Document) value { return code(e.Hash) }},
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) ([]audit.Document, url.Values, error) {
		if err := d.forAdmins(r, "audit log", "muster:Service.ListAudit"); err != nil { // it contains people's addresses
			return nil, nil, err
		}
		f, problem := auditFilter(query)
		switch {
		case problem != "" && isExport(r):
			return nil, nil, domain.Refuse(domain.Invalid, "%s", problem)
		case problem != "": // the page shows it
			return nil, nil, nil
		}
		below, _ := strconv.ParseUint(query.Get("below"), 10, 64) // anything else starts with the last entry
		page, err := audit.Read(r.Context(), d.engine, f, below, most)
		if err != nil || page.Next == 0 {
			return page.Entries, nil, err
		}
		return page.Entries, url.Values{"below": {strconv.FormatUint(page.Next, 10)}}, nil
	},
}

// auditFilter parses a filter for the audit log from a query, or returns the problem with a time.
func auditFilter(query url.Values) (f audit.Filter, problem string) {
	f = audit.Filter{Who: query.Get("who"), What: query.Get("what"), Refused: query.Get("refused") == "true"}
	f.Since, f.Until, problem = period(query)
	return f, problem
}

// period parses since and until from a query, or returns the problem with one of them.
func period(query url.Values) (since, until time.Time, problem string) {
	for _, at := range []struct {
		name, text string
		to         *time.Time
	}{{"Since", query.Get("since"), &since}, {"Until", query.Get("until"), &until}} {
		if at.text == "" {
			continue
		}
		var err error
		if *at.to, err = dayOf(at.text); err != nil {
			return since, until, at.name + ": “" + at.text + "” is no time: write 2030-01-02, or 2030-01-02T03:04 in UTC."
		}
	}
	return since, until, ""
}

// audit returns the page of the audit log.
func (d *Door) audit(r *http.Request, t *table) (*content, error) {
	q := r.URL.Query()
	x := auditView{Since: q.Get("since"), Until: q.Get("until"), Who: q.Get("who"), What: q.Get("what"), Refused: q.Get("refused") == "true", Table: t}
	_, x.Problem = auditFilter(q)
	return &content{Title: "Audit log", Section: "audit", page: "audit", Data: &x, Command: "muster audit"}, nil
}

// dayOf parses a day or a time in UTC.
func dayOf(text string) (at time.Time, err error) {
	for _, form := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err = time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return at, err
}
