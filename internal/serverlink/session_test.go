package serverlink

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/linkclient"
)

var background = context.Background()

// The sequences of docs/spec/server-sdk.md#sequences, over plain and TLS connections, with a path and without.
func TestWholeLife(t *testing.T) {
	for name, change := range map[string][]func(*linkclient.Options){
		"ws":                            nil,
		"wss":                           {secure},
		"a path without a final slash":  {path("/new")},
		"a path with one":               {path("/new/"), secure},
		"raw query in C++'s order":      {rawQuery},
		"unknown and missing parameter": {func(o *linkclient.Options) { rawQuery(o); o.Query += "&future=1" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.ready("p", change...)
			g := s.host(4)
			arn := g.ID.ARN(testRegion)
			if g.Status != session.Active || g.Port != 7777 {
				t.Errorf("game session is %s on port %d", g.Status, g.Port)
			}
			ann := w.reserve(g.ID, "ann")
			s.ok(s.AcceptPlayer(background, arn, ann))
			if got := w.playerStatus(ann); got != "ACTIVE" {
				t.Errorf("accepted player is %s", got)
			}
			page, err := s.DescribePlayers(background, linkclient.PlayerQuery{GameSessionId: arn})
			s.ok(err)
			if len(page.PlayerSessions) != 1 || page.NextToken != "" {
				t.Fatalf("got %+v", page)
			}
			one := page.PlayerSessions[0]
			one.CreationTime = 0
			if want := (linkclient.PlayerSession{PlayerId: "ann", PlayerSessionId: ann, GameSessionId: arn, FleetId: testFleet,
				PlayerData: "data of ann", IpAddress: "127.0.0.1", Status: "ACTIVE", Port: 7777}); one != want {
				t.Errorf("got %+v\nwant %+v", one, want)
			}
			s.ok(s.SetPolicy(background, arn, "DENY_ALL"))
			if !w.game(g.ID).DenyPlayers {
				t.Error("policy was not set")
			}
			s.ok(s.RemovePlayer(background, arn, ann))
			if got := w.playerStatus(ann); got != "COMPLETED" {
				t.Errorf("removed player is %s", got)
			}
			s.ok(s.Terminate(background))
			s.ok(s.Terminate(background)) // repeated: 200
			if p := w.process("p"); p.State != fleet.Ended || p.EndReason != fleet.EndedNormally {
				t.Errorf("process is %s for reason %d", p.State, p.EndReason)
			}
			if got := w.game(g.ID).Status; got != session.Terminated {
				t.Errorf("game session is %s", got)
			}
		})
	}
}

// rawQuery writes values as C++ does, unencoded.
func rawQuery(o *linkclient.Options) {
	o.Query = "Authorization=" + o.Token + "&ComputeId=" + o.Compute + "&FleetId=" + o.Fleet + "&pID=" + o.Process + "&sdkLanguage=Cpp&sdkVersion=5.4.0"
}

func TestOtherRequests(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	for _, tc := range []struct{ action, members, want string }{
		{"GetComputeCertificate", "", `"StatusCode":200,"CertificatePath":"/tls/cert.pem","ComputeName":"DesktopPC"}`},
		{"GetFleetRoleCredentials", `"RoleArn":"arn:aws:iam::1:role/r"`, `"AccessKeyId":"","SecretAccessKey":"","SessionToken":"","Expiration":0}`},
		{"StartMatchBackfill", `"GameSessionArn":"a","Players":[{"PlayerId":"p","PlayerAttributes":{"a":{"attrType":"DOUBLE","N":1.5}}}]`, `"StatusCode":404,"ErrorMessage":"matchmaking configuration  not found"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"p","LatencyInMS":{"r":10.0,"s":1e1,"t":null}}]`, `"StatusCode":404,"ErrorMessage":"matchmaking configuration  not found"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"p","LatencyInMs":{"r":10.5}}]`, `"StatusCode":400,"ErrorMessage":"Players: LatencyInMs is a number 10.5, want a int32"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"` + strings.Repeat("é", 1024) + `"}]`, `"StatusCode":404,"ErrorMessage":"matchmaking configuration  not found"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"p","PlayerAttributes":{"a":{"AttrType":"STRING_LIST","SL":["` + strings.Repeat("é", 100) + `"]}}}]`, `"StatusCode":404,"ErrorMessage":"matchmaking configuration  not found"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"p","PlayerAttributes":{"a":{"AttrType":"STRING","S":"` + strings.Repeat("x", 101) + `"}}}]`, `"StatusCode":400,"ErrorMessage":"Players[0].PlayerAttributes[a]: a text has more than 100 characters"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":"p","PlayerAttributes":{"a":{"AttrType":"STRING_DOUBLE_MAP","SDM":{"` + strings.Repeat("x", 101) + `":1}}}}]`, `"StatusCode":400,"ErrorMessage":"Players[0].PlayerAttributes[a]: a text has more than 100 characters"}`},
		{"StartMatchBackfill", `"Players":[{"PlayerId":1}]`, `"StatusCode":400,"ErrorMessage":"Players: PlayerId is a number, want a string"}`},
		{"StartMatchBackfill", `"TicketId":"a b","Players":[]`, `"StatusCode":400,"ErrorMessage":"TicketId: may have letters, digits, '-' and '.' only"}`},
		{"StopMatchBackfill", `"TicketId":""`, `"StatusCode":404,"ErrorMessage":"Matchmaking ticket was not found."}`},
		{"Dance", "", `"StatusCode":400,"ErrorMessage":"unknown action \"Dance\""}`},
		{"ActivateServerProcess", `"Port":"x"`, `"StatusCode":400,"ErrorMessage":"Port is \"x\", must be a whole number"}`},
		{"ActivateServerProcess", `"Port":70000`, `"StatusCode":400,"ErrorMessage":"Port is 70000, must be 0 to 65535"}`},
	} {
		a, _ := s.DoWithID(background, "id-1", tc.action, tc.members) // the status is part of what is compared
		if got := string(a.Raw); !strings.HasPrefix(got, `{"Action":"`+tc.action+`","RequestId":"id-1",`) || !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: got %s\nwant …%s", tc.action, got, tc.want)
		}
	}
}

// docs/spec/server-sdk.md#rule-4 and #accept-5: a game session that was requested from the first moment on is sent only after the first
// healthy heartbeat, and always arrives, once.
func TestSessionWaitsForTheFirstHeartbeat(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Periods.Settle = time.Hour })
	for i := range 100 {
		s := w.connect(named(i))
		made := make(chan session.GameSession, 1)
		go func() { made <- w.create(1) }()
		s.ok(s.Activate(background, 7777))
		if i == 0 {
			s.ok(s.Heartbeat(background, false)) // unhealthy: none either
		}
		if w.eligible(named(i)) {
			t.Fatal("eligible before the first good heartbeat")
		}
		select {
		case p := <-s.pushes:
			t.Fatalf("push %s before the first good heartbeat", p.action)
		default:
		}
		s.ok(s.Heartbeat(background, true))
		s.push("CreateGameSession")
		s.noPush()
		<-made
		s.ok(s.Terminate(background))
		s.Drop()
	}
}

// With a slow health callback no heartbeat arrives, and after a moment the process counts as healthy.
func TestSlowHealthCallback(t *testing.T) {
	w := newWorld(t)
	s := w.connect("p")
	s.ok(s.Activate(background, 7777))
	w.create(1)
	s.push("CreateGameSession")
}

func TestLargestSession(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p", secure)
	data, matchmaker := strings.Repeat("d\n", 131_072), strings.Repeat("ü", 195_000)
	w.must(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "g", Data: data, MatchmakerData: matchmaker,
		PlayersMax: 200, Properties: []session.Property{{Key: "map", Value: "a"}}})
	p := s.push("CreateGameSession")
	if p.game.GameSessionData != data || p.game.MatchmakerData != matchmaker || p.game.GameProperties["map"] != "a" ||
		p.game.MaximumPlayerSessionCount != 200 || p.game.IpAddress != "127.0.0.1" || p.game.Port != 7777 {
		t.Errorf("game session arrived changed: %d bytes of data, %d of matchmaker data", len(p.game.GameSessionData), len(p.game.MatchmakerData))
	}
}

func TestPagesOfPlayers(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	g := s.host(60)
	arn := g.ID.ARN(testRegion)
	for i := range 51 {
		id := w.reserve(g.ID, named(i))
		if i%2 == 0 {
			s.ok(s.AcceptPlayer(background, arn, id))
		}
	}
	seen := map[string]bool{}
	q := linkclient.PlayerQuery{GameSessionId: arn}
	var sizes []int
	for {
		page, err := s.DescribePlayers(background, q)
		s.ok(err)
		sizes = append(sizes, len(page.PlayerSessions))
		for _, p := range page.PlayerSessions {
			seen[p.PlayerId] = true
		}
		if q.NextToken = page.NextToken; q.NextToken == "" {
			break
		}
	}
	if len(seen) != 51 || len(sizes) != 2 || sizes[0] != 50 {
		t.Errorf("%d players in pages of %v, want 51 in 50 and 1", len(seen), sizes)
	}
	for _, tc := range []struct {
		query linkclient.PlayerQuery
		want  int
	}{
		{linkclient.PlayerQuery{GameSessionId: arn, Limit: 7}, 7},
		{linkclient.PlayerQuery{GameSessionId: arn, Limit: 1000}, 50},
		{linkclient.PlayerQuery{GameSessionId: arn, PlayerSessionStatusFilter: "ACTIVE"}, 26},
		{linkclient.PlayerQuery{PlayerId: named(3)}, 1},
		{linkclient.PlayerQuery{PlayerId: named(3), PlayerSessionStatusFilter: "ACTIVE"}, 0},
		{linkclient.PlayerQuery{PlayerId: "nobody"}, 0},
	} {
		page, err := s.DescribePlayers(background, tc.query)
		if err != nil || len(page.PlayerSessions) != tc.want {
			t.Errorf("%+v: got %d, %v; want %d", tc.query, len(page.PlayerSessions), err, tc.want)
		}
	}
	for status, q := range map[*linkclient.PlayerQuery]int{
		{}: 400, {GameSessionId: arn, PlayerId: "x"}: 400, {GameSessionId: arn, NextToken: "!"}: 400, {GameSessionId: arn, Limit: -1}: 400,
		{GameSessionId: arn, PlayerSessionStatusFilter: "LOST"}: 400, {PlayerSessionId: "psess-x"}: 404, {GameSessionId: arn + "x"}: 404,
	} {
		_, err := s.DescribePlayers(background, *status)
		s.fails(err, q)
	}
}

// docs/spec/server-sdk.md#accept-16: the answers to requests that a game may not make.
func TestErrorCodes(t *testing.T) {
	w := newWorld(t)
	s, other := w.ready("p"), w.connect("other")
	g := s.host(4)
	arn := g.ID.ARN(testRegion)
	ann := w.reserve(g.ID, "ann")
	none := "psess-00000000-0000-4000-8000-000000000000"
	foreign := session.MakeID(testFleet, testLocation, "gsess-none").ARN(testRegion)

	s.fails(s.AcceptPlayer(background, arn, none), 404)
	s.fails(s.AcceptPlayer(background, arn, "nonsense"), 404)
	s.fails(s.AcceptPlayer(background, foreign, ann), 404)
	s.fails(s.AcceptPlayer(background, "", ann), 404)
	s.fails(s.ActivateGameSession(background, foreign), 404)
	s.fails(s.SetPolicy(background, arn, "NOT_SET"), 400)
	s.fails(s.SetPolicy(background, foreign, "ACCEPT_ALL"), 404)
	for _, err := range []error{
		other.AcceptPlayer(background, arn, ann), other.RemovePlayer(background, arn, ann), other.ActivateGameSession(background, arn),
		other.SetPolicy(background, arn, "DENY_ALL"), describeError(other, linkclient.PlayerQuery{GameSessionId: arn}),
		describeError(other, linkclient.PlayerQuery{PlayerSessionId: ann}),
	} {
		other.fails(err, 403)
	}
	s.ok(s.AcceptPlayer(background, arn, ann))
	if got, want := s.fails(s.AcceptPlayer(background, arn, ann), 400), "PlayerSession ("+ann+") has a status of ACTIVE instead of RESERVED"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.ok(s.ActivateGameSession(background, arn)) // active already
	s.ok(s.RemovePlayer(background, arn, ann))
	s.ok(s.RemovePlayer(background, arn, ann)) // removed already
	s.fails(s.AcceptPlayer(background, arn, ann), 400)
	s.ok(s.Terminate(background))
	s.fails(s.ActivateGameSession(background, arn), 400)
}

func describeError(s *server, q linkclient.PlayerQuery) error {
	_, err := s.DescribePlayers(background, q)
	return err
}
