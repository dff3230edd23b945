package cell

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// testTokens makes stand-ins for the hashes of tokens: they depend on all fields of a token.
type testTokens struct{}

func (testTokens) TokenHash(player string, h *flow.Host) string {
	return fmt.Sprint(player, " ", h.Instance, " ", h.GameSession, " ", h.Session, " ", h.Attempt, " ", h.Epoch, " ", h.TokenUntil)
}

// bound checks that the PlayerData of a member's latest reservation contains the hash of the token that the player gets with the details.
func (w *flowWorld) bound(player string, want playerflow.Wrapped) {
	w.t.Helper()
	host := w.cell.playerflow.HostOf(w.member(player))
	r, _ := w.cell.hosting.Sessions.PlayerByID(host.Session)
	var got playerflow.Wrapped
	if err := json.Unmarshal([]byte(w.cell.hosting.Sessions.Players.Get(r).Data), &got); err != nil {
		w.t.Fatalf("PlayerData %q: %v", w.cell.hosting.Sessions.Players.Get(r).Data, err)
	}
	want.Version, want.Instance, want.Token = 1, w.member(player).Instance.String(), testTokens{}.TokenHash(player, host)
	if got != want {
		w.t.Errorf("PlayerData is\n %+v\nwant\n %+v", got, want)
	}
}

// TestWrappedPlayerData: a reservation and its token are bound to each other, however the reservation was made.
func TestWrappedPlayerData(t *testing.T) {
	wrap := func(c *flow.Config) { c.Games.WrapData = true }
	w := newFlowWorld(t, wrap)
	w.online("me")
	g := domain.UUID{}
	{ // by a placement, with PlayerData of the studio
		plan := playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 3, Players: []playerflow.PlannedPlayer{{Player: "me", Team: "red", Data: `skin="blue"`}}}
		w.must(&playerflow.MakeGame{Plan: plan})
		w.startMatch(plan.ID.String())
		g = domain.UUID(plan.ID)
	}
	want := playerflow.Wrapped{Attempt: 1, Team: "red", Data: `skin="blue"`}
	w.bound("me", want)

	// A reconnect gets another token, and so does a takeover.
	w.connect(flow.InstanceID(g), "me")
	w.lose(flow.InstanceID(g), w.member("me").Session)
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: flow.InstanceID(g)})
	want.Attempt = 2
	w.bound("me", want)
	w.connect(flow.InstanceID(g), "me")
	w.login("me")
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: flow.InstanceID(g)})
	want.Attempt = 3
	w.bound("me", want)

	// A player who joins later.
	w.online("guest")
	w.must(&playerflow.AddMembers{Instance: flow.InstanceID(g), Players: []playerflow.PlannedPlayer{{Player: "guest"}}})
	w.bound("guest", playerflow.Wrapped{Attempt: 1})
}

// TestWrappedPlayerDataOutlivesDowntime: the token stays the same as long as the reservation. Once it is too old, another token is made
// with another reservation.
func TestWrappedPlayerDataOutlivesDowntime(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.WrapData = true })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	first := w.member("me").Session
	w.must(&kernel.Resume{})
	w.now = w.now.Add(20 * time.Second)
	w.must(&kernel.Resume{}) // the service was down: 60 s are left of the reservation, 40 s of the token
	w.attach("me")
	details := &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}
	w.must(details)
	if details.Host.Session != first {
		t.Error("the reservation was made anew")
	}
	w.bound("me", playerflow.Wrapped{Attempt: 1})
	w.now = w.now.Add(35 * time.Second)
	w.must(&kernel.Resume{})
	w.attach("me")
	again := &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}
	w.must(again)
	if again.Host.Session == first {
		t.Error("the token of the reservation is about to expire, and the player got no new one")
	}
	w.bound("me", playerflow.Wrapped{Attempt: 2})
}

// TestPlayerDataIsTheStudios by default.
func TestPlayerDataIsTheStudios(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me")
	w.play(false, flow.ReconnectOptional, "me")
	r, _ := w.cell.hosting.Sessions.PlayerByID(w.member("me").Session)
	if data := w.cell.hosting.Sessions.Players.Get(r).Data; strings.Contains(data, "pf") {
		t.Errorf("PlayerData is %q", data)
	}
}
