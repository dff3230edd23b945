package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/rehearsal"
	"github.com/musterhq/muster/internal/simulate"
)

// editorPage is the template of the rule-set editor.
const editorPage = "rule-set"

// editor is the data of the rule-set editor: the form of the action that creates a rule set, the mistakes in it, and the result of a trial.
type editor struct {
	*actionPage
	Findings []mark
	Wrong    int    // how many of the findings are errors
	Trial    *trial // nil: none was requested
	Refused  string // why there is no trial; empty: it was not refused
}

// Field returns a field for the template.
func (e *editor) Field(name string) *field { return e.field(name) }

// mark is an error or warning with its position.
type mark struct {
	ruleset.Finding
	Before, At string // the line, split at the mistake
}

// excerptMax is how many characters of a line are shown on each side of a mistake.
const excerptMax = 80

// Severity returns error or warning.
func (x mark) Severity() string {
	if x.Wrong {
		return "error"
	}
	return "warning"
}

func findingsIn(body string, timeout time.Duration) (all []mark, wrong int) {
	lines := strings.Split(body, "\n")
	for _, f := range ruleset.Lint(body, int32(timeout/time.Second)) {
		line := []rune(lines[min(f.Line, len(lines))-1])
		at := min(f.Column-1, len(line))
		all = append(all, mark{f, string(line[max(0, at-excerptMax):at]), string(line[at:min(len(line), at+excerptMax)])})
		if f.Wrong {
			wrong++
		}
	}
	return all, wrong
}

// trial is the result of a simulation or a replay.
type trial struct {
	*rehearsal.Result
	Recorded *rehearsal.Recorded // nil: a simulation
	Tickets  int
	Command  string
	Arrivals string // URL of the recorded arrivals, for the command; empty: those of the form
}

// differencesShown is how many tickets with another outcome the page lists.
const differencesShown = 100

// Figures returns the rows of the table.
func (t *trial) Figures() []simulate.Figure { return simulate.Figures(t.Reports...) }

// Plots returns the charts.
func (t *trial) Plots() []simulate.Plot { return simulate.Plots(t.Reports...) }

// Differing returns the tickets that the page lists.
func (t *trial) Differing() []simulate.Difference {
	return t.Differences.All[:min(differencesShown, len(t.Differences.All))]
}

// Came returns when a ticket of a replay started.
func (t *trial) Came(x simulate.Difference) domain.Time { return t.Recorded.From.Add(x.Arrival.At) }

func (d *Door) writeEditor(w http.ResponseWriter, r *http.Request, status int, e *editor, by identity.AccessKey) {
	timeout := simulate.DefaultRequestTimeout
	if name := e.value("configuration"); name != "" {
		if c, _, err := d.configurationOf(r.Context(), name); err == nil {
			timeout = c.RequestTimeout
		}
	}
	e.Findings, e.Wrong = findingsIn(e.value("body"), timeout)
	d.write(w, r, status, &content{Title: e.Title, Section: "matchmaking", page: editorPage, Editor: true, Data: e}, by)
}

// editorPages registers the editor's buttons that change nothing: check, simulate and replay.
func (d *Door) editorPages() {
	for name, try := range map[string]func(context.Context, *form) (*trial, error){
		"check": nil, "simulate": d.simulate, "replay": d.replay,
	} {
		d.routes.HandleFunc("POST "+Prefix+"/rule-sets/"+name, d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) { d.try(w, r, try, by) }))
	}
	d.routes.HandleFunc("GET "+Prefix+"/rule-sets/{name}", d.signedIn(func(w http.ResponseWriter, r *http.Request, _ identity.AccessKey) {
		to := Prefix + "/do/create-rule-set"
		if name := r.PathValue("name"); name != "check" && name != "simulate" && name != "replay" {
			to += "?from=" + url.QueryEscape(name)
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}))
}

func (d *Door) try(w http.ResponseWriter, r *http.Request, try func(context.Context, *form) (*trial, error), by identity.AccessKey) {
	a := actions["create-rule-set"]
	if !d.ownPage(r) {
		d.write(w, r, http.StatusForbidden, &content{Title: http.StatusText(http.StatusForbidden), page: "refusal", Data: "A page of another site sent this form. Nothing was tried."}, by)
		return
	}
	values, err := readForm(w, r, editorBytesMax)
	var f *form
	if err == nil {
		f, err = d.prepared(r, a)
	}
	if err == nil {
		f.field("name").Required = false
		err = f.sent(values)
		f.field("name").Required = true
	}
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	e := &editor{actionPage: &actionPage{form: f, Text: a.text, Path: Prefix + "/do/" + a.name, Command: a.command(f), May: d.mayNot(a, by.Role)}}
	status := http.StatusOK
	if try != nil && f.valid() {
		e.Trial, err = try(r.Context(), f)
		if refused, ok := errors.AsType[*domain.Refusal](err); ok {
			status, e.Refused = http.StatusUnprocessableEntity, refused.Detail
			if refused.Reason == domain.Overloaded {
				status = http.StatusServiceUnavailable
			}
		} else if err != nil {
			d.refuse(w, r, err, by)
			return
		}
	}
	if !f.valid() {
		status = http.StatusUnprocessableEntity
	}
	d.writeEditor(w, r, status, e, by)
}

// edited returns the rule set of the form, compiled.
func edited(f *form) (rehearsal.Set, error) {
	return compiled(cmp.Or(f.value("name"), "new"), f.value("body"))
}

// compiled names the rule set in the way `muster simulate` names its file, because the name seeds the matcher's random choices.
func compiled(name, body string) (rehearsal.Set, error) {
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		return rehearsal.Set{}, domain.Refuse(domain.Invalid, "%s has %s; a trial wants a valid rule set", name, plural.Of(len(problems), "error", "errors"))
	}
	return rehearsal.Set{Name: name + ".json", Rules: rules}, nil
}

// simulate runs the rule set on the players of the form, next to the one to compare with.
func (d *Door) simulate(ctx context.Context, f *form) (*trial, error) {
	minutes := f.number("minutes", 1, int(rehearsal.TimeMax/time.Minute))
	set, err := edited(f)
	if err != nil || !f.valid() {
		return nil, err
	}
	t := rehearsal.Trial{Sets: []rehearsal.Set{set}, Timeout: simulate.DefaultRequestTimeout}
	if name := f.value("compare"); name != "" {
		var body string
		if err := d.engine.Read(ctx, func(v *cell.View) (err error) { _, body, err = startingPoint(v, name, ""); return err }); err != nil {
			return nil, err
		}
		other, err := compiled(name, body)
		if err != nil {
			return nil, err
		}
		t.Sets = []rehearsal.Set{other, set}
	}
	if name := f.value("configuration"); name != "" {
		c, _, err := d.configurationOf(ctx, name)
		if err != nil {
			return nil, err
		}
		t.Timeout, t.Additional = c.RequestTimeout, c.AdditionalPlayers
	}
	arrivals := f.field("arrivals")
	if arrivals.Value == "" {
		arrivals.Value = rehearsal.Suggest(set.Rules)
	}
	if t.Arrivals, err = rehearsal.Arrivals(arrivals.Value, time.Duration(minutes)*time.Minute, t.Sets); err != nil {
		return nil, err
	}
	r, err := d.stage.Run(ctx, t)
	if err != nil {
		return nil, err
	}
	source := " --arrivals arrivals.jsonl"
	switch rehearsal.FormOf(arrivals.Value) {
	case rehearsal.Table:
		source = " --arrivals arrivals.csv"
	case rehearsal.Population:
		source = " --population population.json --for " + strconv.Itoa(minutes) + "m"
	}
	return &trial{Result: r, Tickets: len(t.Arrivals), Command: simulateCommand(t) + source}, nil
}

// replay runs the rule set and the configuration's own on the tickets that ended in the last hour.
func (d *Door) replay(ctx context.Context, f *form) (*trial, error) {
	name := f.field("configuration")
	if name.Value == "" {
		name.refuse("the configuration whose tickets of the last hour are replayed")
		return nil, nil
	}
	set, err := edited(f)
	if err != nil {
		return nil, err
	}
	c, body, err := d.configurationOf(ctx, name.Value)
	if err != nil {
		return nil, err
	}
	old, err := compiled(body.Name, body.Body)
	if err != nil {
		return nil, err
	}
	recorded, err := d.stage.LastHour(ctx, d.engine, c.Name)
	if err != nil {
		return nil, err
	}
	if len(recorded.Arrivals) == 0 {
		return nil, domain.Refuse(domain.Invalid, "configuration %s had no ticket in the last hour that can be replayed", c.Name)
	}
	t := rehearsal.Trial{Sets: []rehearsal.Set{old, set}, Timeout: c.RequestTimeout, Additional: c.AdditionalPlayers, Arrivals: recorded.Arrivals}
	r, err := d.stage.Run(ctx, t)
	if err != nil {
		return nil, err
	}
	return &trial{
		Result: r, Recorded: recorded, Tickets: len(t.Arrivals), Command: simulateCommand(t) + " --arrivals arrivals.jsonl --differences 100",
		Arrivals: Prefix + "/matchmaking/" + escaped(c.Name) + "/arrivals.jsonl",
	}, nil
}

// simulateCommand returns the command that gives the same figures.
func simulateCommand(t rehearsal.Trial) string {
	command := "muster simulate " + shellWord(t.Sets[len(t.Sets)-1].Name)
	if len(t.Sets) == 2 {
		command = "muster simulate " + shellWord(t.Sets[0].Name) + " --compare " + shellWord(t.Sets[1].Name)
	}
	command += " --request-timeout " + t.Timeout.String()
	if t.Additional > 0 {
		command += " --additional " + strconv.Itoa(int(t.Additional))
	}
	return command
}

// serveArrivals answers with the tickets of a replay, in the format of `muster simulate`.
func (d *Door) serveArrivals(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	recorded, err := d.stage.LastHour(r.Context(), d.engine, r.PathValue("name"))
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", "attachment; filename=arrivals.jsonl")
	_ = simulate.WriteLines(w, recorded.Arrivals) // the browser has gone if it fails
}
