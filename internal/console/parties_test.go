package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

// lobby returns a desk of a service with player flow, with this many players who each lead a party.
func lobby(t *testing.T, players int) (x *desk, parties []flow.PartyID) {
	t.Helper()
	config, options := cell.DefaultConfig(), flow.DefaultConfig()
	config.PlayerFlow.Flow = &options
	x = newDeskOn(t, engine.Config{Cell: config}, nil)
	x.config.Explain = func(_ context.Context, kind, id string, _ bool) ([]byte, error) {
		if party, err := domain.ParseID[flow.PartyID](id); kind == "party" && err == nil && slices.Contains(parties, party) {
			return json.Marshal(map[string]string{"kind": kind, "id": id, "why": "It does not search."})
		}
		return nil, domain.Refuse(domain.NotFound, "%s %s not found", kind, id)
	}
	for i := range players {
		name := fmt.Sprintf("player-%03d", i)
		x.login(i, name)
		party := flow.PartyID{15: byte(i), 14: 1}
		x.do(&playerflow.CreateParty{Caller: callerOf(i, name), ID: party, Joinability: flow.Open})
		parties = append(parties, party)
	}
	return x, parties
}

func loginOf(i int) flow.LoginSessionID {
	return flow.LoginSessionID{0: 1, 14: byte(i >> 8), 15: byte(i)}
}

func callerOf(i int, name string) playerflow.Caller {
	return playerflow.Caller{Player: name, LoginSessionID: loginOf(i)}
}

func (x *desk) login(i int, name string) {
	x.t.Helper()
	x.do(&playerflow.Login{Player: name, LoginSessionID: loginOf(i), Token: domain.UUID{0: 2, 14: byte(i >> 8), 15: byte(i)}})
}

// partiesOn returns the parties that a page lists, and the URL of the next page.
func partiesOn(page string) (ids []string, next string) {
	for _, m := range regexp.MustCompile(`<a href="/console/party/(pty-[0-9a-f-]+)">`).FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	if m := regexp.MustCompile(`<a href="([^"]+)">Next page`).FindStringSubmatch(page); m != nil {
		next = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	return ids, next
}

// All parties are on the pages, each once, in each order.
func TestPartiesComeInPages(t *testing.T) {
	x, parties := lobby(t, partiesPage+7)
	look := x.signedInAs("LOOK")
	x.login(200, "guest")
	x.do(&playerflow.JoinParty{Caller: callerOf(200, "guest"), Party: parties[50]})
	for _, order := range []string{"", "oldest", "newest", "largest", "waiting"} {
		var all []string
		for next := Prefix + "/parties?order=" + order; next != ""; {
			var ids []string
			if ids, next = partiesOn(text(t, x.get(next, look))); len(ids) > partiesPage {
				t.Fatalf("order %s: a page of %d", order, len(ids))
			}
			all = append(all, ids...)
		}
		if order == "largest" && all[0] != parties[50].String() {
			t.Errorf("the largest party is %s", all[0])
		}
		sorted := slices.Sorted(slices.Values(all))
		if len(all) != len(parties) || len(slices.Compact(sorted)) != len(parties) {
			t.Errorf("order %q: %d parties of %d", order, len(all), len(parties))
		}
	}
}

func TestPartiesAreFiltered(t *testing.T) {
	x, parties := lobby(t, 3)
	look := x.signedInAs("LOOK")
	find := func(query string) []string {
		ids, _ := partiesOn(text(t, x.get(Prefix+"/parties?"+query, look)))
		return ids
	}
	if got := find("player=" + url.QueryEscape("PLAYER-001")); !slices.Equal(got, []string{parties[1].String()}) {
		t.Errorf("of one player: %q", got)
	}
	if got := find("state=IN_PARTY"); len(got) != 3 {
		t.Errorf("in no search: %q", got)
	}
	if got := find("state=SEARCHING"); len(got) != 0 {
		t.Errorf("in a search: %q", got)
	}
	if got := find("queue=ranked"); len(got) != 0 {
		t.Errorf("of a queue: %q", got)
	}
	x.wantPage(x.get(Prefix+"/parties?state=odd", look), http.StatusBadRequest, `state is "odd"; want one of IN_PARTY, QUEUED`)
	x.wantPage(x.get(Prefix+"/parties?order=odd", look), http.StatusBadRequest, `order is "odd"; want oldest`)
	x.wantPage(x.get(Prefix+"/parties?after=odd", look), http.StatusBadRequest, "none that a page of this console gave")
	if rows := text(t, x.get(Prefix+"/parties?format=csv&column=party&column=leader&column=members&player=002", look)); rows != "party,members,leader\n"+parties[2].String()+",1,player-002\n" {
		t.Errorf("the export is %s", rows)
	}
}

func TestPartyPage(t *testing.T) {
	x, parties := lobby(t, 2)
	look := x.signedInAs("LOOK")
	x.login(200, "guest:b")
	x.do(&playerflow.JoinParty{Caller: callerOf(200, "guest:b"), Party: parties[0]})
	x.wantPage(x.get(Prefix+"/party/"+parties[0].String(), look), http.StatusOK, "It does not search.", `<a href="/console/player/player-000">player-000</a>`, "leader", "2 of at most", "OFFLINE",
		`href="/console/events/party/`+parties[0].String(), "muster explain party "+parties[0].String())
	x.wantPage(x.get(Prefix+"/party/pty-none", look), http.StatusNotFound, `<a href="/console/events/party/pty-none">What is known of its past</a>`)
}

func TestPartiesWithoutPlayerFlow(t *testing.T) {
	x := newDesk(t)
	look := x.signedInAs("LOOK")
	for _, path := range []string{"/parties", "/party/" + (flow.PartyID{1}).String()} {
		x.wantPage(x.get(Prefix+path, look), http.StatusOK, "Player flow is off at this service", "muster serve --player-flow")
	}
}
