package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// waits makes players with these skills wait in a configuration, each with a latency to one region.
func (x *desk) waits(skills ...float64) {
	x.t.Helper()
	for i, skill := range skills {
		x.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: fmt.Sprintf("t%03d", i), Chosen: true, Players: []matchmaking.Player{{ID: fmt.Sprintf("p%03d", i),
			Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}}, Latencies: []matchmaking.Latency{{Region: "eu-west-1", Milliseconds: int32(30 * i)}}}}})
	}
}

func TestConfigurationPage(t *testing.T) {
	x := matchmakers(t)
	look := x.signedInAs("LOOK")
	x.wantPage(x.get(Prefix+"/matchmaking/ranked", look), http.StatusOK, "No ticket waits.", "aws gamelift describe-matchmaking-configurations --names ranked", "Use another rule set: needs the role admin", `href="/console/do/create-rule-set?configuration=ranked"`)
	x.waits(10, 90, 95, 3000)
	page := text(t, x.get(Prefix+"/matchmaking/ranked", look))
	for _, part := range []string{`aria-label="Tickets by age"`, `aria-label="Players by least latency"`, `aria-label="Players by skill"`, `<th scope="row">&lt; 20 ms</th><td class="n">1</td>`, `<th scope="row">20–40 ms</th><td class="n">1</td>`,
		`<a href="/console/ticket/t000">t000</a>`, "Why it waits", "<option>eu-west-1</option>", `<option selected>skill</option>`, `<dd>4</dd>`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page does not say %s: %s", part, page)
		}
	}
	x.wantPage(x.get(Prefix+"/matchmaking/ranked?region=us-east-1", look), http.StatusOK, "Players by latency to us-east-1", "4 players said no latency.")
	x.wantPage(x.get(Prefix+"/matchmaking/ranked?attribute=odd", look), http.StatusNotFound, "The rule set has no attribute")
	x.wantPage(x.get(Prefix+"/matchmaking/none", look), http.StatusNotFound, "There is no matchmaking configuration", "What is known of its past")
}

func TestTicketsComeInPages(t *testing.T) {
	x := matchmakers(t)
	look := x.signedInAs("LOOK")
	x.waits(make([]float64, ticketsPage+5)...)
	for _, order := range []string{"oldest", "newest", "largest"} {
		var all []string
		for next := Prefix + "/matchmaking/ranked/tickets?order=" + order; next != ""; {
			page := text(t, x.get(next, look))
			for _, m := range regexp.MustCompile(`<th scope="row"><a href="/console/ticket/(t\d+)">`).FindAllStringSubmatch(page, -1) {
				all = append(all, m[1])
			}
			_, next = partiesOn(page)
		}
		if slices.Sort(all); len(slices.Compact(all)) != ticketsPage+5 {
			t.Errorf("order %s: %d tickets", order, len(all))
		}
	}
	x.wantPage(x.get(Prefix+"/matchmaking/ranked/tickets?player=P007", look), http.StatusOK, "t007")
	x.wantPage(x.get(Prefix+"/matchmaking/ranked/tickets?status=odd", look), http.StatusBadRequest, "status is")
	x.wantPage(x.get(Prefix+"/matchmaking/none/tickets", look), http.StatusNotFound, "There is no matchmaking configuration")
}

// Plots of a pool count each player once, whatever the values are.
func TestPlotsOfAPool(t *testing.T) {
	for _, numbers := range [][]float64{{0}, {5, 5, 5}, {1, 2, 3}, {-3, 1e9}, {0.001, 0.0011}, {1499, 1501, 900, 2400, 1200}, {-1e300, 1e300}, {0, 5e-324}, {-1.7e308, 1.7e308}} {
		places, values := numberBars(numbers)
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		if int(sum) != len(numbers) || len(places) != len(values) || len(values) > 2*poolBars {
			t.Errorf("%v: %v of %v", numbers, values, places)
		}
	}
	if got := histogram([]float64{10, 20}, []float64{0, 9, 10, 19, 20, 99}); !slices.Equal(got, []float64{2, 2, 2}) {
		t.Errorf("got %v", got)
	}
	var waiting []matchmaking.Ticket
	for i := range 3 * poolSample {
		roster := matchmaking.EncodeRoster([]matchmaking.Player{{ID: "p", Attributes: []ruleset.NamedValue{{Name: "mode", Value: ruleset.Value{Kind: ruleset.List, List: []string{fmt.Sprint("m", i%40)}}}}}})
		waiting = append(waiting, matchmaking.Ticket{Start: domain.Time(1000), Roster: roster})
	}
	p, err := poolOf(waiting, domain.TimeOf(time.UnixMilli(1000)), []ruleset.Attribute{{Name: "mode", Kind: ruleset.List}}, "", "")
	if err != nil || p.Every != 3 || len(p.Plots) != 3 || len(p.Plots[2].Rows) != poolBars+1 || p.Plots[2].Rows[poolBars].Place != "others" {
		t.Fatalf("%v, %+v", err, p)
	}
	if p.Plots[0].Rows[0].Value != fmt.Sprint(3*poolSample) {
		t.Errorf("the ages are %+v", p.Plots[0].Rows)
	}
}

func TestTicketPageShowsTheSearch(t *testing.T) {
	x := matchmakers(t)
	x.config.Explain = func(_ context.Context, kind, id string, _ bool) ([]byte, error) {
		return json.RawMessage(`{"kind":"ticket","id":"t1","status":"SEARCHING","why":"It waits.","facts":[{"name":"configuration","value":"ranked"},{"name":"started","value":"2026-01-02 03:04:05.678 UTC"}],
			"search":{"now":{"looked":9,"possible":1,"rejected":[{"rule":"Near","tickets":8,"with":"t7","reason":"90 is more than 5"}]},
			"oldest":[{"ticket":"t2","possible":false,"rejectedBy":["Near"],"reasons":["<b>far"]}],"steps":[{"at":"2030-01-01T00:00:00Z","waitSeconds":30,"changes":[{"property":"maxDistance","from":"5","to":"50"}],"partners":{"looked":9,"possible":4}}],
			"rules":[{"name":"Near","passed":3,"failed":77}]}}`), nil
	}
	x.wantPage(x.get(Prefix+"/ticket/t1", x.signedInAs("LOOK")), http.StatusOK, `<a href="/console/matchmaking/ranked">ranked</a>`, `<a href="/console/ticket/t7">t7</a>`, "90 is more than 5", "Near: <b>far", "maxDistance: 5 → 50", "4 of 9",
		`<td class="n">77</td>`, `<time datetime="2026-01-02T03:04:05.678Z">`)
}
