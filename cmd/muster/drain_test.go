package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/linkclient"
)

// watched is output that tells when a text has come.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	seen chan struct{}
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if w.want != "" && strings.Contains(w.text.String(), w.want) {
		close(w.seen)
		w.want = ""
	}
	return len(b), nil
}

// clientForTest returns a client of the service with a key, and what ends the test at an error.
func clientForTest(t *testing.T, url string, key identity.AccessKey) (sdk *gamelift.Client, check func(error)) {
	sdk = gamelift.New(gamelift.Options{
		BaseEndpoint: &url, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, ""),
	})
	return sdk, func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDrain(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	ctx, url := t.Context(), "http://"+address
	sdk, check := clientForTest(t, url, keys[identity.Admin])
	_, err := sdk.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")})
	check(err)
	fleets := make([]string, 2)
	for i := range fleets {
		created, err := sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{
			Name: aws.String("f"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}},
		})
		check(err)
		fleets[i] = *created.FleetAttributes.FleetId
	}
	register := func(fleet, name string) {
		_, err := sdk.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
			FleetId: &fleet, ComputeName: &name, IpAddress: aws.String("127.0.0.1"), Location: aws.String("custom-home"),
		})
		check(err)
	}
	register(fleets[0], "host")
	register(fleets[0], "twin")
	register(fleets[1], "twin")
	token, err := sdk.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &fleets[0], ComputeName: aws.String("host")})
	check(err)
	server, err := linkclient.Dial(ctx, linkclient.Options{URL: "ws://" + address, Process: "p1", Compute: "host", Fleet: fleets[0], Token: *token.AuthToken})
	check(err)
	defer server.Drop()
	check(server.Activate(ctx, 7777))
	check(server.Heartbeat(ctx, true))
	for full := true; full; { // the health that a heartbeat reports is noted a moment after its answer
		_, err = sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
			FleetId: &fleets[0], Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
		})
		_, full = errors.AsType[*types.FleetCapacityExceededException](err)
	}
	check(err)

	drain := []string{"drain", "--listen", address, "--data", dir}
	out := &watched{want: "game sessions left: 1", seen: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append(drain, "--every", "10ms", "host"), nil, out) }()
	select {
	case <-out.seen:
	case err := <-ended:
		t.Fatalf("it did not wait: %v\n%s", err, out.text.String())
	}
	impatient, interrupt := context.WithCancel(ctx)
	stopped := &watched{want: "game sessions left: 1", seen: make(chan struct{})}
	seen := stopped.seen
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- run(impatient, append(drain, "--every", "10ms", "host"), nil, stopped) }()
	<-seen
	interrupt()
	if err := <-gaveUp; err == nil || !strings.Contains(err.Error(), "compute host stays drained") { // a script must not take the host for empty
		t.Errorf("interrupted while game sessions are left: %v", err)
	}
	check(server.Terminate(ctx))
	check(<-ended)
	if text := out.text.String(); !strings.HasSuffix(text, "compute host is empty\n") {
		t.Errorf("got:\n%s", text)
	}
	if out := mustRun(t, nil, append(drain, "--undo", "host")...); !strings.Contains(out, "gets new game sessions again") {
		t.Errorf("got:\n%s", out)
	}

	if _, err := runForTest(t, nil, append(drain, "twin")...); err == nil || !strings.Contains(err.Error(), "--fleet") {
		t.Errorf("a name in two fleets: %v", err)
	}
	if out := mustRun(t, nil, append(drain, "--fleet", fleets[1], "--no-wait", "twin")...); !strings.Contains(out, "gets no new game sessions") {
		t.Errorf("got:\n%s", out)
	}
	if _, err := runForTest(t, nil, append(drain, "nobody")...); err == nil || !strings.Contains(err.Error(), "no fleet has a compute") {
		t.Errorf("an unknown compute: %v", err)
	}
	if _, err := runForTest(t, envOf(keys[identity.ReadOnly]), append(drain, "--fleet", fleets[1], "twin")...); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("with a read-only key: %v", err)
	}
}

// A drain that waits outlasts a restart of the service, and ends if its key is refused.
func TestDrainOutlastsARestart(t *testing.T) {
	var status, requests atomic.Int32
	status.Store(http.StatusServiceUnavailable)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 2 && status.Load() == http.StatusServiceUnavailable {
			status.Store(http.StatusOK)
		}
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte{0xa0}) // an empty object: no game sessions
	}))
	defer service.Close()
	api := gamelift.New(gamelift.Options{BaseEndpoint: &service.URL, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: aws.NopRetryer{}})
	c := drainCommand{Compute: "host", Every: time.Millisecond}
	x := &types.Compute{FleetId: aws.String("fleet-1"), ComputeName: aws.String("host"), Location: aws.String("custom-home")}
	var out bytes.Buffer
	if err := c.wait(t.Context(), api, x, &out); err != nil || out.String() != "compute host is empty\n" {
		t.Errorf("the service was away for a moment: %v\n%s", err, out.String())
	}
	status.Store(http.StatusForbidden)
	if err := c.wait(t.Context(), api, x, &out); err == nil || !strings.Contains(err.Error(), "compute host stays drained") {
		t.Errorf("with a key that was revoked meanwhile: %v", err)
	}
}
