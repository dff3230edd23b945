package sts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	api "github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// port is a service with the API and STS at one port, an access key for each role, and a clock for temporary credentials that the test moves.
type port struct {
	t       *testing.T
	url     string
	server  *httptest.Server
	engine  *engine.Engine
	keys    *identity.Keys
	calls   *callstats.Calls
	log     bytes.Buffer
	later   atomic.Int64 // seconds
	private atomic.Bool
}

func newPort(t *testing.T) *port { return newPortWith(t, nil) }

// newPortWith returns a port at which machines get credentials with tokens.
func newPortWith(t *testing.T, machines Verifier) *port {
	t.Helper()
	return newPortOf(t, machines, nil)
}

// newPortOf returns a port at which machines get credentials with tokens and certificates.
func newPortOf(t *testing.T, machines Verifier, certificates CertificateVerifier) *port {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &port{t: t, calls: callstats.New(), engine: enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig()})}
	p.private.Store(true)
	p.keys = identity.NewKeys(secret, func() time.Time { return time.Now().Add(time.Duration(p.later.Load()) * time.Second) })
	var all []access.Key
	for _, role := range []access.Role{access.Admin, access.Backend, access.Client, access.ReadOnly} {
		all = append(all, access.Key{ID: keyOf(role), Role: role, Account: identity.DefaultAccount})
	}
	p.keys.Publish(all)
	service, err := api.NewService(p.engine, secret, "http://127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	handler := api.NewHandler(service, api.Config{Keys: p.keys, Log: log})
	signins := signin.New(signin.Config{Log: log})
	door := NewDoor(Config{Keys: p.keys, Engine: p.engine, Signed: handler.Signed, Unsigned: handler.Unsigned, Machines: func() Verifier { return machines }, Certificates: func() CertificateVerifier { return certificates },
		Signins: signins.Door("web_identity"), CertificateSignins: signins.Door("client_certificate"), Calls: p.calls, Log: log,
		Private: func(*http.Request) bool { return p.private.Load() }})
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Serves(r) {
			door.ServeHTTP(w, r)
			return
		}
		if ServesCertificates(r) {
			door.CreateSession(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.url = p.server.URL
	return p
}

func keyOf(role access.Role) string { return "MUST" + strings.ToUpper(role.String()) + "0000000000" }

// as returns a client of STS with the access key of a role.
func (p *port) as(role access.Role) *sts.Client {
	key, _ := p.keys.Find(keyOf(role))
	return p.with(key.ID, key.Secret, "")
}

func (p *port) with(id, secret, token string) *sts.Client {
	return sts.New(sts.Options{BaseEndpoint: &p.url, Region: "eu-central-1", RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(id, secret, token)})
}

func (p *port) holding(c *types.Credentials) *sts.Client {
	return p.with(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
}

func (p *port) games(c *types.Credentials) *gamelift.Client {
	return gamelift.New(gamelift.Options{BaseEndpoint: &p.url, Region: "eu-central-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)})
}

func (p *port) assume(client *sts.Client, role, name string) *sts.AssumeRoleOutput {
	p.t.Helper()
	out, err := client.AssumeRole(p.t.Context(), &sts.AssumeRoleInput{RoleArn: new(arnOf(role)), RoleSessionName: &name})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func arnOf(role string) string { return "arn:aws:iam::000000000000:role/" + role }

// code returns the code of an API error, empty for success.
func code(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (p *port) is(what string, err error, want string) {
	p.t.Helper()
	if got := code(err); got != want {
		p.t.Errorf("%s: %q (%v), want %q", what, got, err, want)
	}
}

func (p *port) identity(client *sts.Client) (arn, user string) {
	p.t.Helper()
	out, err := client.GetCallerIdentity(p.t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	return *out.Arn, *out.UserId
}

func TestWhoIsAsking(t *testing.T) {
	p := newPort(t)
	arn, user := p.identity(p.as(access.Backend))
	if want := keyOf(access.Backend); user != want || arn != "arn:aws:iam::000000000000:user/backend/"+want {
		t.Errorf("an access key is %s, %s", arn, user)
	}
	token, err := p.as(access.Backend).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := p.identity(p.holding(token.Credentials)); again != arn {
		t.Errorf("with a session token it is %s, want %s", again, arn)
	}
	assumed := p.assume(p.as(access.Backend), "readonly", "report@studio")
	arn, user = p.identity(p.holding(assumed.Credentials))
	if arn != "arn:aws:sts::000000000000:assumed-role/readonly/report@studio" || arn != *assumed.AssumedRoleUser.Arn || user != *assumed.AssumedRoleUser.AssumedRoleId {
		t.Errorf("a role is %s, %s; AssumeRole said %s, %s", arn, user, *assumed.AssumedRoleUser.Arn, *assumed.AssumedRoleUser.AssumedRoleId)
	}
	info, err := p.as(access.ReadOnly).GetAccessKeyInfo(t.Context(), &sts.GetAccessKeyInfoInput{AccessKeyId: token.Credentials.AccessKeyId})
	if err != nil || *info.Account != identity.DefaultAccount {
		t.Errorf("GetAccessKeyInfo: %v, %v", info, err)
	}
}

// The role of a call is that of its credentials, not that of the key which issued them.
func TestRoleOfTemporaryCredentials(t *testing.T) {
	p := newPort(t)
	name := "custom-here"
	create := func(role string) error {
		_, err := p.games(p.assume(p.as(access.Admin), role, "deploy").Credentials).CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &name})
		return err
	}
	p.is("readonly", create("readonly"), "AccessDeniedException")
	p.is("backend", create("backend"), "AccessDeniedException")
	p.is("admin", create("admin"), "")
}

func TestTemporaryCredentialsEnd(t *testing.T) {
	p := newPort(t)
	list := func(c *types.Credentials) error {
		_, err := p.games(c).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err
	}
	seconds := int32(900)
	short, err := p.as(access.Backend).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{DurationSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*short.Credentials.Expiration); left > 15*time.Minute || left < 10*time.Minute {
		t.Errorf("it is valid for %v, want 15 minutes", left)
	}
	hour, revoked, chained := p.assume(p.as(access.Backend), "readonly", "one"), p.assume(p.as(access.Admin), "readonly", "two"), p.assume(p.as(access.Backend), "backend", "outer")
	inner := p.assume(p.holding(chained.Credentials), "readonly", "inner")
	for what, c := range map[string]*types.Credentials{"short": short.Credentials, "hour": hour.Credentials, "revoked": revoked.Credentials, "inner": inner.Credentials} {
		p.is(what+" at first", list(c), "")
	}
	p.later.Store(901)
	p.is("a call that was under way at its end", list(short.Credentials), "")
	p.later.Store(931)
	p.is("after its end", list(short.Credentials), "ExpiredTokenException")
	_, err = p.holding(short.Credentials).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	p.is("STS after its end", err, "ExpiredToken")
	p.is("the others then", list(hour.Credentials), "")

	p.keys.Revoke([]access.Revocation{{Session: *revoked.Credentials.AccessKeyId, Until: domain.TimeOf(time.Now().Add(time.Hour))}})
	p.is("a revoked session", list(revoked.Credentials), "UnrecognizedClientException")
	p.is("the others after the revocation", list(hour.Credentials), "")
	p.keys.Publish([]access.Key{{ID: keyOf(access.Admin), Role: access.Admin, Account: identity.DefaultAccount}})
	p.is("after the revocation of the key", list(hour.Credentials), "UnrecognizedClientException")
	p.is("assumed with a role of that key", list(inner.Credentials), "UnrecognizedClientException")
}

// A role that a person assumes is valid as long as the sign-in.
func TestRoleOfAPerson(t *testing.T) {
	p := newPort(t)
	p.keys.PublishSignIns(map[string]identity.SignIn{"one": {Roles: access.Roles(access.Admin)}})
	c := p.keys.Issue(identity.Session{Source: identity.FromPerson, Holder: "studio/ann", Name: "ann", Role: access.Admin, Account: identity.DefaultAccount, SignIn: "one"}, time.Hour)
	lower := p.assume(p.with(c.ID, c.Secret, c.Token), "readonly", "report").Credentials
	list := func() error {
		_, err := p.games(lower).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err
	}
	p.is("during the sign-in", list(), "")
	p.keys.PublishSignIns(nil)
	p.is("after its end", list(), "UnrecognizedClientException")
}

func TestAttackForgedCredentials(t *testing.T) {
	p, other := newPort(t), newPort(t)
	mine, foreign := p.assume(p.as(access.Admin), "admin", "mine").Credentials, other.assume(other.as(access.Admin), "admin", "mine").Credentials
	key, _ := p.keys.Find(keyOf(access.Admin))
	tampered := []byte(*mine.SessionToken)
	tampered[len(tampered)/2] ^= 1
	for _, c := range []struct{ what, id, secret, token, want string }{
		{"another cell's", *foreign.AccessKeyId, *foreign.SecretAccessKey, *foreign.SessionToken, "InvalidClientTokenId"},
		{"tampered token", *mine.AccessKeyId, *mine.SecretAccessKey, string(tampered), "InvalidClientTokenId"},
		{"no token", *mine.AccessKeyId, *mine.SecretAccessKey, "", "InvalidClientTokenId"},
		{"token with an access key", key.ID, key.Secret, *mine.SessionToken, "InvalidClientTokenId"},
		{"wrong secret", *mine.AccessKeyId, key.Secret, *mine.SessionToken, "SignatureDoesNotMatch"},
		{"wrong secret of a key", key.ID, *mine.SecretAccessKey, "", "SignatureDoesNotMatch"},
	} {
		_, err := p.with(c.id, c.secret, c.token).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		p.is(c.what, err, c.want)
	}
}

func TestRefusedRequests(t *testing.T) {
	p := newPort(t)
	assume := func(role access.Role, change func(*sts.AssumeRoleInput)) error {
		in := &sts.AssumeRoleInput{RoleArn: new(arnOf("backend")), RoleSessionName: new("deploy")}
		change(in)
		_, err := p.as(role).AssumeRole(t.Context(), in)
		return err
	}
	for what, c := range map[string]struct {
		role   access.Role
		want   string
		change func(*sts.AssumeRoleInput)
	}{
		"a role above its own": {access.Backend, "AccessDenied", func(in *sts.AssumeRoleInput) { in.RoleArn = new(arnOf("admin")) }},
		"readonly as backend":  {access.ReadOnly, "AccessDenied", func(*sts.AssumeRoleInput) {}},
		"client as client":     {access.Client, "AccessDenied", func(in *sts.AssumeRoleInput) { in.RoleArn = new(arnOf("client")) }},
		"unknown role":         {access.Admin, "AccessDenied", func(in *sts.AssumeRoleInput) { in.RoleArn = new(arnOf("owner")) }},
		"another account":      {access.Admin, "AccessDenied", func(in *sts.AssumeRoleInput) { in.RoleArn = new("arn:aws:iam::111111111111:role/backend") }},
		"short ARN":            {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.RoleArn = new("backend") }},
		"short name":           {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.RoleSessionName = new("x") }},
		"bad name":             {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.RoleSessionName = new("a/b") }},
		"too short":            {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.DurationSeconds = new(int32(899)) }},
		"too long":             {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.DurationSeconds = new(int32(43201)) }},
		"policy":               {access.Admin, "MalformedPolicyDocument", func(in *sts.AssumeRoleInput) { in.Policy = new("{}") }},
		"source identity":      {access.Admin, "ValidationError", func(in *sts.AssumeRoleInput) { in.SourceIdentity = new("ann") }},
		"MFA":                  {access.Admin, "AccessDenied", func(in *sts.AssumeRoleInput) { in.TokenCode = new("123456") }},
	} {
		p.is(what, assume(c.role, c.change), c.want)
	}
	chained := p.holding(p.assume(p.as(access.Admin), "admin", "outer").Credentials)
	_, err := chained.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: new(arnOf("backend")), RoleSessionName: new("inner"), DurationSeconds: new(int32(3601))})
	p.is("chained for more than an hour", err, "ValidationError")
	_, err = chained.GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	p.is("GetSessionToken with a role", err, "AccessDenied")
	_, err = p.as(access.Client).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	p.is("GetSessionToken of a client key", err, "AccessDenied")
	_, err = p.as(access.Admin).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{DurationSeconds: new(int32(129601))})
	p.is("GetSessionToken for too long", err, "ValidationError")
	_, err = p.as(access.Admin).GetFederationToken(t.Context(), &sts.GetFederationTokenInput{Name: new("ann")})
	p.is("GetFederationToken", err, "InvalidAction")
	_, err = p.as(access.Admin).GetAccessKeyInfo(t.Context(), &sts.GetAccessKeyInfoInput{AccessKeyId: new("short")})
	p.is("GetAccessKeyInfo", err, "ValidationError")
	p.private.Store(false)
	p.is("an answer that others could read", assume(access.Admin, func(*sts.AssumeRoleInput) {}), "AccessDenied")
}

// GetSessionToken gives no role, so a policy that allows a role does not allow it, even if the request names that role.
func TestAttackSessionTokenThatNamesARole(t *testing.T) {
	p := newPort(t)
	if err := p.keys.PublishPolicies([]access.Policy{{Name: "look", Text: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:*","Resource":"` + arnOf("readonly") + `"}}`}},
		[]access.PolicyAttachment{{Policy: "look", Target: access.Target{Kind: access.KeyTarget, Name: keyOf(access.Admin)}}}); err != nil {
		t.Fatal(err)
	}
	key, _ := p.keys.Find(keyOf(access.Admin))
	for action, want := range map[string]int{"AssumeRole": http.StatusOK, "GetSessionToken": http.StatusForbidden} {
		form := url.Values{"Action": {action}, "Version": {"2011-06-15"}, "RoleArn": {arnOf("readonly")}, "RoleSessionName": {"look"}}.Encode()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", formType)
		sum := sha256.Sum256([]byte(form))
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret}, r, hex.EncodeToString(sum[:]), signedFor, "eu-central-1", time.Now()); err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", action, answer.Status, want)
		}
	}
}

// Each issue of credentials is in the audit log, except for credentials of players.
func TestIssuesAreRecorded(t *testing.T) {
	p := newPort(t)
	for _, c := range []struct {
		role string
		want uint64
	}{{"admin", 1}, {"client", 0}, {"readonly", 1}} {
		before, err := p.engine.AuditHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.assume(p.as(access.Admin), c.role, "ann")
		after, err := p.engine.AuditHead(t.Context())
		if err != nil || after.No-before.No != c.want {
			t.Errorf("%s: %d entries, %v; want %d", c.role, after.No-before.No, err, c.want)
		}
	}
}

// This tests the SDK's provider that profiles with role_arn use.
func TestAssumeRoleProvider(t *testing.T) {
	p := newPort(t)
	c, err := stscreds.NewAssumeRoleProvider(p.as(access.Admin), arnOf("backend")).Retrieve(t.Context())
	if err != nil || !c.CanExpire || c.SessionToken == "" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefuseBeforeTheOperations(t *testing.T) {
	w := httptest.NewRecorder()
	Refuse(w, "not this way")
	if body := w.Body.String(); w.Code != http.StatusForbidden || w.Header().Get("Content-Type") != "text/xml" || !strings.Contains(body, "<Code>AccessDenied</Code>") || !strings.Contains(body, "not this way") {
		t.Errorf("%d %v %s", w.Code, w.Header(), body)
	}
}
