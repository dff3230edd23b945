package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// firstMinute begins a day.
const firstMinute = 20_140 * 24 * 60

// newGraphs makes a console with a fleet and a queue whose metrics are kept since firstMinute. n minutes are over: fleet-1 has i active game sessions in minute i, and a player
// connects in each tenth minute. The service was down in the minutes 20 to 29.
func newGraphs(t *testing.T, n int64) *desk {
	t.Helper()
	store, err := series.Open(series.Options{Dir: "metrics", FS: vfs.NewMem(), BytesMax: 1 << 30, SeriesMax: 10_000, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	of := series.Dimension{Name: "FleetId", Value: "fleet-1"}
	for i := range n {
		if i >= 20 && i < 30 {
			continue
		}
		points := []series.Point{{Key: series.MakeKey("ActiveGameSessions", of), Stat: series.Of(float64(i))}}
		if i%10 == 0 {
			points = append(points, series.Point{Key: series.MakeKey("PlayerSessionActivations", of), Stat: series.Of(1), Counts: true})
		}
		if err := store.Append(firstMinute+i, points); err != nil {
			t.Fatal(err)
		}
	}
	x := newDeskWith(t, engine.NewClock(time.Unix((firstMinute+n)*60, 0)), store)
	for _, command := range []kernel.Command{
		&hosting.CreateLocation{Name: "custom-1"},
		&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1", Name: "arena"}, Locations: []string{"custom-1"}},
		&hosting.CreateQueue{Queue: placement.Queue{Name: "ranked", Region: "us-east-1"}},
	} {
		if err := x.engine.Do(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// values returns the data that the script of a page of graphs reads: the times, and the lines by graph.
func (x *desk) values(path string) (times []int64, graphs map[string][][]*float64) {
	x.t.Helper()
	r := x.get(Prefix+path, x.signedInAs("LOOK"))
	var v jsonValues
	if err := json.Unmarshal([]byte(text(x.t, r)), &v); err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
		x.t.Fatalf("%s: %d, %v", path, r.StatusCode, err)
	}
	graphs = map[string][][]*float64{}
	for _, g := range v.Graphs {
		graphs[g.ID] = g.Lines
	}
	return v.Times, graphs
}

func written(values []*float64) string {
	var b strings.Builder
	for _, v := range values {
		if v == nil {
			b.WriteString("- ")
		} else {
			fmt.Fprintf(&b, "%g ", *v)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestGraphsByMinute(t *testing.T) {
	x := newGraphs(t, 45)
	times, graphs := x.values("/fleets/fleet-1/metrics.json?range=1h")
	if len(times) != 60 || times[59] != (firstMinute+44)*60 || times[0] != (firstMinute-15)*60 {
		t.Errorf("%d times from %d to %d", len(times), times[0]/60-firstMinute, times[len(times)-1]/60-firstMinute)
	}
	if got, want := written(graphs["game-sessions"][0][30:]), "15 16 17 18 19 - - - - - - - - - - 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44"; got != want {
		t.Errorf("active game sessions: got\n%s, want\n%s", got, want)
	}
	// A count without a sample is 0 while the service ran, and unknown before it began and while it was down.
	if got, want := written(graphs["player-activations"][0][10:]), "- - - - - 1 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 0 - - - - - - - - - - 1 0 0 0 0 0 0 0 0 0 1 0 0 0 0"; got != want {
		t.Errorf("activations: got\n%s, want\n%s", got, want)
	}
}

func TestGraphsBySteps(t *testing.T) {
	x := newGraphs(t, 26*60+7) // a day, two hours and seven minutes
	for span, want := range map[string]struct {
		steps               int
		active, activations string // of the last steps
	}{
		// The last step is not over: it has an average, and no count yet.
		"1d":   {288, "1552 1557 1562 1565.5", "1 0 1 -"}, // 26:06 is the last minute
		"7d":   {168, "1409.5 1469.5 1529.5 1563", "6 6 6 -"},
		"15d":  {360, "1409.5 1469.5 1529.5 1563", "6 6 6 -"},
		"455d": {455, "- - 724.3601398601398 1503", "- - 143 -"},
	} {
		_, graphs := x.values("/fleets/fleet-1/metrics.json?range=" + span)
		active, activations := graphs["game-sessions"][0], graphs["player-activations"][0]
		if len(active) != want.steps || len(activations) != want.steps {
			t.Errorf("%s has %d and %d steps, want %d", span, len(active), len(activations), want.steps)
			continue
		}
		if got := written(active[len(active)-4:]); got != want.active {
			t.Errorf("%s: active game sessions %s, want %s", span, got, want.active)
		}
		if got := written(activations[len(active)-4:]); got != want.activations {
			t.Errorf("%s: activations %s, want %s", span, got, want.activations)
		}
	}
}

func TestGraphPages(t *testing.T) {
	x := newGraphs(t, 45)
	c := x.signedInAs("LOOK")
	for path, want := range map[string][]string{
		"/fleets/fleet-1/metrics?range=1h":                            {"ActiveGameSessions", ">44<", `data-source="/console/fleets/fleet-1/metrics.json?range=1h"`, `href="/console/fleets/fleet-1/metrics?range=455d"`, "uplot.min.js", "custom-1"},
		"/fleets/fleet-1/metrics?range=1h&location=custom-1&zone=utc": {`data-source="/console/fleets/fleet-1/metrics.json?location=custom-1&amp;range=1h&amp;zone=utc"`},
		"/fleets/fleet-1/metrics?graph=game-sessions&range=1h":        {"<th>UTC</th>", "All graphs", fmt.Sprint(time.Unix((firstMinute+44)*60, 0).UTC().Format("2006-01-02 15:04"))},
		"/queues/ranked/metrics":                                      {"PlacementsTimedOut"},
	} {
		r := x.get(Prefix+path, c)
		page := text(t, r)
		if r.StatusCode != http.StatusOK || strings.Contains(page, "sse-connect") {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s: no %s in\n%s", path, part, page)
			}
		}
	}
	for path, want := range map[string]int{
		"/fleets/fleet-1/metrics?range=2h": 400, "/fleets/fleet-1/metrics?zone=Mars": 400, "/fleets/fleet-1/metrics?location=nowhere": 404, "/fleets/fleet-1/metrics?graph=none": 404,
		"/fleets/fleet-2/metrics": 404, "/queues/none/metrics": 404, "/matchmaking/none/metrics": 404,
	} {
		asJSON := strings.Replace(path, "/metrics", "/metrics.json", 1)
		if page, values := x.get(Prefix+path, c).StatusCode, x.get(Prefix+asJSON, c).StatusCode; page != want || values != want {
			t.Errorf("%s: %d, and %d as JSON; want %d", path, page, values, want)
		}
	}
	if r := x.get(Prefix + "/fleets/fleet-1/metrics.json"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("values without a sign-in: %d", r.StatusCode)
	}
}

// A request that waits for its turn ends when its browser disconnects.
func TestGraphsAtOnceAreBounded(t *testing.T) {
	x := newGraphs(t, 1)
	c := x.signedInAs("LOOK")
	for range drawingsAtOnce {
		x.drawings <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, "GET", Prefix+"/fleets/fleet-1/metrics.json", nil)
	r.AddCookie(c)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		t.Errorf("one request too many was answered: %s", w.Body)
	}
	<-x.drawings
	if r := x.get(Prefix+"/fleets/fleet-1/metrics.json", c); r.StatusCode != http.StatusOK {
		t.Errorf("a request in its turn: %d", r.StatusCode)
	}
}

// If no metrics are stored, the pages say so.
func TestGraphsWithoutMetrics(t *testing.T) {
	x := newDesk(t)
	if err := x.engine.Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "ranked", Region: "us-east-1"}}); err != nil {
		t.Fatal(err)
	}
	if page := text(t, x.get(Prefix+"/queues/ranked/metrics", x.signedInAs("LOOK"))); !strings.Contains(page, "--metrics-max") {
		t.Errorf("the page is %s", page)
	}
	if _, graphs := x.values("/queues/ranked/metrics.json?graph=depth"); len(graphs) != 0 {
		t.Errorf("there are values: %v", graphs)
	}
}

// Each metric of a fleet, a queue and a matchmaking configuration is a line of a graph.
func TestEveryMetricHasALine(t *testing.T) {
	store := newGraphs(t, 0).config.Series
	at := series.Dimension{Name: "QueueName", Value: "q"}
	of := []series.Dimension{{Name: "ConfigurationName", Value: "c"}, {Name: "RuleName", Value: "r"}}
	var points []series.Point
	points = append(points, series.Point{Key: series.MakeKey("Placement custom-1", at), Stat: series.Of(1), Counts: true})
	for _, name := range []string{"RuleEvaluationsPassed", "RuleEvaluationsFailed"} {
		points = append(points, series.Point{Key: series.MakeKey(name, of...), Stat: series.Of(1), Counts: true})
	}
	if err := store.Append(firstMinute, points); err != nil {
		t.Fatal(err)
	}
	var lines []series.Key
	for _, graphs := range [][]graph{fleetGraphs("f", "custom-1", true), queueGraphs("q", store), configurationGraphs("c", store)} {
		for _, g := range graphs {
			for _, l := range g.Lines {
				lines = append(lines, l.key)
			}
		}
	}
	for _, d := range gamemetrics.Table {
		if d.Of == gamemetrics.Location || d.Of == gamemetrics.Group {
			continue // these have no page
		}
		if !slices.ContainsFunc(lines, func(k series.Key) bool {
			metric, dims, err := k.Parse()
			return err == nil && d.Is(metric) && len(dims) == len(d.DimensionSets()[0]) && dims[0].Name == d.DimensionSets()[0][0]
		}) {
			t.Errorf("%s of %v is on no page", d.Name, d.DimensionSets()[0])
		}
	}
}

func TestReadable(t *testing.T) {
	for want, x := range map[string]struct {
		value float64
		unit  string
	}{
		"0": {0, "Count"}, "1234567": {1234567, "Count"}, "0.1235": {.123456, "Count"}, "33.33 %": {100. / 3, "Percent"}, "1.5 ms": {.0015, "Seconds"}, "90 s": {90, "Seconds"}, "0 s": {0, "Seconds"},
		"512 B": {512, "Bytes"}, "1.5 MiB": {1.5 * (1 << 20), "Bytes"}, "3 TiB": {3 << 40, "Bytes"},
	} {
		if got := readable(x.value, x.unit); got != want {
			t.Errorf("%g %s is written %s, want %s", x.value, x.unit, got, want)
		}
	}
}

// A graph of many series shows the largest ones.
func TestHealthShowsTheLargest(t *testing.T) {
	x := newGraphs(t, 0)
	points := []series.Point{{Key: series.MakeKey("muster_healthy"), Stat: series.Of(1)}}
	for i := range 130 {
		of := []series.Dimension{{Name: "door", Value: "api"}, {Name: "operation", Value: fmt.Sprintf("Call%03d", i)}}
		points = append(points, series.Point{Key: series.MakeKey("muster_call_seconds", of...), Stat: series.Stat{Count: 10, Sum: float64(i), Min: 1, Max: 1}})
	}
	if err := x.config.Series.Append(firstMinute-1, points); err != nil {
		t.Fatal(err)
	}
	_, graphs := x.values("/health.json?graph=call-sums&range=1h")
	if lines := graphs["call-sums"]; len(lines) != graphLines || written(lines[0][58:]) != "- 118" || written(lines[11][58:]) != "- 129" {
		t.Errorf("%d lines", len(lines))
	}
	page := text(t, x.get(Prefix+"/health", x.signedInAs("LOOK")))
	if !strings.Contains(page, "api Call129") || strings.Contains(page, "api Call117<") {
		t.Errorf("the page is %s", page)
	}
	// The page and its values may name different lines, if calls are answered between the two requests.
	var v jsonValues
	if err := json.Unmarshal([]byte(text(t, x.get(Prefix+"/health.json?graph=call-sums&range=1h", x.signedInAs("LOOK")))), &v); err != nil {
		t.Fatal(err)
	}
	if g := v.Graphs[0]; len(g.Names) != graphLines || g.Names[0] != "api Call118" || written(g.Lowest[11:]) != "129" || written(g.Average[11:]) != "129" || written(g.Highest[:1]) != "118" {
		t.Errorf("the values are of %q, from %s to %s", g.Names, written(g.Lowest), written(g.Highest))
	}
	if _, graphs := x.values("/health.json?graph=calls&range=1h"); written(graphs["calls"][0][57:]) != "- - 0" {
		t.Errorf("calls: %s", written(graphs["calls"][0]))
	}
}
