package main

import (
	"context"

	"github.com/musterhq/muster/internal/identity"
)

// serviceFlags give the address of a running service and the access key to use.
type serviceFlags struct {
	dataFlag
	Listen    string `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service."`
	PublicURL string `name:"public-url" aliases:"server" placeholder:"URL" help:"URL of the service, if not at --listen. --server is the same."`
	Profile   string `placeholder:"NAME" help:"AWS profile whose access key to use. Otherwise: AWS_ACCESS_KEY_ID, AWS_PROFILE, a key of the data directory, or none."`
}

// reach returns the service with an access key of one of the roles. The key is empty when there is none; a service with --dev needs none.
func (f *serviceFlags) reach(ctx context.Context, env environment, may identity.Roles) (s remoteService, err error) {
	if s.endpoint, err = apiEndpoint(f.Listen, f.PublicURL); err != nil {
		return s, err
	}
	s.region = signingRegion(env)
	s.key, err = accessKey(ctx, env, f.Profile, &f.dataFlag, may)
	return s, err
}
