package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// The search names the character at which a filter or an order is wrong, and shows the command for a valid one.
func TestSearchBox(t *testing.T) {
	x := newGraphs(t, 0)
	c := x.signedInAs("LOOK")
	search := func(query ...string) (int, string) {
		all := url.Values{"fleet": {"fleet-1"}}
		for i := 0; i < len(query); i += 2 {
			all.Set(query[i], query[i+1])
		}
		r := x.get(Prefix+"/game-sessions/search?"+all.Encode(), c)
		return r.StatusCode, text(t, r)
	}
	for _, wrong := range []struct{ box, text, before, at string }{
		{"filter", `gameSessionName = "x"`, "gameSessionName = ", "&#34;x&#34;"},
		{"filter", "playerSessionCount < 3 AND", "playerSessionCount &lt; 3 AND", " "},
		{"filter", "<script>", "", "&lt;script&gt;"},
		{"sort", "creationTimeMillis UPWARDS", "creationTimeMillis ", "UPWARDS"},
	} {
		status, page := search(wrong.box, wrong.text)
		if want := "<pre>" + wrong.before + "<mark>" + wrong.at + "</mark></pre>"; status != http.StatusOK || !strings.Contains(page, want) || !strings.Contains(page, `aria-describedby="wrong-`+wrong.box) {
			t.Errorf("%s: %d, no %s in\n%s", wrong.text, status, want, page)
		}
	}
	status, page := search("filter", "hasAvailablePlayerSessions=true", "sort", "creationTimeMillis DESC")
	if status != http.StatusOK || !strings.Contains(page, "No active game session matches") || !strings.Contains(page, "--sort-expression &#39;creationTimeMillis DESC&#39;") || !strings.Contains(page, `<option value="gameSessionProperties.">`) {
		t.Errorf("%d\n%s", status, page)
	}
	for want, query := range map[int][]string{400: {"filter", strings.Repeat("x", searchMax+1)}, 404: {"fleet", "fleet-none"}} {
		if status, _ := search(query...); status != want {
			t.Errorf("%.20s: %d, want %d", query, status, want)
		}
	}
	if status, _ := search("after", "x"); status != 400 {
		t.Errorf("a page that was not given: %d", status)
	}
}

// The sessions of a fleet can be listed although there are more fleets than can be chosen from.
func TestSessionsOfALateFleet(t *testing.T) {
	x := newGraphs(t, 0)
	for i := range fleetsPage + 1 {
		id := fmt.Sprintf("fleet-x%03d", i)
		var command kernel.Command = &hosting.CreateFleet{Fleet: fleet.Fleet{ID: id, Region: "us-east-1", Name: id}, Locations: []string{"custom-1"}}
		if err := x.engine.Do(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	c, last := x.signedInAs("LOOK"), fmt.Sprintf("fleet-x%03d", fleetsPage)
	for _, path := range []string{"/game-sessions", "/game-sessions/search"} {
		if page := text(t, x.get(Prefix+path+"?fleet="+last, c)); !strings.Contains(page, `value="`+last+`" list="fleets"`) {
			t.Errorf("%s: %s", path, page)
		}
		if r := x.get(Prefix+path+"?fleet=none", c); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s of no fleet: %d", path, r.StatusCode)
		}
	}
}
