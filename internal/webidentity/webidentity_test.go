package webidentity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/musterhq/muster/internal/domain/access"
)

const (
	goodRule   = `"subjects":["repo:studio/game:*"],"roles":["backend"]`
	goodIssuer = `"name":"ci","issuer":"https://ci.example.com","audiences":["muster"],"rules":[{` + goodRule + `}]`
)

func TestMistakesInTheFileOfIssuers(t *testing.T) {
	instead := func(old, new string) string {
		return `{"issuers":[{` + strings.Replace(goodIssuer, old, new, 1) + `}]}`
	}
	for content, want := range map[string]string{
		`{}`:                                       "issuers: 0",
		`{"issuer":[]}`:                            "unknown field",
		`{"issuers":[]} x`:                         "nothing after",
		instead(`"ci"`, `"A/B"`):                   "issuers[0].name",
		instead("https:", "http:"):                 "issuers[0].issuer",
		instead(".com", ".com?x=1"):                "issuers[0].issuer",
		instead(`["muster"]`, `[]`):                "issuers[0].audiences: 0",
		instead(`["muster"]`, `[""]`):              "issuers[0].audiences[0]",
		instead(`{`+goodRule+`}`, ``):              "issuers[0].rules: 0",
		instead("repo:studio/game:", ""):           "issuers[0].rules[0].subjects[0]",
		instead(`"repo:studio/game:*"`, `"a","a"`): "rules[0].subjects[1]",
		instead(`"backend"`, `"god"`):              "rules[0].roles[0]",
		instead(`["backend"]`, `["backend"],"maxDuration":"13h"`):                                          "rules[0].maxDuration",
		instead(`["backend"]`, `["backend"],"claims":{"ref":[]}`):                                          "rules[0].claims.ref",
		instead(`["backend"]`, `["backend"],"claims":{"ref":"main"}`):                                      "claims",
		instead(`"rules"`, `"caFile":"/none","rules"`):                                                     "issuers[0].caFile",
		instead(`"rules"`, `"caFile":"a","keysFile":"b","rules"`):                                          "issuers[0].caFile",
		`{"issuers":[{` + goodIssuer + `},{` + goodIssuer + `}]}`:                                          "name of another",
		strings.Replace(`{"issuers":[{`+goodIssuer+`},{`+goodIssuer+`}]}`, "ci", "a", 1):                   "also the issuer of a",
		`{"issuers":[` + strings.TrimSuffix(strings.Repeat(`{`+goodIssuer+`},`, issuersMax+1), ",") + `]}`: "want 1 to 16",
	} {
		if _, err := parse([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v; want an error with %q", content, err, want)
		}
	}
	_, err := parse([]byte(instead(`"ci"`, `""`)))
	if err == nil {
		t.Error("a missing name is taken")
	}
	both := strings.Replace(instead(`"ci"`, `"C"`), "backend", "god", 1)
	if _, err := parse([]byte(both)); err == nil || !strings.Contains(err.Error(), "name") || !strings.Contains(err.Error(), "roles[0]") {
		t.Errorf("two mistakes: %v", err)
	}
	if _, err := parse([]byte(`{"issuers":[{` + goodIssuer + `}]}`)); err != nil {
		t.Error(err)
	}
}

// Without a network: the keys are in a file, which is read again after changes.
func TestKeysInAFile(t *testing.T) {
	directory := t.TempDir()
	keysFile := filepath.Join(directory, "keys.json")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(id string) {
		text, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Use: "sig", Algorithm: "ES256"}}})
		if err := os.WriteFile(keysFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(directory, "issuers.json")
	content := fmt.Sprintf(`{"issuers":[{"name":"k8s","issuer":"https://kubernetes.default.svc","audiences":["muster"],"keysFile":%q,
		"rules":[{"subjects":["system:serviceaccount:games:director"],"roles":["backend"],"maxDuration":"12h"}]}]}`, keysFile)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := Open(path, log); err == nil {
		t.Error("a file of keys that is not there is taken")
	}
	publish("one")
	x, err := Open(path, log)
	if err != nil {
		t.Fatal(err)
	}
	token := func(id, typ string) string {
		options := (&jose.SignerOptions{}).WithHeader("kid", id)
		if typ != "" {
			options = options.WithType(jose.ContentType(typ))
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(signer).Claims(map[string]any{"iss": "https://kubernetes.default.svc", "aud": []string{"muster"}, "sub": "system:serviceaccount:games:director",
			"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	m, err := x.Verify(t.Context(), token("one", ""))
	if err != nil {
		t.Fatal(err)
	}
	if m.Holder() != "k8s/system:serviceaccount:games:director" || m.May(access.Backend) != 12*time.Hour || m.May(access.Admin) != 0 {
		t.Errorf("it is %s, backend for %v, admin for %v", m.Holder(), m.May(access.Backend), m.May(access.Admin))
	}
	for what, text := range map[string]string{"an unknown key": token("two", ""), "no key": token("", ""), "a token for a logout": token("one", "logout+jwt")} {
		if _, err := x.Verify(t.Context(), text); !isProblem(err, Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// While an issuer does not answer, its fetched keys stay good, also after a change of the file.
func TestKeysOutliveAChangeOfTheFile(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Use: "sig", Algorithm: "ES256"}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_, _ = w.Write(set)
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, "http://"+r.Host, "http://"+r.Host+"/keys")
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "issuers.json")
	open := func(role string) *Issuers {
		t.Helper()
		content := fmt.Sprintf(`{"issuers":[{"name":"ci","issuer":%q,"audiences":["muster"],"rules":[{"subjects":["repo:studio/game:*"],"roles":[%q]}]}]}`, server.URL, role)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "one"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": server.URL, "aud": "muster", "sub": "repo:studio/game:main", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	before := open("backend")
	if _, err := before.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	server.Close()
	after := open("readonly")
	after.KeepKeys(before)
	if m, err := after.Verify(t.Context(), token); err != nil || m.May(access.ReadOnly) == 0 || m.May(access.Backend) != 0 {
		t.Errorf("%+v %v", m, err)
	}
	after = open("readonly")
	after.KeepKeys(nil)
	if _, err := after.Verify(t.Context(), token); !isProblem(err, Unreachable) {
		t.Errorf("without the keys: %v", err)
	}
}

func isProblem(err error, want Problem) bool {
	r, ok := errors.AsType[*Refused](err)
	return ok && r.Problem == want
}

// The file that the guide shows is a good one.
func TestFileOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```json\n")
	content, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the guide shows no file")
	}
	if _, err := parse([]byte(content)); err != nil {
		t.Error(err)
	}
}
