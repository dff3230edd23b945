package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/operator"
)

// serverKeys reads and changes the keys of a service over the network, with an admin key.
type serverKeys struct{ remoteService }

// serviceAt returns the service at --server, with admin credentials. It refuses plain connections to other machines, because answers contain secrets.
func serviceAt(server, profile string, env environment, reason string) (*remoteService, error) {
	endpoint, err := apiEndpoint("", server)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !hostname.IsLoopback(u.Hostname()) {
		return nil, fmt.Errorf("--server %s: want https, because others on the network could read the secrets of new keys", server)
	}
	who, err := personOf(env, profile)
	if err != nil {
		return nil, err
	}
	s := &remoteService{endpoint: endpoint, region: signingRegion(env), reason: reason}
	if who != nil && (!who.implied || endpoint == who.profile.Endpoint) {
		s.person = who.credentials()
		return s, nil
	}
	if s.key, err = environmentKey(env, profile); err != nil {
		return nil, err
	}
	if s.key.AccessKeyID == "" {
		return nil, fmt.Errorf("--server needs an admin key to sign with: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or --profile, or sign in with muster login")
	}
	return s, nil
}

func (s *serverKeys) create(ctx context.Context, n keyring.New) (d keyring.Document, err error) {
	err = s.call(ctx, http.MethodPost, "keys", operator.NewKey{Role: n.Role, Name: n.Name, Expires: n.Expires, Sources: n.Sources}, &d)
	return d, err
}

func (s *serverKeys) list(ctx context.Context) ([]keyring.Document, error) {
	var all operator.KeyList
	err := s.call(ctx, http.MethodGet, "keys", nil, &all)
	return all.Keys, err
}

func (s *serverKeys) revoke(ctx context.Context, id string, force bool) (d keyring.Document, err error) {
	err = s.call(ctx, http.MethodPost, "keys/"+url.PathEscape(id)+"/revoke", operator.Revocation{Force: force}, &d)
	return d, err
}

func (s *serverKeys) rotate(ctx context.Context, x keyring.Rotation) (d keyring.Rotated, err error) {
	err = s.call(ctx, http.MethodPost, "keys/"+url.PathEscape(x.ID)+"/rotate", x, &d)
	return d, err
}

func (s *serverKeys) finish(ctx context.Context, id string) (d keyring.Document, err error) {
	err = s.call(ctx, http.MethodPost, "keys/"+url.PathEscape(id)+"/finish-rotation", struct{}{}, &d)
	return d, err
}

func (s *serverKeys) limit(ctx context.Context, x keyring.Limits) (d keyring.Document, err error) {
	err = s.call(ctx, http.MethodPost, "keys/"+url.PathEscape(x.ID)+"/limit", x, &d)
	return d, err
}

func (s *serverKeys) revokeCredentials(ctx context.Context, x keyring.Credentials) error {
	return s.call(ctx, http.MethodPost, "keys/revoke-credentials", x, &struct{}{})
}
