package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// as executes a command for a person, who is in the audit log with a reason.
func (o *office) as(who, reason string, cmd kernel.Command) {
	o.Helper()
	ctx := audit.With(o.Context(), domainaudit.Origin{Principal: who, Door: domainaudit.DoorAPI, Operation: "Change", Reason: reason})
	if err := o.engine.Do(ctx, cmd); err != nil {
		o.Fatalf("%T: %v", cmd, err)
	}
}

func (o *office) feed(kind, id string, query ...string) (f Feed) {
	o.Helper()
	q := url.Values{"kind": {kind}, "id": {id}}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	status, body := o.ask(FeedPath + "?" + q.Encode())
	if status != http.StatusOK {
		o.Fatalf("feed of %s %s: %d %s", kind, id, status, body)
	}
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		o.Fatal(err)
	}
	return f
}

// pages reads a feed to its end, in pages of limit entries.
func (o *office) pages(kind, id string, limit int, query ...string) (all []FeedEntry) {
	o.Helper()
	after := ""
	for range 10_000 {
		f := o.feed(kind, id, append(query, "limit", strconv.Itoa(limit), "after", after)...)
		if len(f.Entries) > limit {
			o.Fatalf("a page of %d has %d entries", limit, len(f.Entries))
		}
		all = append(all, f.Entries...)
		if after = f.Next; after == "" {
			return all
		}
	}
	o.Fatal("the feed does not end")
	return nil
}

func whatOf(all []FeedEntry) (what []string) {
	for _, e := range all {
		what = append(what, e.What)
	}
	return what
}

// placed fulfils a placement with its own server process.
func (o *office) placed(id, process string) (fleet.Key, session.ID, domain.PlayerSessionID) {
	o.Helper()
	key := o.ready(process)
	wish := placementOf(id)
	wish.Players[0].ID = domain.PlayerSessionID{1, byte(o.links), byte(o.links >> 8)}
	o.do(&hosting.StartPlacement{Placement: wish})
	p, err := o.engine.Placement(o.Context(), id)
	if err != nil || p.Game == "" {
		o.Fatalf("placement %s: %v, game session %q", id, err, p.Game)
	}
	o.do(&hosting.PromptGameSession{Process: key, Game: session.ID(p.Game)})
	o.do(&hosting.ActivateGameSession{Process: key, Game: session.ID(p.Game)})
	return key, session.ID(p.Game), wish.Players[0].ID
}

// TestFeedOfAGameSession: the events of a game session, its placement, its server process and its players are in one list, the latest first, each with its principal.
func TestFeedOfAGameSession(t *testing.T) {
	o := newOffice(t)
	key, game, seat := o.placed("p1", "s1")
	o.later(time.Second)
	o.do(&hosting.AcceptPlayer{Process: key, Game: game, Player: seat, Request: 77})
	o.later(time.Second)
	o.as("AKOPS", "stuck", &hosting.TerminateGameSession{ID: game})
	o.later(time.Second)
	o.do(&hosting.EndProcess{Process: key, Request: 78})

	all := o.feed("game-session", string(game)).Entries
	for _, want := range []string{"GAME_SESSION_ENDED", "Change", "PLAYER_CONNECTED", "PLAYER_RESERVED", "GAME_SESSION_ACTIVATED", "GAME_SESSION_CREATED", "PROCESS_RESERVED", "STARTED", "FULFILLED"} {
		if !slices.Contains(whatOf(all), want) {
			t.Errorf("no %s in %q", want, whatOf(all))
		}
	}
	if !slices.IsSortedFunc(all, func(a, b FeedEntry) int { return b.At.Compare(a.At) }) {
		t.Errorf("not the latest first: %v", all)
	}
	change := all[slices.IndexFunc(all, func(e FeedEntry) bool { return e.Audit != 0 })]
	if change.By != "AKOPS" || change.Reason != "stuck" || change.Kind != "game-session" || change.ID != string(game) {
		t.Errorf("the change is %+v", change)
	}
	for _, kind := range []struct{ kind, id, of string }{
		{"placement", "p1", "game-session"}, {"process", "fleet-1/rack/host/s1", "player"}, {"player", "ann", "placement"}, {"fleet", "fleet-1", "game-session"}, {"compute", "fleet-1/rack/host", "game-session"},
	} {
		around := o.feed(kind.kind, kind.id, "limit", "200").Entries
		if !slices.ContainsFunc(around, func(e FeedEntry) bool { return e.Kind == kind.of }) || !slices.ContainsFunc(around, func(e FeedEntry) bool { return e.Audit == change.Audit }) {
			t.Errorf("the feed of %s %s lacks what happened to the %s, or the change: %q", kind.kind, kind.id, kind.of, whatOf(around))
		}
		for _, e := range o.feed(kind.kind, kind.id, "of", kind.of).Entries {
			if e.Kind != kind.of {
				t.Errorf("%s %s: of=%s shows %+v", kind.kind, kind.id, kind.of, e)
			}
		}
	}
	if found := o.feed("fleet", "fleet-1", "what", "stuck").Entries; len(found) != 1 || found[0].Audit != change.Audit {
		t.Errorf("what=stuck shows %+v", found)
	}
	if f, err := o.door.feedOf(t.Context(), url.Values{"kind": {"fleet"}, "id": {"fleet-1"}}, false); err != nil || len(f.LeftOut) != 1 || slices.ContainsFunc(f.Entries, func(e FeedEntry) bool { return e.Audit != 0 }) {
		t.Errorf("without the right to the audit log: %v, left out %q, %q", err, f.LeftOut, whatOf(f.Entries))
	}
}

// TestPagesOfAFeed: pages of any size show the same entries in the same order as large ones, each once, although no page reads the whole feed.
func TestPagesOfAFeed(t *testing.T) {
	o := newOffice(t)
	for i := range 2*feedSeats + 5 {
		key, game, seat := o.placed(fmt.Sprint("p", i), fmt.Sprint("s", i))
		if i%3 > 0 {
			o.do(&hosting.AcceptPlayer{Process: key, Game: game, Player: seat, Request: uint64(1000 + i)})
		}
		o.do(&hosting.EndProcess{Process: key, Request: uint64(2000 + i)}) // at once: a player has few player sessions at a time
		if i%4 == 0 {                                                      // else several in one millisecond
			o.later(7 * time.Minute)
		}
		if i%10 == 0 {
			o.do(&hosting.LoseLink{Process: o.ready(fmt.Sprint("lost", i)), Link: o.links})
		}
	}
	for i := range feedAudit + 30 {
		o.as("AKOPS", fmt.Sprint("change ", i), &cell.TagResource{Resource: cell.Resource{Kind: cell.ComputeResource, ID: "fleet-1/rack/host"}, Tags: []fleet.Tag{{Key: "n", Value: fmt.Sprint(i)}}})
	}
	for _, of := range []struct {
		kind, id string
		least    int
	}{{"fleet", "fleet-1", 2*feedSeats + feedAudit}, {"compute", "fleet-1/rack/host", 2*feedSeats + feedAudit}, {"player", "ann", 2 * 4 * feedSeats}} {
		want := o.pages(of.kind, of.id, feedMost)
		if len(want) < of.least {
			t.Errorf("the feed of %s %s has %d entries, want %d at least", of.kind, of.id, len(want), of.least)
		}
		if !slices.IsSortedFunc(want, func(a, b FeedEntry) int { return b.At.Compare(a.At) }) {
			t.Errorf("the feed of %s %s is not the latest first", of.kind, of.id)
		}
		seen := map[string]bool{}
		for _, e := range want {
			if k := fmt.Sprint(e); seen[k] {
				t.Errorf("twice: %+v", e)
			} else {
				seen[k] = true
			}
		}
		for _, limit := range []int{17, 50} {
			if got := o.pages(of.kind, of.id, limit); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: pages of %d have %d entries, pages of %d have %d, or in another order", of.kind, of.id, limit, len(got), feedMost, len(want))
			}
		}
		since, until := want[len(want)*3/4].At, want[len(want)/4].At
		between := slices.DeleteFunc(slices.Clone(want), func(e FeedEntry) bool { return e.At.Before(since) || !e.At.Before(until) })
		got := o.pages(of.kind, of.id, 20, "since", since.Format(time.RFC3339Nano), "until", until.Format(time.RFC3339Nano))
		if !reflect.DeepEqual(got, between) {
			t.Errorf("%s %s: %d entries from %s to %s, want %d", of.kind, of.id, len(got), since, until, len(between))
		}
	}
}

// TestFeedsThatAreRefused: the refusal of an invalid request says what was expected. A deleted object still has a feed if people have changed it.
func TestFeedsThatAreRefused(t *testing.T) {
	o := newOffice(t)
	for query, want := range map[string]string{
		"kind=planet&id=x": `kind "planet": want one of alias, build, compute`,
		"kind=fleet":       "id of 0 bytes",
		"kind=fleet&id=" + strings.Repeat("x", 3e3): "id of 3000 bytes",
		"kind=fleet&id=fleet-1&after=1-2":           `after "1-2": want next of an earlier page`,
		"kind=fleet&id=fleet-1&after=-1-0-0":        "want next of an earlier page",
		"kind=fleet&id=fleet-1&limit=201":           `limit "201": want 1 to 200`,
		"kind=fleet&id=fleet-1&since=yesterday":     `since "yesterday": want a time`,
		"kind=party&id=x":                           "party id x",
	} {
		if status, body := o.ask(FeedPath + "?" + query); status != http.StatusBadRequest || !strings.Contains(body, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%.60s: %d %s, want %s", query, status, body, want)
		}
	}
	for _, kind := range FeedKinds() {
		if kind == "party" || kind == "game-instance" {
			continue
		}
		if status, body := o.ask(FeedPath + "?kind=" + kind + "&id=nothing"); status != http.StatusNotFound {
			t.Errorf("a %s that never was: %d %s", kind, status, body)
		}
	}
	o.as("AKOPS", "typo", &hosting.DeleteQueue{Name: "q"})
	if f := o.feed("queue", "q"); len(f.Entries) != 1 || f.Entries[0].Reason != "typo" {
		t.Errorf("a deleted queue has the feed %+v", f.Entries)
	}
}

// A queue has the placements that wait in it and those that have ended.
func TestFeedOfAQueue(t *testing.T) {
	o := newOffice(t)
	o.placed("p1", "s1")
	o.later(time.Second)
	wish := placementOf("p2")
	wish.Players[0].ID = domain.PlayerSessionID{9}
	o.do(&hosting.StartPlacement{Placement: wish})
	o.later(time.Second)
	all := o.feed("queue", wish.Queue).Entries
	for what, id := range map[string]string{"FULFILLED": "p1", "STARTED": "p2"} {
		i := slices.IndexFunc(all, func(e FeedEntry) bool { return e.What == what && e.Kind == "placement" && e.ID == id })
		if i < 0 {
			t.Errorf("no %s of placement %s in %+v", what, id, all)
		} else if what == "FULFILLED" && !strings.Contains(all[i].Detail, "game session fleet-1/") {
			t.Errorf("the end of a placement is %+v", all[i])
		}
	}
	if got := o.pages("queue", wish.Queue, 1); len(got) != len(all) {
		t.Errorf("pages of one entry have %d entries; want %d", len(got), len(all))
	}
}

// TestOddRequests: no id and no period of a request makes the door fail.
func TestOddRequests(t *testing.T) {
	o := newOffice(t)
	o.placed("p1", "s1")
	known := map[string]string{
		"fleet": "fleet-1", "compute": "fleet-1/rack/host", "process": "fleet-1/rack/host/s1", "player": "ann", "queue": "q", "placement": "p1",
		"party": "00000000-0000-0000-0000-000000000001", "game-instance": "00000000-0000-0000-0000-000000000001",
	}
	try := func(path string) {
		t.Helper()
		if status, body := o.ask(path); status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, kind := range FeedKinds() {
		for _, odd := range [][2]string{
			{"until", "0000-01-01T00:00:00Z"}, {"until", "1960-01-01T00:00:00Z"}, {"until", "9999-12-31T00:00:00Z"}, {"since", "0000-01-01T00:00:00Z"}, {"since", "9999-12-31T00:00:00Z"},
			{"after", "9223372036854775807-0-0"}, {"after", "9223372036854775806-2147483647-18446744073709551615"}, {"after", "1-2147483647-1"},
		} {
			try(FeedPath + "?" + url.Values{"kind": {kind}, "id": {cmp.Or(known[kind], "x")}, odd[0]: {odd[1]}}.Encode())
		}
		for _, id := range []string{"", "/", "//", "a/", "/a", "\x00", "\xff", strings.Repeat("a/", 500), strings.Repeat("a", 5000), "arn:aws:gamelift:us-east-1::fleet/", "arn:aws:gamelift:us-east-1::gamesession/"} {
			for _, path := range []string{"explain/" + kind, FindPath, OverviewPath + "/players", OverviewPath + "/fleets", OverviewPath + "/game-sessions", "logs"} {
				try(path + "/" + (&url.URL{Path: id}).EscapedPath())
			}
			try(FeedPath + "?" + url.Values{"kind": {kind}, "id": {id}}.Encode())
		}
	}
}

// TestFeedSaysWhatItLeavesOut: a feed that does not have everything of its object reports what is missing.
func TestFeedSaysWhatItLeavesOut(t *testing.T) {
	o := newOffice(t)
	for i := range feedPending {
		o.start(fmt.Sprint("p", i))
	}
	for range feedProcesses {
		o.connect(fmt.Sprint("s", o.links))
	}
	for _, of := range [][2]string{{"queue", "q"}, {"compute", "fleet-1/rack/host"}} {
		if f := o.feed(of[0], of[1]); len(f.LeftOut) > 0 {
			t.Errorf("%s: nothing is missing, and the feed reports %q", of[0], f.LeftOut)
		}
	}
	o.start("one more")
	if f := o.feed("queue", "q"); len(f.LeftOut) != 1 || !strings.Contains(f.LeftOut[0], "waiting placements after the oldest 100") {
		t.Errorf("queue: left out %q", f.LeftOut)
	}
	o.connect("one more")
	if f := o.feed("compute", "fleet-1/rack/host"); len(f.LeftOut) != 1 || !strings.Contains(f.LeftOut[0], "1 of the compute's 501 server processes") {
		t.Errorf("compute: left out %q", f.LeftOut)
	}
	for _, n := range []int{feedMembers, feedMembers + 1} {
		s := &feedScope{d: o.door, until: domain.TimeOf(o.engine.Now()), changed: map[auditSubject]span{}, seen: map[string]bool{}}
		if err := s.together(t.Context(), slices.Repeat([]string{"ann"}, n), func(*flow.Keys) bool { return true }); err != nil || len(s.leftOut) != n-feedMembers {
			t.Errorf("%d members: left out %q, %v", n, s.leftOut, err)
		}
	}
}
