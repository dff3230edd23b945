package mustertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// Fleet is an ANYWHERE fleet with one location and one compute. Its game servers run in the test or in other processes.
type Fleet struct {
	ID       string // "fleet-…"
	ARN      string // for destinations of queues
	Location string // name of its only location, "custom-test-1"
	Compute  string // name of its only compute

	srv     *Server
	servers int
	queues  int
}

// NewFleet creates a location, a fleet and a compute with the address 127.0.0.1.
func (s *Server) NewFleet() *Fleet {
	s.t.Helper()
	ctx, api := context.Background(), s.GameLift()
	f := &Fleet{srv: s, Compute: "test-host"}
	check := func(what string, err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatalf("mustertest: new fleet: %s: %v", what, err)
		}
	}
	for taken := true; taken; { // an earlier test with the same data directory may have taken the name
		s.fleets++
		f.Location = fmt.Sprintf("custom-test-%d", s.fleets)
		_, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &f.Location})
		if _, taken = errors.AsType[*types.ConflictException](err); !taken {
			check("location", err)
		}
	}
	made, err := api.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String(f.Location), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: &f.Location}},
	})
	check("fleet", err)
	f.ID, f.ARN = *made.FleetAttributes.FleetId, *made.FleetAttributes.FleetArn
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
		FleetId: &f.ID, ComputeName: &f.Compute, Location: &f.Location, IpAddress: aws.String("127.0.0.1"),
	})
	check("compute", err)
	return f
}

// NewQueue creates a queue with the fleet as its only destination and returns its name. Its placements time out after timeoutSeconds, 10 to
// 600.
func (f *Fleet) NewQueue(timeoutSeconds int32) string {
	f.srv.t.Helper()
	f.queues++
	name := fmt.Sprintf("queue-%d-of-%s", f.queues, f.Location)
	_, err := f.srv.GameLift().CreateGameSessionQueue(context.Background(), &gamelift.CreateGameSessionQueueInput{
		Name: &name, TimeoutInSeconds: &timeoutSeconds,
		Destinations: []types.GameSessionQueueDestination{{DestinationArn: &f.ARN}},
	})
	if err != nil {
		f.srv.t.Fatalf("mustertest: new queue: %v", err)
	}
	return name
}

// ServerParameters are the parameters of a server SDK's InitSDK, which have these names in every language.
type ServerParameters struct {
	WebSocketURL string // of the service
	ProcessID    string // unique
	HostID       string // name of the compute
	FleetID      string // "fleet-…"
	AuthToken    string // of the compute
}

// ServerParameters returns new parameters for one server process with any server SDK, in this process or another.
func (f *Fleet) ServerParameters() ServerParameters {
	f.srv.t.Helper()
	token, err := f.srv.GameLift().GetComputeAuthToken(context.Background(), &gamelift.GetComputeAuthTokenInput{FleetId: &f.ID, ComputeName: &f.Compute})
	if err != nil {
		f.srv.t.Fatalf("mustertest: auth token: %v", err)
	}
	f.servers++
	return ServerParameters{
		WebSocketURL: f.srv.ServerEndpoint(), ProcessID: fmt.Sprintf("process-%d", f.servers), HostID: f.Compute, FleetID: f.ID,
		AuthToken: *token.AuthToken,
	}
}
