package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

func TestDefaultsMakeSense(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestValidate: a value that makes no sense is named as in docs/spec/player-api.md#options.
func TestValidate(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"pingInterval":             func(c *Config) { c.Sessions.PingInterval = time.Millisecond },
		"deadAfter":                func(c *Config) { c.Sessions.DeadAfter = c.Sessions.PingInterval },
		"sessionIdleExpiry":        func(c *Config) { c.Sessions.IdleExpiry = time.Second },
		"eventRetention":           func(c *Config) { c.Sessions.EventsKept = EventsLimit + 1 },
		"restartGrace":             func(c *Config) { c.Sessions.RestartGrace = time.Hour },
		"replaceBurst":             func(c *Config) { c.Sessions.ReplacesMax = 0 },
		"maxMembers":               func(c *Config) { c.Parties.MembersMax = 101 },
		"leaderGrace":              func(c *Config) { c.Parties.LeaderGrace = -1 },
		"offlineRemoval":           func(c *Config) { c.Parties.OfflineRemoval = 2 * time.Hour },
		"staleExpiration":          func(c *Config) { c.Parties.StaleExpiration = 0 },
		"inviteTimeout":            func(c *Config) { c.Parties.InviteTimeout = 0 },
		"maxPendingInvites":        func(c *Config) { c.Parties.InvitesMax = 0 },
		"joinability":              func(c *Config) { c.Parties.Joinability = 0 },
		"offlineGrace":             func(c *Config) { c.Search.OfflineGrace = time.Hour },
		"reconnect":                func(c *Config) { c.Games.Reconnect = 0 },
		"reconnectWindow":          func(c *Config) { c.Games.ReconnectWindow = 3 * time.Hour },
		"noShowHold":               func(c *Config) { c.Games.NoShowHold = -time.Second },
		"reservationTimeout":       func(c *Config) { c.Games.Reservation = time.Second },
		"allocationTimeout":        func(c *Config) { c.Games.AllocationTimeout = 0 },
		"onPlayerSessionCompleted": func(c *Config) { c.Games.Completed = 0 },
		"keepAliveInterval":        func(c *Config) { c.Games.KeepAlive = time.Hour },
		"absoluteTimeout":          func(c *Config) { c.Games.AbsoluteTimeout = time.Second },
		"endingGrace":              func(c *Config) { c.Games.EndingGrace = 0 },
		"dodgeSteps":               func(c *Config) { c.Penalties.DodgeSteps = nil },
		"queues[0].name":           func(c *Config) { c.Queues = []QueueConfig{{}} },
		"queues[0].maxParty":       func(c *Config) { c.Queues = []QueueConfig{{Name: "q", PartyMax: 11}} },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want+": ") && !strings.Contains(err.Error(), want+",") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestPhases(t *testing.T) {
	p, m, g := domain.UUID{1}, domain.UUID{2}, domain.UUID{3}
	for keys, want := range map[Keys]Phase{
		{}: Idle, {Party: PartyID(p)}: InParty, {Party: PartyID(p), Ticket: domain.TicketID(m)}: Matchmaking, {Party: PartyID(p), Game: InstanceID(g)}: InGameWithParty, {Game: InstanceID(g)}: InGame,
	} {
		if got := keys.Phase(); got != want {
			t.Errorf("%v is phase %d, want %d", keys, got, want)
		}
	}
}

// TestNames: whatever can be told has a name.
func TestNames(t *testing.T) {
	for r := NoReason + 1; r < lastReason; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no name", uint8(r))
		}
	}
	for m := OnSync; m <= OnMaintenance; m++ {
		if !strings.HasPrefix(m.String(), "On") {
			t.Errorf("message %d is %q", uint8(m), m)
		}
	}
	if got := (CanCreateParty | CanLogout).Names(); len(got) != 2 || got[0] != "CreateParty" || got[1] != "Logout" {
		t.Error(got)
	}
}

// TestMessage: what is written is read.
func TestMessage(t *testing.T) {
	m := Message{
		Cause: "CreateParty", Record: Record{Rev: 3, Keys: Keys{Party: PartyID{1}}}, Allowed: CanLogout, Host: &Host{Port: 7777},
		Party: &PartyView{Party: Party{Members: []Member{{Player: "ann", Leader: true}}}, People: []MemberView{{Online: true}}},
	}
	got, err := DecodeMessage(m.Encode())
	if err != nil || got.Cause != m.Cause || got.Record != m.Record || *got.Host != *m.Host || got.Party.Members[0] != m.Party.Members[0] || !got.Party.People[0].Online {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOutbox: numbers go on, the front is cut, and a frozen copy keeps what it showed.
func TestOutbox(t *testing.T) {
	s := New()
	r := s.AddPlayer(Player{ID: "ann"})
	for i := range uint64(200) {
		first := uint64(1)
		if i >= 50 {
			first = i - 48
		}
		s.Tell(r, Told{Commit: i + 1}, first)
		p := s.Players.Get(r)
		if p.Seq != i+1 || p.FirstKept() != first || p.Outbox()[0].Commit != first {
			t.Fatalf("after %d: numbers %d to %d, the first is of commit %d", i+1, p.FirstKept(), p.Seq, p.Outbox()[0].Commit)
		}
	}
	frozen := s.Players.Freeze()
	for i := range uint64(100) {
		s.Tell(r, Told{Commit: 1000 + i}, 250)
	}
	s.Trim(r, 301)
	if got := frozen.Get(r).Outbox(); len(got) != 50 || got[0].Commit != 151 || got[49].Commit != 200 {
		t.Errorf("the frozen outbox has %d events", len(got))
	}
	if p := s.Players.Get(r); len(p.Outbox()) != 0 || p.FirstKept() != 301 || p.OutboxBytes() != 0 {
		t.Errorf("%d events from %d on, %d bytes", len(p.Outbox()), p.FirstKept(), p.OutboxBytes())
	}
}
