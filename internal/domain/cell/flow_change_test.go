package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// changes lists the changes of a player that wait for the archive, with keys as letters.
func (w *flowWorld) changes(player string) (lines []string) {
	v := w.cell.View()
	for _, x := range v.ChangesOf(player) {
		keys := ""
		for _, k := range []struct {
			name string
			id   domain.UUID
		}{{"P", domain.UUID(x.Keys.Party)}, {"M", domain.UUID(x.Keys.Ticket)}, {"G", domain.UUID(x.Keys.Game)}} {
			if !k.id.IsZero() {
				keys += k.name
			}
		}
		lines = append(lines, fmt.Sprintf("%d %s %s by %s", x.Rev, keys, x.Cause, x.By.Kind))
	}
	return lines
}

func (w *flowWorld) wantChanges(player string, want ...string) {
	w.t.Helper()
	if got := w.changes(player); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		w.t.Errorf("%s:\n got %q\nwant %q", player, got, want)
	}
}

// TestChangesTellCauseAndCaller goes through every kind of actor that changes keys.
func TestChangesTellCauseAndCaller(t *testing.T) {
	w := newFlowWorld(t, nil)
	red, blue := w.search("ann", "ben"), w.search("cid")
	key := w.server("server-1")
	if refused := w.propose(testQueue, red, blue); refused != nil {
		t.Fatal(refused)
	}
	game := w.keys("ann").Game
	v := w.cell.View()
	x, _, _ := v.GameInstance(game)
	hosted := session.MakeID(testFleet, testLocation, x.Match)
	w.must(&hosting.PromptGameSession{Process: key, Game: hosted})
	w.must(&hosting.ActivateGameSession{Process: key, Game: hosted})
	w.connect(x.ID, "ann", "ben", "cid")
	w.must(playerflow.Asked{Command: &playerflow.RemoveMembers{Instance: x.ID, Players: []playerflow.RemovedMember{{Player: "cid", Reason: flow.RemovedKicked}}}, By: flow.Actor{Kind: flow.ByPartner, ID: "KEY1"}})
	w.lose(x.ID, w.member("ben").Session)
	w.pass(w.config.Games.ReconnectWindow)
	w.must(playerflow.Asked{Command: &playerflow.ForceRelease{Player: "ann", Party: true}, By: flow.Actor{Kind: flow.ByOperatorCall, ID: "KEY2"}})
	w.must(&hosting.EndProcess{Process: key, Request: 7})

	w.wantChanges("ann", "1 P CreateParty by PLAYER", "2 PM EnterMatchmaking by PLAYER", "3 PG MatchCommitted by MATCHMAKER",
		"4 G ForceRelease by OPERATOR", "5  HostEnded by GAME_SERVER")
	w.wantChanges("ben", "1 P JoinParty by PLAYER", "2 PM EnterMatchmaking by PLAYER", "3 PG MatchCommitted by MATCHMAKER", "4 P HoldOver by DEADLINE")
	w.wantChanges("cid", "1 P CreateParty by PLAYER", "2 PM EnterMatchmaking by PLAYER", "3 PG MatchCommitted by MATCHMAKER", "4 P Game.RemovePlayers by PARTNER")
	v = w.cell.View()
	all := v.ChangesOf("ann")
	if got, want := all[0].By.ID, w.logins["ann"].String(); got != want {
		t.Errorf("the first change is by %q, want %q", got, want)
	}
	if got, want := all[4].By.ID, testFleet+"/"+testCompute+"/server-1"; got != want {
		t.Errorf("the last change is by %q, want %q", got, want)
	}
}

// TestEveryRevisionHasItsChange: each revision of a player has one change, even if several deadlines end in
// one transaction.
func TestEveryRevisionHasItsChange(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.OfflineRemoval = time.Minute })
	w.search("ann", "ben")
	w.party("cid", "dee")
	w.offline("ann")
	w.offline("cid")
	w.now = w.now.Add(time.Hour) // one Tick finds all of it due
	w.must(&kernel.Tick{})
	w.pass(0)
	w.wantChanges("ann", "1 P CreateParty by PLAYER", "2 PM EnterMatchmaking by PLAYER", "3  OfflineGrace by DEADLINE")
	w.wantChanges("ben", "1 P JoinParty by PLAYER", "2 PM EnterMatchmaking by PLAYER", "3 P OfflineGrace by DEADLINE")
	w.wantChanges("cid", "1 P CreateParty by PLAYER", "2  OfflineRemoval by DEADLINE")
	for _, p := range w.cell.playerflow.Flow.Players.All() {
		if got := uint64(len(w.changes(p.ID))); got != p.Rev {
			t.Errorf("%s: %d changes, revision %d", p.ID, got, p.Rev)
		}
	}
}

// TestChangesLeaveForTheArchive: changes that have moved to the archive are no longer in memory. The others are still found, even after a restart.
func TestChangesLeaveForTheArchive(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("ann", "ben")
	w.must(&playerflow.LeaveParty{Caller: w.as("ann")})
	v := w.cell.View()
	records := v.Ended(0, 2, w.now)
	w.must(&kernel.Forget{Count: len(records)})
	for i, want := range []string{"ann CreateParty", "ben JoinParty"} {
		x, err := playerflow.DecodeChange(records[i].Data)
		if got := x.Player + " " + x.Cause; err != nil || got != want || records[i].Kind != kernel.AChange || records[i].Player != x.Player {
			t.Errorf("record %d is %+v: %s, %v; want %s", i, records[i], got, err, want)
		}
	}
	w.wantChanges("ann", "2  LeaveParty by PLAYER")
	w.wantChanges("ben")
	w.must(&playerflow.LeaveParty{Caller: w.as("ben")})
	w.wantChanges("ben", "2  LeaveParty by PLAYER")
	w.check()
}

// BenchmarkKeyChange changes one player's keys, and lets the record of it leave for the archive.
func BenchmarkKeyChange(b *testing.B) {
	w := newFlowWorld(b, nil)
	w.online("a")
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			w.must(&playerflow.CreateParty{Caller: w.as("a"), ID: flow.PartyID(w.id())})
		} else {
			w.must(&playerflow.LeaveParty{Caller: w.as("a")})
		}
		if i%256 == 255 {
			v := w.cell.View()
			w.must(&kernel.Forget{Count: len(v.Ended(0, 256, w.now))})
		}
		w.journal = nil
	}
}
