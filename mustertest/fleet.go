package mustertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// Fleet is an ANYWHERE fleet with one location and one compute, whose game servers run in the test or where it likes.
type Fleet struct {
	ID, ARN  string
	Location string
	Compute  string

	srv     *Server
	servers int
	queues  int
}

// NewFleet makes a location, a fleet and a compute with the address 127.0.0.1.
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
	for taken := true; taken; { // by an earlier test on the same data directory
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

// NewQueue makes a queue with the fleet as its only destination and gives its name.
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

// ServerParameters is what the server SDKs want to know to connect: each has members of these names.
type ServerParameters struct {
	WebSocketURL, ProcessID, HostID, FleetID, AuthToken string
}

// ServerParameters are for one game server process with a server SDK of any language, in this process or another.
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
