package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/lookup"
)

func (o *office) get(path string, into any) {
	o.Helper()
	if status, body := o.ask(path); status != http.StatusOK || json.Unmarshal([]byte(body), into) != nil {
		o.Fatalf("%s: got %d %s", path, status, body)
	}
}

// busyOffice returns an office with a game session in which a player has reserved a seat, and a placement that waits because no process is free.
func busyOffice(t *testing.T) (o *office, game session.GameSession) {
	o = newOffice(t)
	key := o.ready("s1")
	o.start("placed")
	o.start("waits")
	err := o.engine.Read(t.Context(), func(v *cell.View) error {
		p, _ := v.Placement("placed")
		game, _ = v.GameSession(session.ID(p.Game))
		return nil
	})
	if err != nil || game.ID == "" {
		t.Fatalf("no game session: %v", err)
	}
	o.do(&hosting.ActivateGameSession{Process: key, Game: game.ID})
	return o, game
}

func TestOverview(t *testing.T) {
	o, game := busyOffice(t)
	o.do(&kernel.RaiseLevel{To: kernel.Level})
	o.do(&hosts.IssueToken{ID: "t", Hash: "h", Location: "custom-a", Uses: 1, Valid: hosts.ValidMax})
	o.do(&hosts.Join{Token: "t", Hash: "h", Name: "rack", Key: make([]byte, 32)})
	calls := callstats.New()
	door := calls.Door("api", "Do")
	for _, outcome := range []callstats.Outcome{callstats.OK, callstats.Refused, callstats.Throttled, callstats.Failed} {
		door.Done("Do", outcome, time.Now())
	}
	config := o.door.config
	config.Calls = calls
	config.Cluster = func(context.Context) *Cluster {
		return &Cluster{Leader: "n1", Members: []Member{{ID: "n1", Role: "leader"}}}
	}
	o.door = NewDoor(config)

	var x Overview
	o.get(OverviewPath, &x)
	if len(x.Fleets) != 1 || x.Fleets[0] != (FleetLine{ID: "fleet-1", Name: "f", Status: "ACTIVE", Computes: 1, Processes: 1, GameSessions: 1, FreeSeats: 3, PlayersReserved: 1}) {
		t.Errorf("fleets: %+v", x.Fleets)
	}
	if x.Sums != (Sums{Fleets: 1, Computes: 1, Processes: 1, GameSessions: 1, FreeSeats: 3, PlayersReserved: 1, Placements: 1}) {
		t.Errorf("sums: %+v", x.Sums)
	}
	if len(x.Queues) != 1 || x.Queues[0].Name != "q" || x.Queues[0].Placements != 1 {
		t.Errorf("queues: %+v", x.Queues)
	}
	if len(x.Hosts) != 1 || x.Hosts[0].Name != "rack" || x.HostsIn["new"] != 1 {
		t.Errorf("hosts: %+v, %v", x.Hosts, x.HostsIn)
	}
	if h := x.Health; h.Calls != 4 || h.Refused != 1 || h.Throttled != 1 || h.Failed != 1 || h.Commits == 0 || h.CommitSeconds <= 0 || h.Trouble != "" {
		t.Errorf("health: %+v", h)
	}
	if len(x.Attention.Items) == 0 || !strings.Contains(x.Attention.Items[0].What, "custom-a") || x.Attention.Items[0].Next == "" {
		t.Errorf("attention: %+v", x.Attention)
	}
	if x.Cluster == nil || x.Cluster.Leader != "n1" || x.At.IsZero() {
		t.Errorf("cluster %+v, at %v", x.Cluster, x.At)
	}

	var f FleetPage
	o.get(OverviewPath+"/fleets/fleet-1", &f)
	if len(f.Places) != 2 || f.Places[0].Why == "" || len(f.Processes) != 1 || f.Processes[0].ID != "fleet-1/rack/host/s1" || !f.Processes[0].Connected || f.Processes[0].Standing != fleet.Hosting.String() || f.More {
		t.Errorf("fleet: %+v", f)
	}
	if len(f.GameSessions) != 1 || f.GameSessions[0].ID != string(game.ID) || f.GameSessions[0].SeatsHeld != 1 || f.GameSessions[0].Process != f.Processes[0].ID {
		t.Errorf("game sessions: %+v", f.GameSessions)
	}
	var g GamePage
	o.get(OverviewPath+"/game-sessions/"+string(game.ID), &g)
	if len(g.Players) != 1 || g.Players[0].Player != "ann" || g.Players[0].Status != "RESERVED" || g.Players[0].GameSession != string(game.ID) {
		t.Errorf("game session: %+v", g)
	}
	var q QueuePage
	o.get(OverviewPath+"/queues/q", &q)
	if len(q.Waiting) != 1 || q.Waiting[0].ID != "waits" || q.Waiting[0].Players != 1 || len(q.Destinations) != 1 {
		t.Errorf("queue: %+v", q)
	}
	var p PlayerPage
	o.get(OverviewPath+"/players/ann", &p)
	if len(p.Sessions) != 1 || len(p.Live) != 1 || p.Sessions[0].ID != g.Players[0].ID {
		t.Errorf("player: %+v", p)
	}
	for _, gone := range []string{"fleets/fleet-9", "game-sessions/x", "queues/x"} {
		if status, body := o.ask(OverviewPath + "/" + gone); status != http.StatusNotFound || !strings.Contains(body, "not found") {
			t.Errorf("%s: %d %s", gone, status, body)
		}
	}
}

// Lists are bounded, and items beyond the bound are counted.
func TestOverviewIsBounded(t *testing.T) {
	o := newOffice(t)
	for i := range overviewMost {
		o.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: fmt.Sprintf("fleet-%d", i+2), Region: "us-east-1", Name: "g"}, Locations: []string{"custom-a"}})
	}
	var x Overview
	o.get(OverviewPath, &x)
	if len(x.Fleets) != overviewMost || x.Sums.Fleets != overviewMost+1 {
		t.Errorf("%d fleets of %d", len(x.Fleets), x.Sums.Fleets)
	}
	for i := range overviewMost {
		o.connect(fmt.Sprintf("p%03d", i))
	}
	o.do(&hosting.EndProcess{Process: o.connect("p999"), Request: 77}) // it is not listed
	for _, more := range []bool{false, true} {
		if more {
			o.connect("p998")
		}
		var f FleetPage
		o.get(OverviewPath+"/fleets/fleet-1", &f)
		if len(f.Processes) != overviewMost || f.More != more {
			t.Errorf("%d processes, more %v, want %v", len(f.Processes), f.More, more)
		}
	}
}

func TestFind(t *testing.T) {
	o, game := busyOffice(t)
	var g GamePage
	o.get(OverviewPath+"/game-sessions/"+string(game.ID), &g)
	o.do(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "live", Fleet: "fleet-1"}})
	for _, c := range []struct{ id, kind, is string }{
		{"fleet-1", "fleet", "fleet-1"},
		{"f", "fleet", "fleet-1"},
		{"arn:aws:gamelift:us-east-1::fleet/fleet-1", "fleet", "fleet-1"},
		{"fleet-1/rack/host", "compute", "fleet-1/rack/host"},
		{"fleet-1/rack/host/s1", "process", "fleet-1/rack/host/s1"},
		{"s1", "process", "fleet-1/rack/host/s1"},
		{"rack/host", "compute", "fleet-1/rack/host"},
		{string(game.ID), "game-session", string(game.ID)},
		{"arn:aws:gamelift:us-east-1::gamesession/" + string(game.ID), "game-session", string(game.ID)},
		{g.Players[0].ID, "game-session", string(game.ID)},
		{"waits", "placement", "waits"},
		{"q", "queue", "q"},
		{"live", "alias", "alias-1"},
		{"ann", "player", "ann"},
		{"%20ann%20", "player", "ann"},
	} {
		var x Named
		o.get(FindPath+"/"+c.id, &x)
		if x != (Named{c.kind, c.is}) {
			t.Errorf("%s: got %+v, want %s %s", c.id, x, c.kind, c.is)
		}
	}
	for id, want := range map[string]int{"nothing": http.StatusNotFound, "fleet-9": http.StatusNotFound, "fleet-1/x": http.StatusNotFound, "%20": http.StatusBadRequest, strings.Repeat("x", lookup.BytesMax+1): http.StatusBadRequest} {
		if status, body := o.ask(FindPath + "/" + id); status != want {
			t.Errorf("%.20s: got %d %s, want %d", id, status, body, want)
		}
	}
}

// The overview requires the permission to read.
func TestOverviewNeedsAKey(t *testing.T) {
	o := newOffice(t)
	for _, path := range []string{OverviewPath, OverviewPath + "/fleets/fleet-1", OverviewPath + "/players/ann", FindPath + "/ann"} {
		r := httptest.NewRequest(http.MethodGet, Prefix+path, nil)
		r.Header.Set("Authorization", "wrong")
		w := httptest.NewRecorder()
		o.door.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "not you") {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}
