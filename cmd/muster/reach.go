package main

import (
	"cmp"
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/settings"
)

// serviceFlags select a running service and the access key to use.
type serviceFlags struct {
	dataFlag
	Listen    string `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service. Default: --public-url, or the endpoint of the profile in use."`
	PublicURL string `name:"public-url" aliases:"server" instead:"listen" placeholder:"URL" help:"URL of the service, if not at --listen. --server is the same."`
	Profile   string `placeholder:"NAME" help:"AWS profile whose access key or sign-in to use. Otherwise: AWS_ACCESS_KEY_ID, AWS_PROFILE, the sign-in of muster login, a key of the data directory, or none."`
}

// reach returns the service with an access key of one of the roles. The key is empty if there is none; a service with --dev needs none.
func (f *serviceFlags) reach(ctx context.Context, env environment, may identity.Roles) (s remoteService, err error) {
	if s.endpoint, err = apiEndpoint(f.Listen, f.PublicURL); err != nil {
		return s, err
	}
	s.region = signingRegion(env)
	who, err := personOf(env, f.Profile)
	if err != nil {
		return s, err
	}
	named := f.PublicURL != "" || f.Listen != settings.Defaults().Listen
	if who != nil && !named {
		s.endpoint = who.profile.Endpoint
	}
	if who != nil && (!who.implied || s.endpoint == who.profile.Endpoint) {
		s.person = who.credentials()
		return s, nil
	}
	if s.key, err = accessKey(ctx, env, f.Profile, &f.dataFlag, may); err != nil || named {
		return s, err
	}
	at, err := profileEndpoint(env, f.Profile)
	s.endpoint = cmp.Or(at, s.endpoint)
	return s, err
}

// adminChange has the flags of commands that change something at the operators' door, with an admin key.
type adminChange struct {
	serviceFlags
	reasonFlag
}

func (c *adminChange) post(ctx context.Context, env environment, path string, in, out any) error {
	service, err := c.reach(ctx, env, identity.MayAdminister)
	if err != nil {
		return err
	}
	service.reason = c.Reason
	return service.call(ctx, http.MethodPost, path, in, out)
}
