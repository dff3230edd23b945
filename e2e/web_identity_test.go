package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/musterhq/muster/internal/people/providertest"
)

// A machine with a token in a file and no secret uses the AWS CLI and the SDKs for Go and JavaScript. One command ends all of that.
func TestWebIdentityOfMachines(t *testing.T) {
	t.Parallel()
	issuer := providertest.New(t)
	directory := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(directory, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	settings, err := json.Marshal(map[string]any{"issuers": []any{map[string]any{"name": "k8s", "issuer": issuer.URL, "audiences": []string{"muster"},
		"rules": []any{map[string]any{"subjects": []string{"system:serviceaccount:games:*"}, "roles": []string{"backend"}}}}}})
	must(t, err)
	s := newService(t, "--dev=false", "--web-identities", write("issuers.json", settings))
	id, secret := s.key("admin")
	s.start()

	const subject, role = "system:serviceaccount:games:director", "arn:aws:iam::000000000000:role/backend"
	now := time.Now().Unix()
	token := func(subject string) string {
		return issuer.Signed(map[string]any{"iss": issuer.URL, "aud": []string{"muster"}, "sub": subject, "iat": now, "exp": now + 3600})
	}
	tokenFile := write("token", []byte(token(subject)))
	cli := func(env []string, args ...string) string {
		cmd := exec.Command(awsCLI(t), append([]string{"--endpoint-url", s.url(), "--region", region, "--output", "json"}, args...)...)
		cmd.Env = cleanEnvironment(append([]string{"HOME=" + t.TempDir(), "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "LC_ALL=C.UTF-8"}, env...)...)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	exchange := func(token, role string) string {
		return cli(nil, "sts", "assume-role-with-web-identity", "--role-arn", role, "--role-session-name", "director", "--web-identity-token", token)
	}
	var got struct {
		Credentials                                     struct{ AccessKeyId, SecretAccessKey, SessionToken string }
		SubjectFromWebIdentityToken, Provider, Audience string
	}
	out := exchange("file://"+tokenFile, role)
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.SubjectFromWebIdentityToken != subject || got.Provider != issuer.URL || got.Audience != "muster" {
		t.Fatalf("assume-role-with-web-identity: %s", out)
	}
	held := []string{"AWS_ACCESS_KEY_ID=" + got.Credentials.AccessKeyId, "AWS_SECRET_ACCESS_KEY=" + got.Credentials.SecretAccessKey, "AWS_SESSION_TOKEN=" + got.Credentials.SessionToken}
	if out := cli(held, "gamelift", "list-fleets"); !strings.Contains(out, "FleetIds") {
		t.Errorf("list-fleets: %s", out)
	}
	if out := cli(held, "sts", "get-caller-identity"); !strings.Contains(out, "assumed-role/backend/director") {
		t.Errorf("get-caller-identity: %s", out)
	}
	for _, c := range []struct{ token, role, want string }{
		{token("system:serviceaccount:games-evil:director"), role, "(AccessDenied)"},
		{token(subject), "arn:aws:iam::000000000000:role/admin", "(AccessDenied)"},
		{token(subject) + "x", role, "(InvalidIdentityToken)"},
		{issuer.Signed(map[string]any{"iss": issuer.URL, "aud": "muster", "sub": subject, "iat": now - 7200, "exp": now - 3600}), role, "(ExpiredTokenException)"},
	} {
		if out := exchange(c.token, c.role); !strings.Contains(out, c.want) {
			t.Errorf("%s\nwant %s", out, c.want)
		}
	}

	sdk, err := stscreds.NewWebIdentityRoleProvider(sts.New(sts.Options{Region: region, BaseEndpoint: aws.String(s.url())}), role, stscreds.IdentityTokenFile(tokenFile),
		func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = "sdk-go" }).Retrieve(t.Context())
	must(t, err)
	must(t, s.lists(sdk))

	js := exec.Command("node", "signin.js")
	js.Dir = "js"
	js.Env = cleanEnvironment("HOME="+t.TempDir(), "AWS_REGION="+region, "AWS_ENDPOINT_URL="+s.url(), "AWS_WEB_IDENTITY_TOKEN_FILE="+tokenFile, "AWS_ROLE_ARN="+role, "AWS_ROLE_SESSION_NAME=sdk-js")
	if out, err := js.CombinedOutput(); err != nil || !strings.Contains(string(out), "assumed-role/backend/sdk-js") {
		t.Errorf("the SDK for JavaScript: %v\n%s", err, out)
	}

	s.command("keys", "revoke-credentials", "--data", s.data, "--holder", "k8s/"+subject)
	refused(t, "after the revocation of the holder", s.lists(sdk), "UnrecognizedClientException")
	if out := cli(held, "gamelift", "list-fleets"); !strings.Contains(out, "(UnrecognizedClientException)") {
		t.Errorf("the CLI after the revocation: %s", out)
	}
	entries, err := s.remote(id, secret, "audit", "--json")
	must(t, err)
	for _, want := range []string{`"AssumeRoleWithWebIdentity"`, "k8s/" + subject, sdk.AccessKeyID} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}
