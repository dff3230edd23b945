package main

import (
	"fmt"

	"github.com/musterhq/muster/internal/localdoor"
)

// runningService selects a service by its data directory or its URL, for commands that need it to run.
type runningService struct {
	dataFlag
	Server  string `placeholder:"URL" instead:"data,secret-key-file" help:"Call the service at this URL instead of using --data, with an admin key from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE) or --profile."`
	Profile string `placeholder:"NAME" with:"server" help:"AWS profile whose access key signs for --server."`
}

// reach returns the service at --server, or the one that runs on --data. reason is for the audit log. If the service does not run, the error contains why: what
// it is needed for.
func (a *runningService) reach(env environment, reason, why string) (*remoteService, *localdoor.Client, error) {
	if a.Server != "" {
		service, err := serviceAt(a.Server, a.Profile, env, reason)
		return service, nil, err
	}
	if err := mustExist(a.Data); err != nil {
		return nil, nil, err
	}
	client, err := a.client()
	if err != nil {
		return nil, nil, fmt.Errorf("%w; %s", err, why)
	}
	client.Reason = reason
	return nil, client, nil
}
