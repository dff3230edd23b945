package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// startFlow starts a service with player flow whose time a test moves, and to which game servers can connect.
func startFlow(t *testing.T, flags ...string) *place {
	t.Helper()
	p := startService(t, append([]string{"--player-flow", "--virtual-clock", "--player-logins-per-address", "0"}, flags...)...).prepare()
	p.queue("cup")
	return p
}

// within returns the place for a part of a test.
func (p *place) within(t *testing.T) *place {
	q := *p
	q.service = p.in(t)
	return &q
}

// advance moves the service's time forward.
func (s *service) advance(by time.Duration) {
	s.t.Helper()
	answer, err := http.Post(s.url()+"/dev/clock/advance", "application/json", bytes.NewReader(fmt.Appendf(nil, `{"seconds":%g}`, by.Seconds())))
	must(s.t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("the clock was not moved: %s", answer.Status)
	}
}

// come logs players in and opens their streams.
func (s *service) come(names ...string) (players []*flowPlayer) {
	s.t.Helper()
	for _, name := range names {
		p := s.login(s.t, name)
		p.attach()
		p.until("OnSync")
		players = append(players, p)
	}
	return players
}

// hears reads events until one of a type has all given values: a path with dots in its data, its value, and so on.
func (p *flowPlayer) hears(kind string, says ...any) object {
	p.t.Helper()
	for {
		o := p.until(kind)
		if o.saysAll(says) {
			return o
		}
	}
}

func (o object) saysAll(says []any) bool {
	for i := 0; i+1 < len(says); i += 2 {
		if o.at(append([]string{"data"}, strings.Split(says[i].(string), ".")...)...) != says[i+1] {
			return false
		}
	}
	return true
}

// snapshot returns the player's whole state.
func (p *flowPlayer) snapshot() object {
	p.t.Helper()
	o, _ := p.call("Session.GetFlow", object{})["flow_snapshot"].(map[string]any)
	return o
}

// stands checks a player's phase and, if there is one, the status of the membership.
func (p *flowPlayer) stands(phase, membership string) object {
	p.t.Helper()
	o := p.snapshot()
	if got := o.text("game_instance", "membership", "status"); o.text("phase") != phase || got != membership {
		p.t.Fatalf("%s is %s with membership %q, want %s with %q: %v", p.name, o.text("phase"), got, phase, membership, o)
	}
	return o
}

// comeBack restarts a crashed client, on any device: it has only the login.
func (p *flowPlayer) comeBack() object {
	p.t.Helper()
	o := p.loginAgain()
	p.last = 0
	p.attach()
	p.until("OnSync")
	return o
}

// gather makes a party in which all members are ready.
func gather(leader *flowPlayer, others ...*flowPlayer) string {
	leader.t.Helper()
	party := leader.call("Party.CreateParty", object{})
	for _, p := range others {
		p.call("Party.JoinPartyByInviteCode", object{"code": party.text("party", "invite_code")})
		p.call("Party.SetReady", object{"ready": true})
	}
	leader.call("Party.SetReady", object{"ready": true})
	return party.text("party", "party_id")
}

// flowGame is a game on a server that uses the official SDK, without code for player flow.
type flowGame struct {
	place    *place
	instance string
	session  string // the game session
	server   *sdkServer
	seats    map[string]string // player sessions by player
	tokens   map[string]string // connection tokens
}

// game creates a game for players as the studio, and waits until they may connect.
func (p *place) game(reconnect string, players ...*flowPlayer) *flowGame {
	p.t.Helper()
	g := p.wish(reconnect, players...)
	g.server.must("activate")
	for _, player := range players {
		g.reserved(player, "ALLOCATED")
	}
	return g
}

// wish creates a game, and waits until the server was told about it.
func (p *place) wish(reconnect string, players ...*flowPlayer) *flowGame {
	p.t.Helper()
	g := &flowGame{place: p, server: p.ready(sdkOptions{}), seats: map[string]string{}, tokens: map[string]string{}}
	var seats []object
	for _, player := range players {
		seats = append(seats, object{"player_id": player.name, "team": "red"})
	}
	g.instance = p.partner(p.t, "Flow.CreateGameInstance", object{"players": seats, "queue": "cup", "max_players": 4, "reconnect": reconnect}).text("game_instance_id")
	g.session = g.server.untilEvent("start", 1).Session.GameSessionId
	return g
}

// reserved waits for the details of a player.
func (g *flowGame) reserved(p *flowPlayer, cause string) {
	p.t.Helper()
	g.keep(p.name, p.hears("OnHostConnectionDetailsReceived", "cause", cause), "data")
}

func (g *flowGame) keep(name string, o object, in string) {
	g.seats[name], g.tokens[name] = o.text(in, "player_session_id"), o.text(in, "connection_token")
}

// accept accepts players with their latest seats.
func (g *flowGame) accept(players ...*flowPlayer) {
	g.place.t.Helper()
	for _, p := range players {
		g.server.must("accept", g.seats[p.name])
		p.hears("OnGameMembershipChanged", "new", "ACTIVE")
	}
}

// loses makes the server report that a player's game connection broke.
func (g *flowGame) loses(p *flowPlayer) {
	p.t.Helper()
	g.server.must("remove", g.seats[p.name])
	p.hears("OnGameMembershipChanged", "new", "DISCONNECTED")
}

// details requests the connection details and keeps them.
func (g *flowGame) details(p *flowPlayer) object {
	p.t.Helper()
	o := p.call("GameInstance.GetHostConnectionDetails", g.object())
	g.keep(p.name, o, "host")
	return o
}

func (g *flowGame) object() object { return object{"game_instance_id": g.instance} }

// tells makes a call about the game as the game server.
func (g *flowGame) tells(call string, body object) object {
	g.place.t.Helper()
	body["game_instance_id"] = g.instance
	return g.place.partner(g.place.t, "Game."+call, body)
}

// refusesSeat checks that the server cannot accept a player session.
func (g *flowGame) refusesSeat(seat, why string) {
	g.place.t.Helper()
	if l := g.server.do("accept", seat); l.Error == "" {
		g.place.t.Errorf("%s: the server accepts %s", why, seat)
	}
}

// ends ends the game and its server.
func (g *flowGame) ends() {
	g.place.t.Helper()
	g.tells("EndGame", object{})
	g.server.kill()
}
