package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/plural"
)

type auditCommand struct {
	List   auditList   `cmd:"" default:"withargs" help:"Show who changed what, when, from where and why, the latest first, including refused attempts."`
	Verify auditVerify `cmd:"" help:"Find entries that are missing or were altered."`
}

// reasonFlag is part of commands that change something.
type reasonFlag struct {
	Reason string `placeholder:"TEXT" help:"Why, for the audit log: one line of at most 200 characters."`
}

// recordLater makes the next start of the service record an operation on a data directory that no service was running on.
func (f *reasonFlag) recordLater(dir, operation, kind, id string) error {
	return audit.Later(dir, audit.Origin{Principal: localdoor.Principal(userName()), Door: audit.DoorOffline, Operation: operation, Reason: f.Reason}, kind, id)
}

// recordMade is recordLater after a change, which its error mentions: the change cannot be taken back, so the command also reports it as usual.
func (f *reasonFlag) recordMade(dir, operation, kind, id string) error {
	if err := f.recordLater(dir, operation, kind, id); err != nil {
		return fmt.Errorf("the change was made, but it will not be in the audit log: %w", err)
	}
	return nil
}

type auditList struct {
	serviceFlags
	Since   string `placeholder:"TIME" help:"Only entries since then: a time such as 2030-01-02T03:04:05Z, or an age such as 24h."`
	Until   string `placeholder:"TIME" help:"Only entries before then."`
	Who     string `placeholder:"TEXT" help:"Only those whose access key, address or program contains this."`
	What    string `placeholder:"TEXT" help:"Only those whose operation, or what it changed, contains this."`
	Door    string `placeholder:"api|operator|console|local|offline|builds|cluster|players|sign-in" help:"Only those of one door; failed sign-ins also have client_certificate, game_servers, host_agents, metrics, partners, player_operators, scripts, sso, web_identity or webhook_confirmations."`
	Refused bool   `help:"Only attempts that were refused."`
	Limit   int    `default:"100" help:"How many entries, at most; 0: all."`
	JSON    bool   `name:"json" help:"Print each entry as JSON in one line."`
}

// auditPage is the number of entries in one request.
const auditPage = 1000

func (c *auditList) Run(ctx context.Context, stdout io.Writer, env environment) error {
	q := url.Values{"who": {c.Who}, "what": {c.What}, "door": {c.Door}}
	if c.Refused {
		q.Set("refused", "true")
	}
	if err := setPeriod(q, c.Since, c.Until); err != nil {
		return err
	}
	if c.Limit < 0 {
		return fmt.Errorf("--limit %d: want 0 or more", c.Limit)
	}
	service, err := c.reach(ctx, env, identity.MayAdminister)
	if err != nil {
		return err
	}
	print := printEntries(stdout, c.JSON)
	for left := c.Limit; ; {
		most := auditPage
		if c.Limit > 0 {
			most = min(left, auditPage)
		}
		q.Set("limit", strconv.Itoa(most))
		var page audit.Page
		if err := service.call(ctx, http.MethodGet, operator.AuditPath+"?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		if err := print(page.Entries); err != nil {
			return err
		}
		left -= len(page.Entries)
		if page.Next == 0 || c.Limit > 0 && left <= 0 {
			return nil
		}
		q.Set("below", strconv.FormatUint(page.Next, 10))
	}
}

// instantOf parses a time or an age.
func instantOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if age, err := time.ParseDuration(text); err == nil {
		if age < 0 {
			return now, fmt.Errorf("%q: want an age that is not negative", text)
		}
		return now.Add(-age), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%q: want a time such as 2030-01-02T03:04:05Z, or an age such as 24h", text)
	}
	return at, nil
}

// printEntries returns a function that prints pages of entries, with a heading before the first page.
func printEntries(stdout io.Writer, asJSON bool) func([]audit.Document) error {
	if asJSON {
		lines := json.NewEncoder(stdout)
		lines.SetEscapeHTML(false)
		return func(all []audit.Document) error {
			for i := range all {
				if err := lines.Encode(&all[i]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	first := true
	return func(all []audit.Document) error {
		table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		if first {
			fmt.Fprintln(table, "NO\tWHEN\tWHO\tDOOR\tFROM\tOPERATION\tWHAT\tOUTCOME\tREASON")
		}
		first = false
		for i := range all {
			e := &all[i]
			outcome := e.Outcome
			if e.Count > 1 {
				outcome += fmt.Sprintf(" (%d times)", e.Count)
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.No, e.At.UTC().Format(time.RFC3339), printable(cmp.Or(e.Who, "-")), e.Door, cmp.Or(printable(e.Address), "-"),
				printable(e.What), cmp.Or(printable(strings.TrimSpace(e.Kind+" "+e.ID)), "-"), printable(outcome), cmp.Or(printable(e.Reason), "-"))
		}
		return table.Flush()
	}
}

type auditVerify struct {
	serviceFlags
	Anchor string `placeholder:"NO:HASH" help:"Number and hash of an entry from an earlier check or an export: also detects a log that has been rewritten since."`
	Node   string `placeholder:"ID" help:"Check only this cluster node's log. Otherwise every node's log is checked and compared with that of the node that answers."`
	JSON   bool   `name:"json" help:"Print JSON, a line for each node."`
}

func (c *auditVerify) Run(ctx context.Context, stdout io.Writer, env environment) error {
	service, err := c.reach(ctx, env, identity.MayAdminister)
	if err != nil {
		return err
	}
	broken := false
	verify := func(node, anchor string) (v audit.Verification, err error) {
		q := url.Values{}
		if node != "" {
			q.Set("node", node)
		}
		if anchor != "" {
			q.Set("anchor", anchor)
		}
		if err := service.call(ctx, http.MethodGet, operator.AuditPath+"/verify?"+q.Encode(), nil, &v); err != nil {
			return v, err
		}
		broken = broken || len(v.Problems) > 0
		if c.JSON {
			return v, json.NewEncoder(stdout).Encode(v)
		}
		return v, printVerification(stdout, &v)
	}
	first, err := verify(c.Node, c.Anchor)
	if err != nil {
		return err
	}
	var errs []error
	if c.Node == "" {
		anchor := c.Anchor
		if anchor == "" && first.Last > 0 { // a log that was rewritten at one node differs from the others
			anchor = fmt.Sprintf("%d:%s", first.Last, first.Hash)
		}
		for _, node := range first.Others {
			_, err := verify(node, anchor)
			errs = append(errs, err)
		}
	}
	if broken {
		errs = append(errs, errors.New("the audit log is not intact"))
	}
	return errors.Join(errs...)
}

func printVerification(stdout io.Writer, v *audit.Verification) error {
	where := ""
	if v.Node != "" {
		where = "node " + printable(v.Node) + ": "
	}
	for _, p := range v.Problems {
		if _, err := fmt.Fprintln(stdout, where+printable(p)); err != nil {
			return err
		}
	}
	switch {
	case len(v.Problems) > 0:
		return nil
	case v.Entries == 0:
		_, err := fmt.Fprintln(stdout, where+"the audit log has no entries")
		return err
	}
	_, err := fmt.Fprintf(stdout, "%sthe audit log is intact: %s, from %d to %d\nanchor  %d:%s\n", where, plural.Of(v.Entries, "entry", "entries"), v.First, v.Last, v.Last, v.Hash)
	return err
}
