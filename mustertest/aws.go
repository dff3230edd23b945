package mustertest

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/keyring"
)

// Region is the region of AWSConfig, and so of ARNs.
const Region = "us-east-1"

// Roles of access keys.
const (
	Admin    = "admin"    // may do everything
	Backend  = "backend"  // may use all game sessions, players and tickets, but not change fleets
	Client   = "client"   // may do what a game client needs
	ReadOnly = "readonly" // may read everything and change nothing
)

// testActor creates keys in the process of the service.
var testActor = access.Actor{Principal: "mustertest", Door: "process"}

// Credentials creates an access key with a role. An unknown role fails the test.
func (s *Server) Credentials(role string) aws.Credentials {
	s.t.Helper()
	parsed, err := access.ParseRole(role)
	if err != nil {
		s.t.Fatalf("mustertest: credentials: %v", err)
	}
	key, err := s.running.Keys().Create(context.Background(), testActor, keyring.New{Role: parsed, Name: s.t.Name()})
	if err != nil {
		s.t.Fatalf("mustertest: credentials: %v", err)
	}
	return aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, Source: "mustertest"}
}

// AWSConfig returns a configuration for clients of the AWS SDK for Go. They have the permissions of the role, also if the service accepts any
// credentials. All configurations of a role share one access key, as the copies of a game share theirs, because
// a client key does not see the seats of another one.
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

// GameLift returns an API client with the role Admin.
func (s *Server) GameLift() *gamelift.Client {
	s.t.Helper()
	return gamelift.NewFromConfig(s.AWSConfig(Admin))
}
