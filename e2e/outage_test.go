package e2e

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	game "github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/mustertest"
)

// hosted is a service with a clock that the test moves, a real game server behind a network that can be cut, and a game
// session on it in which Ann plays and Bob has a seat.
type hosted struct {
	*testing.T
	*mustertest.Server
	network *network
	process *program
	session gameclient.Session
	ann     *gameclient.Client
	wire    *arenaWire
}

// arenaWire connects a gameclient to the example game.
type arenaWire struct {
	name    string
	playing *game.Client
}

func (w *arenaWire) Connect(ctx context.Context, seat gameclient.Seat) (err error) {
	w.playing, err = game.Dial(ctx, seat.Address(), seat.PlayerSessionID, w.name)
	return err
}

func (w *arenaWire) Disconnect(context.Context) error { return w.playing.Leave() }

func host(t *testing.T) *hosted {
	t.Helper()
	h := &hosted{T: t, Server: mustertest.Start(t), wire: &arenaWire{name: "Ann"}}
	fleet := h.NewFleet()
	h.network = startNetwork(t, strings.TrimPrefix(h.Endpoint(), "http://"))
	with := fleet.ServerParameters()
	cmd := exec.Command(arenaServerBinary, "-authtoken="+with.AuthToken, "-hostid="+with.HostID, "-fleetid="+with.FleetID,
		"-processid="+with.ProcessID, "-websocketurl=ws://"+h.network.address, "-port=0", "-bind=127.0.0.1", "-end-when-empty")
	cmd.Env = cleanEnvironment(hurried...) // its second attempt to come back is 8 s after the first all the same
	h.process = run(t, cmd)
	h.process.until("ready for a game session")

	h.ann = h.newClient(h.wire)
	waittest.Until(t, "a free server process", func() bool {
		var err error
		h.session, err = h.ann.CreateSession(t.Context(), gameclient.CreateSessionRequest{FleetID: fleet.ID, Location: fleet.Location, MaxPlayers: 4})
		if errors.Is(err, gameclient.ErrNoCapacity) {
			return false
		}
		must(t, err)
		return true
	})
	_, err := h.ann.AwaitActive(t.Context(), h.session.ID)
	must(t, err)
	_, err = h.ann.JoinSession(t.Context(), gameclient.JoinSessionRequest{SessionID: h.session.ID, PlayerID: "Ann"})
	must(t, err)
	_, err = h.ann.Reserve(t.Context(), gameclient.JoinSessionRequest{SessionID: h.session.ID, PlayerID: "Bob"})
	must(t, err)
	return h
}

func (h *hosted) newClient(c gameclient.Connector) *gameclient.Client {
	return gameclient.New(h.AWSConfig(mustertest.Client), c, func(o *gameclient.Options) { o.PollInterval = 5 * time.Millisecond })
}

// is compares the game session and its seats with what they should be.
func (h *hosted) is(status gameclient.SessionStatus, seats ...string) {
	h.Helper()
	s, err := h.ann.Session(h.Context(), h.session.ID)
	must(h.T, err)
	out, err := h.GameLift().DescribePlayerSessions(h.Context(), &gamelift.DescribePlayerSessionsInput{GameSessionId: &h.session.ID})
	must(h.T, err)
	var got []string
	for _, p := range out.PlayerSessions {
		got = append(got, *p.PlayerId+" "+string(p.Status))
	}
	if slices.Sort(got); s.Status != status || !slices.Equal(got, seats) {
		h.Errorf("the game session is %s with %v, want %s with %v", s.Status, got, status, seats)
	}
}

// untilOver lets time pass until the service has given up the game session.
func (h *hosted) untilOver() {
	h.Helper()
	began := h.Now()
	waittest.Until(h.T, "the end of the game session", func() bool {
		h.Advance(5 * time.Second)
		s, err := h.ann.Session(h.Context(), h.session.ID)
		must(h.T, err)
		return s.Status == gameclient.SessionTerminated
	})
	if took := h.Now().Sub(began); took < 100*time.Second { // the grace for lost connections
		h.Errorf("given up after %v, want 100 s or more", took)
	}
}

// Half a minute without network ends nothing. Players play on meanwhile, and others can join when it is over.
func TestServerWithoutNetworkForHalfAMinute(t *testing.T) {
	t.Parallel()
	h := host(t)
	release := h.network.hold()
	h.network.cut(true)
	h.Advance(30 * time.Second)
	h.is(gameclient.SessionActive, "Ann ACTIVE", "Bob RESERVED")
	must(t, h.wire.playing.Say("still here"))
	for m := range h.wire.playing.Events() {
		if m.Kind == game.Said {
			break
		}
	}
	release()
	cyd := h.newClient(&arenaWire{name: "Cyd"})
	_, err := cyd.JoinFriend(t.Context(), gameclient.JoinFriendRequest{FriendID: "Ann", PlayerID: "Cyd"})
	must(t, err)
	h.is(gameclient.SessionActive, "Ann ACTIVE", "Bob RESERVED", "Cyd ACTIVE")
	must(t, cyd.LeaveSession(t.Context()))
	must(t, h.ann.LeaveSession(t.Context()))
	h.process.endsWell() // the last player has left
	h.is(gameclient.SessionTerminated, "Ann COMPLETED", "Bob TIMEDOUT", "Cyd COMPLETED")
}

func TestServerWhoseNetworkDoesNotComeBack(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.network.set(true, false)
	h.network.cut(false)
	h.untilOver()
	h.is(gameclient.SessionTerminated, "Ann COMPLETED", "Bob TIMEDOUT")
}

func TestServerThatIsKilled(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.process.kill()
	h.untilOver()
	h.is(gameclient.SessionTerminated, "Ann COMPLETED", "Bob TIMEDOUT")
	_, err := h.ann.JoinFriend(t.Context(), gameclient.JoinFriendRequest{FriendID: "Bob", PlayerID: "Ann"})
	if !errors.Is(err, gameclient.ErrAlreadyJoined) { // until the game notices
		t.Errorf("got %v, want ErrAlreadyJoined", err)
	}
	if _, err := h.ann.FindPlayer(t.Context(), "Ann"); !errors.Is(err, gameclient.ErrNotPlaying) {
		t.Errorf("where is Ann: got %v, want ErrNotPlaying", err)
	}
}

// A seat whose player will not come is free again at once, for another player.
func TestReleaseGivesTheSeatBack(t *testing.T) {
	t.Parallel()
	h := host(t)
	ctx := t.Context()
	var seat gameclient.Seat
	for _, player := range []string{"Cyd", "Dan"} { // 4 of 4
		var err error
		seat, err = h.ann.Reserve(ctx, gameclient.JoinSessionRequest{SessionID: h.session.ID, PlayerID: player})
		must(t, err)
	}
	full := gameclient.JoinSessionRequest{SessionID: h.session.ID, PlayerID: "Eve"}
	if _, err := h.ann.Reserve(ctx, full); !errors.Is(err, gameclient.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	for range 2 {
		if back, err := h.ann.Release(ctx, seat.PlayerSessionID); !back || err != nil {
			t.Errorf("got %v, %v, want it given back", back, err)
		}
	}
	_, err := h.ann.Reserve(ctx, full)
	must(t, err)
	at, _ := h.ann.Joined()
	if back, err := h.ann.Release(ctx, at.PlayerSessionID); back || !errors.Is(err, gameclient.ErrRefused) {
		t.Errorf("the seat of a player who plays: got %v, %v, want ErrRefused", back, err)
	}
	h.is(gameclient.SessionActive, "Ann ACTIVE", "Bob RESERVED", "Cyd RESERVED", "Dan COMPLETED", "Eve RESERVED")
}
