package console

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

//go:embed pages
var pages embed.FS

// content is one page.
type content struct {
	Title   string
	Section string // of the navigation
	Command string // that does the same in a terminal
	Data    any
	At      uint64 // number of an entry; the page shows the effects of all entries up to it

	// Still says that the page does not follow the state.
	Still bool
	// Ticks says that the page also shows what changes without the state, such as when another node was last heard from. It is fetched again every
	// few seconds.
	Ticks bool
	// Past links to the history of an object that is gone; nil: the page is about no such object.
	Past *link
	// Graphs says that the page has graphs. They fetch their values themselves, so such a page does not follow the state.
	Graphs bool
	// Editor says that a person writes in the page and tests the text there, so the page does not follow the state.
	Editor bool

	// Output says that the page shows what a server process prints, which it fetches itself.
	Output bool

	page string // its template
}

// section is an entry of the navigation.
type section struct{ Name, Path, Text string }

var navigation = []section{
	{"overview", "", "Overview"}, {"fleets", "fleets", "Fleets"}, {"builds", "builds", "Builds"}, {"hosts", "hosts", "Hosts"}, {"game-sessions", "game-sessions", "Game sessions"},
	{"parties", "parties", "Parties"}, {"aliases", "aliases", "Aliases"}, {"queues", "queues", "Queues"}, {"matchmaking", "matchmaking", "Matchmaking"}, {"health", "health", "Health"}, {"cluster", "cluster", "Cluster"}, {"audit", "audit", "Audit log"},
	{"keys", "keys", "Access keys"}, {"policies", "policies", "Policies"}, {"people", "people", "People"}, {"settings", "settings", "Settings"},
}

// frame is what the layout shows around a page.
type frame struct {
	*content
	Who     string // name of the person who has signed in; empty: not signed in
	Dev     bool
	URL     string // of this page
	Version string
	Done    string // what an action has just done; empty: nothing

	door *Door
	role identity.Role // of who has signed in
}

// templates are the pages by name. Each is parsed on first use, because most processes of this program, such as commands and agents, show none.
var templates = parsed()

// inAllPages are the templates that every page uses besides its own file.
var inAllPages = []string{"layout", "explained", "offer", "table", "field", "trial", "searched"}

func parsed() map[string]func() *template.Template {
	base := sync.OnceValue(parseShared)
	all := map[string]func() *template.Template{}
	files, err := pages.ReadDir("pages")
	if err != nil {
		panic(err) // it is in the binary
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".html")
		if ok && !slices.Contains(inAllPages, name) {
			all[name] = sync.OnceValue(func() *template.Template {
				return template.Must(template.Must(base().Clone()).ParseFS(pages, "pages/"+f.Name()))
			})
		}
	}
	return all
}

func parseShared() *template.Template {
	base := template.New("layout.html").Funcs(template.FuncMap{
		"static":   func(name string) string { return urls[name] },
		"when":     when,
		"lower":    func(x interface{ String() string }) string { return strings.ToLower(x.String()) },
		"word":     strings.ToLower,
		"sections": func() []section { return navigation },
		"page":     func(kind, id string) string { return Prefix + "/" + objectPath(kind, id) },
	})
	for _, name := range inAllPages {
		template.Must(base.ParseFS(pages, "pages/"+name+".html"))
	}
	return base
}

// when formats an instant for people. Scripts show it in the viewer's time zone; without scripts it is in UTC.
func when(t domain.Time) template.HTML {
	if t == 0 {
		return "–"
	}
	at := t.Std().UTC()
	return template.HTML(`<time datetime="` + at.Format("2006-01-02T15:04:05.000Z") + `">` + at.Format(time.DateTime) + " UTC</time>") // #nosec G203 -- digits only
}

// write answers with a page. If rendering fails, no part of the page is sent.
func (d *Door) write(w http.ResponseWriter, r *http.Request, status int, c *content, by identity.AccessKey) {
	who := by.Name
	if who == "" {
		who = by.ID
	}
	var page bytes.Buffer
	x := frame{content: c, Who: who, Dev: d.config.Dev, URL: r.URL.RequestURI(), Version: d.config.Version, door: d, role: by.Role}
	if status == http.StatusOK {
		x.Done = d.whatWasDone(r.URL.Query(), by.ID)
	}
	if err := templates[c.page]().Execute(&page, x); err != nil {
		d.log.Error("a page of the console failed", "path", r.URL.Path, "error", err)
		http.Error(w, "The page failed inside the service; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(settled(page.Bytes())) // the browser has gone if it fails
}
