package sts

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/people/providertest"
	"github.com/musterhq/muster/internal/webidentity"
)

// ci is an issuer of tokens with the rules of a studio, and a port that accepts them.
type ci struct {
	*port
	issuer *providertest.Provider
}

func newCI(t *testing.T) *ci {
	t.Helper()
	issuer := providertest.New(t)
	settings, err := json.Marshal(map[string]any{"issuers": []any{map[string]any{"name": "ci", "issuer": issuer.URL, "audiences": []string{"muster", "muster-2"}, "rules": []any{
		map[string]any{"subjects": []string{"repo:studio/game:*"}, "roles": []string{"backend", "readonly"}, "maxDuration": "30m"},
		map[string]any{"subjects": []string{"*"}, "claims": map[string]any{"owner": []string{"studio"}, "protected": []string{"true"}}, "roles": []string{"client"}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "issuers.json")
	if err := os.WriteFile(path, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	issuers, err := webidentity.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &ci{newPortWith(t, issuers), issuer}
}

const repo = "repo:studio/game:ref:refs/heads/main"

// claims returns valid claims with changes. A nil value omits a claim.
func (c *ci) claims(changes map[string]any) map[string]any {
	now := time.Now().Unix()
	all := map[string]any{"iss": c.issuer.URL, "sub": repo, "aud": "muster", "iat": now, "nbf": now, "exp": now + 600}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func (c *ci) token(changes map[string]any) string { return c.issuer.Signed(c.claims(changes)) }

func (c *ci) client() *sts.Client {
	return sts.New(sts.Options{BaseEndpoint: &c.url, Region: "eu-central-1", RetryMaxAttempts: 1})
}

func (c *ci) exchange(token, role string) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return c.client().AssumeRoleWithWebIdentity(c.t.Context(), &sts.AssumeRoleWithWebIdentityInput{RoleArn: new(arnOf(role)), RoleSessionName: new("deploy-1"), WebIdentityToken: &token})
}

func TestWebIdentity(t *testing.T) {
	c := newCI(t)
	out, err := c.exchange(c.token(nil), "backend")
	if err != nil {
		t.Fatal(err)
	}
	if *out.SubjectFromWebIdentityToken != repo || *out.Audience != "muster" || *out.Provider != c.issuer.URL || *out.AssumedRoleUser.Arn != "arn:aws:sts::000000000000:assumed-role/backend/deploy-1" {
		t.Errorf("subject %s, audience %s, provider %s, user %s", *out.SubjectFromWebIdentityToken, *out.Audience, *out.Provider, *out.AssumedRoleUser.Arn)
	}
	if left := time.Until(*out.Credentials.Expiration); left > 30*time.Minute || left < 29*time.Minute {
		t.Errorf("valid for %v, want the 30 minutes of the rule", left)
	}
	list := func() error {
		_, err := c.games(out.Credentials).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err
	}
	c.is("a call", list(), "")
	if arn, _ := c.identity(c.holding(out.Credentials)); arn != *out.AssumedRoleUser.Arn {
		t.Errorf("it is %s, want %s", arn, *out.AssumedRoleUser.Arn)
	}
	_, err = c.holding(out.Credentials).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: new(arnOf("readonly")), RoleSessionName: new("more")})
	c.is("another role without a token", err, "AccessDenied")

	second, err := c.exchange(c.token(map[string]any{"aud": []string{"other", "muster-2"}}), "readonly")
	if err != nil || *second.Audience != "muster-2" {
		t.Errorf("one of several audiences: %v", err)
	}
	c.keys.Revoke([]access.Revocation{{Holder: "ci/" + repo, IssuedUntil: domain.TimeOf(time.Now()), Until: domain.TimeOf(time.Now().Add(time.Hour))}})
	c.is("after the revocation of the holder", list(), "UnrecognizedClientException")
}

// This tests the SDK's provider that profiles with web_identity_token_file use.
func TestWebIdentityProvider(t *testing.T) {
	c := newCI(t)
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(c.token(nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := stscreds.NewWebIdentityRoleProvider(c.client(), arnOf("backend"), stscreds.IdentityTokenFile(path)).Retrieve(t.Context())
	if err != nil || !got.CanExpire || got.SessionToken == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAttackWebIdentityTokens(t *testing.T) {
	c := newCI(t)
	other := providertest.New(t)
	now := time.Now().Unix()
	der, err := x509.MarshalPKIXPublicKey(c.issuer.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := strings.Split(c.token(nil), ".")
	for what, x := range map[string]struct{ token, want string }{
		"good":                           {c.token(nil), ""},
		"alg none":                       {"eyJhbGciOiJub25lIiwia2lkIjoiazEifQ." + good[1] + ".", "InvalidIdentityToken"},
		"HS256 with the public key":      {c.issuer.SignedAs(jose.HS256, public, "k1", c.claims(nil)), "InvalidIdentityToken"},
		"another key by the same id":     {other.Signed(c.claims(nil)), "InvalidIdentityToken"},
		"no signature":                   {good[0] + "." + good[1] + ".", "InvalidIdentityToken"},
		"another's claims":               {good[0] + "." + strings.Split(c.token(map[string]any{"sub": "repo:studio/game:x"}), ".")[1] + "." + good[2], "InvalidIdentityToken"},
		"no token":                       {"none", "InvalidIdentityToken"},
		"too large":                      {strings.Repeat("x", webidentity.TokenBytesMax+1), "ValidationError"},
		"an unknown issuer":              {other.Signed(c.claims(map[string]any{"iss": other.URL})), "InvalidIdentityToken"},
		"an issuer with a slash":         {c.token(map[string]any{"iss": c.issuer.URL + "/"}), "InvalidIdentityToken"},
		"no issuer":                      {c.token(map[string]any{"iss": nil}), "InvalidIdentityToken"},
		"an issuer that is a list":       {c.token(map[string]any{"iss": []string{c.issuer.URL}}), "InvalidIdentityToken"},
		"another audience":               {c.token(map[string]any{"aud": "sts.amazonaws.com"}), "InvalidIdentityToken"},
		"an audience that begins so":     {c.token(map[string]any{"aud": "muster-3"}), "InvalidIdentityToken"},
		"no audience":                    {c.token(map[string]any{"aud": nil}), "InvalidIdentityToken"},
		"expired":                        {c.token(map[string]any{"exp": now - 3600}), "ExpiredTokenException"},
		"no end":                         {c.token(map[string]any{"exp": nil}), "InvalidIdentityToken"},
		"an end that is a text":          {c.token(map[string]any{"exp": "9999999999"}), "InvalidIdentityToken"},
		"an end beyond all":              {c.token(map[string]any{"exp": 1e300}), "InvalidIdentityToken"},
		"not yet valid":                  {c.token(map[string]any{"nbf": now + 3600}), "IDPRejectedClaim"},
		"issued in the future":           {c.token(map[string]any{"iat": now + 3600}), "IDPRejectedClaim"},
		"no time of issue":               {c.token(map[string]any{"iat": nil}), "InvalidIdentityToken"},
		"no subject":                     {c.token(map[string]any{"sub": nil}), "InvalidIdentityToken"},
		"a subject that is a list":       {c.token(map[string]any{"sub": []string{repo}}), "InvalidIdentityToken"},
		"a subject that is too long":     {c.token(map[string]any{"sub": "repo:studio/game:" + strings.Repeat("x", 256)}), "IDPRejectedClaim"},
		"a subject of two lines":         {c.token(map[string]any{"sub": "repo:studio/game:x\nadmin"}), "IDPRejectedClaim"},
		"a name that begins so":          {c.token(map[string]any{"sub": "repo:studio/game-evil:ref:refs/heads/main"}), "AccessDenied"},
		"a name that ends so":            {c.token(map[string]any{"sub": "repo:evil/x:repo:studio/game:main"}), "AccessDenied"},
		"other letters":                  {c.token(map[string]any{"sub": "repo:Studio/game:main"}), "AccessDenied"},
		"the pattern's own star, before": {c.token(map[string]any{"sub": "repo:*/game:main"}), "AccessDenied"},
	} {
		_, err := c.exchange(x.token, "backend")
		c.is(what, err, x.want)
	}
	// Other claims decide in addition to the subject, and a rule gives only its own roles.
	for what, x := range map[string]struct {
		changes    map[string]any
		role, want string
	}{
		"the claims":               {map[string]any{"sub": "other", "owner": "studio", "protected": true}, "client", ""},
		"one claim of two":         {map[string]any{"sub": "other", "owner": "studio"}, "client", "AccessDenied"},
		"another value":            {map[string]any{"sub": "other", "owner": "studio-evil", "protected": true}, "client", "AccessDenied"},
		"a claim that is a list":   {map[string]any{"sub": "other", "owner": []string{"studio"}, "protected": true}, "client", "AccessDenied"},
		"a role of another rule":   {map[string]any{"sub": "other", "owner": "studio", "protected": true}, "backend", "AccessDenied"},
		"a role above its own":     {nil, "admin", "AccessDenied"},
		"a role that nobody has":   {nil, "owner", "AccessDenied"},
		"a role below, not given":  {nil, "client", "AccessDenied"},
		"a role that its rule has": {nil, "readonly", ""},
	} {
		_, err := c.exchange(c.token(x.changes), x.role)
		c.is(what, err, x.want)
	}
	if asked := c.issuer.Asked("/keys"); asked != 1 {
		t.Errorf("the issuer was asked for its keys %d times, want once", asked)
	}
}

func TestRefusedWebIdentityRequests(t *testing.T) {
	c := newCI(t)
	for what, x := range map[string]struct {
		want   string
		change func(*sts.AssumeRoleWithWebIdentityInput)
	}{
		"longer than the rule": {"ValidationError", func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = new(int32(1801)) }},
		"as long as the rule":  {"", func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = new(int32(1800)) }},
		"too short":            {"ValidationError", func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = new(int32(899)) }},
		"a bad name":           {"ValidationError", func(in *sts.AssumeRoleWithWebIdentityInput) { in.RoleSessionName = new("a/b") }},
		"a provider":           {"ValidationError", func(in *sts.AssumeRoleWithWebIdentityInput) { in.ProviderId = new("www.amazon.com") }},
		"a policy":             {"MalformedPolicyDocument", func(in *sts.AssumeRoleWithWebIdentityInput) { in.Policy = new("{}") }},
		"an empty token":       {"ValidationError", func(in *sts.AssumeRoleWithWebIdentityInput) { in.WebIdentityToken = new("") }},
	} {
		in := &sts.AssumeRoleWithWebIdentityInput{RoleArn: new(arnOf("backend")), RoleSessionName: new("deploy"), WebIdentityToken: aws.String(c.token(nil))}
		x.change(in)
		_, err := c.client().AssumeRoleWithWebIdentity(t.Context(), in)
		c.is(what, err, x.want)
	}
	post := func(body string) (int, string) {
		answer, err := http.Post(c.url, "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for body, want := range map[string]string{
		"Action=GetCallerIdentity":                           "<Code>MissingAuthenticationToken</Code>",
		"Action=AssumeRole&Action=AssumeRoleWithWebIdentity": "<Code>MissingAuthenticationToken</Code>",
		"Action=AssumeRoleWithSAML":                          "<Code>MissingAuthenticationToken</Code>",
		"%zz":                                                "<Code>MissingAuthenticationToken</Code>",
		"Action=AssumeRoleWithWebIdentity&WebIdentityToken=x": "<Code>ValidationError</Code>",
	} {
		if status, text := post(body); !strings.Contains(text, want) || status < 400 {
			t.Errorf("%s: %d %s, want %s", body, status, text, want)
		}
	}
	if status, _ := post("Action=AssumeRoleWithWebIdentity&WebIdentityToken=" + strings.Repeat("x", bodyMax)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d", status)
	}
	c.private.Store(false)
	_, err := c.exchange(c.token(nil), "backend")
	c.is("an answer that others could read", err, "AccessDenied")
	none := &ci{newPort(t), c.issuer}
	_, err = none.exchange(c.token(nil), "backend")
	c.is("without issuers", err, "AccessDenied")
}

// The HTTP status decides whether SDKs retry.
func TestStatusOfTokenRefusals(t *testing.T) {
	for code, want := range map[string]int{
		codeInvalidToken: 400, codeExpiredToken: 400, codeUnreachable: 400, codeThrottling: 400, codeValidation: 400, codeRejectedClaim: 403, codeAccessDenied: 403,
	} {
		if got := (&refusal{code, ""}).status(); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

// A token of an RSA key that is too short to be safe is refused, and the log names the key.
func TestShortKeyOfAnIssuer(t *testing.T) {
	c := newCI(t)
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	c.issuer.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/keys" {
			return false
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "rsa"}}})
		return true
	}
	_, err = c.exchange(c.issuer.SignedAs(jose.RS256, key, "rsa", c.claims(nil)), "backend")
	c.is("a token of a short key", err, "InvalidIdentityToken")
	if want := `key \"rsa\" of issuer ` + c.issuer.URL + `: n has 1024 bits, want at least 2048`; !strings.Contains(c.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, c.log.String())
	}
}

// leaving is a verifier during whose work the client leaves.
type leaving struct{ leave func() }

func (l leaving) Verify(ctx context.Context, _ string) (*webidentity.Machine, error) {
	l.leave()
	<-ctx.Done()
	return nil, ctx.Err()
}

// A client that leaves before its answer is no failure of the service, for which there is an alert: strangers could raise it.
func TestClientThatLeavesIsNoFailure(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	p := newPortWith(t, leaving{leave})
	client := sts.New(sts.Options{BaseEndpoint: &p.url, Region: "eu-central-1", RetryMaxAttempts: 1})
	if _, err := client.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: new(arnOf("backend")), RoleSessionName: new("deploy"), WebIdentityToken: new("token")}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.server.Close() // waits for the request
	const want = `# HELP muster_calls_total Calls that were answered. refused: the request cannot be granted; throttled: too much at a time; failed: the service could not do its work.
# TYPE muster_calls_total counter
muster_calls_total{door="sts",operation="AssumeRoleWithWebIdentity",outcome="failed"} 0
muster_calls_total{door="sts",operation="AssumeRoleWithWebIdentity",outcome="ok"} 0
muster_calls_total{door="sts",operation="AssumeRoleWithWebIdentity",outcome="refused"} 1
muster_calls_total{door="sts",operation="AssumeRoleWithWebIdentity",outcome="throttled"} 0
`
	if err := testutil.CollectAndCompare(p.calls, strings.NewReader(want), "muster_calls_total"); err != nil {
		t.Error(err)
	}
	if p.log.Len() > 0 {
		t.Errorf("the log has %s", p.log.String())
	}
}

// A flood of tokens with invented key ids costs the issuer one request, and the client is rate limited.
func TestAttackWebIdentityFlood(t *testing.T) {
	c := newCI(t)
	c.issuer.Down(true)
	_, err := c.exchange(c.token(nil), "backend")
	c.is("while the issuer is down", err, "IDPCommunicationError")
	_, err = c.exchange(c.token(nil), "backend")
	c.is("and again, although nobody asks", err, "IDPCommunicationError")

	c = newCI(t)
	made := c.issuer.SignedAs(jose.HS256, []byte(strings.Repeat("k", 32)), "k1", c.claims(nil))
	refused := map[string]int{}
	for i := range 400 {
		token := made
		if i%2 == 0 {
			token = c.token(nil)
			head := `{"alg":"ES256","kid":"made up ` + string(rune('a'+i%26)) + `"}`
			token = base64.RawURLEncoding.EncodeToString([]byte(head)) + token[strings.Index(token, "."):]
		}
		_, err := c.exchange(token, "backend")
		refused[code(err)]++
	}
	if refused["InvalidIdentityToken"] == 0 || refused["Throttling"] == 0 || refused["InvalidIdentityToken"]+refused["Throttling"] != 400 {
		t.Errorf("answers: %v, want some of each", refused)
	}
	if asked := c.issuer.Asked("/keys"); asked != 1 {
		t.Errorf("the issuer was asked %d times, want once", asked)
	}
}

// Every issue is in the audit log under the name of the machine, also for the role client.
func TestIssuesToMachinesAreRecorded(t *testing.T) {
	c := newCI(t)
	for role, changes := range map[string]map[string]any{"backend": nil, "client": {"sub": "other", "owner": "studio", "protected": true}} {
		before, err := c.engine.AuditHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.exchange(c.token(changes), role); err != nil {
			t.Fatal(err)
		}
		if after, err := c.engine.AuditHead(t.Context()); err != nil || after.No != before.No+1 {
			t.Errorf("%s: %d entries, %v; want 1", role, after.No-before.No, err)
		}
	}
}

// Policies of the role apply to machines that have it.
func TestPoliciesOfMachines(t *testing.T) {
	c := newCI(t)
	if err := c.keys.PublishPolicies([]access.Policy{{Name: "no-lists", Text: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"gamelift:ListFleets","Resource":"*"}]}`}},
		[]access.PolicyAttachment{{Policy: "no-lists", Target: access.Target{Kind: access.RoleTarget, Name: identity.Backend.String()}}}); err != nil {
		t.Fatal(err)
	}
	out, err := c.exchange(c.token(nil), "backend")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.games(out.Credentials).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
	c.is("what the role may not", err, "AccessDeniedException")
}
