package cell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// phases puts "me" into each phase; in a party "friend" is the other member, and "me" leads. In S3 "friend" is not in the
// game.
var phases = [5]func(w *flowWorld){
	func(w *flowWorld) { w.online("me") },
	func(w *flowWorld) { w.party("me", "friend") },
	func(w *flowWorld) { w.search("me", "friend") },
	func(w *flowWorld) { w.party("me", "friend"); w.play(false, flow.ReconnectOptional, "me") },
	func(w *flowWorld) { w.online("me"); w.play(false, flow.ReconnectOptional, "me") },
}

// row is an action of T1 with what it does in each phase: "S1" is the phase after it, anything else a code; "-" is left
// out, another test has it.
type row struct {
	name   string
	before func(w *flowWorld)
	action func(w *flowWorld) kernel.Command
	want   [5]string
	after  func(t *testing.T, w *flowWorld, phase int)
}

// other makes a party of other players.
func other(w *flowWorld) flow.PartyID { return w.party("host", "guest") }

var otherParty flow.PartyID

func joinsOther(w *flowWorld) { otherParty = other(w) }

func inGame(w *flowWorld) flow.InstanceID { return w.keys("me").Game }

var t1 = []row{
	{name: "CreateParty", action: func(w *flowWorld) kernel.Command {
		return &playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id())}
	},
		want: [5]string{"S1", "S1", "IN_MATCHMAKING", "S3", "S3"}},
	{name: "CreateParty on_existing FAIL", action: func(w *flowWorld) kernel.Command {
		return &playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id()), FailOnExisting: true}
	},
		want: [5]string{"S1", "ALREADY_IN_PARTY", "IN_MATCHMAKING", "ALREADY_IN_PARTY", "S3"}},
	{name: "JoinParty by id", before: joinsOther, action: func(w *flowWorld) kernel.Command { return &playerflow.JoinParty{Caller: w.as("me"), Party: otherParty} },
		want: [5]string{"S1", "S1", "IN_MATCHMAKING", "S3", "S3"}},
	{name: "JoinParty by code", before: joinsOther, action: func(w *flowWorld) kernel.Command {
		r, _ := w.cell.playerflow.Flow.Party(otherParty)
		return &playerflow.JoinParty{Caller: w.as("me"), Code: w.cell.playerflow.Flow.Parties.Get(r).Code}
	}, want: [5]string{"S1", "S1", "IN_MATCHMAKING", "S3", "S3"}},
	{name: "JoinParty by invite", before: func(w *flowWorld) {
		other(w)
		w.must(&playerflow.SendInvite{Caller: w.as("guest"), ID: flow.InviteID{7}, Target: "me"})
	}, action: func(w *flowWorld) kernel.Command {
		return &playerflow.JoinParty{Caller: w.as("me"), Invite: flow.InviteID{7}}
	},
		want: [5]string{"S1", "S1", "IN_MATCHMAKING", "S3", "S3"}},
	{name: "SendInvite", before: func(w *flowWorld) { w.online("stranger") },
		action: func(w *flowWorld) kernel.Command {
			return &playerflow.SendInvite{Caller: w.as("me"), ID: flow.InviteID(w.id()), Target: "stranger"}
		},
		want: [5]string{"NOT_IN_PARTY", "S1", "S2", "S3", "NOT_IN_PARTY"}},
	{name: "CancelInvite", before: func(w *flowWorld) {
		w.online("stranger")
		if !w.keys("me").Party.IsZero() {
			w.must(&playerflow.SendInvite{Caller: w.as("me"), ID: flow.InviteID{7}, Target: "stranger"})
		}
	}, action: func(w *flowWorld) kernel.Command {
		return &playerflow.CancelInvite{Caller: w.as("me"), Invite: flow.InviteID{7}}
	},
		want: [5]string{"INVITE_NOT_FOUND", "S1", "S2", "S3", "INVITE_NOT_FOUND"}},
	{name: "DeclineInvite", before: func(w *flowWorld) {
		other(w)
		w.must(&playerflow.SendInvite{Caller: w.as("guest"), ID: flow.InviteID{7}, Target: "me"})
	}, action: func(w *flowWorld) kernel.Command {
		return &playerflow.DeclineInvite{Caller: w.as("me"), Invite: flow.InviteID{7}}
	},
		want: [5]string{"S0", "S1", "S2", "S3", "S4"}},
	{name: "LeaveParty", action: func(w *flowWorld) kernel.Command { return &playerflow.LeaveParty{Caller: w.as("me")} },
		want:  [5]string{"NOT_IN_PARTY", "S0", "S0", "S4", "NOT_IN_PARTY"},
		after: func(t *testing.T, w *flowWorld, phase int) { w.wantPhase("friend", flow.InParty) }},
	{name: "KickPlayer", action: func(w *flowWorld) kernel.Command { return &playerflow.KickPlayer{Caller: w.as("me"), Target: "friend"} },
		want:  [5]string{"NOT_IN_PARTY", "S1", "S1", "S3", "NOT_IN_PARTY"},
		after: func(t *testing.T, w *flowWorld, phase int) { w.wantPhase("friend", flow.Idle) }},
	{name: "KickPlayer by a member", action: func(w *flowWorld) kernel.Command { return &playerflow.KickPlayer{Caller: w.asMember(), Target: "me"} },
		want: [5]string{"-", "NOT_LEADER", "NOT_LEADER", "NOT_LEADER", "-"}},
	{name: "KickPlayer of a stranger", action: func(w *flowWorld) kernel.Command { return &playerflow.KickPlayer{Caller: w.as("me"), Target: "nobody"} },
		want: [5]string{"NOT_IN_PARTY", "TARGET_NOT_IN_PARTY", "TARGET_NOT_IN_PARTY", "TARGET_NOT_IN_PARTY", "NOT_IN_PARTY"}},
	{name: "KickPlayer of oneself", action: func(w *flowWorld) kernel.Command { return &playerflow.KickPlayer{Caller: w.as("me"), Target: "me"} },
		want: [5]string{"NOT_IN_PARTY", "CANNOT_TARGET_SELF", "CANNOT_TARGET_SELF", "CANNOT_TARGET_SELF", "NOT_IN_PARTY"}},
	{name: "PromoteLeader", action: func(w *flowWorld) kernel.Command {
		return &playerflow.PromoteLeader{Caller: w.as("me"), Target: "friend"}
	},
		want: [5]string{"NOT_IN_PARTY", "S1", "S2", "S3", "NOT_IN_PARTY"}},
	{name: "PromoteLeader by a member", action: func(w *flowWorld) kernel.Command {
		return &playerflow.PromoteLeader{Caller: w.asMember(), Target: "me"}
	},
		want: [5]string{"-", "NOT_LEADER", "NOT_LEADER", "NOT_LEADER", "-"}},
	{name: "SetReady true", action: func(w *flowWorld) kernel.Command { return &playerflow.SetReady{Caller: w.as("me"), Ready: true} },
		want: [5]string{"NOT_IN_PARTY", "S1", "S2", "PLAYER_IN_GAME", "NOT_IN_PARTY"}},
	{name: "SetReady false", action: func(w *flowWorld) kernel.Command { return &playerflow.SetReady{Caller: w.as("me"), Ready: false} },
		want: [5]string{"NOT_IN_PARTY", "S1", "S1", "PLAYER_IN_GAME", "NOT_IN_PARTY"},
		after: func(t *testing.T, w *flowWorld, phase int) { // docs/spec/player-flow.md#t1-note-7: the others stay ready
			w.wantPhase("friend", flow.InParty)
			if r, _ := w.cell.playerflow.Flow.Party(w.keys("me").Party); phase == 2 {
				p := w.cell.playerflow.Flow.Parties.Get(r)
				if p.Members[0].Ready || !p.Members[1].Ready {
					t.Errorf("ready: %+v", p.Members)
				}
			}
		}},
	{name: "SetPartyPreferences", action: func(w *flowWorld) kernel.Command {
		return &playerflow.SetPartyPreferences{Caller: w.as("me"), Joinability: flow.Closed}
	},
		want: [5]string{"NOT_IN_PARTY", "S1", "IN_MATCHMAKING", "S3", "NOT_IN_PARTY"},
		after: func(t *testing.T, w *flowWorld, phase int) {
			r, _ := w.cell.playerflow.Flow.Party(w.keys("me").Party)
			for _, m := range w.cell.playerflow.Flow.Parties.Get(r).Members {
				if m.Ready {
					t.Errorf("%s is still ready", m.Player)
				}
			}
		}},
	{name: "SetPartyPreferences by a member", action: func(w *flowWorld) kernel.Command {
		return &playerflow.SetPartyPreferences{Caller: w.asMember(), Joinability: flow.Closed}
	},
		want: [5]string{"-", "NOT_LEADER", "NOT_LEADER", "NOT_LEADER", "-"}},
	{name: "SetPlayerPreferences", action: func(w *flowWorld) kernel.Command {
		return &playerflow.SetPlayerPreferences{Caller: w.as("me"), Latencies: &[]flow.Latency{{Region: "eu-west-1", Milliseconds: 20}}}
	}, want: [5]string{"NOT_IN_PARTY", "S1", "IN_MATCHMAKING", "S3", "NOT_IN_PARTY"}},
	{name: "RotateInviteCode", action: func(w *flowWorld) kernel.Command { return &playerflow.RotateInviteCode{Caller: w.as("me")} },
		want: [5]string{"NOT_IN_PARTY", "S1", "S2", "S3", "NOT_IN_PARTY"}},
	{name: "DisbandParty", action: func(w *flowWorld) kernel.Command { return &playerflow.DisbandParty{Caller: w.as("me")} },
		want:  [5]string{"NOT_IN_PARTY", "S0", "S0", "S4", "NOT_IN_PARTY"},
		after: func(t *testing.T, w *flowWorld, phase int) { w.wantPhase("friend", flow.Idle) }},
	{name: "EnterMatchmaking", before: func(w *flowWorld) { w.queues(); w.ready() },
		action: func(w *flowWorld) kernel.Command {
			return &playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue}
		},
		want: [5]string{"S2", "S2", "S2", "PLAYER_IN_GAME", "PLAYER_IN_GAME"}},
	{name: "EnterMatchmaking in another queue", before: func(w *flowWorld) { w.queues(); w.ready() },
		action: func(w *flowWorld) kernel.Command {
			return &playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: otherQueue}
		},
		want: [5]string{"S2", "S2", "IN_MATCHMAKING", "PLAYER_IN_GAME", "PLAYER_IN_GAME"}},
	{name: "LeaveMatchmaking", action: func(w *flowWorld) kernel.Command { return &playerflow.LeaveMatchmaking{Caller: w.as("me")} },
		want:  [5]string{"NOT_IN_MATCHMAKING", "NOT_IN_MATCHMAKING", "S1", "ALREADY_MATCHED", "ALREADY_MATCHED"},
		after: func(t *testing.T, w *flowWorld, phase int) { w.wantPhase("friend", flow.InParty) }},
	{name: "AcceptMatch", action: func(w *flowWorld) kernel.Command {
		return &playerflow.AnswerMatch{Caller: w.as("me"), Ticket: w.keys("me").Ticket, Accept: true}
	},
		want: [5]string{"ACCEPTANCE_NOT_OPEN", "ACCEPTANCE_NOT_OPEN", "ACCEPTANCE_NOT_OPEN", "ACCEPTANCE_NOT_OPEN", "ACCEPTANCE_NOT_OPEN"}},
	{name: "GetHostConnectionDetails", action: func(w *flowWorld) kernel.Command {
		return &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: inGame(w)}
	},
		want: [5]string{"NOT_IN_GAME", "NOT_IN_GAME", "NOT_IN_GAME", "S3", "S4"}},
	{name: "DeclineReconnect", action: func(w *flowWorld) kernel.Command {
		return &playerflow.DeclineReconnect{Caller: w.as("me"), Instance: inGame(w)}
	},
		want: [5]string{"NOT_IN_GAME", "NOT_IN_GAME", "NOT_IN_GAME", "S1", "S0"}},
	{name: "LeaveGame", action: func(w *flowWorld) kernel.Command {
		return &playerflow.LeaveGame{Caller: w.as("me"), Instance: inGame(w)}
	},
		want: [5]string{"NOT_IN_GAME", "NOT_IN_GAME", "NOT_IN_GAME", "S1", "S0"}},
	{name: "CreateGameInstance, off", action: func(w *flowWorld) kernel.Command {
		return &playerflow.CreateGameInstance{Caller: w.as("me"), Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 2}}
	}, want: [5]string{"JOIN_NOT_ALLOWED", "JOIN_NOT_ALLOWED", "IN_MATCHMAKING", "PLAYER_IN_GAME", "PLAYER_IN_GAME"}},
	{name: "JoinGameInstance, off", action: func(w *flowWorld) kernel.Command {
		return &playerflow.JoinGameInstance{Caller: w.as("me"), Instance: flow.InstanceID(w.id())}
	},
		want: [5]string{"JOIN_NOT_ALLOWED", "JOIN_NOT_ALLOWED", "IN_MATCHMAKING", "PLAYER_IN_GAME", "PLAYER_IN_GAME"}},
	{name: "Logout", action: func(w *flowWorld) kernel.Command { return &playerflow.Logout{Caller: w.as("me")} },
		want: [5]string{"S0", "S0", "S0", "S3", "S4"},
		after: func(t *testing.T, w *flowWorld, phase int) {
			if w.player("me").Login() != 0 || w.player("me").Presence != flow.Offline {
				t.Error("the login session is still there")
			}
			if phase == 1 || phase == 2 {
				w.wantPhase("friend", flow.InParty)
			}
		}},
}

// asMember returns the party member who is not the leader.
func (w *flowWorld) asMember() playerflow.Caller { return w.as("friend") }

// ready makes all members of the caller's party ready, if they can be.
func (w *flowWorld) ready() {
	w.t.Helper()
	for _, player := range []string{"me", "friend"} {
		if _, ok := w.logins[player]; ok && w.keys(player).Phase() == flow.InParty {
			w.must(&playerflow.SetReady{Caller: w.as(player), Ready: true})
		}
	}
}

// eachT1 runs a test for each cell of table T1, with "me" in its phase. want is an outcome of t1.
func eachT1(t *testing.T, test func(t *testing.T, w *flowWorld, row row, phase int, cmd kernel.Command, want string)) {
	for _, row := range t1 {
		for phase := range phases {
			want := row.want[phase]
			if want == "-" {
				continue
			}
			t.Run(fmt.Sprintf("%s/S%d", row.name, phase), func(t *testing.T) {
				w := newFlowWorld(t, nil)
				phases[phase](w)
				if row.before != nil {
					row.before(w)
				}
				test(t, w, row, phase, row.action(w), want)
			})
		}
	}
}

// TestT1 checks table T1, docs/spec/player-flow.md#t1: every cell with its error and "nothing changed".
func TestT1(t *testing.T) {
	eachT1(t, func(t *testing.T, w *flowWorld, row row, phase int, cmd kernel.Command, want string) {
		if !strings.HasPrefix(want, "S") || len(want) != 2 {
			w.refused(cmd, flow.Code(want))
			return
		}
		w.must(cmd)
		w.wantPhase("me", flow.Phase(want[1]-'0'))
		if row.after != nil && phase != 0 && !(phase == 4) {
			row.after(t, w, phase)
		}
	})
}

// TestT1Direct checks T1 for direct create and join where they are enabled.
func TestT1Direct(t *testing.T) {
	for phase, want := range []string{"S4", "S3", "IN_MATCHMAKING", "PLAYER_IN_GAME", "PLAYER_IN_GAME"} {
		for _, join := range []bool{false, true} {
			t.Run(fmt.Sprintf("join %t/S%d", join, phase), func(t *testing.T) {
				w := newFlowWorld(t, func(c *flow.Config) { c.Games.DirectCreate, c.Games.DirectJoin = true, true })
				w.online("host")
				running := w.play(false, 0, "host")
				phases[phase](w)
				var cmd kernel.Command = &playerflow.CreateGameInstance{Caller: w.as("me"), Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 2}}
				if join {
					cmd = &playerflow.JoinGameInstance{Caller: w.as("me"), Instance: running}
				}
				if len(want) != 2 {
					w.refused(cmd, flow.Code(want))
					return
				}
				w.must(cmd)
				w.wantPhase("me", flow.Phase(want[1]-'0'))
				if status := w.member("me").Status; join && status != flow.MemberReserved || !join && status != flow.MemberPending {
					t.Errorf("membership is %s", status)
				}
			})
		}
	}
}

// TestJoinChecks checks docs/spec/player-flow.md#t1-note-3: the refusals of a joining player, in order.
func TestJoinChecks(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.MembersMax = 2 })
	id := w.party("host")
	w.online("me", "full")
	join := func() kernel.Command { return &playerflow.JoinParty{Caller: w.as("me"), Party: id} }
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Party: flow.PartyID(w.id())}, flow.PartyNotFound)
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Code: "NOSUCH22"}, flow.PartyNotFound)
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Invite: flow.InviteID(w.id())}, flow.InviteNotFound)
	w.must(&playerflow.SetPartyPreferences{Caller: w.as("host"), Joinability: flow.InviteOnly})
	w.refused(join(), flow.PartyClosed)
	invite := &playerflow.SendInvite{Caller: w.as("host"), ID: flow.InviteID(w.id()), Target: "me"}
	w.must(invite)
	w.must(&playerflow.SetPartyPreferences{Caller: w.as("host"), Joinability: flow.Closed})
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Invite: invite.ID}, flow.PartyClosed)
	w.must(&playerflow.SetPartyPreferences{Caller: w.as("host"), Joinability: flow.Open})
	w.pass(3 * time.Minute)
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Invite: invite.ID}, flow.InviteExpired)

	w.must(join())
	w.refused(join(), flow.AlreadyInParty)
	w.must(&playerflow.KickPlayer{Caller: w.as("host"), Target: "me"})
	w.must(&playerflow.JoinParty{Caller: w.as("full"), Party: id})
	w.refused(join(), flow.KickedNeedsInvite) // before PARTY_FULL
	w.must(&playerflow.SendInvite{Caller: w.as("host"), ID: flow.InviteID(w.id()), Target: "me"})
	w.refused(join(), flow.PartyFull)
	w.must(&playerflow.LeaveParty{Caller: w.as("full")})
	w.must(join())
	w.must(&playerflow.LeaveParty{Caller: w.as("me")})
	v1, v2 := "1.0", "2.0"
	w.must(&playerflow.SetPlayerPreferences{Caller: w.as("host"), ClientVersion: &v1})
	w.must(&playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id())})
	w.must(&playerflow.SetPlayerPreferences{Caller: w.as("me"), ClientVersion: &v2})
	old := w.keys("me")
	w.refused(join(), flow.PartyVersionMismatch)
	if w.keys("me") != old {
		t.Error("a refused join has cost the old party")
	}
	w.must(&playerflow.SetBlocks{Player: "host", Blocked: []string{"me"}})
	w.refused(join(), flow.JoinNotAllowed)
	w.refused(&playerflow.SendInvite{Caller: w.as("host"), ID: flow.InviteID(w.id()), Target: "me"}, flow.PermissionDenied)
}

// TestPartyChangeLocked checks docs/spec/player-flow.md#t1-note-2.
func TestPartyChangeLocked(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Parties.NoChangeInGame = true })
	id := other(w)
	w.online("me")
	w.play(false, 0, "me")
	w.refused(&playerflow.CreateParty{Caller: w.as("me"), ID: flow.PartyID(w.id())}, flow.PartyChangeLocked)
	w.refused(&playerflow.JoinParty{Caller: w.as("me"), Party: id}, flow.PartyChangeLocked)
}

// TestSuccession checks docs/spec/player-flow.md#t1-note-4.
func TestSuccession(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b", "c")
	w.offline("b")
	w.must(&playerflow.LeaveParty{Caller: w.as("a")})
	leader := func() (id string) {
		r, _ := w.cell.playerflow.Flow.Party(w.keys("b").Party)
		for _, m := range w.cell.playerflow.Flow.Parties.Get(r).Members {
			if m.Leader {
				id += m.Player
			}
		}
		return id
	}
	if leader() != "c" {
		t.Errorf("%s leads, want c: the longest-standing one who is online", leader())
	}
	w.must(&playerflow.LeaveParty{Caller: w.as("c")})
	if leader() != "b" {
		t.Errorf("%s leads, want b, the only other member", leader())
	}
	w.must(&playerflow.LeaveParty{Caller: w.as("b")})
	if w.cell.playerflow.Flow.Parties.Len() != 0 {
		t.Error("an empty party is still there")
	}
}
