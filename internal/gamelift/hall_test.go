package gamelift

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

// hall is an installation: the real operations on a real engine behind the real handler, a client of each protocol, and
// game servers played by the test.
type hall struct {
	*testing.T
	engine  *engine.Engine
	service *Service
	secret  identity.CellSecret
	sdk     *gamelift.Client
	json    jsonClient
	offset  atomic.Int64 // of the engine's clock, in nanoseconds
	links   uint64
}

// newHall opens an installation whose ended records leave memory after linger, by the engine's clock.
func newHall(t *testing.T, linger time.Duration) *hall {
	return newHallWith(t, linger, cell.DefaultConfig())
}

func newHallWith(t *testing.T, linger time.Duration, config cell.Config) *hall {
	h := &hall{T: t}
	disk, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	h.engine, err = engine.Open(t.Context(), engine.Config{
		Journal: disk, Archive: new(memoryArchive), Cell: config, Log: testLog(t), EndedLinger: linger,
		Now: func() time.Time { return time.Now().Add(time.Duration(h.offset.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.engine.Close() })
	if h.secret, err = identity.OpenCellSecret(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	service, err := NewService(h.engine, h.secret, "https://muster.example:8443/base/")
	if err != nil {
		t.Fatal(err)
	}
	h.service = service
	url := startServer(t, NewHandler(service, Config{Keys: keysForTest(), Log: testLog(t)}))
	key := keysForTest()["AKADMIN"]
	h.sdk, h.json = sdkClient(url, key), jsonClient{url: url, key: key}
	return h
}

// anywhere makes a location, a fleet and a compute.
func (h *hall) anywhere() (fleetID string) {
	h.Helper()
	must(h.sdk.CreateLocation(h.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")}))(h.T)
	fleetID = h.fleetIn("custom-home")
	must(h.sdk.RegisterCompute(h.Context(), &gamelift.RegisterComputeInput{
		FleetId: &fleetID, ComputeName: aws.String("DesktopPC"), IpAddress: aws.String("127.0.0.1"), Location: aws.String("custom-home"),
	}))(h.T)
	return fleetID
}

func (h *hall) fleetIn(location string) (fleetID string) {
	h.Helper()
	created := must(h.sdk.CreateFleet(h.Context(), &gamelift.CreateFleetInput{
		Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: &location}},
	}))(h.T)
	return *created.FleetAttributes.FleetId
}

// serverReady makes a server process that has called ProcessReady and is healthy.
func (h *hall) serverReady(fleetID, process string) fleet.Key {
	h.Helper()
	h.links++
	key := fleet.Key{Fleet: fleetID, Compute: "DesktopPC", Process: process}
	h.do(&hosting.ConnectProcess{Process: key, Link: h.links, SDK: "Go 5.5.0"})
	h.do(&hosting.ActivateProcess{Process: key, Link: h.links, Port: 7777, Request: h.links})
	h.do(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

func (h *hall) do(cmd kernel.Command) {
	h.Helper()
	if err := h.engine.Do(h.Context(), cmd); err != nil {
		h.Fatalf("%T: %v", cmd, err)
	}
}

// activeGame makes a game session for two players on a new server process.
func (h *hall) activeGame(fleetID, process string) (types.GameSession, fleet.Key) {
	h.Helper()
	key := h.serverReady(fleetID, process)
	created := must(h.sdk.CreateGameSession(h.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &fleetID, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
	}))(h.T)
	h.do(&hosting.ActivateGameSession{Process: key, Game: h.gameID(*created.GameSession.GameSessionId)})
	return *created.GameSession, key
}

func (h *hall) gameID(arn string) session.ID {
	id, err := (&Service{engine: h.engine}).gameSessionID(h.Context(), arn)
	if err != nil {
		h.Fatal(err)
	}
	return id
}

// archived waits until a game session has left memory.
func (h *hall) archived(arn string) {
	h.Helper()
	id := h.gameID(arn)
	waittest.Until(h, "game session "+arn+" leaves memory", func() bool {
		live := false
		err := h.engine.Read(h.Context(), func(v *cell.View) error { _, live = v.GameSession(id); return nil })
		return err == nil && !live
	})
}

// later moves the engine's clock.
func (h *hall) later(d time.Duration) {
	h.offset.Add(int64(d))
	h.engine.Poke()
}

func must[T any](out T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// refused checks the code of an error that the SDK returned.
func refused(t testing.TB, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || e.ErrorCode() != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// rewritten returns JSON with its keys in order.
func rewritten(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
