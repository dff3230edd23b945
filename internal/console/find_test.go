package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/lookup"
)

func (x *desk) hitsOf(text string, c *http.Cookie) (all []hit) {
	x.t.Helper()
	r := x.get(Prefix+"/find.json?id="+url.QueryEscape(text), c)
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil || r.StatusCode != http.StatusOK {
		x.t.Fatalf("%q: %d, %v", text, r.StatusCode, err)
	}
	return all
}

// Ids with slashes, which games choose, lead to their own pages: browsers and servers take empty and dotted parts out of a path.
func TestIDsWithSlashes(t *testing.T) {
	x := furnished(t)
	c := x.signedInAs("LOOK")
	for _, id := range []string{"steam://76561198", "a/../b", "/a", "a/", "./a", "a//b", "a/b", "100%/?#", "..."} {
		made := x.game(fmt.Sprintf("%x", id))
		x.do(&hosting.ReservePlayers{Game: made, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID([]byte(fmt.Sprintf("%-16s", id))), Player: id}}})
		r := x.get(Prefix+"/find?id="+url.QueryEscape(id), c)
		at := r.Header.Get("Location")
		if u, err := url.Parse(at); err != nil || r.StatusCode != http.StatusSeeOther || u.ResolveReference(&url.URL{}).EscapedPath() != u.EscapedPath() {
			t.Errorf("%q leads to %d %s, %v", id, r.StatusCode, at, err)
			continue
		}
		x.wantPage(x.get(at, c), http.StatusOK, "<h1>Player "+id+"</h1>", "gsess-")
	}
}

// Each id and each name leads to its page, and parts of a name to a choice.
func TestFindAnything(t *testing.T) {
	x := furnished(t)
	game := x.game("one")
	session := domain.PlayerSessionID{1}
	x.do(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: session, Player: "ann"}}})
	key, err := x.withKeys().Create(t.Context(), access.Actor{Principal: "test"}, keyring.New{Role: identity.Backend, Name: "Laptop"})
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]string{"my-ticket": "ticket", "my-placement": "placement", "my-party": "party", string(game): "game-session", testFleet + "/" + testCompute + "/p-one": "process"}
	x.config.Explain = func(_ context.Context, kind, id string, _ bool) ([]byte, error) {
		if explained[id] == kind {
			return []byte("{}"), nil
		}
		return nil, domain.Refuse(domain.NotFound, "%s %s not found", kind, id)
	}
	admin := x.signedInAs("ADMIN")
	for text, want := range map[string]string{
		testFleet: "fleets/fleet-1", "dev": "fleets/fleet-1", "DEV": "fleets/fleet-1", "arn:aws:gamelift:eu::fleet/" + testFleet: "fleets/fleet-1", testCompute: "compute/fleet-1/rack",
		"my-ticket": "ticket/my-ticket", "my-placement": "placement/my-placement", "my-party": "party/my-party", string(game): "game-session/" + string(game),
		"arn:aws:gamelift:eu::gamesession/" + string(game): "game-session/" + string(game), session.String(): "game-session/" + string(game), "ann": "player/ann",
		testFleet + "/rack/p-one": "process/fleet-1/rack/p-one", "live": "aliases#alias-1", "alias-1": "aliases#alias-1", "global": "queues/global",
		"Laptop": "keys#" + key.ID, key.ID: "keys#" + key.ID, "Audit log": "audit", "create location": "do/create-location",
	} {
		hits := x.hitsOf(text, admin)
		if len(hits) == 0 || hits[0].URL != Prefix+"/"+want {
			t.Errorf("%s: found %+v; want %s", text, hits, want)
		}
		if r := x.get(Prefix+"/find?id="+url.QueryEscape(text), admin); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != Prefix+"/"+want {
			t.Errorf("%s: the page leads to %d, %s", text, r.StatusCode, r.Header.Get("Location"))
		}
	}
	x.wantPage(x.get(Prefix+"/find?id=e", admin), http.StatusOK, "Find e", `<a href="/console/fleets/fleet-1">dev</a>`, `<a href="/console/queues">Queues</a>`)
	if hits := x.hitsOf("", admin); len(hits) != len(navigation) || hits[0].Text != "Overview" {
		t.Errorf("without a text: %+v", hits)
	}
	if hits := x.hitsOf("nothing has this name", admin); len(hits) != 0 {
		t.Errorf("found %+v", hits)
	}
	look := x.signedInAs("LOOK")
	if hits := slices.Concat(x.hitsOf("Laptop", look), x.hitsOf("create location", look)); len(hits) != 0 {
		t.Errorf("the role readonly finds %+v", hits)
	}
	if r := x.get(Prefix+"/find.json?id="+strings.Repeat("x", lookup.BytesMax+1), look); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a text that is too long: %d", r.StatusCode)
	}
	if hits := x.hitsOf("a", admin); len(hits) > findHitsMax {
		t.Errorf("%d hits", len(hits))
	}
}
