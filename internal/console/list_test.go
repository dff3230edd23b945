package console

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/settings"
)

// exported is an export as JSON.
type exported struct {
	List string
	Rows []map[string]any
	Next *string
}

func (x *desk) exported(path string, c *http.Cookie) (e exported) {
	x.t.Helper()
	r := x.get(Prefix+path, c)
	body := text(x.t, r)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
		x.t.Fatalf("%s: %d, %s: %.300s", path, r.StatusCode, r.Header.Get("Content-Type"), body)
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		x.t.Fatalf("%s: %v in %s", path, err, body)
	}
	return e
}

func (x *desk) exportedCSV(path string, c *http.Cookie) [][]string {
	x.t.Helper()
	r := x.get(Prefix+path, c)
	body := text(x.t, r)
	all, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if r.StatusCode != http.StatusOK || err != nil || !strings.Contains(r.Header.Get("Content-Disposition"), `attachment; filename="`) {
		x.t.Fatalf("%s: %d, %v: %.300s", path, r.StatusCode, err, body)
	}
	return all
}

// TestEachListIsExported: every list has both formats, with the columns of its page and as many rows.
func TestEachListIsExported(t *testing.T) {
	x := furnished(t)
	game := x.game("one")
	x.do(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID{1}, Player: "ann"}}})
	x.withKeys()
	x.config.Settings = func() []settings.Setting { return settings.Defaults().All(nil)[:1] }
	admin := x.signedInAs("ADMIN")
	for path, rows := range map[string]int{
		"/fleets": 1, "/fleets/" + testFleet + "/computes": 1, "/fleets/" + testFleet + "/processes": 1, "/fleets/" + testFleet + "/events": -1, "/hosts": 0, "/builds": 0, "/game-sessions": 1,
		"/game-sessions/search": 1, "/player-sessions/ann": 1, "/aliases": 1, "/queues": 1, "/matchmaking": 0, "/audit": 0, "/settings": 1, "/keys": 0,
	} {
		e := x.exported(path+"?format=json", admin)
		table := x.exportedCSV(path+"?format=csv", admin)
		if rows >= 0 && len(e.Rows) != rows || e.Next != nil || len(table) != len(e.Rows)+1 {
			t.Errorf("%s: %d rows, next %v, and %d lines of CSV; want %d rows", path, len(e.Rows), e.Next, len(table), rows)
		}
		for _, row := range e.Rows {
			if got, want := slices.Sorted(maps.Keys(row)), slices.Sorted(slices.Values(table[0])); !slices.Equal(got, want) {
				t.Errorf("%s: the columns are %v and %v", path, got, want)
			}
		}
		page := text(t, x.get(Prefix+path, admin))
		for _, format := range []string{"csv", "json"} {
			if !strings.Contains(page, `href="`+Prefix+path+`?format=`+format+`" download`) {
				t.Errorf("%s has no link to its export as %s", path, format)
			}
		}
	}
	if r := x.get(Prefix+"/fleets?format=xml", admin); r.StatusCode != http.StatusBadRequest || !strings.Contains(text(t, r), "want csv or json") {
		t.Errorf("a format of no kind: %d", r.StatusCode)
	}
	if r := x.get(Prefix + "/fleets?format=csv"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("an export without a sign-in: %d", r.StatusCode)
	}
	if r := x.get(Prefix+"/audit?format=csv", x.signedInAs("RUN")); r.StatusCode != http.StatusForbidden {
		t.Errorf("the audit log is exported for the role backend: %d", r.StatusCode)
	}
}

// TestExportHasTheRowsOfThePage: an export has the filter, the columns and the first row that the URL of its page has.
func TestExportHasTheRowsOfThePage(t *testing.T) {
	x := furnished(t)
	for i := range 5 {
		x.do(&hosting.CreateQueue{Queue: placement.Queue{Name: fmt.Sprint("q", i)}})
	}
	c := x.signedInAs("LOOK")
	table := x.exportedCSV("/queues?after=q2&column=name&column=destinations&format=csv", c)
	if fmt.Sprint(table) != "[[name destinations] [q3 ] [q4 ]]" {
		t.Errorf("exported %v", table)
	}
	page := text(t, x.get(Prefix+"/queues?after=q2&column=name&column=destinations", c))
	if strings.Contains(page, "<th>Created</th>") || !strings.Contains(page, "<th>Destinations</th>") || strings.Contains(page, "q2<") || !strings.Contains(page, "q3<") {
		t.Error("the page has other columns or rows")
	}
	for _, kept := range []string{`<input type="hidden" name="after" value="q2">`, `name="column" value="name" checked`, `name="column" value="created">`, `after=q2&amp;column=name&amp;column=destinations&amp;format=csv`} {
		if !strings.Contains(page, kept) {
			t.Errorf("the page has no %s", kept)
		}
	}
	if r := x.get(Prefix+"/queues?column=none", c); r.StatusCode != http.StatusBadRequest || !strings.Contains(text(t, r), "want name, destinations, waiting, timeout") {
		t.Errorf("a column that there is not: %d", r.StatusCode)
	}
	ended := x.exported("/game-sessions?status=TERMINATED&format=json", c)
	if len(ended.Rows) != 0 {
		t.Errorf("the filter does not reach the export: %v", ended.Rows)
	}
}

// TestExportOfManyPages: an export reads all pages, and has each row once and in order.
func TestExportOfManyPages(t *testing.T) {
	x := newDesk(t)
	const all = 2*exportStep + 7
	l := list[string]{
		name: "locations", columns: []column[string]{{name: "name", value: func(s *string) value { return words(*s) }}},
		rows: func(d *Door, r *http.Request, query url.Values, most int) ([]string, url.Values, error) {
			from, _ := strconv.Atoi(query.Get("after"))
			var names []string
			for i := from; i < min(from+most, all); i++ {
				names = append(names, strconv.Itoa(i))
			}
			if from+most >= all {
				return names, nil, nil
			}
			return names, after(strconv.Itoa(from + most)), nil
		},
	}
	w := httptest.NewRecorder()
	l.export(x.Door, w, httptest.NewRequest("GET", "/console/x?format=csv", nil), identity.AccessKey{})
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	if len(lines) != all+1 || lines[1] != "0" || lines[all] != strconv.Itoa(all-1) {
		t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
}

// endless is a list without an end.
var endless = list[int]{
	name: "endless", columns: []column[int]{{name: "n", value: func(n *int) value { return number(*n) }}},
	rows: func(_ *Door, _ *http.Request, query url.Values, most int) ([]int, url.Values, error) {
		from, _ := strconv.Atoi(query.Get("after"))
		all := make([]int, most)
		for i := range all {
			all[i] = from + i
		}
		return all, after(strconv.Itoa(from + most)), nil
	},
}

// TestExportsAreBounded: an export ends after a maximum of rows and says where to continue, and the number of simultaneous exports is bounded.
func TestExportsAreBounded(t *testing.T) {
	x := newDesk(t)
	for format, end := range map[string]string{
		"json": "],\"next\":\"/console/x?after=100000\\u0026format=json\"}\n",
		"csv":  "\n\"The export ends here, at its limit of 100000 rows. It goes on at /console/x?after=100000&format=csv\"\n",
	} {
		w := httptest.NewRecorder()
		endless.export(x.Door, w, httptest.NewRequest("GET", "/console/x?format="+format, nil), identity.AccessKey{})
		body := w.Body.String()
		if !strings.HasSuffix(body, end) || strings.Count(body, "\n") < exportRowsMax {
			t.Errorf("%s ends with %q; want %q", format, body[max(0, len(body)-200):], end)
		}
	}
	for range exportsAtOnce {
		x.exports <- struct{}{}
	}
	c := x.signedInAs("LOOK")
	if r := x.get(Prefix+"/fleets?format=csv", c); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one export more than may run: %d", r.StatusCode)
	}
	<-x.exports
	if r := x.get(Prefix+"/fleets?format=csv", c); r.StatusCode != http.StatusOK {
		t.Errorf("an export after another one has ended: %d", r.StatusCode)
	}
}

// TestBrokenExportIsNoWholeOne: a client can tell a part of an export from a complete one.
func TestBrokenExportIsNoWholeOne(t *testing.T) {
	x := newDesk(t)
	broken := endless
	broken.rows = func(d *Door, r *http.Request, query url.Values, most int) ([]int, url.Values, error) {
		if query.Get("after") != "" {
			return nil, nil, errors.New("broken")
		}
		return endless.rows(d, r, query, most)
	}
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
	}()
	broken.export(x.Door, httptest.NewRecorder(), httptest.NewRequest("GET", "/console/x?format=csv", nil), identity.AccessKey{})
	t.Error("the connection goes on")
}

// TestExportsAreHarmless: values that players and game servers choose are no formulas in a spreadsheet, and unchanged for programs.
func TestExportsAreHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "  =1": "'  =1", "＝1": "'＝1", "a=1": "a=1", "": "", "'": "'",
	} {
		v := words(text)
		if got := v.cell(); got != want {
			t.Errorf("%q is exported as %q; want %q", text, got, want)
		}
	}
	if v := number(-5); v.cell() != "-5" || v.data() != int64(-5) {
		t.Errorf("a negative number is exported as %q", v.cell())
	}
	x := furnished(t)
	x.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-2", Name: `=HYPERLINK("https://evil.example")`, Fleet: testFleet}})
	c := x.signedInAs("LOOK")
	table := x.exportedCSV("/aliases?column=name&format=csv", c)
	if fmt.Sprint(table) != `[[name] [live] ['=HYPERLINK("https://evil.example")]]` {
		t.Errorf("exported %v", table)
	}
	if e := x.exported("/aliases?column=name&format=json", c); e.Rows[1]["name"] != `=HYPERLINK("https://evil.example")` {
		t.Errorf("exported %v", e.Rows)
	}
}

// TestAuditLogIsExported with what administrators filter for.
func TestAuditLogIsExported(t *testing.T) {
	x := newDesk(t)
	for n := range 3 {
		ctx := audit.With(t.Context(), audit.Origin{Principal: "ADMIN", Door: audit.DoorAPI, Operation: "CreateLocation"})
		if err := x.engine.Do(ctx, &hosting.CreateLocation{Name: fmt.Sprintf("custom-%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	admin := x.signedInAs("ADMIN")
	if e := x.exported("/audit?what=custom-1&format=json", admin); len(e.Rows) != 1 || e.Rows[0]["id"] != "custom-1" || e.Rows[0]["no"] != 2.0 {
		t.Errorf("exported %v", e.Rows)
	}
	if r := x.get(Prefix+"/audit?since=yesterday&format=csv", admin); r.StatusCode != http.StatusBadRequest || !strings.Contains(text(t, r), "yesterday") {
		t.Errorf("a time that is none: %d", r.StatusCode)
	}
}
