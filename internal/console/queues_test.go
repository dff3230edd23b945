package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/identity"
)

func TestQueuePage(t *testing.T) {
	x := furnished(t)
	look := x.signedInAs("LOOK")
	x.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-2", Name: "paused", Terminal: true, Message: "<b>later"}})
	x.do(&hosting.CreateQueue{Queue: placement.Queue{Name: "several", Destinations: []string{"arn:aws:gamelift:eu::alias/alias-1", "arn:aws:gamelift:eu::alias/alias-2"}, LatencyPolicies: []placement.LatencyPolicy{{Cap: 50}}}})
	x.wantPage(x.get(Prefix+"/queues/several", look), http.StatusOK, `<a href="/console/aliases#alias-1" title="arn:aws:gamelift:eu::alias/alias-1">live</a>`, `<a href="/console/fleets/fleet-1">dev</a>`,
		"no server process is connected there", "It has no target: the alias is paused: <b>later.", "at most 50 ms", "No placement waits.", "Delete: needs the role admin", "describe-game-session-queues --names several")
	x.do(&hosting.CreateQueue{Queue: placement.Queue{Name: "closed"}})
	x.wantPage(x.get(Prefix+"/queues/closed", look), http.StatusOK, "it is closed")
	x.wantPage(x.get(Prefix+"/queues/none", look), http.StatusNotFound, "There is no queue", "What is known of its past")
	x.game("one")
	x.wantPage(x.get(Prefix+"/fleets/"+testFleet, look), http.StatusOK, "No game session can start: the only server process in custom-home hosts a game session.")
}

func TestPlacementsComeInPages(t *testing.T) {
	x := furnished(t)
	look := x.signedInAs("LOOK")
	const many = placementsPage + 7
	var want []string
	for i := range many {
		id := fmt.Sprintf("place-%03d", i)
		x.do(&hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "global", PlayersMax: 2}})
		want = append(want, id)
	}
	pages := func(path string) (all []string) {
		for next, n := Prefix+path, 0; next != ""; n++ {
			page := text(t, x.get(next, look))
			for _, m := range regexp.MustCompile(`<th scope="row"><a href="/console/placement/(place-\d+)">`).FindAllStringSubmatch(page, -1) {
				all = append(all, m[1])
			}
			if _, next = partiesOn(page); n > 20 {
				t.Fatal("the pages do not end")
			}
		}
		return all
	}
	if got := pages("/queues/global/placements"); !slices.Equal(got, want) {
		t.Errorf("%d placements wait: %q", len(got), got)
	}
	for _, id := range want {
		x.do(&hosting.StopPlacement{ID: id})
	}
	got := pages("/queues/global/ended")
	if slices.Sort(got); !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%d placements have ended: %q", len(got), got)
	}
	x.wantPage(x.get(Prefix+"/queues/global/ended?until=x", look), http.StatusBadRequest, "none that a page of this console gave")
}

// An export has all waiting placements, however many there are.
func TestManyPlacementsWait(t *testing.T) {
	x := furnished(t)
	const many = 12_000
	for i := range many {
		x.do(&hosting.StartPlacement{Placement: placement.Placement{ID: fmt.Sprintf("place-%05d", i), Queue: "global", PlayersMax: 2}})
	}
	e := x.exported("/queues/global/placements?format=json", x.signedInAs("LOOK"))
	if len(e.Rows) != many || e.Next != nil || e.Rows[many-1]["placement"] != fmt.Sprintf("place-%05d", many-1) {
		t.Errorf("%d of %d placements were exported; next %v", len(e.Rows), many, e.Next)
	}
}

func TestGameSessionPage(t *testing.T) {
	x := furnished(t)
	look := x.signedInAs("LOOK")
	game := x.game("one")
	x.do(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID{1}, Player: "ann"}}})
	large := x.game("large", func(cmd *hosting.CreateGameSession) { cmd.Data = strings.Repeat("é", dataShown/2-1) + "€€" })
	x.explains("game-session", string(large))
	x.wantPage(x.get(Prefix+"/game-session/"+string(large), look), http.StatusOK, "é… (2004 bytes)")
	x.explains("game-session", string(game))
	x.wantPage(x.get(Prefix+"/game-session/"+string(game), look), http.StatusOK, `<a href="/console/player/ann">ann</a>`, "127.0.0.1:7777", `<a href="/console/output/:gamesession/`+string(game), "RESERVED", "End game session: needs the role")
	x.wantPage(x.get(Prefix+"/players-in/"+string(game), look), http.StatusOK, "ann", "describe-player-sessions --game-session-id")
}

// The output of a server process is requested with the person's rights.
func TestOutputPage(t *testing.T) {
	x := furnished(t)
	look := x.signedInAs("LOOK")
	x.config.Output = func(w http.ResponseWriter, r *http.Request, by identity.Principal, id string) {
		fmt.Fprintf(w, "%s of %s for %s", r.URL.RawQuery, id, by.ID)
	}
	x.wantPage(x.get(Prefix+"/output/fleet-1/rack/p-<1>", look), http.StatusOK, `data-source="/console/output.txt/fleet-1/rack/p-%3C1%3E?tail=500&follow=true"`, "output.js", "muster logs --follow 'fleet-1/rack/p-<1>'")
	if got := text(t, x.get(Prefix+"/output.txt/"+url.PathEscape("fleet-1/rack/p")+"?tail=5", look)); got != "tail=5 of fleet-1/rack/p for LOOK" {
		t.Errorf("got %q", got)
	}
	r := httptest.NewRequest("GET", Prefix+"/output.txt/fleet-1/rack/p", nil)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther || strings.Contains(w.Body.String(), "for ") {
		t.Errorf("without a sign-in: %d %s", w.Code, w.Body)
	}
}
