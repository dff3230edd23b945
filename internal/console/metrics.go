package console

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/series"
)

// drawingsAtOnce bounds the requests that read kept metrics concurrently; others wait. A year of a fleet takes some thousand disk blocks.
const drawingsAtOnce = 4

// subject is what a page of graphs is about.
type subject struct {
	Title, Section string
	path           string // of the page
	back           *link  // the page of the subject
	command        string
	choice         *choice
	graphs         []graph
	present        series.Key // has a value in each minute in which the subject has one; empty: a line of the graphs does
}

type link struct{ Text, URL string }

// choice is a parameter of a page, with its possible values.
type choice struct {
	Name, Text, Value string
	Values            []string
	Empty             string // text if there is no value
}

// metricsPage is what the template of a page of graphs shows.
type metricsPage struct {
	Back      *link
	Ranges    []rangeLink
	Range     string
	Zone      string // utc, or empty: the viewer's
	OtherZone link
	Choice    *choice
	Source    string // URL of the values
	Each      string
	Graphs    []graphView
	Whole     string // URL of the page with all graphs, on a page with one
	Rows      []graphRow
	Off       bool // no metrics are kept
}

type rangeLink struct {
	Text, URL string
	Current   bool
}

type graphView struct {
	ID, Title, Unit, How string
	Lines                []lineView
	Link                 string // to the page with its values
}

type lineView struct {
	Name                       string
	Color                      int // 1 to 6
	Dashed                     bool
	Latest, Low, Average, High string
}

type graphRow struct {
	At     domain.Time
	UTC    string
	Values []string
}

// graphPages registers the page of a subject's graphs, and their values as JSON.
func (d *Door) graphPages(path string, of func(*http.Request) (*subject, error)) {
	d.page(path, func(r *http.Request) (*content, error) {
		s, x, err := d.drawing(r, of)
		if err != nil {
			return nil, err
		}
		return d.metricsPage(r, s, x), nil
	})
	d.routes.HandleFunc("GET "+Prefix+"/"+path+".json", d.signedIn(func(w http.ResponseWriter, r *http.Request, _ identity.AccessKey) {
		_, x, err := d.drawing(r, of)
		if err != nil {
			status, c := d.refusal(r, err)
			http.Error(w, c.Data.(string), status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x.values()) // an error means that the browser has gone
	}))
}

// drawing reads the graphs that a request asks for. Finding the lines of a graph scans all kept series, so the request waits for its turn
// before that.
func (d *Door) drawing(r *http.Request, of func(*http.Request) (*subject, error)) (s *subject, x drawing, err error) {
	query := r.URL.Query()
	span, err := timespanOf(query)
	if err != nil {
		return nil, x, err
	}
	if zone := query.Get("zone"); zone != "" && zone != "utc" {
		return nil, x, domain.Refuse(domain.Invalid, "zone is %.20q; want utc, or nothing for the zone of the browser.", zone)
	}
	select {
	case d.drawings <- struct{}{}:
		defer func() { <-d.drawings }()
	case <-r.Context().Done():
		return nil, x, r.Context().Err()
	}
	if s, err = of(r); err != nil {
		return nil, x, err
	}
	graphs := s.graphs
	if id := query.Get("graph"); id != "" {
		graphs = nil
		for _, g := range s.graphs {
			if g.ID == id {
				graphs = []graph{g}
			}
		}
		if graphs == nil {
			return nil, x, domain.Refuse(domain.NotFound, "There is no graph %.50q here.", id)
		}
	}
	x, err = d.draw(graphs, span, s.present)
	return s, x, err
}

func (d *Door) metricsPage(r *http.Request, s *subject, x drawing) *content {
	query := r.URL.Query()
	with := func(path, name, value string) string {
		all := url.Values{"range": {x.span.Name}}
		for _, kept := range []string{"zone", "graph"} {
			all.Set(kept, query.Get(kept))
		}
		if s.choice != nil {
			all.Set(s.choice.Name, s.choice.Value)
		}
		if name != "" {
			all.Set(name, value)
		}
		for name := range all {
			if all.Get(name) == "" {
				all.Del(name)
			}
		}
		return path + "?" + all.Encode()
	}
	p := &metricsPage{
		Back: s.back, Range: x.span.Name, Zone: query.Get("zone"), Choice: s.choice, Source: with(s.path+".json", "", ""), Each: x.span.Each, Off: d.config.Series == nil,
		OtherZone: link{"in UTC", with(s.path, "zone", "utc")},
	}
	if p.Zone != "" {
		p.OtherZone = link{"in the zone of this browser", with(s.path, "zone", "")}
	}
	for _, span := range timespans {
		p.Ranges = append(p.Ranges, rangeLink{span.Text, with(s.path, "range", span.Name), span == x.span})
	}
	if query.Get("graph") != "" {
		p.Whole = with(s.path, "graph", "")
		p.Rows = x.rows()
	}
	for g := range x.curves {
		p.Graphs = append(p.Graphs, x.view(g, with(s.path, "graph", x.graphs[g].ID)))
	}
	return &content{Title: s.Title, Section: s.Section, page: "metrics", Data: p, Command: s.command, Graphs: true}
}

// colors is how many colors the lines of a graph have; lines beyond that are dashed.
const colors = 6

func (x *drawing) view(g int, link string) graphView {
	all := &x.graphs[g]
	v := graphView{ID: all.ID, Title: all.Title, Unit: all.Unit, How: "average of each " + x.span.Each, Link: link}
	if all.Counts {
		v.How = "number in each " + x.span.Each
	}
	if all.Counts && all.Unit == "Seconds" {
		v.How = "sum of each " + x.span.Each
	}
	for i, l := range all.Lines {
		c := &x.curves[g][i]
		latest := math.NaN()
		for _, value := range c.values {
			if !math.IsNaN(value) {
				latest = value
			}
		}
		v.Lines = append(v.Lines, lineView{
			Name: l.Name, Color: i%colors + 1, Dashed: i >= colors,
			Latest: readable(latest, all.Unit), Low: readable(c.low, all.Unit), Average: readable(c.middle, all.Unit), High: readable(c.high, all.Unit),
		})
	}
	return v
}

// rows returns the values of a drawing with one graph, the newest first.
func (x *drawing) rows() []graphRow {
	var all []graphRow
	for i := x.steps - 1; i >= 0 && len(x.curves) > 0; i-- {
		at := domain.TimeOf(time.Unix((x.from+int64(i)*x.span.step)*60, 0))
		row := graphRow{At: at, UTC: at.Std().UTC().Format("2006-01-02 15:04")}
		for _, c := range x.curves[0] {
			row.Values = append(row.Values, readable(c.values[i], x.graphs[0].Unit))
		}
		all = append(all, row)
	}
	return all
}

// jsonValues is what the script of the graphs reads.
type jsonValues struct {
	Step   int64       `json:"step"`  // seconds
	Times  []int64     `json:"times"` // starts of the steps, in Unix seconds
	Graphs []jsonGraph `json:"graphs"`
}

// jsonGraph has as many names as figures and lines. The lines of a graph can change from one request to the next.
type jsonGraph struct {
	ID      string       `json:"id"`
	Unit    string       `json:"unit"`
	Names   []string     `json:"names"`
	Lines   [][]*float64 `json:"lines"` // null: no value
	Lowest  []*float64   `json:"lowest"`
	Average []*float64   `json:"average"`
	Highest []*float64   `json:"highest"`
}

func (x *drawing) values() jsonValues {
	v := jsonValues{Step: x.span.step * 60, Times: make([]int64, x.steps), Graphs: make([]jsonGraph, len(x.curves))}
	for i := range v.Times {
		v.Times[i] = (x.from + int64(i)*x.span.step) * 60
	}
	for g := range x.curves {
		j := jsonGraph{ID: x.graphs[g].ID, Unit: x.graphs[g].Unit, Names: []string{}, Lines: [][]*float64{}, Lowest: []*float64{}, Average: []*float64{}, Highest: []*float64{}}
		for l, c := range x.curves[g] {
			values := make([]*float64, x.steps)
			for i := range values {
				values[i] = known(c.values[i])
			}
			j.Names, j.Lines = append(j.Names, x.graphs[g].Lines[l].Name), append(j.Lines, values)
			j.Lowest, j.Average, j.Highest = append(j.Lowest, known(c.low)), append(j.Average, known(c.middle)), append(j.Highest, known(c.high))
		}
		v.Graphs[g] = j
	}
	return v
}

// known returns a value as JSON needs it, which has no NaN: nil for NaN.
func known(value float64) *float64 {
	if math.IsNaN(value) {
		return nil
	}
	return &value
}
