package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/agent/joining"
	"github.com/musterhq/muster/internal/agent/link"
)

// agentConnection selects the service, and the compute that the agent connects as.
type agentConnection struct {
	Server        string `env:"MUSTER_AGENT_SERVER,GAMELIFT_ENDPOINT" placeholder:"URL" help:"URL of the service, such as https://muster.example.com."`
	Fleet         string `env:"MUSTER_AGENT_FLEET,GAMELIFT_FLEET_ID" placeholder:"ID" help:"Fleet of this host."`
	Location      string `env:"MUSTER_AGENT_LOCATION,GAMELIFT_LOCATION" placeholder:"NAME" help:"Location of this host, for registering the compute."`
	ComputeName   string `name:"compute-name" env:"MUSTER_AGENT_COMPUTE_NAME,GAMELIFT_COMPUTE_NAME" placeholder:"NAME" help:"Name of this host in the fleet. (default: the host name)"`
	IP            string `name:"ip" env:"MUSTER_AGENT_IP,GAMELIFT_IP_ADDRESS" placeholder:"ADDRESS" help:"Address at which players reach this host. (default: the one from which it reaches the service)"`
	DNS           string `name:"dns" env:"MUSTER_AGENT_DNS,GAMELIFT_DNS_NAME" placeholder:"NAME" help:"DNS name at which players reach this host, instead of --ip."`
	TokenFile     string `name:"token-file" env:"MUSTER_AGENT_TOKEN_FILE" placeholder:"FILE" help:"File with an auth token of an existing compute, read before each connection. Otherwise an access key registers the compute: AWS_ACCESS_KEY_ID, --profile or AWS_PROFILE."`
	JoinTokenFile string `name:"join-token-file" env:"MUSTER_AGENT_JOIN_TOKEN_FILE" placeholder:"FILE" help:"File with a join token, from muster hosts join-token. With it the host joins once, creates its own key in the state directory, and needs no access key. The token determines the fleet or location of the host."`
	CA            string `name:"ca" env:"MUSTER_AGENT_CA" placeholder:"FILE" help:"PEM file with certificate authorities that the agent trusts in addition to the system's, for all of its connections."`
	Profile       string `placeholder:"NAME" help:"AWS profile whose access key registers the compute."`
}

// target returns a function that returns the address to connect to. It fetches a new token on each call.
func (c *agentConnection) target(env environment, stateDir string, client *http.Client) (func(context.Context) (link.Target, error), error) {
	u, err := url.Parse(c.Server)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("server %q: want a URL such as https://muster.example.com", c.Server)
	}
	if c.Fleet == "" && c.JoinTokenFile == "" {
		return nil, errors.New("fleet: want the id of this host's fleet, or a join token with --join-token-file")
	}
	if c.JoinTokenFile != "" && c.TokenFile != "" {
		return nil, errors.New("join-token-file and token-file: want one of them")
	}
	if c.ComputeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		c.ComputeName = asComputeName(name)
	}
	if c.JoinTokenFile != "" {
		host, err := joining.Open(joining.Config{
			Server: u, StateDir: stateDir, TokenFile: c.JoinTokenFile, Name: c.ComputeName, Location: c.Location, Fleet: c.Fleet, Client: client,
			Address: func() (ip, dns string, err error) {
				if c.DNS != "" {
					return "", c.DNS, nil
				}
				ip, err = c.address(u)
				return ip, "", err
			},
		})
		if err != nil {
			return nil, err
		}
		return host.Target, nil
	}
	if c.TokenFile != "" {
		return func(context.Context) (link.Target, error) { return c.tokenTarget(u) }, nil
	}
	key, err := environmentKey(env, c.Profile)
	if err != nil {
		return nil, err
	}
	if key.AccessKeyID == "" {
		key = aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"} // the SDK always signs; a service with --dev accepts any key
	}
	api := gamelift.New(gamelift.Options{
		HTTPClient: client, BaseEndpoint: &c.Server, Region: signingRegion(env), Credentials: credentials.StaticCredentialsProvider{Value: key},
	})
	var endpoint string // empty until the compute is registered
	return func(ctx context.Context) (link.Target, error) {
		if endpoint == "" {
			if endpoint, err = c.register(ctx, api, u); err != nil {
				return link.Target{}, err
			}
		}
		token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &c.Fleet, ComputeName: &c.ComputeName})
		if _, gone := errors.AsType[*types.NotFoundException](err); gone {
			endpoint = "" // an operator deregistered the compute
		}
		if err != nil {
			return link.Target{}, fmt.Errorf("get a token for compute %s: %w", c.ComputeName, err)
		}
		return c.as(endpoint, aws.ToString(token.AuthToken)), nil
	}, nil
}

func (c *agentConnection) tokenTarget(u *url.URL) (link.Target, error) {
	text, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return link.Target{}, err
	}
	endpoint := *u
	endpoint.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	endpoint.Path = strings.TrimSuffix(u.Path, "/") + "/agent"
	return c.as(endpoint.String(), strings.TrimSpace(string(text))), nil
}

func (c *agentConnection) as(endpoint, token string) link.Target {
	return link.Target{Endpoint: endpoint, Query: url.Values{"FleetId": {c.Fleet}, "ComputeName": {c.ComputeName}, "Authorization": {token}}}
}

// register registers the compute, as the official agent does, or finds the existing one. It returns the endpoint for agents.
func (c *agentConnection) register(ctx context.Context, api *gamelift.Client, u *url.URL) (string, error) {
	in := &gamelift.RegisterComputeInput{FleetId: &c.Fleet, ComputeName: &c.ComputeName, Location: optional(c.Location), DnsName: optional(c.DNS)}
	if in.DnsName == nil {
		ip, err := c.address(u)
		if err != nil {
			return "", err
		}
		in.IpAddress = &ip
	}
	compute, err := registered(ctx, api, in)
	if err != nil {
		return "", fmt.Errorf("register compute %s: %w", c.ComputeName, err)
	}
	return aws.ToString(compute.GameLiftAgentEndpoint), nil
}

func registered(ctx context.Context, api *gamelift.Client, in *gamelift.RegisterComputeInput) (*types.Compute, error) {
	out, err := api.RegisterCompute(ctx, in)
	if err == nil {
		return out.Compute, nil
	}
	if _, ok := errors.AsType[*types.ConflictException](err); !ok {
		return nil, err
	}
	known, err := api.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: in.FleetId, ComputeName: in.ComputeName})
	if err != nil {
		return nil, err
	}
	return known.Compute, nil
}

// optional returns nil for an empty text, which a request then omits.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// address returns --ip, or the local address of a route to the service. It sends no packet to find that.
func (c *agentConnection) address(u *url.URL) (string, error) {
	if c.IP != "" {
		return c.IP, nil
	}
	conn, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err != nil {
		return "", fmt.Errorf("find this host's address: %w; name it with --ip or --dns", err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// asComputeName turns a host name into a name that the API accepts: letters, digits and hyphens, at most 128.
func asComputeName(host string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, host)
	return cmp.Or(name[:min(len(name), 128)], "host")
}
