package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/lookup"
)

// findHitsMax is the most pages that a search shows.
const findHitsMax = 20

// hit is a page that a text may refer to.
type hit struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	URL  string `json:"url"`

	exact bool // the text is the complete id or name
}

// find redirects to the page of an id, or shows the pages that a text may refer to.
func (d *Door) find(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	text := strings.TrimSpace(r.URL.Query().Get("id"))
	if text == "" {
		http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
		return
	}
	all, err := d.hits(r, text, by.Role)
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

// likely returns the page suggested by the form of an unknown id. Any text may be a player's id, even of a player without
// records.
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
	all, err := d.hits(r, strings.TrimSpace(r.URL.Query().Get("id")), by.Role)
	if err != nil {
		status, c := d.refusal(r, err)
		http.Error(w, c.Data.(string), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(append([]hit{}, all...)) // the browser has gone if it fails
}

// hits returns the pages that a text may refer to, exact matches first. Without a text, these are the sections.
func (d *Door) hits(r *http.Request, text string, role identity.Role) (all []hit, err error) {
	if len(text) > lookup.BytesMax {
		return nil, domain.Refuse(domain.Invalid, "The id %.40q… has %d bytes; want at most %d.", text, len(text), lookup.BytesMax)
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
		finder := lookup.Finder{Engine: d.engine, Explain: d.idOf}
		keys := d.forAdmins(r, "access keys", "muster:Service.ListKeys") == nil
		err := finder.Find(r.Context(), lookup.Search{Text: text, Parts: true, Keys: keys}, func(o lookup.Object) bool {
			x.hits = append(x.hits, hitOf(&o))
			return true
		})
		if err != nil {
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

// finding collects hits for a lower-case text.
type finding struct {
	text string
	hits []hit
}

// add adds a page if its text, or another name of its object, contains the search text.
func (x *finding) add(kind, text, path string, names ...string) {
	names = append(names, text)
	found := func(in string) bool { return strings.Contains(strings.ToLower(in), x.text) }
	if slices.ContainsFunc(names, found) {
		same := func(name string) bool { return strings.ToLower(name) == x.text }
		x.hits = append(x.hits, hit{kind, text, Prefix + "/" + path, slices.ContainsFunc(names, same)})
	}
}

// hitOf returns the page of an object.
func hitOf(o *lookup.Object) hit {
	h := hit{Kind: strings.ReplaceAll(o.Kind, "-", " "), Text: o.Name, exact: o.Exact}
	path := objectPath(o.Kind, o.ID)
	switch o.Kind {
	case lookup.AccessKey:
		path = keyPath(o.ID)
	case lookup.Configuration:
		h.Kind = "matchmaking configuration"
	case lookup.PlayerSession:
		path = objectPath("game-session", o.ID)
	}
	h.URL = Prefix + "/" + path
	return h
}

// idOf returns the id of an object for the operators' API.
func (d *Door) idOf(ctx context.Context, kind, id string) (string, error) {
	x, err := d.explain(ctx, kind, id, false)
	if err != nil {
		return "", err
	}
	return x.ID, nil
}
