package agones

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/mustertest"
)

// hosted is a game on a host of a real service.
type hosted struct {
	*game
	server *mustertest.Server
	fleet  *mustertest.Fleet
}

func host(t *testing.T) *hosted {
	t.Helper()
	server := mustertest.Start(t, mustertest.RealTime())
	h := &hosted{game: open(t, t.TempDir(), ""), server: server, fleet: server.NewFleet()}
	h.Close()
	h.reach()
	h.reopen()
	return h
}

// reach connects with a new token, as the agent does.
func (h *hosted) reach() {
	p := h.fleet.ServerParameters()
	if h.config.Service == nil {
		h.config.Service = new(Service)
	}
	h.config.Service.Set(Target{URL: p.WebSocketURL, Fleet: p.FleetID, Compute: p.HostID, Token: p.AuthToken})
}

func (h *hosted) createGameSession() types.GameSession {
	h.Helper()
	var session *types.GameSession
	waittest.Until(h, "a game session", func() bool {
		out, err := h.server.GameLift().CreateGameSession(h.Context(), &gamelift.CreateGameSessionInput{
			FleetId: &h.fleet.ID, Location: &h.fleet.Location, MaximumPlayerSessionCount: aws.Int32(3), GameSessionData: aws.String("data"),
			GameProperties: []types.GameProperty{{Key: aws.String("map"), Value: aws.String("desert")}, {Key: aws.String("agones.dev/last-allocated"), Value: aws.String("x")}},
		})
		if err == nil {
			session = out.GameSession
		}
		return err == nil
	})
	return *session
}

func (h *hosted) untilStatus(session types.GameSession, want types.GameSessionStatus) {
	h.Helper()
	waittest.Until(h, "the game session to be "+string(want), func() bool {
		out, err := h.server.GameLift().DescribeGameSessions(h.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: session.GameSessionId})
		return err == nil && out.GameSessions[0].Status == want
	})
}

// forget makes the next agent forget that a player has a seat, as if the previous agent had been killed right after the service's answer.
func (h *hosted) forget(player string) {
	h.Helper()
	m, err := recall(h.config.File)
	if err != nil {
		h.Fatal(err)
	}
	delete(m.Seats, player)
	text, err := json.Marshal(m)
	if err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(h.config.File, text, 0o600); err != nil {
		h.Fatal(err)
	}
}

// A game session continues with its data while the service restarts and while the agent is replaced, and ends when the service ends it.
func TestGameSession(t *testing.T) {
	h := host(t)
	h.inState(Scheduled)
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.inState(Ready)
	session := h.createGameSession()
	h.inState(Allocated)
	h.untilStatus(session, types.GameSessionStatusActive)
	gs := h.gameServer()
	if meta := gs.ObjectMeta; meta.Annotations[sessionData] != "data" || meta.Annotations["map"] != "desert" || meta.Labels["map"] != "desert" || meta.Annotations[lastAllocated] == "x" {
		t.Errorf("%v", meta)
	}
	if gs.Status.Players.Capacity != 3 || gs.Status.Address != "127.0.0.1" {
		t.Errorf("%v", gs.Status)
	}

	h.server.Restart()
	seat := func(player string) string {
		t.Helper()
		var seat string
		waittest.Until(h, "a seat", func() bool {
			out, err := h.server.GameLift().CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: session.GameSessionId, PlayerId: &player})
			if err == nil {
				seat = *out.PlayerSession.PlayerSessionId
			}
			return err == nil
		})
		return seat
	}
	seated := func(seat string, want types.PlayerSessionStatus) {
		t.Helper()
		waittest.Until(h, "the seat to be "+string(want), func() bool {
			out, err := h.server.GameLift().DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &seat})
			return err == nil && out.PlayerSessions[0].Status == want
		})
	}
	ann := seat("Ann")
	h.must("alpha/PlayerConnect", &sdk.PlayerID{PlayerID: "Ann"}, new(sdk.Bool))
	h.must("beta/AddListValue", &sdk.AddListValueRequest{Name: PlayersList, Value: "Ann"}, new(sdk.List)) // named twice is seated once
	h.must("beta/AddListValue", &sdk.AddListValueRequest{Name: PlayersList, Value: "a player without a seat"}, new(sdk.List))
	seated(ann, types.PlayerSessionStatusActive)

	h.Close() // as the agent ends
	h.forget("Ann")
	h.reopen()
	h.inState(Allocated)
	h.must("alpha/PlayerDisconnect", &sdk.PlayerID{PlayerID: "Ann"}, new(sdk.Bool))
	bob := seat("Bob")
	h.must("alpha/PlayerConnect", &sdk.PlayerID{PlayerID: bob}, new(sdk.Bool))
	seated(bob, types.PlayerSessionStatusActive)
	seated(ann, types.PlayerSessionStatusActive) // the list has her still
	h.must("beta/RemoveListValue", &sdk.RemoveListValueRequest{Name: PlayersList, Value: "Ann"}, new(sdk.List))
	seated(ann, types.PlayerSessionStatusCompleted)

	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.untilStatus(session, types.GameSessionStatusTerminated)
	h.inState(Ready)
	second := h.createGameSession()
	h.untilStatus(second, types.GameSessionStatusActive)
	_, err := h.server.GameLift().TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{GameSessionId: second.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
	if err != nil {
		t.Fatal(err)
	}
	h.end("end")
	h.inState(Shutdown)
}

// When a host starts to serve another fleet, processes of the previous fleet keep their connections and get no token of the new fleet.
func TestTokenOfAnotherFleet(t *testing.T) {
	h := host(t)
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.inState(Ready)
	target, _ := h.config.Service.get()
	target.Fleet, target.Token = "fleet-other", "other"
	h.config.Service.Set(target)
	h.server.Restart()
	h.createGameSession() // over a new connection, with the token before
}

// The service sends a new token over the connection. The previous one is void.
func TestNewToken(t *testing.T) {
	h := host(t)
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.inState(Ready)
	before, renewed := h.config.Service.get()
	path := "/operator/v1/computes/rotate-token?keep-links=true&fleet=" + h.fleet.ID + "&compute=" + h.fleet.Compute
	res, err := http.Post(h.server.Endpoint()+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	select {
	case <-renewed:
	case <-time.After(patience):
		t.Fatal("no new token")
	}
	if after, _ := h.config.Service.get(); after.Token == before.Token || after.Fleet != before.Fleet {
		t.Errorf("%+v, before %+v", after, before)
	}
	h.server.Restart()
	h.untilStatus(h.createGameSession(), types.GameSessionStatusActive)
}

// The service does not know a withdrawn process, whatever the process did before.
func TestReserveWithdraws(t *testing.T) {
	h := host(t)
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.inState(Ready)
	h.must("Allocate", new(sdk.Empty), new(sdk.Empty))
	waittest.Until(h, "the service to know no process", func() bool {
		m, _ := h.look()
		return !m.Registered && !m.Leaving
	})
	_, err := h.server.GameLift().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{FleetId: &h.fleet.ID, Location: &h.fleet.Location, MaximumPlayerSessionCount: aws.Int32(3)})
	if err == nil {
		t.Error("a process that has allocated itself gets a game session")
	}
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.untilStatus(h.createGameSession(), types.GameSessionStatusActive)
}

// A new token for the host's previous fleet does not replace the token of its present fleet.
func TestNewTokenOfTheFleetBefore(t *testing.T) {
	now := Target{URL: "ws://a", Fleet: "fleet-now", Compute: "host", Token: "now"}
	p := &Process{config: Config{Service: new(Service)}, log: slog.New(slog.DiscardHandler)}
	p.config.Service.Set(now)
	l := newLink(p)
	l.target = Target{URL: "ws://b", Fleet: "fleet-before", Compute: "host", Token: "before"}
	l.push(nil, linkclient.Push{Action: "RefreshConnection", Raw: []byte(`{"Action":"RefreshConnection","RefreshConnectionEndpoint":"ws://c","AuthToken":"renewed"}`)})
	l.refresh(<-l.again)
	if got, _ := p.config.Service.get(); got != now {
		t.Errorf("the host connects as %+v, want %+v", got, now)
	}
	if want := (Target{URL: "ws://c", Fleet: "fleet-before", Compute: "host", Token: "renewed"}); l.target != want {
		t.Errorf("the process connects as %+v, want %+v", l.target, want)
	}
}

// The link trusts the authorities that the agent trusts.
func TestTrust(t *testing.T) {
	reached := make(chan string, 1)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case reached <- r.URL.Query().Get("pID"):
		default:
		}
		http.Error(w, "not here", http.StatusForbidden)
	}))
	defer service.Close()
	g := open(t, t.TempDir(), "")
	g.Close()
	g.config.Service = new(Service)
	g.config.Service.Set(Target{URL: "wss" + strings.TrimPrefix(service.URL, "https"), Fleet: "fleet", Compute: "host", Token: "token"})
	g.config.TLS = service.Client().Transport.(*http.Transport).TLSClientConfig
	g.reopen()
	g.must("Ready", new(sdk.Empty), new(sdk.Empty))
	select {
	case id := <-reached:
		if id != g.config.ID {
			t.Errorf("process %q", id)
		}
	case <-time.After(patience):
		t.Error("the service is not reached")
	}
}

// A process that is about to end gets no game session.
func TestShutdownWithdraws(t *testing.T) {
	h := host(t)
	h.must("Ready", new(sdk.Empty), new(sdk.Empty))
	h.inState(Ready)
	session := h.createGameSession()
	h.inState(Allocated)
	h.must("Shutdown", new(sdk.Empty), new(sdk.Empty))
	h.end("end")
	h.untilStatus(session, types.GameSessionStatusTerminated) // before the process has ended
}
