package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
)

type eventsCommand struct {
	serviceFlags
	Since string `placeholder:"TIME" help:"Only events since then: a time such as 2030-01-02T03:04:05Z, or an age such as 24h."`
	Until string `placeholder:"TIME" help:"Only events before then."`
	What  string `placeholder:"TEXT" help:"Only entries that contain this text in what happened, its detail, who did it, or the reason."`
	Of    string `placeholder:"KIND" help:"Only events of objects of one kind, such as process; audit: what people changed."`
	Limit int    `default:"100" help:"How many entries, at most; 0: all."`
	JSON  bool   `name:"json" help:"Print each entry as JSON in one line."`

	Kind string `arg:"" placeholder:"fleet|host|compute|process|game-session|queue|placement|ticket|player|party|game-instance|alias|build|configuration" help:"fleet, host, compute, process, game-session, queue, placement, ticket, player, party, game-instance, alias, build or configuration."`
	ID   string `arg:"" help:"Id of the object, as muster explain takes it; id of a host; name of a queue or of a matchmaking configuration."`
}

// eventsPage is the number of entries in one request.
const eventsPage = 200

func (c *eventsCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	q := url.Values{"kind": {c.Kind}, "id": {c.ID}, "what": {c.What}, "of": {c.Of}}
	if err := setPeriod(q, c.Since, c.Until); err != nil {
		return err
	}
	if c.Limit < 0 {
		return fmt.Errorf("--limit %d: want 0 or more", c.Limit)
	}
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for left, first := c.Limit, true; ; first = false {
		most := eventsPage
		if c.Limit > 0 {
			most = min(left, eventsPage)
		}
		q.Set("limit", strconv.Itoa(most))
		var page operator.Feed
		if err := service.call(ctx, http.MethodGet, operator.FeedPath+"?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		page.LeftOut = slices.DeleteFunc(page.LeftOut, func(text string) bool { return told[text] })
		for _, text := range page.LeftOut {
			told[text] = true
			if c.JSON || !first { // the text goes before the table, or not to stdout
				warn([]string{"left out: " + text})
			}
		}
		if err := c.print(stdout, &page, first); err != nil {
			return err
		}
		left -= len(page.Entries)
		if page.Next == "" || c.Limit > 0 && left <= 0 {
			return nil
		}
		q.Set("after", page.Next)
	}
}

// print writes a page. As text, the first page starts with a heading.
func (c *eventsCommand) print(w io.Writer, page *operator.Feed, first bool) error {
	if c.JSON {
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		for i := range page.Entries {
			if err := lines.Encode(&page.Entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if first {
		for _, text := range page.LeftOut {
			fmt.Fprintf(w, "Left out: %s\n", printable(text))
		}
		fmt.Fprintln(table, "TIME\tWHAT\tOF\tDETAIL")
	}
	for i := range page.Entries {
		e := &page.Entries[i]
		detail := e.Detail
		if e.By != "" {
			detail = strings.TrimSuffix("by "+e.By+"; "+detail, "; ")
		}
		if e.Reason != "" {
			detail += "; reason: " + e.Reason
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.At.UTC().Format("2006-01-02 15:04:05.000"), printable(e.What), printable(e.Kind+" "+e.ID), printable(cmp.Or(detail, "-")))
	}
	return table.Flush()
}

// setPeriod sets since and until in a query from flags, which are times or ages.
func setPeriod(q url.Values, since, until string) error {
	now := time.Now()
	var instants [2]time.Time
	for i, at := range []struct{ name, text string }{{"since", since}, {"until", until}} {
		instant, err := instantOf(at.text, now)
		if err != nil {
			return fmt.Errorf("--%s: %w", at.name, err)
		}
		if at.text != "" {
			q.Set(at.name, instant.UTC().Format(time.RFC3339Nano))
		}
		instants[i] = instant
	}
	if since != "" && until != "" && !instants[0].Before(instants[1]) {
		return fmt.Errorf("--since %s is not before --until %s: nothing would be listed", since, until)
	}
	return nil
}
