package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/ssoclient"
)

type credentialsCommand struct {
	Name string `arg:"" optional:"" default:"muster" help:"Profile of the sign-in."`
	certificateFlags
}

// Validate refuses incomplete certificate flags.
func (c *credentialsCommand) Validate() error { return c.check() }

// processCredentials is what AWS clients read from a credential_process.
type processCredentials struct {
	Version         int
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

func (c *credentialsCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if c.Certificate != "" {
		key, err := c.exchange(ctx, env)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(key)
	}
	p, home, err := signInProfile(env, c.Name)
	if err != nil {
		return err
	}
	key, err := p.Provider(home, http.DefaultClient).Retrieve(ctx)
	if err != nil {
		return noService(p.Endpoint, err)
	}
	return json.NewEncoder(stdout).Encode(processCredentials{1, key.AccessKeyID, key.SecretAccessKey, key.SessionToken, key.Expires.UTC().Format(time.RFC3339)})
}

// defaultSignIn is the profile that muster login writes if no other is named.
const defaultSignIn = "muster"

// renewedBefore is how long before their expiry temporary credentials are renewed.
const renewedBefore = 5 * time.Minute

// person is a person who signs in with a profile.
type person struct {
	profile ssoclient.Profile
	home    string
	implied bool // no option names the profile
}

// personOf returns the person of a profile or of AWS_PROFILE. If neither these nor an access key in the environment are given, it returns the person who signed
// in with muster login. It returns nil if there is none.
func personOf(env environment, profile string) (*person, error) {
	if profile == "" && env.hasKey() {
		return nil, nil
	}
	name := cmp.Or(profile, env["AWS_PROFILE"])
	x := person{implied: name == ""}
	config, _, err := awsFiles(env)
	if err != nil {
		if x.implied {
			return nil, nil
		}
		return nil, err
	}
	file, err := awsfile.Open(config)
	if err != nil {
		return nil, err
	}
	p, ok := ssoclient.Read(file, cmp.Or(name, defaultSignIn))
	if !ok {
		return nil, nil
	}
	if x.home, err = homeOf(env); err != nil {
		return nil, err
	}
	x.profile = p
	if x.implied && !p.SignedIn(x.home) {
		return nil, nil
	}
	return &x, nil
}

// credentials returns the person's temporary credentials, which are renewed before they expire.
func (x *person) credentials() aws.CredentialsProvider {
	return aws.NewCredentialsCache(x.profile.Provider(x.home, http.DefaultClient), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewedBefore })
}

var errNoHome = errors.New("find the home directory: want HOME in the environment")

// homeOf returns the home directory of the user.
func homeOf(env environment) (string, error) {
	if home := cmp.Or(env["HOME"], env["USERPROFILE"]); home != "" {
		return home, nil
	}
	return "", errNoHome
}
