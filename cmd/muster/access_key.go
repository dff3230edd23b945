package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/ssoclient"
)

// accessKey finds an access key to sign with: from the environment, from a profile, or from the service that runs on the data
// directory, if one of its keys has a suitable role. The key is empty if there is none; a service with --dev accepts that.
func accessKey(ctx context.Context, env environment, profile string, data *dataFlag, may identity.Roles) (aws.Credentials, error) {
	if key, err := environmentKey(env, profile); err != nil || key.AccessKeyID != "" {
		return key, err
	}
	client, err := data.client()
	var keys []keyring.Document
	if err == nil {
		keys, err = client.List(ctx)
	}
	if errors.Is(err, localdoor.ErrNoService) {
		return aws.Credentials{}, nil
	}
	if err != nil {
		return aws.Credentials{}, err
	}
	slices.SortStableFunc(keys, func(a, b keyring.Document) int { return cmp.Compare(len(a.Sources), len(b.Sources)) }) // one with sources may not work from here
	for _, key := range keys {
		if key.Works() && may.Allow(key.Role) {
			secret, err := client.Secret(&key)
			return aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: secret}, err
		}
	}
	return aws.Credentials{}, nil
}

// environmentKey returns the access key in the variables of AWS clients or in a profile. The key is empty if there is none.
func environmentKey(env environment, profile string) (aws.Credentials, error) {
	if profile == "" && env.hasKey() {
		return credentialsOf(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"]), nil
	}
	profile = cmp.Or(profile, env["AWS_PROFILE"])
	if profile == "" {
		return aws.Credentials{}, nil
	}
	_, name, err := awsFiles(env)
	if err != nil {
		return aws.Credentials{}, err
	}
	file, err := awsfile.Open(name)
	if err != nil {
		return aws.Credentials{}, err
	}
	id, secret := file.Get(profile, "aws_access_key_id"), file.Get(profile, "aws_secret_access_key")
	if id == "" || secret == "" {
		return aws.Credentials{}, fmt.Errorf("profile %q: no access key in %s", profile, name)
	}
	return credentialsOf(id, secret, file.Get(profile, "aws_session_token")), nil
}

// profileEndpoint returns the endpoint of the profile whose access key environmentKey returns. It is empty if that key comes from variables, or if the
// profile names no endpoint.
func profileEndpoint(env environment, profile string) (string, error) {
	if profile == "" && env.hasKey() {
		return "", nil
	}
	profile = cmp.Or(profile, env["AWS_PROFILE"])
	if profile == "" {
		return "", nil
	}
	name, _, err := awsFiles(env)
	if err != nil {
		return "", err
	}
	file, err := awsfile.Open(name)
	if err != nil {
		return "", err
	}
	return file.Get(ssoclient.Section(profile), "endpoint_url"), nil
}

// credentialsOf omits a session token that belongs to another key: the service would refuse it.
func credentialsOf(id, secret, token string) aws.Credentials {
	if !strings.HasPrefix(id, identity.SessionPrefix) {
		token = ""
	}
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}
}
