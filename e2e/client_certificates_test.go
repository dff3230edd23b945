package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// studioCA signs certificates of a studio's backends into files.
type studioCA struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	self *x509.Certificate
	der  []byte
	file string
}

func newStudioCA(t *testing.T, name string) *studioCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a := &studioCA{t: t, dir: t.TempDir(), key: key}
	a.self = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, a.self, a.self, key.Public(), key)
	must(t, err)
	a.der, a.file = der, a.write(name+".pem", "CERTIFICATE", der)
	return a
}

func (a *studioCA) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	must(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// client makes a certificate of a backend, and its key.
func (a *studioCA) client(name string) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	must(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.self, private.Public(), a.key)
	must(a.t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	must(a.t, err)
	file := strings.ReplaceAll(name, "/", "_") + "-" + serial.Text(36)
	return a.write(file+".pem", "CERTIFICATE", der), a.write(file+".key", "EC PRIVATE KEY", secret)
}

// A backend with a certificate and no secret of the service uses the AWS CLI and the SDK for Go through credential_process, and the doors for bearer credentials.
// One command ends all of that, including an open stream.
func TestClientCertificatesAtEveryDoor(t *testing.T) {
	t.Parallel()
	ca := newStudioCA(t, "studio")
	settings, err := json.Marshal(map[string]any{"hosts": []string{"127.0.0.1"}, "authorities": []any{map[string]any{"name": "studio", "caFile": ca.file,
		"rules": []any{map[string]any{"subjects": []string{"lobby-*"}, "roles": []string{"admin", "backend"}, "groups": []string{"lobbies"}}}}}})
	must(t, err)
	file := filepath.Join(t.TempDir(), "certificates.json")
	must(t, os.WriteFile(file, settings, 0o600))
	partner, operator := porttest.Free(t), porttest.Free(t)
	s := newService(t, "--dev=false", "--client-certificates", file, "--player-flow", "--partner-listen", partner, "--operator-listen", operator)
	id, secret := s.key("admin")
	s.start()

	cert, key := ca.client("lobby-1")
	process := func(cert, key, role string) string {
		return strings.Join([]string{musterBinary, "credentials", "--certificate", cert, "--key", key, "--authority", "studio", "--role", role, "--session-name", "lobby", "--server", s.url()}, " ")
	}
	sdk := func(cert, key, role string) (aws.Credentials, error) {
		return processcreds.NewProvider(process(cert, key, role)).Retrieve(t.Context())
	}
	held, err := sdk(cert, key, "backend")
	must(t, err)
	if !held.CanExpire || time.Until(held.Expires) > time.Hour {
		t.Errorf("the SDK got %v, want an end within an hour", held.Expires)
	}
	must(t, s.lists(held))

	home := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(home, ".aws"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".aws", "config"), []byte("[profile lobby]\nregion = "+region+"\nendpoint_url = "+s.url()+"\ncredential_process = "+process(cert, key, "backend")+"\n"), 0o600))
	cli := func(args ...string) string {
		cmd := exec.Command(debianAWS, append([]string{"--profile", "lobby", "--endpoint-url", s.url(), "--output", "json"}, args...)...)
		cmd.Env = cleanEnvironment("HOME="+home, "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=", "LC_ALL=C.UTF-8")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := cli("gamelift", "list-fleets"); !strings.Contains(out, "FleetIds") {
		t.Errorf("list-fleets: %s", out)
	}
	if out := cli("sts", "get-caller-identity"); !strings.Contains(out, "assumed-role/backend/lobby") {
		t.Errorf("get-caller-identity: %s", out)
	}
	if out := cli("cloudwatch", "list-metrics"); !strings.Contains(out, "Metrics") {
		t.Errorf("list-metrics: %s", out)
	}

	// The doors for bearer credentials, with those of a role that each of them lets in.
	admin, err := sdk(cert, key, "admin")
	must(t, err)
	call := func(c aws.Credentials, method, url, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		must(t, err)
		r.SetBasicAuth(c.AccessKeyID, c.SecretAccessKey+"."+c.SessionToken)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	doors := func() map[string]int {
		return map[string]int{
			"metrics":    call(admin, "GET", s.url()+"/metrics", ""),
			"session/v1": call(held, "POST", s.url()+"/session/v1/SearchSessions", `{"fleetId":"fleet-1"}`),
			"partner":    call(held, "POST", "http://"+partner+"/playerflow/v1/partner/Flow.GetPlayers", `{"player_ids":["ann"]}`),
			"operators":  call(admin, "POST", "http://"+operator+"/playerflow/v1/operator/Operator.ListPlayers", `{}`),
		}
	}
	for door, status := range doors() {
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			t.Errorf("%s: %d", door, status)
		}
	}
	if out, err := s.remoteAs(admin, "keys", "list"); err != nil {
		t.Errorf("keys list: %v %s", err, out)
	}

	// The studio's own client for Roles Anywhere works, too, where it is installed.
	if helper, err := exec.LookPath("aws_signing_helper"); err == nil {
		const anywhere = "arn:aws:rolesanywhere:us-east-1:000000000000:"
		out, err := exec.Command(helper, "credential-process", "--certificate", cert, "--private-key", key, "--endpoint", s.url(), "--region", "us-east-1",
			"--trust-anchor-arn", anywhere+"trust-anchor/studio", "--profile-arn", anywhere+"profile/default", "--role-arn", "arn:aws:iam::000000000000:role/backend").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "SessionToken") {
			t.Errorf("aws_signing_helper: %v %s", err, out)
		}
	}

	// Certificates of others, and roles of others.
	others, othersKey := newStudioCA(t, "others").client("lobby-1")
	guest, guestKey := ca.client("guest")
	for what, x := range map[string][3]string{"another authority": {others, othersKey, "backend"}, "another name": {guest, guestKey, "backend"}, "another role": {cert, key, "readonly"}} {
		if _, err := sdk(x[0], x[1], x[2]); err == nil {
			t.Errorf("%s: credentials", what)
		}
	}

	// A policy of the group that the rule gives.
	policy := filepath.Join(t.TempDir(), "policy.json")
	must(t, os.WriteFile(policy, []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"gamelift:ListFleets","Resource":"*"}]}`), 0o600))
	s.command("policies", "create", "no-lists", policy, "--data", s.data)
	s.command("policies", "attach", "no-lists", "group:lobbies", "--data", s.data)
	refused(t, "what the policy denies", s.lists(held), "AccessDeniedException")
	s.command("policies", "detach", "no-lists", "group:lobbies", "--data", s.data)
	must(t, s.lists(held))

	stream, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/session/v1/events?clientId=lobby", nil)
	must(t, err)
	stream.Header.Set("Authorization", "Bearer "+held.AccessKeyID+"."+held.SecretAccessKey+"."+held.SessionToken)
	open, err := http.DefaultClient.Do(stream)
	must(t, err)
	defer open.Body.Close()
	if open.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %s", open.Status)
	}

	s.command("keys", "revoke-credentials", "--data", s.data, "--certificate", cert)
	refused(t, "after the revocation of the certificate", s.lists(held), "UnrecognizedClientException")
	_, _ = io.Copy(io.Discard, open.Body) // ends
	for door, status := range doors() {
		if status != http.StatusUnauthorized {
			t.Errorf("%s after the revocation: %d", door, status)
		}
	}
	if _, err := sdk(cert, key, "backend"); err == nil {
		t.Error("the revoked certificate gives credentials")
	}
	renewed, renewedKey := ca.client("lobby-1")
	again, err := sdk(renewed, renewedKey, "backend")
	must(t, err)
	must(t, s.lists(again))

	// The authority changes without a restart: the service reads its file again.
	second := newStudioCA(t, "second")
	content, err := os.ReadFile(second.file)
	must(t, err)
	must(t, os.WriteFile(ca.file+".new", content, 0o600))
	must(t, os.Rename(ca.file+".new", ca.file))
	next, nextKey := second.client("lobby-2")
	waittest.Until(t, "a certificate of the new authority works", func() bool { _, err := sdk(next, nextKey, "backend"); return err == nil })
	if _, err := sdk(renewed, renewedKey, "backend"); err == nil {
		t.Error("a certificate of the old authority gives credentials")
	}

	// Both authorities at once, and the revocation after a restart.
	first := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.der})
	must(t, os.WriteFile(ca.file, append(first, content...), 0o600))
	s.kill()
	s.start()
	for what, x := range map[string][2]string{"the old authority": {renewed, renewedKey}, "the new one": {next, nextKey}} {
		if _, err := sdk(x[0], x[1], "backend"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := sdk(cert, key, "backend"); err == nil {
		t.Error("after a restart the revoked certificate gives credentials")
	}
	entries, err := s.remote(id, secret, "audit", "--json")
	must(t, err)
	for _, want := range []string{`"CreateSession"`, "studio/lobby-1", held.AccessKeyID, `"certificate"`} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}
