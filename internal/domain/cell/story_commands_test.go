package cell_test

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// storyRules is a rule set for two teams of one or two players.
const storyRules = `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":1,"maxPlayers":2}]}`

// storyCommands has the functions that make the commands of a line.
var storyCommands = map[string]func(s *story, a words) []kernel.Command{
	// Hosting
	"server": func(s *story, a words) (all []kernel.Command) {
		for _, name := range a.names() {
			key := storyProcess(name)
			all = append(all, &hosting.ConnectProcess{Process: key, Link: 1}, &hosting.ActivateProcess{Process: key, Link: 1, Port: 7777, Request: s.request()},
				&hosting.ReportHealth{Process: key, Healthy: true})
		}
		return all
	},
	"activate": func(s *story, a words) []kernel.Command {
		key, game := s.serverOf(a.one())
		return []kernel.Command{&hosting.PromptGameSession{Process: key, Game: game}, &hosting.ActivateGameSession{Process: key, Game: game}}
	},
	"lose-link": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&hosting.LoseLink{Process: storyProcess(a.one()), Link: uint64(a.number("link", 1))}}
	},
	"relink": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&hosting.ConnectProcess{Process: storyProcess(a.one()), Link: uint64(a.number("link", 2))}}
	},
	"end-server": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&hosting.EndProcess{Process: storyProcess(a.one()), Request: s.request()}}
	},
	"terminate": func(s *story, a words) []kernel.Command {
		_, game := s.serverOf(a.one())
		return []kernel.Command{&hosting.TerminateGameSession{ID: game}}
	},
	"reserve": func(s *story, a words) []kernel.Command {
		_, game := s.serverOf(a.or("on", ""))
		cmd := &hosting.ReservePlayers{Game: game}
		for _, player := range a.names() {
			cmd.Players = append(cmd.Players, hosting.NewPlayer{ID: domain.PlayerSessionID(s.made()), Player: player})
		}
		return []kernel.Command{cmd}
	},
	"connect": func(s *story, a words) (all []kernel.Command) {
		for _, player := range a.names() {
			key, game, id := s.seat(player, a.or("with", ""))
			if other := a.or("to", ""); other != "" {
				key, game = s.serverOf(other)
			}
			all = append(all, &hosting.AcceptPlayer{Process: key, Game: game, Player: id, Request: s.request()})
		}
		return all
	},
	"lose": func(s *story, a words) []kernel.Command {
		key, game, id := s.seat(a.one(), a.or("with", ""))
		return []kernel.Command{&hosting.RemovePlayer{Process: key, Game: game, Player: id}}
	},
	"stop-placement": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&hosting.StopPlacement{ID: s.placementID(a.one())}}
	},
	"tick": func(*story, words) []kernel.Command { return []kernel.Command{&kernel.Tick{}} },

	// Matchmaking
	"queue": func(s *story, a words) (all []kernel.Command) {
		if s.kinds["rules"] == 0 {
			s.kinds["rules"]++
			all = append(all, &matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "rules", Region: "us-east-1", Body: storyRules}})
		}
		x := matchmaking.Configuration{
			Name: a.one("accept", "standalone", "auto-backfill"), Region: "us-east-1", RuleSet: "rules", RequestTimeout: a.duration(a.or("timeout", "5m")),
			AcceptanceRequired: a.has("accept"), AcceptanceTimeout: a.duration(a.or("accept-timeout", "20s")), Standalone: a.has("standalone"), AutoBackfill: a.has("auto-backfill"),
		}
		if !x.Standalone {
			x.Queues = []string{storyAccount + "gamesessionqueue/q"}
		}
		if v := a.or("on-placement-failure", ""); v != "" {
			x.Tags = append(x.Tags, fleet.Tag{Key: matchmaking.PlacementFailureTag, Value: v})
		}
		return append(all, &matchmaking.CreateConfiguration{Configuration: x})
	},
	"start": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&matchmaking.StartMatchmaking{Configuration: a.or("in", "duel"), ID: a.one(), Players: storyPeople(a.list("players"), "")}}
	},
	"start-backfill": func(s *story, a words) []kernel.Command {
		_, game := s.serverOf(a.or("on", ""))
		return []kernel.Command{&matchmaking.StartMatchBackfill{
			Configuration: a.or("in", "duel"), ID: a.one(), Game: string(game), Slots: a.number("slots", 0),
			Players: append(storyPeople(a.list("red"), "red"), storyPeople(a.list("blue"), "blue")...),
		}}
	},
	"begin": func(s *story, a words) []kernel.Command {
		cmd := &matchmaking.BeginSearch{}
		for _, name := range a.names() {
			cmd.Tickets = append(cmd.Tickets, s.ticketKey(name))
		}
		return []kernel.Command{cmd}
	},
	"propose": func(s *story, a words) []kernel.Command {
		p := matchmaking.Proposal{ID: s.made(), PlayersMax: storySeats}
		for _, team := range []string{"backfill", "red", "blue"} {
			for _, name := range a.list(team) {
				key := s.ticketKey(name)
				if g := a.number("generation", 0); g > 0 {
					key.Generation = uint32(g)
				}
				p.Tickets = append(p.Tickets, matchmaking.ProposedTicket{TicketKey: key, Team: strings.TrimPrefix(team, "backfill")})
			}
		}
		v := s.cell.View()
		c, _ := v.Configuration(a.or("in", "duel"))
		return []kernel.Command{&matchmaking.ProposeMatches{Configuration: c.Name, Version: c.Version, Proposals: []matchmaking.Proposal{p}}}
	},
	"accept": func(s *story, a words) []kernel.Command { return storyAnswer(s, a, true) },
	"reject": func(s *story, a words) []kernel.Command { return storyAnswer(s, a, false) },
	"stop-ticket": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&matchmaking.StopMatchmaking{ID: a.one()}}
	},

	// Logins and streams
	"login": func(s *story, a words) (all []kernel.Command) {
		for _, player := range a.names("auto-reconnect") {
			all = append(all, s.login(player, a.has("auto-reconnect")))
		}
		return all
	},
	"logout": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.Logout{Caller: s.caller(a)}}
	},
	"online": func(s *story, a words) []kernel.Command { return s.online(a.names()...) },
	"offline": func(s *story, a words) (all []kernel.Command) {
		for _, player := range a.names() {
			x := s.look(player)
			s.seen[player] = x.Record.Seq
			all = append(all, &playerflow.LoseStream{Player: player, Stream: x.Stream})
		}
		return all
	},
	"force-logout": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.ForceLogout{Player: a.one()}}
	},
	"ban": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.BanPlayer{Player: a.one(), Banned: true}}
	},

	// Parties
	"party": func(s *story, a words) (all []kernel.Command) {
		names := a.names()
		all = s.online(names...)
		id := s.made()
		all = append(all, &playerflow.CreateParty{Caller: s.callerOf(names[0]), ID: flow.PartyID(id), Joinability: flow.Open})
		for _, player := range names[1:] {
			all = append(all, &playerflow.JoinParty{Caller: s.callerOf(player), Party: flow.PartyID(id)})
		}
		return all
	},
	"create-party": func(s *story, a words) []kernel.Command {
		cmd := &playerflow.CreateParty{Caller: s.caller(a), ID: flow.PartyID(s.made())}
		if a.has("open") {
			cmd.Joinability = flow.Open
		}
		return []kernel.Command{cmd}
	},
	"join": func(s *story, a words) []kernel.Command {
		cmd := &playerflow.JoinParty{Caller: s.caller(a)}
		if to := a.or("to", ""); strings.HasPrefix(to, "invite") {
			cmd.Invite = flow.InviteID(s.id(to))
		} else {
			cmd.Party = flow.PartyID(s.id(to))
		}
		return []kernel.Command{cmd}
	},
	"leave-party": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.LeaveParty{Caller: s.caller(a)}}
	},
	"kick": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.KickPlayer{Caller: s.callerOf(a.or("by", "")), Target: a.one()}}
	},
	"promote": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.PromoteLeader{Caller: s.callerOf(a.or("by", "")), Target: a.one()}}
	},
	"ready": func(s *story, a words) (all []kernel.Command) {
		for _, player := range a.names() {
			all = append(all, &playerflow.SetReady{Caller: s.callerOf(player), Ready: true})
		}
		return all
	},
	"unready": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.SetReady{Caller: s.caller(a)}}
	},
	"disband": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.DisbandParty{Caller: s.caller(a)}}
	},
	"invite": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.SendInvite{Caller: s.callerOf(a.or("by", "")), ID: flow.InviteID(s.made()), Target: a.one()}}
	},
	"cancel-invite": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.CancelInvite{Caller: s.callerOf(a.or("by", "")), Invite: flow.InviteID(s.id(a.one()))}}
	},
	"decline-invite": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.DeclineInvite{Caller: s.callerOf(a.or("by", "")), Invite: flow.InviteID(s.id(a.one()))}}
	},

	// Searches of players
	"search": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.EnterMatchmaking{Caller: s.caller(a), Ticket: domain.TicketID(s.made()), Party: flow.PartyID(s.madeIfNeeded(a.one())), Queue: a.or("in", "duel")}}
	},
	"stop-search": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.LeaveMatchmaking{Caller: s.caller(a)}}
	},
	"accept-match":  func(s *story, a words) []kernel.Command { return storyAnswerMatch(s, a, true) },
	"decline-match": func(s *story, a words) []kernel.Command { return storyAnswerMatch(s, a, false) },
	"close-queue": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.SetQueue{Name: a.one(), Closed: true}}
	},

	// Games
	"play": func(s *story, a words) []kernel.Command {
		plan := playerflow.GamePlan{ID: flow.InstanceID(s.made()), Queue: "q", PlayersMax: a.number("seats", storySeats)}
		for _, player := range a.names() {
			plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: player})
		}
		return []kernel.Command{&playerflow.MakeGame{Plan: plan}}
	},
	"details": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.GetHostConnectionDetails{Caller: s.caller(a), Instance: s.gameOf(a)}}
	},
	"decline": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.DeclineReconnect{Caller: s.caller(a), Instance: s.gameOf(a)}}
	},
	"leave-game": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.LeaveGame{Caller: s.caller(a), Instance: s.gameOf(a)}}
	},
	"backfill": func(s *story, a words) []kernel.Command {
		teams := map[string]string{}
		for _, team := range []string{"red", "blue"} {
			for _, player := range a.list(team) {
				teams[player] = team
			}
		}
		return []kernel.Command{&playerflow.EnterBackfill{Instance: flow.InstanceID(s.id(a.one())), Ticket: domain.BackfillID(s.made()), Queue: a.or("in", ""), Slots: a.number("slots", 0), Teams: teams}}
	},
	"stop-backfill": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.LeaveBackfill{Instance: flow.InstanceID(s.id(a.one()))}}
	},
	"report-lost": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.DisconnectMember{Instance: s.gameOf(a), PlayerSession: domain.PlayerSessionID(s.id(a.or("with", "")))}}
	},
	"remove": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.RemoveMembers{Instance: s.gameOf(a), Players: []playerflow.RemovedMember{{Player: a.one(), Reason: flow.RemovedKicked}}}}
	},
	"release": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.ReleaseMembers{Instance: s.gameOf(a), Players: a.names()}}
	},
	"end-game": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.EndGame{Instance: flow.InstanceID(s.id(a.one()))}}
	},
	"force-end": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.ForceEnd{Instance: flow.InstanceID(s.id(a.one()))}}
	},
	"force-release": func(s *story, a words) []kernel.Command {
		return []kernel.Command{&playerflow.ForceRelease{Player: a.one("party", "ticket", "game"), Party: a.has("party"), Ticket: a.has("ticket"), Game: a.has("game")}}
	},
}

func storyAnswer(s *story, a words, yes bool) []kernel.Command {
	return []kernel.Command{&matchmaking.AcceptMatch{Ticket: a.one(), Players: a.list("players"), Accept: yes}}
}

func storyAnswerMatch(s *story, a words, yes bool) (all []kernel.Command) {
	for _, player := range a.names() {
		x := s.look(player)
		all = append(all, &playerflow.AnswerMatch{Caller: s.callerOf(player), Ticket: x.Record.Keys.Ticket, Accept: yes})
	}
	return all
}

// login makes the command of a login, on another device than the logins before.
func (s *story) login(player string, autoReconnect bool) *playerflow.Login {
	id := s.made()
	delete(s.seen, player) // a client that has just begun has seen nothing
	s.logins[player] = append(s.logins[player], flow.LoginSessionID(id))
	return &playerflow.Login{Player: player, LoginSessionID: flow.LoginSessionID(id), Token: s.made(), AutoReconnect: autoReconnect}
}

// online logs players in, if they are not, and opens their streams. A client that only lost its stream resumes it.
func (s *story) online(players ...string) (all []kernel.Command) {
	for _, player := range players {
		if s.logins[player] == nil {
			all = append(all, s.login(player, false))
		}
		s.stream++
		s.missed[player] = s.look(player).Record.Seq
		all = append(all, &playerflow.AttachStream{Player: player, LoginSessionID: s.callerOf(player).LoginSessionID, Stream: s.stream, After: s.seen[player]})
	}
	return all
}

// storyLooks has the functions for lines that only read, or move the clock.
var storyLooks = map[string]func(s *story, a words){
	"wait":    func(s *story, a words) { s.wait(a.duration(a.one())) },
	"stall":   func(s *story, a words) { s.now = s.now.Add(a.duration(a.one())) },
	"restart": func(s *story, a words) { s.restart(a.duration(a.or("down", "0s"))) },
	"state":   func(s *story, a words) { s.printState() },
	"verify": func(s *story, a words) {
		// A game server's check of the connection token that was in the details: Game.VerifyPlayer.
		v := s.cell.View()
		m, err := v.VerifyPlayer(s.gameOf(a), domain.PlayerSessionID(s.id(a.or("with", ""))), uint32(a.number("epoch", 1)), a.number("attempt", 1))
		if err != nil {
			s.printf("refused %s", flow.CodeOf(err))
			return
		}
		s.printf("the token is good: %s is %s", m.Player, m.Status)
	},
	"allowed": func(s *story, a words) { s.printf("%s", strings.Join(s.look(a.one()).Allowed.Names(), " ")) },
}

func storyProcess(name string) fleet.Key {
	return fleet.Key{Fleet: storyFleet, Compute: storyHost, Process: name}
}

func (s *story) request() uint64 {
	s.seed++
	return kernel.RequestHash(fmt.Sprint("request-", s.seed))
}

// serverOf returns a server process with the latest game session that it got.
func (s *story) serverOf(process string) (fleet.Key, session.ID) {
	game, ok := s.hosted[process]
	if !ok {
		s.d.Fatalf(s.t, "server %q has no game session", process)
	}
	return storyProcess(process), game
}

// seat returns a player session with its server: the named one, or the one that waits for the player, or the player's present one.
func (s *story) seat(player, with string) (fleet.Key, session.ID, domain.PlayerSessionID) {
	v := s.cell.View()
	var id domain.PlayerSessionID
	if with != "" {
		id = domain.PlayerSessionID(s.id(with))
	} else if x := s.look(player); x.Game != nil {
		if id = x.Game.Membership.Next; id.IsZero() {
			id = x.Game.Membership.Session
		}
	}
	p, ok := v.PlayerSession(id)
	if !ok {
		s.d.Fatalf(s.t, "%s has no player session", player)
	}
	return storyProcess(s.server[p.GameID]), p.GameID, id
}

func (s *story) look(player string) playerflow.FlowSnapshot {
	v := s.cell.View()
	x, _ := v.FlowOf(player, s.now)
	return x
}

// gameOf returns the game instance of a line's player, or the one that the line names.
func (s *story) gameOf(a words) flow.InstanceID {
	if name := a.or("in", ""); name != "" {
		return flow.InstanceID(s.id(name))
	}
	if x := s.look(a.one()); x.Game != nil {
		return x.Game.ID
	}
	s.d.Fatalf(s.t, "%s is in no game; name one with in=", a.one())
	return flow.InstanceID(domain.UUID{})
}

// callerOf returns a player as caller, with the latest login session.
func (s *story) callerOf(player string) playerflow.Caller {
	c := playerflow.Caller{Player: player}
	if logins := s.logins[player]; len(logins) > 0 {
		c.LoginSessionID = logins[len(logins)-1]
	}
	return c
}

// caller returns the player of a line, which may name an earlier login session by its epoch.
func (s *story) caller(a words) playerflow.Caller {
	c := s.callerOf(a.one("open"))
	if n := int(a.number("epoch", 0)); n > 0 {
		c.LoginSessionID = s.logins[c.Player][n-1]
	}
	c.Request = a.or("request", "")
	return c
}

// madeIfNeeded returns an id for the party that a search makes for a player without a party.
func (s *story) madeIfNeeded(player string) domain.UUID {
	if x := s.look(player); x.Party == nil {
		return s.made()
	}
	return domain.UUID{}
}

func (s *story) ticketID(name string) string {
	if id, ok := s.ticketIDs[name]; ok {
		return id
	}
	return name
}

func (s *story) ticketKey(name string) matchmaking.TicketKey {
	v := s.cell.View()
	t, ok := v.Ticket(s.ticketID(name))
	if !ok {
		s.d.Fatalf(s.t, "there is no ticket %q", name)
	}
	return matchmaking.TicketKey{No: t.No, Generation: t.Generation}
}

func (s *story) placementID(name string) string {
	id := s.id(name)
	if strings.HasPrefix(name, "game") {
		return flow.InstanceID(id).String()
	}
	return id.String()
}
