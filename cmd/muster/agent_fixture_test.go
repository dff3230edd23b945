package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/identity"
)

// fleetForTest creates an ANYWHERE fleet in the location custom-home, and returns its id.
func fleetForTest(t *testing.T, sdk *gamelift.Client) string {
	t.Helper()
	if _, err := sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")}); err != nil {
		t.Fatal(err)
	}
	created, err := sdk.CreateFleet(t.Context(), &gamelift.CreateFleetInput{
		Name: aws.String("f"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *created.FleetAttributes.FleetId
}

// agentForTest runs an agent, the compute rack-1 in custom-home, with its state below dir. Its processes end with it, after stop; done has its error.
func agentForTest(t *testing.T, key identity.AccessKey, dir string, args ...string) (stop context.CancelFunc, done <-chan error) {
	t.Helper()
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	args = append([]string{"agent", "--location", "custom-home", "--compute-name", "rack-1", "--state-dir", filepath.Join(dir, "agent"),
		"--end-processes", "--kill-timeout", "1s", "--log-level", "error"}, args...)
	go func() { ended <- run(running, args, envOf(key), io.Discard) }()
	return stop, ended
}
