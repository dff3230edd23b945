package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/terminal"
)

type explainCommand struct {
	serviceFlags
	JSON bool `name:"json" help:"Print JSON, for programs."`

	Kind string `arg:"" enum:"fleet,alias,compute,process,placement,game-session,ticket,player,party,game-instance" help:"fleet, alias, compute, process, placement, game-session, ticket, player, party or game-instance."`
	ID   string `arg:"" help:"Id of a fleet, a placement or a matchmaking ticket; id or name of an alias; FLEET/COMPUTE or the name of a compute; FLEET/COMPUTE/PROCESS or a process id; ARN of a game session; id of a player, a party or a game instance of player flow."`
}

func (c *explainCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	body, err := c.ask(ctx, env)
	if err != nil {
		return err
	}
	if c.JSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return fmt.Errorf("answer of the service: %w", err)
		}
		_, err = indented.WriteTo(stdout)
		return err
	}
	var x operator.Explanation
	if err := json.Unmarshal(body, &x); err != nil {
		return fmt.Errorf("answer of the service: %w", err)
	}
	return printExplanation(stdout, &x)
}

// ask sends the signed request and returns the body of the answer.
func (c *explainCommand) ask(ctx context.Context, env environment) ([]byte, error) {
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return nil, err
	}
	return service.ask(ctx, http.MethodGet, "explain/"+c.Kind+"/"+pathOf(c.ID), nil)
}

// printExplanation writes an explanation as text.
func printExplanation(w io.Writer, x *operator.Explanation) error {
	fmt.Fprintf(w, "%s %s is %s\n%s\n", x.Kind, printable(x.ID), x.Status, printable(x.Why))
	if x.Next != "" {
		fmt.Fprintf(w, "Next: %s\n", printable(x.Next))
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range x.Facts {
		fmt.Fprintf(table, "%s\t%s\n", f.Name, printable(f.Value))
	}
	if len(x.Places) > 0 {
		fmt.Fprint(table, "\n")
		fmt.Fprintln(table, "FLEET\tLOCATION\tFREE\tOUTCOME\tDETAIL")
		for _, p := range x.Places {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", printable(p.Fleet), printable(cmp.Or(p.Location, "-")), p.Free, p.Outcome, printable(p.Detail))
		}
	}
	if x.Search != nil {
		printSearch(table, x.Search)
	}
	if len(x.Deadlines) > 0 {
		fmt.Fprint(table, "\n")
		fmt.Fprintln(table, "DEADLINE\tFROM\tOF\tTHEN")
		for _, d := range x.Deadlines {
			at := d.Left + " left, stopped"
			if d.At != nil {
				at = d.At.Format("2006-01-02 15:04:05.000")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", at, printable(d.Kind), printable(d.Of), printable(d.Then))
		}
	}
	if len(x.Timeline) > 0 {
		fmt.Fprint(table, "\n")
		fmt.Fprintln(table, "TIME\tWHAT\tDETAIL")
		for _, m := range x.Timeline {
			fmt.Fprintf(table, "%s\t%s\t%s\n", m.At.Format("2006-01-02 15:04:05.000"), m.What, printable(m.Detail))
		}
	}
	return table.Flush()
}

// printSearch writes how many tickets could be matched with a ticket, and when that changes.
func printSearch(table io.Writer, s *operator.Search) {
	fmt.Fprintln(table, "\nWHEN\tOTHERS\tPOSSIBLE\tREJECTED BY")
	line := func(when string, p *operator.Partners) {
		var by []string
		for _, r := range p.Rejected {
			by = append(by, fmt.Sprintf("%s %d", printable(r.Rule), r.Tickets))
		}
		if p.NoRoom > 0 {
			by = append(by, fmt.Sprintf("no room %d", p.NoRoom))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", when, p.Looked, p.Possible, cmp.Or(strings.Join(by, ", "), "-"))
	}
	line("now", &s.Now)
	for _, step := range s.Steps {
		if step.Partners != nil {
			line(fmt.Sprintf("from %d s on", step.Wait), step.Partners)
		}
	}
	if len(s.Oldest) > 0 {
		fmt.Fprintln(table, "\nTICKET\tPOSSIBLE\tREJECTED BY")
	}
	for _, p := range s.Oldest {
		by := strings.Join(rejectedBy(&p), ", ")
		if p.NoRoom {
			by = strings.TrimPrefix(by+", no room", ", ")
		}
		fmt.Fprintf(table, "%s\t%t\t%s\n", printable(p.Ticket), p.Possible, printable(cmp.Or(by, "-")))
	}
	for _, step := range s.Steps {
		for _, c := range step.Changes {
			fmt.Fprintf(table, "\nat %s\t%s: %s\n", step.At.Format("15:04:05"), printable(c.Property), printable(strings.TrimPrefix(c.From+" to ", " to ")+c.To))
		}
	}
}

// rejectedBy returns the rules that reject a pair, each with its reason if known.
func rejectedBy(p *operator.Pair) (rules []string) {
	for i, rule := range p.Rejected {
		if i < len(p.Reasons) && p.Reasons[i] != "" {
			rule += " (" + p.Reasons[i] + ")"
		}
		rules = append(rules, rule)
	}
	return rules
}

// printable is terminal.Printable.
func printable(s string) string { return terminal.Printable(s) }
