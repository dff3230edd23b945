package console

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// list describes a list: what its page shows and what its exports contain.
type list[R any] struct {
	name    string // of exported files
	label   string // name of the table for screen readers
	columns []column[R]
	most    int                  // maximum number of rows on a page
	empty   template.HTML        // shown if the table has no rows
	id      func(x *R) string    // of a row, in the page; nil: rows have none
	offers  func(x *R) []offered // actions on a row; nil: there are none

	// rows returns at most most rows after the place in the query, and the parameters that name the next place; no parameters if these are the last
	// rows.
	rows func(d *Door, r *http.Request, query url.Values, most int) (rows []R, next url.Values, err error)
}

// column is a column that people can choose to show.
type column[R any] struct {
	name   string // in URLs and exports
	head   string // of the table
	value  func(x *R) value
	hidden bool // shown only if it is chosen
}

// offered is an action on a row, or a link to a further page about it.
type offered struct {
	action, id string
	link       link // if it is not an action
}

// Parameters of the URL of a list.
const (
	columnParameter = "column" // repeated for each column to show
	formatParameter = "format" // of an export
)

// table is what the template shows of a list.
type table struct {
	Label   string
	Heads   []string
	Rows    []tableRow
	Empty   template.HTML
	Acts    bool   // rows have actions
	Next    string // URL of the next page; empty: this is the last one
	Whole   string // URL of the list, on a page that shows only its first rows; empty: this is the list
	Path    string // of the list
	Columns []columnChoice
	Kept    []parameter // of the URL, for the form that chooses columns
	Chosen  []parameter // columns, for forms that choose rows; none if they are the usual ones
	Exports []link
}

type tableRow struct {
	ID     string
	Values []value
	Offers []offer
}

type columnChoice struct {
	Name, Head string
	Shown      bool
}

type parameter struct{ Name, Value string }

// Width returns the number of cells in a row.
func (t *table) Width() int {
	if t.Acts {
		return len(t.Heads) + 1
	}
	return len(t.Heads)
}

// listPage registers the page of a list and its exports, which have the page's URL with a format.
func listPage[R any](d *Door, path string, l *list[R], build func(r *http.Request, t *table) (*content, error)) {
	d.routes.HandleFunc("GET "+Prefix+"/"+path, d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) { l.serve(d, w, r, by, build) }))
}

// serve answers with a page of the list, or with an export.
func (l *list[R]) serve(d *Door, w http.ResponseWriter, r *http.Request, by identity.AccessKey, build func(r *http.Request, t *table) (*content, error)) {
	if isExport(r) {
		l.export(d, w, r, by)
		return
	}
	d.show(w, r, by, func(r *http.Request) (*content, error) {
		t, err := l.table(d, r, r.URL.Query(), by.Role)
		if err != nil {
			return nil, err
		}
		return build(r, t)
	})
}

// chosen returns the columns that a query selects, in the order of the list.
func (l *list[R]) chosen(query url.Values) (all []*column[R], err error) {
	wanted := query[columnParameter]
	for i := range l.columns {
		if c := &l.columns[i]; slices.Contains(wanted, c.name) || len(wanted) == 0 && !c.hidden {
			all = append(all, c)
		}
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(l.columns, func(c column[R]) bool { return c.name == name }) {
			return nil, domain.Refuse(domain.Invalid, "column is %.40q; want %s.", name, l.names())
		}
	}
	return all, nil
}

func (l *list[R]) names() string {
	var all []string
	for _, c := range l.columns {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

// table reads the rows that a page shows.
func (l *list[R]) table(d *Door, r *http.Request, query url.Values, role identity.Role) (*table, error) {
	columns, err := l.chosen(query)
	if err != nil {
		return nil, err
	}
	rows, next, err := l.rows(d, r, query, l.most)
	if err != nil {
		return nil, err
	}
	t := &table{Label: l.label, Empty: l.empty, Acts: l.offers != nil, Path: r.URL.EscapedPath()}
	for _, c := range columns {
		t.Heads = append(t.Heads, c.head)
	}
	for _, c := range l.columns {
		t.Columns = append(t.Columns, columnChoice{c.name, c.head, slices.ContainsFunc(columns, func(x *column[R]) bool { return x.name == c.name })})
	}
	for i := range rows {
		row := tableRow{}
		if l.id != nil {
			row.ID = l.id(&rows[i])
		}
		for _, c := range columns {
			row.Values = append(row.Values, c.value(&rows[i]))
		}
		if l.offers != nil {
			for _, o := range l.offers(&rows[i]) {
				shown := offer{Text: o.link.Text, URL: o.link.URL}
				if o.action != "" {
					shown = d.offer(role, o.action, o.id)
				}
				shown.Of = row.Values[0].Text
				row.Offers = append(row.Offers, shown)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.link(query, next)
	return t, nil
}

// beginning returns the table of the first rows, for a page about something larger; the whole list has a page of its own.
func (l *list[R]) beginning(d *Door, r *http.Request, whole string) (*table, error) {
	key, _, _ := d.session(r)
	t, err := l.table(d, r, url.Values{}, key.Role)
	if err != nil {
		return nil, err
	}
	t.Whole = whole
	return t, nil
}

// link adds the links of a table: to the next page, to other columns, and to exports of the same rows from this page on.
func (t *table) link(query, next url.Values) {
	query = without(query, formatParameter, doneParameter)
	if next != nil {
		t.Next = t.Path + "?" + with(query, next).Encode()
	}
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		t.Exports = append(t.Exports, link{strings.ToUpper(format), t.Path + "?" + with(query, url.Values{formatParameter: {format}}).Encode()})
	}
	for _, name := range query[columnParameter] {
		t.Chosen = append(t.Chosen, parameter{columnParameter, name})
	}
	rest := without(query, columnParameter)
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		for _, value := range rest[name] {
			t.Kept = append(t.Kept, parameter{name, value})
		}
	}
}

// without returns a query without the named parameters.
func without(query url.Values, names ...string) url.Values {
	rest := maps.Clone(query)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// with returns a query with some parameters changed.
func with(query, changed url.Values) url.Values {
	all := maps.Clone(query)
	maps.Copy(all, changed)
	return all
}

// isExport reports whether a request wants the rows of a list rather than its page.
func isExport(r *http.Request) bool { return r.URL.Query().Has(formatParameter) }
