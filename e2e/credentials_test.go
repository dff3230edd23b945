package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// roles returns the SDK's provider that assumes a role with an access key.
func (s *service) roles(id, secret, role, name string) *stscreds.AssumeRoleProvider {
	client := sts.New(sts.Options{Region: region, BaseEndpoint: aws.String(s.url()), Credentials: credentials.NewStaticCredentialsProvider(id, secret, "")})
	return stscreds.NewAssumeRoleProvider(client, "arn:aws:iam::000000000000:role/"+role, func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = name })
}

func (s *service) assume(id, secret, role, name string) aws.Credentials {
	s.t.Helper()
	c, err := s.roles(id, secret, role, name).Retrieve(s.t.Context())
	must(s.t, err)
	return c
}

func (s *service) lists(c aws.Credentials) error {
	_, err := gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(s.url()), RetryMaxAttempts: 1,
		Credentials: credentials.StaticCredentialsProvider{Value: c}}).ListFleets(s.t.Context(), &gamelift.ListFleetsInput{})
	return err
}

// Temporary credentials work at the doors of all kinds of clients, and end at all of them with one command.
func TestTemporaryCredentials(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("admin")
	s.start()
	c := s.assume(id, secret, "readonly", "report")
	must(t, s.lists(c))

	get := func(path, authorization string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+path, nil)
		must(t, err)
		if authorization == "basic" {
			r.SetBasicAuth(c.AccessKeyID, c.SecretAccessKey+"."+c.SessionToken)
		} else {
			r.Header.Set("Authorization", "Bearer "+c.AccessKeyID+"."+c.SecretAccessKey+"."+c.SessionToken)
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	stream := func() (*http.Response, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"/session/v1/events", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+c.AccessKeyID+"."+c.SecretAccessKey+"."+c.SessionToken)
		r.Header.Set("X-Client-Id", "report")
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		return answer, cancel
	}
	if got := get("/metrics", "basic"); got != http.StatusOK {
		t.Errorf("/metrics: %d", got)
	}
	operator := s.assume(id, secret, "admin", "ops")
	out, err := s.remoteAs(operator, "keys", "list")
	if err != nil || !strings.Contains(out, id) {
		t.Errorf("muster keys list with temporary credentials: %v, %s", err, out)
	}
	player := s.assume(id, secret, "client", "player-1")
	c, report := player, c
	events, cancel := stream()
	defer cancel()
	defer events.Body.Close()
	if events.StatusCode != http.StatusOK {
		t.Fatalf("event stream: %s", events.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		for {
			if _, err := events.Body.Read(buffer); err != nil {
				return
			}
		}
	}()

	s.command("keys", "revoke-credentials", "--data", s.data, "--session", player.AccessKeyID)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the stream of revoked credentials goes on")
	}
	refused(t, "the revoked session", s.lists(player), "UnrecognizedClientException")
	must(t, s.lists(report))
	s.command("keys", "revoke-credentials", "--data", s.data, "--holder", id)
	refused(t, "all sessions of the key", s.lists(report), "UnrecognizedClientException")
	later := s.assume(id, secret, "readonly", "later")
	must(t, s.lists(later))

	s.kill()
	s.start()
	refused(t, "a revoked session after a crash", s.lists(report), "UnrecognizedClientException")
	must(t, s.lists(later))

	entries, err := s.remote(id, secret, "audit", "--json")
	must(t, err)
	for _, want := range []string{`"AssumeRole"`, later.AccessKeyID, "later", `keys revoke-credentials`} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}

// remoteAs runs a command of operators over the network with temporary credentials.
func (s *service) remoteAs(c aws.Credentials, args ...string) (string, error) {
	cmd := exec.Command(musterBinary, append(args, "--server", s.url())...)
	cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID="+c.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+c.SecretAccessKey, "AWS_SESSION_TOKEN="+c.SessionToken, "HOME="+s.t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The commands that people type: assume a role for an hour, and make calls with its credentials.
func TestAssumeRoleWithAWSCLI(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("backend")
	s.start()
	call := func(env []string, args ...string) (string, error) {
		cmd := exec.Command(awsCLI(t), append([]string{"--endpoint-url", s.url(), "--region", region, "--output", "json"}, args...)...)
		cmd.Env = cleanEnvironment(append([]string{"HOME=" + t.TempDir(), "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "LC_ALL=C.UTF-8"}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	key := []string{"AWS_ACCESS_KEY_ID=" + id, "AWS_SECRET_ACCESS_KEY=" + secret}
	out, err := call(key, "sts", "assume-role", "--role-arn", "arn:aws:iam::000000000000:role/readonly", "--role-session-name", "report")
	if err != nil {
		t.Fatalf("assume-role: %v\n%s", err, out)
	}
	var assumed struct {
		Credentials struct{ AccessKeyId, SecretAccessKey, SessionToken string }
	}
	must(t, json.Unmarshal([]byte(out), &assumed))
	held := []string{"AWS_ACCESS_KEY_ID=" + assumed.Credentials.AccessKeyId, "AWS_SECRET_ACCESS_KEY=" + assumed.Credentials.SecretAccessKey, "AWS_SESSION_TOKEN=" + assumed.Credentials.SessionToken}
	for _, c := range []struct{ args, want string }{
		{"sts get-caller-identity", "arn:aws:sts::000000000000:assumed-role/readonly/report"},
		{"gamelift list-fleets", "FleetIds"},
		{"cloudwatch list-metrics --namespace AWS/GameLift", "Metrics"},
		{"gamelift create-location --location-name custom-here", "(AccessDeniedException)"},
		{"sts get-session-token", "(AccessDenied)"},
	} {
		if out, _ := call(held, strings.Fields(c.args)...); !strings.Contains(out, c.want) {
			t.Errorf("aws %s: %s\nwant %s", c.args, out, c.want)
		}
	}
	if out, _ := call(key, "sts", "assume-role", "--role-arn", "arn:aws:iam::000000000000:role/admin", "--role-session-name", "more"); !strings.Contains(out, "(AccessDenied)") {
		t.Errorf("a role above its own: %s", out)
	}
	s.command("keys", "revoke", "--data", s.data, id)
	if out, _ := call(held, "gamelift", "list-fleets"); !strings.Contains(out, "(UnrecognizedClientException)") {
		t.Errorf("after the revocation of the key: %s", out)
	}
}
