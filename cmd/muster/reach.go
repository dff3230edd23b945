package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/identity"
)

// serviceFlags say where a running service is, and with which access key to ask it.
type serviceFlags struct {
	dataFlag
	Listen    string `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service."`
	PublicURL string `name:"public-url" placeholder:"URL" help:"Where the service is reached, if not at --listen."`
	Profile   string `placeholder:"NAME" help:"AWS profile whose access key to use. Otherwise: AWS_ACCESS_KEY_ID, AWS_PROFILE, a key of the data directory, or none."`
}

// reach gives the URL of the service and an access key of a role that will do, which is empty when there is none: a service with --dev
// needs none.
func (f *serviceFlags) reach(ctx context.Context, env environment, will func(identity.Role) bool) (endpoint string, key aws.Credentials, err error) {
	if endpoint, err = apiEndpoint(f.Listen, f.PublicURL); err != nil {
		return "", key, err
	}
	key, err = accessKey(ctx, env, f.Profile, f.Data, will)
	return endpoint, key, err
}
