package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/ssoclient"
)

// signIn writes a profile for signing in. The profile contains no secret, and the service need not run.
func (c *awsProfileCommand) signIn(stdout io.Writer, endpoint, configFile string, config, credentials *awsfile.File) error {
	role := ssoclient.OwnRole
	if c.Role.Known() {
		if c.Role == identity.Client {
			return fmt.Errorf("role %s: people do not sign in to play; want admin, backend, readonly, or none for the one with the most rights that the person has", c.Role)
		}
		role = c.Role.String()
	}
	p := ssoclient.Profile{Name: c.Name, Session: c.Name, StartURL: ssoclient.StartURL(endpoint), Endpoint: endpoint, Region: c.Region, Account: identity.DefaultAccount, Role: role}
	p.Write(config)
	if credentials.Has(c.Name) { // some clients would use a key there instead
		for _, key := range []string{"aws_access_key_id", "aws_secret_access_key", "aws_session_token"} {
			credentials.Remove(c.Name, key)
		}
		if err := credentials.Save(); err != nil {
			return err
		}
	}
	if err := config.Save(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "profile %s: sign-in at %s, region %s, role %s\nin %s\n\n    aws sso login --profile %[1]s     or    muster login %[1]s\n    aws gamelift list-fleets --profile %[1]s\n%[6]s",
		c.Name, endpoint, c.Region, role, configFile, oldSignIns)
	return err
}

// oldSignIns is printed each time, because an old client would ask the AWS cloud, which does not know this sign-in.
const oldSignIns = `
Mind the version of the client. AWS CLI before 2.13, Debian's 2.9 among them, and SDKs of before August 2023 ignore endpoint_url
in a profile. With those: muster login, and credential_process = muster credentials in a profile of their own.
`
