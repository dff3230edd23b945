package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/identity"
)

// serviceFlags give the address of a running service and the access key to use.
type serviceFlags struct {
	dataFlag
	Listen    string `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service."`
	PublicURL string `name:"public-url" placeholder:"URL" help:"URL of the service, if not at --listen."`
	Profile   string `placeholder:"NAME" help:"AWS profile whose access key to use. Otherwise: AWS_ACCESS_KEY_ID, AWS_PROFILE, a key of the data directory, or none."`
}

// reach returns the URL of the service and an access key of a suitable role. The key is empty when there is none; a service with --dev
// needs none.
func (f *serviceFlags) reach(ctx context.Context, env environment, will func(identity.Role) bool) (endpoint string, key aws.Credentials, err error) {
	if endpoint, err = apiEndpoint(f.Listen, f.PublicURL); err != nil {
		return "", key, err
	}
	key, err = accessKey(ctx, env, f.Profile, f.Data, will)
	return endpoint, key, err
}
