package console

import (
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/policy"
)

// explained lists the kinds of objects that the operators' API explains, apart from fleets, which have a page of their
// own.
var explained = []string{"compute", "placement", "process", "game-session", "ticket", "party", "game-instance"}

// explanation is the operators' API's answer about an object.
type explanation struct {
	Kind, ID, Status, Why, Next string
	Facts                       []fact
	Places                      []struct {
		Fleet, Location, Outcome, Detail string
		Free                             int
	}
	Deadlines []struct {
		At                   time.Time
		Left, Kind, Of, Then string
	}
	Timeline []struct {
		At           time.Time
		What, Detail string
	}

	Search *searched // for a ticket; nil: unknown

	Actions []string `json:"-"` // names of the actions that its page offers
}

// searched describes the search for a match of a ticket.
type searched struct {
	Unmatchable string
	Needed      int32 `json:"playersNeeded"`
	Others      int   `json:"otherTickets"`
	Now         struct {
		Looked, Possible int
		Rejected         []struct {
			Rule, With, Reason string
			Tickets            int
		}
	}
	Oldest []struct {
		Ticket   string
		Possible bool
		NoRoom   bool
		Rejected []string `json:"rejectedBy"`
		Reasons  []string
	}
	Steps []struct {
		At       time.Time
		Wait     int32 `json:"waitSeconds"`
		Changes  []struct{ Property, From, To string }
		Partners *struct{ Looked, Possible int }
	}
	Rules []struct {
		Name           string
		Passed, Failed uint64
	}
}

// When returns an instant for templates.
func (*searched) When(t time.Time) template.HTML { return when(domain.TimeOf(t)) }

type fact struct{ Name, Value string }

// At returns the instant in the fact's value; 0: it is not an instant.
func (f fact) At() domain.Time {
	at, err := time.Parse("2006-01-02 15:04:05.000 MST", f.Value)
	if err != nil || at.Location() != time.UTC {
		return 0
	}
	return domain.TimeOf(at)
}

// linkedFacts maps facts whose value is the id of an object to its kind.
var linkedFacts = map[string]string{
	"queue": "queue", "configuration": "configuration", "placement": "placement", "game session": "game-session", "game instance": "game-instance", "party": "party", "ticket": "ticket", "backfill of": "game-session",
	"fleet": "fleet", "process": "process",
}

// Link returns the page of the object that the fact names; empty: there is none, or the value contains more than an id.
func (f fact) Link() string {
	kind, ok := linkedFacts[f.Name]
	if !ok || strings.ContainsAny(f.Value, " ,") {
		return ""
	}
	return Prefix + "/" + objectPath(kind, f.Value)
}

// Output leads to what the server process of the object prints; without a URL there is none.
func (x *explanation) Output() (l link) {
	switch x.Kind {
	case "process":
		l = outputLink(x.ID)
	case "game-session":
		l = outputLink(gamePrefix + x.ID)
	}
	return l
}

// When returns an instant for templates.
func (x *explanation) When(t time.Time) template.HTML { return when(domain.TimeOf(t)) }

func (d *Door) explanation(r *http.Request, kind string) (*content, error) {
	id := r.PathValue("id")
	key, _, _ := d.session(r)
	by := key.Principal(d.config.Proxies.Of(r))
	x, err := d.explain(r.Context(), kind, id, by.MayCall(policy.ReadOutput) == nil)
	if err != nil {
		return nil, gone(err, kind, id)
	}
	if x.Actions, err = d.actionsOn(r.Context(), kind, x.ID); err != nil {
		return nil, err
	}
	return &content{Title: titles[kind] + " " + id, Section: sections[kind], page: "explanation", Data: x, Command: "muster explain " + kind + " " + shellWord(id)}, nil
}

// actionsOn returns the names of the actions available for an object in its current state.
func (d *Door) actionsOn(ctx context.Context, kind, id string) (names []string, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		switch kind {
		case "game-session":
			if g, ok := v.GameSession(session.ID(id)); ok && g.Live() {
				names = []string{"end-game-session"}
			}
		case "compute":
			fleetID, name, _ := strings.Cut(id, "/")
			switch c, ok := v.Compute(fleetID, name); {
			case ok && c.Draining():
				names = []string{"undo-drain-compute", "deregister-compute"}
			case ok:
				names = []string{"drain-compute", "deregister-compute"}
			}
		}
		return nil
	})
	return names, err
}

func (d *Door) explain(ctx context.Context, kind, id string, mayReadOutput bool) (*explanation, error) {
	document, err := d.config.Explain(ctx, kind, id, mayReadOutput)
	if err != nil {
		return nil, err
	}
	x := &explanation{}
	return x, json.Unmarshal(document, x)
}

// titles maps the kinds of objects that have events to their names on pages.
var titles = map[string]string{
	"compute": "Compute", "placement": "Placement", "process": "Server process", "game-session": "Game session", "ticket": "Ticket", "party": "Party", "game-instance": "Game instance",
	"fleet": "Fleet", "host": "Host", "queue": "Queue", "player": "Player", "alias": "Alias", "build": "Build", "configuration": "Matchmaking configuration",
}

// sections maps the kinds to their parts of the navigation.
var sections = map[string]string{
	"compute": "fleets", "process": "fleets", "game-session": "game-sessions", "placement": "queues", "ticket": "matchmaking", "party": "parties", "game-instance": "parties",
	"fleet": "fleets", "host": "hosts", "queue": "queues", "player": "players", "alias": "aliases", "build": "builds", "configuration": "matchmaking",
}
