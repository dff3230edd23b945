package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/identity"
)

// accessKey finds an access key to sign with: of the environment, of a profile, or of the data directory one whose role
// fits. It is empty when there is none, which a service with --dev takes, too.
func accessKey(env environment, profile, data string, fits func(identity.Role) bool) (aws.Credentials, error) {
	if id, secret := env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]; profile == "" && id != "" && secret != "" {
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}, nil
	}
	if profile := cmp.Or(profile, env["AWS_PROFILE"]); profile != "" {
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
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}, nil
	}
	if _, err := os.Stat(data); err != nil {
		return aws.Credentials{}, nil
	}
	keys, err := identity.OpenKeys(data)
	if err != nil {
		return aws.Credentials{}, err
	}
	list, err := keys.List()
	if err != nil {
		return aws.Credentials{}, err
	}
	for _, key := range list {
		if key.Revoked.IsZero() && fits(key.Role) {
			return aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret}, nil
		}
	}
	return aws.Credentials{}, nil
}
