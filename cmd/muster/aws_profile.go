package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/ssoclient"
)

type awsProfileCommand struct {
	dataFlag
	Listen    string        `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service."`
	PublicURL string        `name:"public-url" instead:"listen" placeholder:"URL" help:"URL of the service, if not at --listen."`
	Name      string        `arg:"" help:"Name of the profile: aws --profile NAME."`
	Region    string        `default:"us-east-1" help:"Region name to write; the service accepts any."`
	Role      identity.Role `placeholder:"admin|backend|client|readonly" help:"Role of the access key in the profile; default: admin. With --sso, the role to assume; default: the person's role with the most rights."`
	SSO       bool          `name:"sso" instead:"data,secret-key-file" help:"People sign in with this profile, by aws sso login or muster login. It has no access key."`
	Replace   bool          `help:"Replace an existing profile of that name that is not Muster's."`
}

// oldClients is printed each time, because the mistake that it prevents causes no error.
const oldClients = `
Mind the version of the client. AWS CLI before 2.13 (and 1.29), Debian's 2.9 among them, and SDKs of before August
2023 ignore endpoint_url in a profile and would talk to the AWS cloud instead, where this key is unknown. With
those, name the endpoint in each call:

    aws --profile %[1]s --endpoint-url %[2]s gamelift list-fleets

`

func (c *awsProfileCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	endpoint, err := c.endpoint()
	if err != nil {
		return err
	}
	configFile, credentialsFile, err := awsFiles(env)
	if err != nil {
		return err
	}
	// Both files are checked before either is changed.
	config, err := awsfile.Open(configFile)
	if err != nil {
		return err
	}
	credentials, err := awsfile.Open(credentialsFile)
	if err != nil {
		return err
	}
	configSection := ssoclient.Section(c.Name)
	_, signsIn := ssoclient.Read(config, c.Name)
	if !c.Replace && !signsIn && !muster(credentials.Get(c.Name, "aws_access_key_id")) &&
		(credentials.Has(c.Name) || config.Has(configSection)) {
		return fmt.Errorf("profile %q exists already, and its key is not Muster's: choose another name, or add --replace", c.Name)
	}
	if c.SSO {
		return c.signIn(stdout, endpoint, configFile, config, credentials)
	}
	c.Role = cmp.Or(c.Role, identity.Admin)

	key, err := c.key(ctx)
	if err != nil {
		return err
	}
	config.Set(configSection, "region", c.Region)
	config.Set(configSection, "endpoint_url", endpoint)
	for _, of := range []string{"sso_session", "sso_account_id", "sso_role_name"} { // with these, some clients would sign in instead of using the key
		config.Remove(configSection, of)
	}
	credentials.Set(c.Name, "aws_access_key_id", key.ID)
	credentials.Set(c.Name, "aws_secret_access_key", key.Secret)
	credentials.Remove(c.Name, "aws_session_token") // left over from an earlier profile
	if err := credentials.Save(); err != nil {
		return err
	}
	if err := config.Save(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "profile %s: endpoint %s, region %s, key %s (%s)\nin %s and %s\n\n    aws --profile %s gamelift list-fleets\n",
		c.Name, endpoint, c.Region, key.ID, key.Role, configFile, credentialsFile, c.Name)
	_, err = fmt.Fprintf(stdout, oldClients, c.Name, endpoint)
	return err
}

// endpoint returns the URL for clients of the API: the URL for game servers with the scheme http or https.
func (c *awsProfileCommand) endpoint() (string, error) {
	if c.Name == "" || strings.ContainsAny(c.Name, " \t\r\n[]'\"#;\\") {
		return "", fmt.Errorf("profile name %q: want one without spaces, quotes and brackets", c.Name)
	}
	return apiEndpoint(c.Listen, c.PublicURL)
}

// apiEndpoint returns the URL of a service with these settings, for clients of the API.
func apiEndpoint(listen, publicURL string) (string, error) {
	text := publicURL
	if text == "" {
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return "", fmt.Errorf("listen %q: want HOST:PORT", listen)
		}
		if hostname.IsUnspecified(host) {
			host = "127.0.0.1" // all addresses include this one
		}
		text = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("endpoint %q: want a URL with a host", text)
	}
	switch u.Scheme {
	case "wss":
		u.Scheme = "https"
	case "ws":
		u.Scheme = "http"
	}
	return u.String(), nil
}

// noService adds the endpoint to the error of a failed connection, and returns every other error unchanged.
func noService(endpoint string, err error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("no service answers at %s: %w; name its address with --listen or --public-url", endpoint, dial.Err)
	}
	return err
}

// key returns the profile's key: the one from an earlier call, if it still works, or a new one.
func (c *awsProfileCommand) key(ctx context.Context) (keyring.Document, error) {
	secretKey, err := c.dataFlag.key()
	if err != nil {
		return keyring.Document{}, err
	}
	door := &dataKeys{dir: c.Data, key: secretKey, notes: os.Stderr}
	name := "aws-profile " + c.Name
	list, err := door.list(ctx)
	if err != nil {
		return keyring.Document{}, err
	}
	for _, key := range list {
		if key.Name == name && key.Role == c.Role && key.Works() {
			secret, err := c.secret()
			if err == nil {
				key.Secret, err = key.SecretOf(secret)
			}
			return key, err
		}
	}
	return door.create(ctx, keyring.New{Role: c.Role, Name: name})
}

// muster reports whether an access key id was made by Muster, by this installation or another.
func muster(accessKeyID string) bool { return strings.HasPrefix(accessKeyID, "MUST") }

// awsFiles returns the two files in which AWS clients look for profiles.
func awsFiles(env environment) (config, credentials string, err error) {
	config, credentials = env["AWS_CONFIG_FILE"], env["AWS_SHARED_CREDENTIALS_FILE"]
	if config != "" && credentials != "" {
		return config, credentials, nil
	}
	home := cmp.Or(env["HOME"], env["USERPROFILE"])
	if home == "" {
		if home, err = os.UserHomeDir(); err != nil {
			return "", "", fmt.Errorf("find the AWS files: %w", err)
		}
	}
	return cmp.Or(config, filepath.Join(home, ".aws", "config")), cmp.Or(credentials, filepath.Join(home, ".aws", "credentials")), nil
}
