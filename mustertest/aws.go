package mustertest

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
)

// Region stands in the ARNs of what the clients of AWSConfig make.
const Region = "us-east-1"

// Roles of access keys.
const (
	Admin    = "admin"    // everything
	Backend  = "backend"  // sessions and players of everyone, no fleets
	Client   = "client"   // what a game client may
	ReadOnly = "readonly" // looks at everything, changes nothing
)

// testActor creates keys in the process of the service.
var testActor = access.Actor{Principal: "mustertest", Door: "process"}

// Credentials makes a new access key of a role.
func (s *Server) Credentials(role string) aws.Credentials {
	s.t.Helper()
	parsed, err := identity.ParseRole(role)
	if err != nil {
		s.t.Fatalf("mustertest: credentials: %v", err)
	}
	key, err := s.running.Keys().Create(context.Background(), testActor, keyring.New{Role: parsed, Name: s.t.Name()})
	if err != nil {
		s.t.Fatalf("mustertest: credentials: %v", err)
	}
	return aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, Source: "mustertest"}
}

// AWSConfig configures clients of the AWS SDK for Go. They may do what the role may, also where the service takes any
// credentials. All configurations of a role share one access key, as the copies of a game share the client key that ships with
// it: a client key does not see the seats that another one took.
func (s *Server) AWSConfig(role string) aws.Config {
	s.t.Helper()
	c, made := s.keys[role]
	if !made {
		if s.keys == nil {
			s.keys = map[string]aws.Credentials{}
		}
		c = s.Credentials(role)
		s.keys[role] = c
	}
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(s.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	}
}

// GameLift is an administrator's API client.
func (s *Server) GameLift() *gamelift.Client {
	s.t.Helper()
	return gamelift.NewFromConfig(s.AWSConfig(Admin))
}
