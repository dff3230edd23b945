package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/operator"
)

// operatorPatience limits how long a command waits for a service that hangs.
const operatorPatience = 30 * time.Second

func signingRegion(env environment) string {
	return cmp.Or(env["AWS_REGION"], env["AWS_DEFAULT_REGION"], "us-east-1") // the service accepts any region
}

// userAgent identifies the commands in requests and in the audit log.
var userAgent = "muster/" + versionText()

// remoteService is a running service, and the credentials that sign requests to it.
type remoteService struct {
	endpoint string
	key      aws.Credentials         // no id: no key
	person   aws.CredentialsProvider // credentials of a signed-in person, used instead of the key; nil: none
	region   string
	reason   string // of changes, for the audit log; empty: none
}

// credentials returns credentials for the SDK, which always signs: a service with --dev accepts any key.
func (s *remoteService) credentials() aws.CredentialsProvider {
	switch {
	case s.person != nil:
		return s.person
	case s.key.AccessKeyID == "":
		return credentials.StaticCredentialsProvider{Value: aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}}
	}
	return credentials.StaticCredentialsProvider{Value: s.key}
}

// call sends a request to the operators' door and decodes the answer into out. A nil in sends no body.
func (s *remoteService) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := s.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("answer of the service: %w", err)
	}
	return nil
}

// ask sends a request to the operators' door, signed if there is a key, and returns the body of the answer.
// path is escaped and follows the door's prefix.
func (s *remoteService) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	answer, err := s.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, s.refusal(text)
	}
	return text, nil
}

// send sends a request to the operators' door, signed if there is a key. path is escaped and follows the door's prefix.
func (s *remoteService) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.endpoint, "/")+operator.Prefix+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", userAgent)
	if s.reason != "" {
		r.Header.Set(audit.ReasonHeader, s.reason)
	}
	key := s.key
	if s.person != nil {
		if key, err = s.person.Retrieve(ctx); err != nil {
			return nil, noService(s.endpoint, err)
		}
	}
	if key.AccessKeyID != "" {
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:])
		if err := v4.NewSigner().SignHTTP(ctx, key, r, hash, "gamelift", s.region, time.Now()); err != nil {
			return nil, fmt.Errorf("sign the request: %w", err)
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", noService(s.endpoint, err))
	}
	return answer, nil
}

// refusal returns the error for an answer that refuses the request. If the signature was refused, the error names the access key, which may come from the
// environment unnoticed.
func (s *remoteService) refusal(text []byte) error {
	var problem operator.Problem
	if json.Unmarshal(text, &problem) != nil || problem.Message == "" {
		problem.Message = strings.TrimSpace(string(text))
	}
	switch m := problem.Message; {
	case s.person != nil:
	case s.key.AccessKeyID == "" && strings.Contains(m, "MissingAuthenticationToken"):
		problem.Message += ". This command found no access key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with --profile, sign in with muster login, or name with --data the data directory of a service that runs on this machine and has a key whose role may do this (muster keys create makes one)"
	case strings.Contains(m, "InvalidSignature"), strings.Contains(m, "UnrecognizedClient"):
		problem.Message += " The access key of this command is " + s.key.AccessKeyID + "."
	}
	return &problem
}

// pathOf escapes an id for a path but keeps its slashes.
func pathOf(id string) string {
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
