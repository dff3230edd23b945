package sts

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
)

// signer is a certificate authority for a test.
type signer struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	self *x509.Certificate
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{t: t, key: newKey(t)}
	s.self = s.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, s.key.Public(), nil)
	return s
}

// sign signs a certificate with these fields. Missing ones are those of a valid certificate.
func (s *signer) sign(x *x509.Certificate, key crypto.PublicKey, by *signer) *x509.Certificate {
	s.t.Helper()
	if x.SerialNumber == nil {
		x.SerialNumber, _ = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	}
	if x.NotAfter.IsZero() {
		x.NotBefore, x.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	if !x.IsCA && x.ExtKeyUsage == nil {
		x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	parent := x
	if by != nil {
		parent = by.self
	}
	signing := s.key
	if by != nil {
		signing = by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, x, parent, key, signing)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// certified is a port that accepts certificates of one authority by their common names, and of a second one by their DNS names.
type certified struct {
	*port
	studio, hosts *signer
}

func newCertified(t *testing.T) *certified {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := &certified{studio: newSigner(t), hosts: newSigner(t)}
	ca := func(name string, s *signer) string {
		return write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.self.Raw}))
	}
	settings, err := json.Marshal(map[string]any{"hosts": []string{"127.0.0.1"}, "authorities": []any{
		map[string]any{"name": "studio", "caFile": ca("studio.pem", c.studio), "rules": []any{
			map[string]any{"subjects": []string{"lobby-*"}, "roles": []string{"backend", "readonly"}, "maxDuration": "30m", "groups": []string{"lobbies"}},
			map[string]any{"subjects": []string{"*"}, "attributes": map[string]any{"OU": []string{"ops"}}, "roles": []string{"admin"}},
		}},
		map[string]any{"name": "hosts", "subject": "dns", "caFile": ca("hosts.pem", c.hosts), "rules": []any{map[string]any{"subjects": []string{"*.backend.example.com"}, "roles": []string{"backend"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := clientcert.Open(write("certificates.json", settings), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.port = newPortOf(t, nil, authorities)
	return c
}

// attempt is one exchange, parts of which a test may change.
type attempt struct {
	anchor, role, name string
	chain              []*x509.Certificate
	key                crypto.Signer
	at                 time.Time
	duration           int
	body               any // in place of the good one

	afterwards func(r *http.Request) // changes the signed request
	before     func(r *http.Request) // changes it before that
}

const anywhere = "arn:aws:rolesanywhere:us-east-1:000000000000:"

func (c *certified) exchange(a attempt) (*types.Credentials, int, string) {
	c.t.Helper()
	if a.body == nil {
		a.body = map[string]any{"trustAnchorArn": anywhere + "trust-anchor/" + a.anchor, "profileArn": anywhere + "profile/any", "roleArn": arnOf(a.role), "roleSessionName": a.name, "durationSeconds": a.duration}
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+clientcert.Path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if a.before != nil {
		a.before(r)
	}
	if a.at.IsZero() {
		a.at = time.Now()
	}
	if err := clientcert.Sign(r, body, a.key, a.chain, "us-east-1", a.at); err != nil {
		c.t.Fatal(err)
	}
	if a.afterwards != nil {
		a.afterwards(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusCreated {
		return nil, answer.StatusCode, answer.Header.Get("X-Amzn-Errortype") + " " + string(text)
	}
	var made sessionMade
	if err := json.Unmarshal(text, &made); err != nil {
		c.t.Fatal(err)
	}
	x := made.CredentialSet[0].Credentials
	return &types.Credentials{AccessKeyId: &x.AccessKeyID, SecretAccessKey: &x.Secret, SessionToken: &x.SessionToken}, answer.StatusCode, x.Expiration
}

func (c *certified) lobby(key crypto.Signer, change func(*x509.Certificate)) attempt {
	x := &x509.Certificate{Subject: pkix.Name{CommonName: "lobby-1", OrganizationalUnit: []string{"backends"}}}
	if change != nil {
		change(x)
	}
	return attempt{anchor: "studio", role: "backend", chain: []*x509.Certificate{c.studio.sign(x, key.Public(), c.studio)}, key: key}
}

func (c *certified) good(a attempt) *types.Credentials {
	c.t.Helper()
	got, status, text := c.exchange(a)
	if got == nil {
		c.t.Fatalf("%d %s", status, text)
	}
	return got
}

func TestCertificateBecomesCredentials(t *testing.T) {
	c := newCertified(t)
	a := c.lobby(newKey(t), nil)
	held := c.good(a)
	list := func(held *types.Credentials) error {
		_, err := c.games(held).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err
	}
	c.is("a call", list(held), "")
	if arn, id := c.identity(c.holding(held)); !strings.Contains(arn, "assumed-role/backend/") || id == "" {
		t.Errorf("it is %s %s", arn, id)
	}
	_, err := c.holding(held).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: new(arnOf("readonly")), RoleSessionName: new("more")})
	c.is("another role without the certificate", err, "AccessDenied")
	_, err = c.holding(held).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	c.is("another session without the certificate", err, "AccessDenied")

	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c.good(c.lobby(rsaKey, nil))
	between := &signer{t: t, key: newKey(t)}
	between.self = c.studio.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, between.key.Public(), c.studio)
	key := newKey(t)
	c.good(attempt{anchor: "studio", role: "readonly", key: key, chain: []*x509.Certificate{between.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "lobby-2"}}, key.Public(), between), between.self}})
	c.good(attempt{anchor: "hosts", role: "backend", key: key, chain: []*x509.Certificate{c.hosts.sign(&x509.Certificate{DNSNames: []string{"a.backend.example.com"}}, key.Public(), c.hosts)}})
	c.good(attempt{anchor: "studio", role: "admin", key: key, chain: []*x509.Certificate{c.studio.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "x", OrganizationalUnit: []string{"ops"}}}, key.Public(), c.studio)}})

	// As aws_signing_helper sends it: the ARNs are in the query.
	inQuery := c.lobby(newKey(t), nil)
	inQuery.body = map[string]any{"durationSeconds": 900}
	inQuery.before = func(r *http.Request) {
		r.URL.RawQuery = url.Values{"profileArn": {anywhere + "profile/x"}, "roleArn": {arnOf("backend")}, "trustAnchorArn": {anywhere + "trust-anchor/studio"}}.Encode()
	}
	c.good(inQuery)

	// Credentials end with the certificate.
	ends := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	short := c.lobby(newKey(t), func(x *x509.Certificate) { x.NotBefore, x.NotAfter = time.Now().Add(-time.Hour), ends })
	if _, _, expires := c.exchange(short); expires > ends.UTC().Format(time.RFC3339) {
		t.Errorf("the credentials expire at %s, their certificate at %s", expires, ends.UTC().Format(time.RFC3339))
	}
}

// Policies of the role, and of the groups that the rule gives, apply to backends with a certificate.
func TestPoliciesOfCertificates(t *testing.T) {
	for _, target := range []access.Target{{Kind: access.GroupTarget, Name: "lobbies"}, {Kind: access.RoleTarget, Name: "backend"}} {
		c := newCertified(t)
		if err := c.keys.PublishPolicies([]access.Policy{{Name: "no-lists", Text: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"gamelift:ListFleets","Resource":"*"}]}`}},
			[]access.PolicyAttachment{{Policy: "no-lists", Target: target}}); err != nil {
			t.Fatal(err)
		}
		_, err := c.games(c.good(c.lobby(newKey(t), nil))).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		c.is("what a policy of "+target.String()+" denies", err, "AccessDeniedException")
	}
}

func TestRevokedCertificates(t *testing.T) {
	c := newCertified(t)
	until := domain.TimeOf(time.Now().Add(time.Hour))
	for what, name := range map[string]func(*x509.Certificate) string{
		"fingerprint": func(x *x509.Certificate) string {
			path := filepath.Join(t.TempDir(), "cert.pem")
			if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			name, expires, err := clientcert.Named(path)
			if err != nil || !expires.Equal(x.NotAfter) {
				t.Errorf("%s, %v, %v", name, expires, err)
			}
			return name
		},
		"serial": func(x *x509.Certificate) string {
			name, _, err := clientcert.Named(fmt.Sprintf("studio/00:%X", x.SerialNumber))
			if err != nil {
				t.Error(err)
			}
			return name
		},
	} {
		a, other := c.lobby(newKey(t), nil), c.lobby(newKey(t), nil)
		held, others := c.good(a), c.good(other)
		c.keys.Revoke([]access.Revocation{{Certificate: name(a.chain[0]), Until: until}})
		list := func(held *types.Credentials) error {
			_, err := c.games(held).ListFleets(t.Context(), &gamelift.ListFleetsInput{})
			return err
		}
		c.is(what+": credentials of the revoked certificate", list(held), "UnrecognizedClientException")
		c.is(what+": those of another one of the same name", list(others), "")
		if got, status, text := c.exchange(a); got != nil || status != http.StatusForbidden || strings.Contains(text, "revoked") {
			t.Errorf("%s: the revoked certificate: %d %s", what, status, text)
		}
		c.keys.Revoke(nil)
	}
}

func TestAttackClientCertificates(t *testing.T) {
	c := newCertified(t)
	key, stranger := newKey(t), newSigner(t)
	of := func(s *signer, x *x509.Certificate) []*x509.Certificate {
		return []*x509.Certificate{s.sign(x, key.Public(), s)}
	}
	named := func(cn string) *x509.Certificate { return &x509.Certificate{Subject: pkix.Name{CommonName: cn}} }
	lobby := func() attempt { return c.lobby(key, nil) }
	with := func(change func(*attempt)) attempt {
		a := lobby()
		change(&a)
		return a
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	const denied, invalid = "AccessDeniedException", "ValidationException"
	for what, x := range map[string]struct {
		attempt
		want string
	}{
		"good":                           {lobby(), ""},
		"an authority of others":         {attempt{anchor: "studio", role: "backend", key: key, chain: of(stranger, named("lobby-1"))}, denied},
		"its own authority in the chain": {attempt{anchor: "studio", role: "backend", key: key, chain: append(of(stranger, named("lobby-1")), stranger.self)}, denied},
		"another authority of ours":      {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.hosts, named("lobby-1"))}, denied},
		"signed by itself":               {attempt{anchor: "studio", role: "backend", key: stranger.key, chain: []*x509.Certificate{stranger.sign(named("lobby-1"), stranger.key.Public(), nil)}}, denied},
		"the authority itself":           {attempt{anchor: "studio", role: "backend", key: c.studio.key, chain: []*x509.Certificate{c.studio.self}}, denied},
		"no such authority":              {with(func(a *attempt) { a.anchor = "studio2" }), denied},
		"expired": {c.lobby(key, func(x *x509.Certificate) {
			x.NotBefore, x.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		}), denied},
		"not valid yet": {c.lobby(key, func(x *x509.Certificate) {
			x.NotBefore, x.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		}), denied},
		"a certificate of a server":       {c.lobby(key, func(x *x509.Certificate) { x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), denied},
		"one for any purpose":             {c.lobby(key, func(x *x509.Certificate) { x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }), denied},
		"one without a purpose":           {c.lobby(key, func(x *x509.Certificate) { x.ExtKeyUsage = []x509.ExtKeyUsage{} }), denied},
		"one that signs no requests":      {c.lobby(key, func(x *x509.Certificate) { x.KeyUsage = x509.KeyUsageKeyEncipherment }), denied},
		"a name that ends so":             {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("x-lobby-1"))}, denied},
		"a name in other letters":         {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("Lobby-1"))}, denied},
		"letters that look alike":         {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("lоbby-1"))}, denied},
		"a name with a zero byte":         {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("lobby-1\x00.evil"))}, denied},
		"a name of two lines":             {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("lobby-1\nadmin"))}, denied},
		"a name that is too long":         {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, named("lobby-"+strings.Repeat("x", 300)))}, denied},
		"no name":                         {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, &x509.Certificate{DNSNames: []string{"lobby-1"}})}, denied},
		"two common names":                {attempt{anchor: "studio", role: "backend", key: key, chain: of(c.studio, &x509.Certificate{Subject: pkix.Name{CommonName: "lobby-1", ExtraNames: []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 3}, Value: "evil"}, {Type: []int{2, 5, 4, 3}, Value: "lobby-1"}}}})}, denied},
		"the DNS name as a common name":   {attempt{anchor: "hosts", role: "backend", key: key, chain: of(c.hosts, named("a.backend.example.com"))}, denied},
		"two DNS names":                   {attempt{anchor: "hosts", role: "backend", key: key, chain: of(c.hosts, &x509.Certificate{DNSNames: []string{"evil.example.com", "a.backend.example.com"}})}, denied},
		"a DNS name that goes on":         {attempt{anchor: "hosts", role: "backend", key: key, chain: of(c.hosts, &x509.Certificate{DNSNames: []string{"a.backend.example.com.evil.net"}})}, denied},
		"an attribute beside a wrong one": {attempt{anchor: "studio", role: "admin", key: key, chain: of(c.studio, &x509.Certificate{Subject: pkix.Name{CommonName: "x", OrganizationalUnit: []string{"ops", "guests"}}})}, denied},
		"a role of another rule":          {with(func(a *attempt) { a.role = "admin" }), denied},
		"a role that no rule gives":       {with(func(a *attempt) { a.role = "client" }), denied},
		"a role that nobody has":          {with(func(a *attempt) { a.role = "owner" }), denied},
		"longer than the rule":            {with(func(a *attempt) { a.duration = 1801 }), invalid},
		"a weak key":                      {c.lobby(weak, nil), denied},

		"the key of another certificate": {with(func(a *attempt) { a.key = newKey(t) }), denied},
		"another certificate in the header": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Set("X-Amz-X509", base64.StdEncoding.EncodeToString(of(c.studio, named("lobby-9"))[0].Raw))
			}
		}), invalid},
		"a certificate added": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) { r.Header.Add("X-Amz-X509", r.Header.Get("X-Amz-X509")) }
		}), invalid},
		"a chain that is not signed": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Set("X-Amz-X509-Chain", base64.StdEncoding.EncodeToString(c.studio.self.Raw))
			}
		}), invalid},
		"a chain that is too long": {with(func(a *attempt) { a.chain = append(a.chain, slices.Repeat([]*x509.Certificate{c.studio.self}, 6)...) }), invalid},
		"another query": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) { r.URL.RawQuery = "roleArn=" + url.QueryEscape(arnOf("readonly")) }
		}), denied},
		"another body": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(`{"trustAnchorArn":"` + anywhere + `trust-anchor/studio"}`))
				r.ContentLength = -1
			}
		}), denied},
		"an hour ago": {with(func(a *attempt) { a.at = time.Now().Add(-time.Hour) }), denied},
		"in an hour":  {with(func(a *attempt) { a.at = time.Now().Add(time.Hour) }), denied},
		"signed for another service": {with(func(a *attempt) {
			a.before = func(r *http.Request) { r.Host = "rolesanywhere.us-east-1.amazonaws.com" }
		}), denied},
		"sent from another service": {with(func(a *attempt) {
			a.before = func(r *http.Request) { r.Host = "muster-test.example.com" }
			a.afterwards = func(r *http.Request) { r.Host = "" }
		}), denied},
		"an account of AWS": {with(func(a *attempt) {
			a.body = map[string]any{"trustAnchorArn": "arn:aws:rolesanywhere:us-east-1:123456789012:trust-anchor/studio", "roleArn": arnOf("backend")}
		}), invalid},
		"no signature": {with(func(a *attempt) { a.afterwards = func(r *http.Request) { r.Header.Del("Authorization") } }), invalid},
		"a signature of an access key": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "AWS4-X509-ECDSA-SHA256", "AWS4-HMAC-SHA256", 1))
			}
		}), invalid},
		"an algorithm of other keys": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "ECDSA", "RSA", 1))
			}
		}), denied},
		"an empty signature": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				h := r.Header.Get("Authorization")
				r.Header.Set("Authorization", h[:strings.Index(h, "Signature=")]+"Signature=")
			}
		}), invalid},
		"another serial number": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "Credential=", "Credential=1", 1))
			}
		}), invalid},
		"a certificate of the handshake": {with(func(a *attempt) {
			a.afterwards = func(r *http.Request) {
				r.Header.Del("X-Amz-X509")
				r.Header.Set("X-Client-Cert", base64.StdEncoding.EncodeToString(a.chain[0].Raw))
			}
		}), invalid},
		"a body that is no object": {with(func(a *attempt) { a.body = []int{1} }), invalid},
	} {
		got, status, text := c.exchange(x.attempt)
		if x.want == "" && got == nil || x.want != "" && (got != nil || !strings.HasPrefix(text, x.want+" ")) {
			t.Errorf("%s: %d %.200s, want %q", what, status, text, x.want)
		}
	}
	c.private.Store(false)
	if got, status, _ := c.exchange(lobby()); got != nil || status != http.StatusForbidden {
		t.Errorf("an answer that others could read: %d", status)
	}
	none := &certified{port: newPort(t), studio: c.studio}
	if got, status, _ := none.exchange(lobby()); got != nil || status != http.StatusForbidden {
		t.Errorf("without authorities: %d", status)
	}
	answer, err := http.Post(c.url+clientcert.Path, "application/json", strings.NewReader(strings.Repeat("x", sessionBodyMax+1)))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d", answer.StatusCode)
	}
}

// A client that sends a flood of certificates is rate limited.
func TestAttackClientCertificateFlood(t *testing.T) {
	c := newCertified(t)
	a := c.lobby(newKey(t), nil)
	a.key = newKey(t)
	throttled := 0
	for range 400 {
		if _, status, _ := c.exchange(a); status == http.StatusTooManyRequests {
			throttled++
		}
	}
	if throttled == 0 {
		t.Error("no attempt of 400 was throttled")
	}
}

// Every issue is in the audit log, under the name in the certificate.
func TestIssuesToCertificatesAreRecorded(t *testing.T) {
	c := newCertified(t)
	before, err := c.engine.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.good(c.lobby(newKey(t), nil))
	if after, err := c.engine.AuditHead(t.Context()); err != nil || after.No != before.No+1 {
		t.Errorf("%d entries, %v; want 1", after.No-before.No, err)
	}
}

var _ Issuer = (*identity.Keys)(nil)
