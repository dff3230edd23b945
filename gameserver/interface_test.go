package gameserver

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// keep returns options with which a session continues without players.
func keep(o Options) Options {
	o.KeepWhenEmpty = true
	return o
}

// active is sessionActive with options and the callbacks of several parts of a game.
func active(t *testing.T, f *fakeService, o Options, parts ...Callbacks) *Server {
	t.Helper()
	up := make(chan struct{})
	s := New(o, append(parts, Callbacks{OnCreateSessionEnd: func(context.Context) { close(up) }})...)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.askEnd()
		<-s.Done()
	})
	f.pushSession()
	<-up
	return s
}

// A connected process is not ready: nothing is reported before the game says so.
func TestReadyIsASecondStep(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		if fr.action() == "GetComputeCertificate" {
			return map[string]any{"StatusCode": 200, "CertificatePath": "/tls/cert.pem", "ComputeName": "DesktopPC"}
		}
		return nil
	}
	s := New(testOptions(f), Callbacks{})
	if err := s.NotifyProcessReady(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("before Connect: got %v, want ErrNotReady", err)
	}
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExternalCertificate(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("certificate before the process is ready: got %v, want ErrNotReady", err)
	}
	if _, err := s.InternalCertificate(t.Context()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("internal certificate: got %v, want ErrUnsupported", err)
	}
	if n := f.count("ActivateServerProcess"); n != 0 {
		t.Error("reported ready by Connect")
	}
	if err := s.Start(t.Context()); !errors.Is(err, ErrAlreadyStarted) {
		t.Errorf("Start after Connect: got %v, want ErrAlreadyStarted", err)
	}
	if err := s.NotifyProcessReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.untilHeard("ActivateServerProcess")
	if path, err := s.ExternalCertificate(t.Context()); path != "/tls/cert.pem" || err != nil {
		t.Errorf("certificate: got %q, %v", path, err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	f.untilHeard("TerminateServerProcess")
}

// Calls for the end of a process that never started return at once.
func TestEndOfAServerThatNeverStarted(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	s := New(testOptions(newFakeService(t)))
	if err := s.End(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("got %v, want ErrNotReady", err)
	}
}

func TestEndWithoutEverBeingReady(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	s := New(testOptions(f), Callbacks{})
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Error(err)
	}
	f.until("the connection to be closed", func() bool { return f.gone })
}

// Several parts of a game: all are called, and all must agree.
func TestPartsOfAGame(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	broken, dirty := errors.New("no such level"), errors.New("not saved")
	s := New(testOptions(f),
		Callbacks{
			OnCreateSessionBegin:  func(context.Context, Session) error { note("a create"); return broken },
			OnDestroySessionBegin: func(context.Context) error { note("a destroy"); return dirty },
			OnDestroySessionEnd:   func() { note("a gone") },
			OnSessionHealthCheck:  func(context.Context) bool { return true },
		},
		Callbacks{
			OnCreateSessionBegin:  func(context.Context, Session) error { note("b create"); return nil },
			OnDestroySessionBegin: func(context.Context) error { note("b destroy"); return nil },
			OnDestroySessionEnd:   func() { note("b gone") },
			OnSessionHealthCheck:  func(context.Context) bool { return false },
		})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hb := f.untilHeard("HeartbeatServerProcess"); hb["HealthStatus"] != false {
		t.Errorf("one part is ill: got health %v, want false", hb["HealthStatus"])
	}
	f.pushSession()
	if err := s.Wait(); !errors.Is(err, broken) || !errors.Is(err, dirty) {
		t.Errorf("wait: got %v, want both failures", err)
	}
	if n := f.count("ActivateGameSession"); n != 0 {
		t.Error("activated although one part could not load")
	}
	if got, want := strings.Join(order, ", "), "a create, b create, a destroy, b destroy, a gone, b gone"; got != want {
		t.Errorf("called %s, want %s", got, want)
	}
}

func TestPlayersConnections(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		if fr["PlayerSessionId"] == "psess-used" && fr.action() == "AcceptPlayerSession" {
			return map[string]any{"StatusCode": 400, "ErrorMessage": "has a status of COMPLETED instead of RESERVED"}
		}
		return nil
	}
	s := active(t, f, keep(testOptions(f)))
	ctx := t.Context()
	for _, x := range []struct {
		what    string
		id      ConnectionID
		session string
		want    error
	}{
		{"the first", 1, "psess-1", nil},
		{"the same connection", 1, "psess-2", ErrConnectionKnown},
		{"no ticket", 2, "", ErrRefused},
		{"a used ticket", 2, "psess-used", ErrRefused},
		{"the refused connection again", 2, "psess-2", nil},
	} {
		_, err := s.ValidatePlayerJoin(ctx, x.id, x.session)
		if !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: got %v, want %v", x.what, err, x.want)
		}
	}
	if n := f.count("AcceptPlayerSession"); n != 3 {
		t.Errorf("asked the service %d times, want 3", n)
	}
	if n := s.Connected(); n != 2 {
		t.Errorf("%d are connected, want 2: a refusal concerns its own connection", n)
	}
	for range 2 { // the second time it is not known any more
		if err := s.HandlePlayerLeave(ctx, 1); err != nil {
			t.Error(err)
		}
	}
	if err := s.HandlePlayerLeave(ctx, 99); err != nil {
		t.Error(err)
	}
	if removed := f.untilHeard("RemovePlayerSession"); removed["PlayerSessionId"] != "psess-1" || f.count("RemovePlayerSession") != 1 {
		t.Errorf("removed %v, %d times, want psess-1 once", removed["PlayerSessionId"], f.count("RemovePlayerSession"))
	}
	if err := s.HandlePlayerLeave(ctx, 2); err != nil {
		t.Error(err)
	}
	select {
	case <-s.ask:
		t.Error("the session ends although it is to be kept when empty")
	default:
	}
}

// A connection's context is over once the connection has closed. Its player's place is released anyway.
func TestLeaveWithContextThatIsOver(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	s := active(t, f, keep(testOptions(f)))
	if _, err := s.ValidatePlayerJoin(t.Context(), 1, "psess-1"); err != nil {
		t.Fatal(err)
	}
	connection, closed := context.WithCancel(t.Context())
	closed()
	if err := s.HandlePlayerLeave(connection, 1); err != nil && !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if removed := f.untilHeard("RemovePlayerSession"); removed["PlayerSessionId"] != "psess-1" {
		t.Errorf("removed %v, want psess-1", removed["PlayerSessionId"])
	}
}

// Only the leaving of the last player ends the session.
func TestPassiveEnd(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		if fr["PlayerSessionId"] == "psess-used" {
			return map[string]any{"StatusCode": 400, "ErrorMessage": "no"}
		}
		return nil
	}
	s := active(t, f, testOptions(f))
	ctx := t.Context()
	going := func(when string) {
		t.Helper()
		select {
		case <-s.ask:
			t.Fatalf("the session ends %s", when)
		default:
		}
	}
	if _, err := s.ValidatePlayerJoin(ctx, 1, "psess-used"); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
	going("because a player was refused")
	for id, session := range map[ConnectionID]string{2: "psess-2", 3: "psess-3"} {
		if _, err := s.ValidatePlayerJoin(ctx, id, session); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.HandlePlayerLeave(ctx, 2); err != nil {
		t.Error(err)
	}
	going("with a player in it")
	if err := s.HandlePlayerLeave(ctx, 3); err != nil {
		t.Error(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	f.untilHeard("TerminateServerProcess")
}

// A player whose connection closes while the service is being asked has no place afterwards.
func TestConnectionThatClosesMeanwhile(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	asked := make(chan any, 1)
	f.answer = func(fr frame) map[string]any {
		if fr["PlayerSessionId"] == "psess-2" && fr.action() == "AcceptPlayerSession" {
			asked <- fr["RequestId"]
			return map[string]any{"StatusCode": 0} // the answer comes later
		}
		return nil
	}
	s := active(t, f, testOptions(f))
	if _, err := s.ValidatePlayerJoin(t.Context(), 1, "psess-1"); err != nil {
		t.Fatal(err)
	}
	joining := make(chan error, 1)
	go func() {
		_, err := s.ValidatePlayerJoin(t.Context(), 2, "psess-2")
		joining <- err
	}()
	request := <-asked
	if err := s.HandlePlayerLeave(t.Context(), 1); err != nil { // the last one, were it not for psess-2
		t.Error(err)
	}
	select {
	case <-s.ask:
		t.Error("the session ends while a player is expected")
	default:
	}
	if err := s.HandlePlayerLeave(t.Context(), 2); err != nil {
		t.Error(err)
	}
	f.push(map[string]any{"Action": "AcceptPlayerSession", "RequestId": request, "StatusCode": 200})
	if err := <-joining; !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
	f.until("both removed", func() bool {
		n := 0
		for _, fr := range f.heard {
			if fr.action() == "RemovePlayerSession" {
				n++
			}
		}
		return n == 2
	})
	if err := s.Wait(); err != nil { // no player is left or joining
		t.Error(err)
	}
}

func TestSessionWithoutPlayers(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	o := testOptions(f)
	o.EmptyTimeout = time.Millisecond
	s := active(t, f, o)
	if err := s.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	f.untilHeard("TerminateServerProcess")
}

const matchData = `{"matchId":"m-1","matchmakingConfigurationArn":"arn:aws:gamelift:us-east-1:123456789012:matchmakingconfiguration/duo",
"teams":[{"name":"red","players":[{"playerId":"ann","attributes":{"skill":{"attributeType":"DOUBLE","valueAttribute":12.5},
"mode":{"attributeType":"S","valueAttribute":"siege"},"maps":{"attributeType":"STRING_LIST","valueAttribute":["a"]},
"weights":{"attributeType":"SDM","valueAttribute":{"k":1}}}}]},{"name":"blue","players":[{"playerId":"bob","attributes":{}}]}],
"autoBackfillMode":"AUTOMATIC","autoBackfillTicketId":"auto-1"}`

func (f *fakeService) pushUpdate(reason, session, data string) {
	f.push(map[string]any{"Action": "UpdateGameSession", "UpdateReason": reason, "BackfillTicketId": "t-1", "GameSession": map[string]any{
		"GameSessionId": session, "Name": "Debug", "FleetId": "fleet-1", "MaximumPlayerSessionCount": 4, "IpAddress": "127.0.0.1",
		"Port": 7777, "GameProperties": map[string]string{"level": "arena"}, "MatchmakerData": data}})
}

func TestUpdatesAndBackfill(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	f := newFakeService(t)
	f.answer = func(fr frame) map[string]any {
		switch fr.action() {
		case "StartMatchBackfill":
			return map[string]any{"StatusCode": 200, "TicketId": "t-made"}
		case "DescribePlayerSessions":
			if fr["PlayerSessionStatusFilter"] != "ACTIVE" {
				t.Errorf("asked for %v, want those who play", fr["PlayerSessionStatusFilter"])
			}
			list := []any{}
			for _, id := range []string{"ann", "stranger", "ann"} {
				list = append(list, map[string]any{"PlayerSessionId": "psess", "PlayerId": id, "Status": "ACTIVE", "Port": 7777})
			}
			return map[string]any{"StatusCode": 200, "PlayerSessions": list, "NextToken": ""}
		}
		return nil
	}
	began, ended := make(chan Update, 9), make(chan string, 9)
	var s *Server
	s = active(t, f, testOptions(f), Callbacks{
		OnUpdateSessionBegin: func(_ context.Context, u Update) { began <- u },
		OnUpdateSessionEnd: func(context.Context) {
			now, _ := s.Session()
			ended <- now.MatchmakerData
		},
	})
	ctx := t.Context()
	if _, err := s.StartMatchBackfill(ctx, "", nil); !errors.Is(err, ErrNoMatch) {
		t.Errorf("a session without a match: got %v, want ErrNoMatch", err)
	}
	if err := s.StopMatchBackfill(ctx, "t-1"); !errors.Is(err, ErrNoMatch) {
		t.Errorf("a session without a match: got %v, want ErrNoMatch", err)
	}

	for _, reason := range []UpdateReason{BackfillFailed, BackfillTimedOut, BackfillCancelled} {
		f.pushUpdate(string(reason), testSession, "changed?")
		if u := <-began; u.Reason != reason || u.BackfillTicketID != "t-1" || u.Session.ID != testSession {
			t.Errorf("got %+v, want %s", u, reason)
		}
	}
	if now, _ := s.Session(); now.MatchmakerData != "" || len(ended) != 0 {
		t.Errorf("a backfill without a result has changed the session to %+v", now)
	}
	f.pushUpdate("MATCHMAKING_DATA_UPDATED", testSession+"0", matchData) // of some other session
	f.pushUpdate("MATCHMAKING_DATA_UPDATED", testSession, matchData)
	if u := <-began; u.Reason != MatchmakingDataUpdated {
		t.Errorf("got %+v", u)
	}
	if data := <-ended; data != matchData {
		t.Errorf("at the end of the update the session has %q", data)
	}

	// The request names each player who is in the session and known to the matchmaker once.
	if id, err := s.StartMatchBackfill(ctx, "t-1", nil); id != "t-made" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	asked := f.untilHeard("StartMatchBackfill")
	want := []any{map[string]any{"PlayerId": "ann", "Team": "red", "LatencyInMs": nil, "PlayerAttributes": map[string]any{
		"skill": map[string]any{"AttrType": "DOUBLE", "N": 12.5}, "mode": map[string]any{"AttrType": "STRING", "S": "siege"},
		"maps": map[string]any{"AttrType": "STRING_LIST", "SL": []any{"a"}}, "weights": map[string]any{"AttrType": "STRING_DOUBLE_MAP", "SDM": map[string]any{"k": 1.0}}}}}
	if asked["TicketId"] != "t-1" || asked["GameSessionArn"] != testSession || !strings.HasSuffix(asked["MatchmakingConfigurationArn"].(string), "/duo") || !reflect.DeepEqual(asked["Players"], want) {
		t.Errorf("asked %v", asked)
	}
	_, err := s.StartMatchBackfill(ctx, "", []MatchPlayer{{ID: "ann", Team: "red", Attributes: map[string]any{"skill": true}}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "player 1 of 1: attribute skill is a bool") || f.count("StartMatchBackfill") != 1 {
		t.Errorf("a bad attribute: got %v after %d requests, want it named and nothing sent", err, f.count("StartMatchBackfill"))
	}
	if _, err := s.StartMatchBackfill(ctx, "", []MatchPlayer{{ID: "ann", Team: "red", LatencyMilliseconds: map[string]int{"here": 9}}}); err != nil {
		t.Error(err)
	}
	if err := s.StopMatchBackfill(ctx, "t-made"); err != nil {
		t.Error(err)
	}
	if stop := f.untilHeard("StopMatchBackfill"); stop["TicketId"] != "t-made" || stop["GameSessionArn"] != testSession {
		t.Errorf("stopped %v", stop)
	}
}

func TestParseMatchData(t *testing.T) {
	got, err := ParseMatchData(matchData)
	want := MatchData{
		MatchID: "m-1", ConfigurationARN: "arn:aws:gamelift:us-east-1:123456789012:matchmakingconfiguration/duo", AutoBackfill: true, AutoBackfillTicketID: "auto-1",
		Teams: []Team{
			{"red", []MatchPlayer{{ID: "ann", Team: "red", Attributes: map[string]any{"skill": 12.5, "mode": "siege", "maps": []string{"a"}, "weights": map[string]float64{"k": 1}}}}},
			{"blue", []MatchPlayer{{ID: "bob", Team: "blue", Attributes: map[string]any{}}}},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for data, part := range map[string]string{
		"":   "no matchmaker data",
		"{":  "matchmaker data",
		`{}`: "matchmakingConfigurationArn is missing",
		`{"teams":[],"matchmakingConfigurationArn":""}`: "matchmakingConfigurationArn is missing",
		`{"matchmakingConfigurationArn":"a"}`:           "teams is missing",
		`{"matchmakingConfigurationArn":"a","teams":[{"players":[{"playerId":"ann","attributes":{"x":{"attributeType":"NONE"}}}]}]}`:                        "attribute x of player ann",
		`{"matchmakingConfigurationArn":"a","teams":[{"players":[{"playerId":"ann","attributes":{"x":{"attributeType":"DOUBLE","valueAttribute":"y"}}}]}]}`: "attribute x of player ann",
	} {
		if _, err := ParseMatchData(data); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v, want %q", data, err, part)
		}
	}
}
