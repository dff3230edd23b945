package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestEventsPage: the page shows the feed's events for the role with the filter in its URL, links to each object and to the next page, and exports all pages.
func TestEventsPage(t *testing.T) {
	x := newDesk(t)
	var asked []url.Values
	x.config.Feed = func(_ context.Context, query url.Values, mayAudit bool) ([]byte, error) {
		asked = append(asked, query)
		at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		f := feed{Entries: []feedEntry{{At: at, What: "PLAYER_CONNECTED", Kind: "game-session", ID: "fleet-1/eu/g 1", Detail: "player <b>ann</b>"}, {At: at, What: "CREATED", Kind: "location", ID: "eu"}}, Next: "5-0-0"}
		switch query.Get("after") {
		case "5-0-0": // a page may be empty, and not the last
			f = feed{Next: "4-0-0"}
		case "4-0-0":
			f = feed{Entries: []feedEntry{{At: at, What: "LOGGED_IN", Kind: "player", ID: "an/n"}}}
		}
		if mayAudit {
			f.Entries = append(f.Entries, feedEntry{At: at, What: "ForceRelease", Kind: "player", ID: "an/n", By: "ADMIN", Reason: "asked by mail", Audit: 7})
		} else {
			f.LeftOut = []string{"entries of the audit log"}
		}
		return json.Marshal(f)
	}
	look := x.signedInAs("LOOK")
	page := text(t, x.get("/console/events/player/an/n?what=con&of=game-session&since=2030-01-02&column=at&column=what&column=id&column=detail", look))
	for _, want := range []string{"Events of player an/n", `href="/console/player/an/n"`, `href="/console/game-session/fleet-1/eu/g%201"`, "player &lt;b&gt;ann", "<td>eu</td>", "Left out: entries of the audit log", "after=5-0-0",
		"muster events player an/n --since 2030-01-02T00:00:00Z --what con --of game-session", "<option selected>game-session"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s in %s", want, page)
		}
	}
	if strings.Contains(page, "asked by mail") {
		t.Errorf("a key of the role readonly sees the audit log: %s", page)
	}
	want := url.Values{"kind": {"player"}, "id": {"an/n"}, "what": {"con"}, "of": {"game-session"}, "since": {"2030-01-02T00:00:00Z"}, "until": {""}, "after": {""}, "limit": {"50"}}
	if len(asked) != 1 || asked[0].Encode() != want.Encode() {
		t.Errorf("the page asked for %v, want %v", asked, want)
	}
	if second := text(t, x.get("/console/events/player/ann?after=5-0-0", look)); !strings.Contains(second, "No events so far") || !strings.Contains(second, "after=4-0-0") {
		t.Errorf("an empty page that is not the last is %s", second)
	}
	if all := text(t, x.get("/console/events/player/ann", x.signedInAs("ADMIN"))); !strings.Contains(all, "asked by mail") || strings.Contains(all, "Left out") {
		t.Errorf("for an administrator the page is %s", all)
	}
	if exported := text(t, x.get("/console/events/player/ann?format=csv&column=what", look)); exported != "what\nPLAYER_CONNECTED\nCREATED\nLOGGED_IN\n" {
		t.Errorf("the export is %q", exported)
	}
	asked = nil
	if wrong := text(t, x.get("/console/events/player/ann?since=yesterday", look)); !strings.Contains(wrong, "is no time") || len(asked) != 0 {
		t.Errorf("the page with a wrong time asked for %v and is %s", asked, wrong)
	}
	if r := x.get("/console/events/player/ann?until=soon&format=json", look); r.StatusCode != http.StatusBadRequest {
		t.Errorf("an export with a wrong time: status %d", r.StatusCode)
	}
	if r := x.get("/console/events/player/ann"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("without a sign-in: status %d", r.StatusCode)
	}
}
