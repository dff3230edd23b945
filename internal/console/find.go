package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

// Bounds of a search for any id.
const (
	findBytesMax = 1024 // ARNs of game sessions are the longest ids
	findLooks    = 500  // objects of a kind whose names are compared
	findHitsMax  = 20
)

// hit is a page that a text may mean.
type hit struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	URL  string `json:"url"`

	exact bool // the text is its whole id or name
}

// find leads to the page of an id, or to a list of the pages that a text may mean.
func (d *Door) find(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	text := strings.TrimSpace(r.URL.Query().Get("id"))
	if text == "" {
		http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
		return
	}
	all, err := d.hits(r.Context(), text, by.Role)
	exact := slices.DeleteFunc(slices.Clone(all), func(h hit) bool { return !h.exact })
	switch {
	case err == nil && len(exact) == 1:
		http.Redirect(w, r, exact[0].URL, http.StatusSeeOther)
	case err == nil && len(all) == 1:
		http.Redirect(w, r, all[0].URL, http.StatusSeeOther)
	case err == nil && len(all) == 0:
		http.Redirect(w, r, Prefix+"/"+likely(text), http.StatusSeeOther)
	default:
		d.show(w, r, by, func(*http.Request) (*content, error) {
			return &content{Title: "Find " + text, page: "find", Data: all}, err
		})
	}
}

// likely is the page of an id that names nothing, by its form. Any text may be a player's id, also of one who has left no trace.
func likely(id string) string {
	switch {
	case strings.HasPrefix(id, "fleet-") && strings.Contains(id, "/"):
		return "game-session/" + escaped(id)
	case strings.HasPrefix(id, "fleet-"):
		return "fleets/" + escaped(id)
	}
	return "player/" + escaped(id)
}

// findAsJSON is find for the palette.
func (d *Door) findAsJSON(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	all, err := d.hits(r.Context(), strings.TrimSpace(r.URL.Query().Get("id")), by.Role)
	if err != nil {
		status, c := d.refusal(r, err)
		http.Error(w, c.Data.(string), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(append([]hit{}, all...)) // the browser has gone if it fails
}

// hits returns the pages that a text may mean, those with just this id or name first. Without a text these are the sections.
func (d *Door) hits(ctx context.Context, text string, role identity.Role) (all []hit, err error) {
	if len(text) > findBytesMax {
		return nil, domain.Refuse(domain.Invalid, "The id %.40q… has %d bytes; want at most %d.", text, len(text), findBytesMax)
	}
	x := &finding{text: strings.ToLower(text)}
	for _, s := range navigation {
		x.add("page", s.Text, s.Path)
	}
	for _, a := range actions {
		if !a.object && d.mayNot(a, role) == "" && text != "" {
			x.add("action", a.text, "do/"+a.name)
		}
	}
	if text != "" {
		if err := d.engine.Read(ctx, func(v *cell.View) error { x.inState(v, text, role); return nil }); err != nil {
			return nil, err
		}
		if err := d.findExplained(ctx, x, text); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(x.hits, func(a, b hit) int {
		if a.exact != b.exact {
			return map[bool]int{true: -1, false: 1}[a.exact]
		}
		if text == "" {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text), cmp.Compare(a.URL, b.URL))
	})
	return x.hits[:min(len(x.hits), findHitsMax)], nil
}

// finding collects hits for a text in lower case.
type finding struct {
	text string
	hits []hit
}

// add adds a page if its text, or one of further names of its object, contains what is looked for.
func (x *finding) add(kind, text, path string, names ...string) {
	names = append(names, text)
	found := func(in string) bool { return strings.Contains(strings.ToLower(in), x.text) }
	if slices.ContainsFunc(names, found) {
		same := func(name string) bool { return strings.ToLower(name) == x.text }
		x.hits = append(x.hits, hit{kind, text, Prefix + "/" + path, slices.ContainsFunc(names, same)})
	}
}

// inState looks at what the state has by id or name: what there are few of, by parts of a name, of each kind the first ones.
func (x *finding) inState(v *cell.View, text string, role identity.Role) {
	fleets := v.Fleets(0, "", findLooks)
	if f, ok := v.Fleet(text); ok {
		fleets = append(slices.DeleteFunc(fleets, func(other fleet.Fleet) bool { return other.ID == f.ID }), f)
	}
	for _, f := range fleets {
		x.add("fleet", cmp.Or(f.Name, f.ID), "fleets/"+escaped(f.ID), f.ID)
		if _, ok := v.Compute(f.ID, text); ok {
			x.add("compute", text+" in "+cmp.Or(f.Name, f.ID), "compute/"+escaped(f.ID+"/"+text), text)
		}
	}
	for _, h := range v.HostsAfter("", findLooks) {
		x.add("host", h.Name, "hosts#"+escaped(h.ID), h.ID)
	}
	every := func(*fleet.Alias) bool { return true }
	for _, a := range v.Aliases(catalog.Place{}, findLooks, every) {
		x.add("alias", a.Name, "aliases#"+escaped(a.ID), a.ID)
	}
	for _, q := range v.Queues("", findLooks) {
		x.add("queue", q.Name, objectPath("queue", q.Name))
	}
	for _, c := range v.Configurations("", "", findLooks) {
		x.add("matchmaking configuration", c.Name, objectPath("configuration", c.Name))
	}
	builds := v.Builds(catalog.Place{}, findLooks, func(b *fleet.Build) bool { return b.ID != text })
	if b, ok := v.Build(text); ok {
		builds = append(builds, b)
	}
	for _, b := range builds {
		x.add("build", cmp.Or(b.Name, b.ID), "builds/"+escaped(b.ID), b.ID)
	}
	if role == identity.Admin {
		for _, k := range v.AccessKeys() {
			x.add("access key", cmp.Or(k.Name, k.ID), "keys#"+escaped(k.ID), k.ID)
		}
	}
}

// findExplained asks for what only an exact id finds.
func (d *Door) findExplained(ctx context.Context, x *finding, text string) error {
	id := text
	if _, game, ok := strings.Cut(id, ":gamesession/"); ok {
		id = game
	} else if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
		if strings.HasPrefix(id, "fleet-") {
			x.add("fleet", id, "fleets/"+escaped(id), text)
		}
	}
	kinds := []string{"ticket", "placement", "party", "game-instance"}
	if strings.HasPrefix(id, "fleet-") && strings.Contains(id, "/") {
		kinds = []string{"process", "compute", "game-session"}
	}
	for _, kind := range kinds {
		_, err := d.config.Explain(ctx, kind, id)
		if err == nil {
			x.add(strings.ReplaceAll(kind, "-", " "), id, kind+"/"+escaped(id), text)
		} else if _, refused := errors.AsType[*domain.Refusal](err); !refused {
			return err
		}
	}
	if p, err := domain.ParseID[domain.PlayerSessionID](id); err == nil {
		session, err := d.engine.PlayerSession(ctx, p)
		if err == nil {
			x.add("player session", id, "game-session/"+escaped(string(session.GameID)))
		} else if _, refused := errors.AsType[*domain.Refusal](err); !refused {
			return err
		}
	}
	sessions, _, err := d.engine.PlayersNamed(ctx, text, engine.PlayerPlace{}, 1)
	if err != nil {
		return err
	}
	_, err = d.config.Explain(ctx, "player", text)
	if err == nil || len(sessions) > 0 {
		x.add("player", text, "player/"+escaped(text))
	}
	return nil
}
