//go:build !quick

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/simulate"
)

type simulateCommand struct {
	Population    string        `placeholder:"FILE" type:"path" help:"Invent arrivals from this description, JSON."`
	Arrivals      string        `placeholder:"FILE" type:"path" instead:"for" help:"Use recorded arrivals: .csv, or .jsonl with a ticket on each line."`
	For           time.Duration `name:"for" placeholder:"TIME" default:"1h" help:"Time of the invented arrivals, from midnight on."`
	Seed          uint64        `placeholder:"N" default:"1" help:"Random seed: another seed gives another population."`
	Timeout       time.Duration `name:"request-timeout" placeholder:"TIME" default:"5m" help:"Maximum wait of a ticket."`
	Additional    int32         `placeholder:"N" help:"Seats that a new match keeps free (AdditionalPlayerCount)."`
	PassEvery     time.Duration `placeholder:"TIME" default:"100ms" help:"Minimum time between two passes of the matcher."`
	Compare       string        `placeholder:"FILE" type:"path" help:"Compare with this rule set, on the same arrivals."`
	Differences   int           `placeholder:"N" help:"With --compare: list up to this many tickets that end differently."`
	JSON          string        `name:"json" placeholder:"FILE" type:"path" help:"Write the report to this file as JSON."`
	HTML          string        `name:"html" placeholder:"FILE" type:"path" help:"Write the report to this file as a page with plots."`
	WriteArrivals string        `placeholder:"FILE" type:"path" help:"Write the arrivals to this file, a ticket on each line, for --arrivals."`

	RuleSet string `arg:"" type:"path" help:"The rule set, JSON."`
}

// namedRules is a rule set with the name of its file.
type namedRules struct {
	name  string
	rules *ruleset.RuleSet
}

func (c *simulateCommand) Run(ctx context.Context, stdout io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	var sets []namedRules
	for _, file := range []string{c.RuleSet, c.Compare} {
		if file == "" {
			continue
		}
		rules, err := readRules(file)
		if err != nil {
			return err
		}
		sets = append(sets, namedRules{filepath.Base(file), rules})
		if err := warnOf(os.Stderr, file); err != nil {
			return err
		}
	}
	arrivals, err := c.arrivals(sets)
	if err != nil {
		return err
	}
	if c.WriteArrivals != "" {
		if err := writeFile(c.WriteArrivals, func(w io.Writer) error { return simulate.WriteLines(w, arrivals) }); err != nil {
			return err
		}
	}
	var reports []*simulate.Report
	outcomes := make([][]simulate.Outcome, len(sets))
	for i, s := range sets {
		outcomes[i] = make([]simulate.Outcome, len(arrivals))
		tickets := newProgress(os.Stderr, s.name+": tickets that have ended", len(arrivals))
		report, err := simulate.Run(ctx, s.rules, simulate.Settings{
			Name: s.name, RequestTimeout: c.Timeout, Additional: c.Additional, PassEvery: c.PassEvery, Seed: c.Seed,
			OnEnd: func(arrival int, o simulate.Outcome) {
				outcomes[i][arrival] = o
				tickets.step()
			},
		}, arrivals)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		reports = append(reports, report)
	}
	if err := c.write(stdout, reports); err != nil || c.Differences == 0 {
		return err
	}
	differences := simulate.Compare(arrivals, outcomes[0], outcomes[1])
	return simulate.WriteDifferences(stdout, &differences, c.Differences)
}

func (c *simulateCommand) check() error {
	switch {
	case (c.Population == "") == (c.Arrivals == ""):
		return errors.New("give either --population or --arrivals")
	case c.For <= 0:
		return fmt.Errorf("--for: %s, want more than 0s", c.For)
	case c.Timeout < time.Second || c.Timeout > 12*time.Hour:
		return fmt.Errorf("--request-timeout: %s, want 1s to 12h", c.Timeout)
	case c.PassEvery < time.Millisecond:
		return fmt.Errorf("--pass-every: %s, want at least 1ms", c.PassEvery)
	case c.Differences < 0:
		return fmt.Errorf("--differences: %d, want at least 0", c.Differences)
	case c.Differences > 0 && c.Compare == "":
		return errors.New("--differences requires --compare with the other rule set")
	case c.Additional < 0:
		return fmt.Errorf("--additional: %d, want at least 0", c.Additional)
	}
	return nil
}

// readRules reads a rule set and reports all problems in it.
func readRules(file string) (*ruleset.RuleSet, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rules, problems := ruleset.Parse(string(body))
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.String()
		}
		return nil, fmt.Errorf("%s is not a valid rule set:\n  %s", file, strings.Join(lines, "\n  "))
	}
	return rules, nil
}

// warnOf writes a warning for each part of a valid rule set that has no effect.
func warnOf(w io.Writer, file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, warning := range ruleset.Warnings(string(body)) {
		fmt.Fprintf(w, "%s: warning: %s\n", file, printable(warning.String()))
	}
	return nil
}

func (c *simulateCommand) arrivals(sets []namedRules) ([]simulate.Arrival, error) {
	file := c.Arrivals + c.Population
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arrivals, err := c.readArrivals(f, sets)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return arrivals, nil
}

func (c *simulateCommand) readArrivals(f io.Reader, sets []namedRules) ([]simulate.Arrival, error) {
	switch {
	case c.Population != "":
		population, err := simulate.ReadPopulation(f)
		if err != nil {
			return nil, err
		}
		return population.Draw(c.For, c.Seed)
	case strings.EqualFold(filepath.Ext(c.Arrivals), ".csv"):
		kinds := map[string]ruleset.Kind{}
		for _, s := range sets {
			for _, a := range s.rules.Attributes {
				kinds[a.Name] = a.Kind
			}
		}
		return simulate.ReadTable(f, kinds)
	default:
		return simulate.ReadLines(f)
	}
}

func (c *simulateCommand) write(stdout io.Writer, reports []*simulate.Report) error {
	if c.JSON != "" {
		if err := writeFile(c.JSON, func(w io.Writer) error { return printJSON(w, map[string]any{"reports": reports}) }); err != nil {
			return err
		}
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(w io.Writer) error { return simulate.WritePage(w, reports...) }); err != nil {
			return err
		}
	}
	return simulate.WriteTable(stdout, reports...)
}

func writeFile(name string, write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return atomicfile.Write(name, []byte(text.String()), 0o644)
}
