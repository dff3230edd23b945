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
)

// explained are the kinds of objects that the operators' API explains, beside fleets, which have a page of their own.
var explained = []string{"compute", "placement", "process", "game-session", "ticket", "party", "game-instance"}

// explanation is what the operators' API answers about an object.
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

	Actions []string `json:"-"` // names of those that its page offers
}

type fact struct{ Name, Value string }

// When is an instant as templates show it.
func (x *explanation) When(t time.Time) template.HTML { return when(domain.TimeOf(t)) }

func (d *Door) explanation(r *http.Request, kind string) (*content, error) {
	id := r.PathValue("id")
	x, err := d.explain(r.Context(), kind, id)
	if err != nil {
		return nil, gone(err, kind, id)
	}
	if x.Actions, err = d.actionsOn(r.Context(), kind, x.ID); err != nil {
		return nil, err
	}
	return &content{Title: titles[kind] + " " + id, Section: sections[kind], page: "explanation", Data: x, Command: "muster explain " + kind + " " + shellWord(id)}, nil
}

// actionsOn returns the names of the actions on an object as it is now.
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

func (d *Door) explain(ctx context.Context, kind, id string) (*explanation, error) {
	document, err := d.config.Explain(ctx, kind, id)
	if err != nil {
		return nil, err
	}
	x := &explanation{}
	return x, json.Unmarshal(document, x)
}

// titles are the kinds of objects that have events, with their names on pages.
var titles = map[string]string{
	"compute": "Compute", "placement": "Placement", "process": "Server process", "game-session": "Game session", "ticket": "Ticket", "party": "Party", "game-instance": "Game instance",
	"fleet": "Fleet", "host": "Host", "queue": "Queue", "player": "Player", "alias": "Alias", "build": "Build", "configuration": "Matchmaking configuration",
}

// sections are the parts of the navigation to which the kinds belong.
var sections = map[string]string{
	"compute": "fleets", "process": "fleets", "game-session": "game-sessions", "placement": "queues", "ticket": "matchmaking", "party": "parties", "game-instance": "parties",
	"fleet": "fleets", "host": "hosts", "queue": "queues", "player": "players", "alias": "aliases", "build": "builds", "configuration": "matchmaking",
}
