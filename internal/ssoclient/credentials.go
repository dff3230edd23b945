package ssoclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/sso/types"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
)

// Provider returns the temporary credentials of a person who has signed in with a profile, and renews the access token that it needs for that.
func (p *Profile) Provider(home string, client *http.Client) aws.CredentialsProvider {
	file := p.TokenFile(home)
	portal := sso.New(sso.Options{BaseEndpoint: &p.Endpoint, Region: p.Region, HTTPClient: client})
	oidc := ssooidc.New(ssooidc.Options{BaseEndpoint: &p.Endpoint, Region: p.Region, HTTPClient: client})
	return &provider{p, ssocreds.New(portal, p.Account, p.Role, p.StartURL, func(o *ssocreds.Options) {
		o.SSOTokenProvider = ssocreds.NewSSOTokenProvider(oidc, file)
		o.CachedTokenFilepath = file
	})}
}

type provider struct {
	profile *Profile
	sdk     aws.CredentialsProvider
}

// Retrieve says what to do when the sign-in has ended.
func (x *provider) Retrieve(ctx context.Context) (c aws.Credentials, err error) {
	if c, err = x.sdk.Retrieve(ctx); err != nil {
		return c, fmt.Errorf("credentials of profile %s: %w; sign in again with `muster login %[1]s`", x.profile.Name, err)
	}
	return c, nil
}

// Logout ends the sign-in at the service, and removes its token. A service that cannot be reached, or has ended the sign-in already, is no reason to keep the token.
func (p *Profile) Logout(ctx context.Context, home string, client *http.Client) (ended bool, err error) {
	t, err := p.load(home)
	if err != nil || t.AccessToken == "" {
		return false, err
	}
	portal := sso.New(sso.Options{BaseEndpoint: &p.Endpoint, Region: p.Region, HTTPClient: client})
	_, asked := portal.Logout(ctx, &sso.LogoutInput{AccessToken: &t.AccessToken})
	if _, over := errors.AsType[*types.UnauthorizedException](asked); over {
		asked = nil
	}
	if err := os.Remove(p.TokenFile(home)); err != nil {
		return false, fmt.Errorf("remove the sign-in: %w", err)
	}
	if asked != nil {
		return false, fmt.Errorf("the token is removed here, and the service may keep the sign-in until it expires: %w", asked)
	}
	return true, nil
}
