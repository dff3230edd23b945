package gamelift

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/musterhq/muster/internal/identity"
)

// sign signs as the SDK does.
func sign(t testing.TB, r *http.Request, body string, key identity.AccessKey, service, region string, at time.Time) {
	t.Helper()
	hash := sha256.Sum256([]byte(body))
	signPayload(t, r, hex.EncodeToString(hash[:]), key, service, region, at)
}

func signPayload(t testing.TB, r *http.Request, hash string, key identity.AccessKey, service, region string, at time.Time) {
	t.Helper()
	credentials := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), credentials, r, hash, service, region, at); err != nil {
		t.Fatal(err)
	}
}

var signedAt = time.Date(2026, 1, 5, 15, 50, 49, 0, time.UTC)

func newVerifier() *verifier {
	return &verifier{keys: keysForTest(), now: func() time.Time { return signedAt }, private: func(r *http.Request) bool { return r.TLS != nil }}
}

func signedRequest(t testing.TB, body string, change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://muster.example:8080/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "GameLift.ListFleets")
	r.Header.Set("X-Odd", "  two   words ")
	sign(t, r, body, keysForTest()["AKADMIN"], "gamelift", "mars-1", signedAt)
	if change != nil {
		change(r)
	}
	return r
}

func TestRightSignaturePasses(t *testing.T) {
	v := newVerifier()
	for range 2 { // the second time with the remembered key
		caller, refused := v.verify(signedRequest(t, "{}", nil), []byte("{}"), "gamelift")
		if refused != nil || caller != (Caller{identity.Principal{ID: "AKADMIN", Account: "123456789012", Role: identity.Admin, Address: "192.0.2.1"}, "mars-1"}) {
			t.Errorf("got %+v %v", caller, refused)
		}
	}
	if v.signing.Len() != 1 {
		t.Errorf("%d signing keys remembered, want 1", v.signing.Len())
	}
}

// Parameters are signed in the order of their names, in which "a" precedes "a-b" and "a1", and then of their values.
func TestSignedQueries(t *testing.T) {
	v := newVerifier()
	for _, query := range []string{"a=1&b=2", "b=2&a=1&a=0", "a=1&a-b=2&a1=3", "a1=3&a-b=2&a=%2F&a=1", "a&a-b=2"} {
		r := httptest.NewRequest(http.MethodPost, "http://muster.example:8080/?"+query, strings.NewReader("{}"))
		sign(t, r, "{}", keysForTest()["AKADMIN"], "gamelift", "mars-1", signedAt)
		if _, refused := v.verify(r, []byte("{}"), "gamelift"); refused != nil {
			t.Errorf("%s: %v", query, refused)
		}
	}
}

func TestWrongSignaturesAreRefused(t *testing.T) {
	edit := func(old, new string) func(*http.Request) {
		return func(r *http.Request) {
			was := r.Header.Get("Authorization")
			if !strings.Contains(was, old) {
				t.Fatalf("%s lacks %s", was, old)
			}
			r.Header.Set("Authorization", strings.Replace(was, old, new, 1))
		}
	}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	dated := func(at time.Time) func(*http.Request) {
		return func(r *http.Request) { sign(t, r, "{}", keysForTest()["AKADMIN"], "gamelift", "mars-1", at) }
	}
	for _, each := range []struct {
		name   string
		change func(*http.Request)
		code   string
		text   string
	}{
		{"none", func(r *http.Request) { r.Header.Del("Authorization") }, codeMissingToken, ""},
		{"other scheme", set("Authorization", "Bearer abc"), codeIncompleteSignature, ""},
		{"no credential", edit("Credential=", "Kredential="), codeIncompleteSignature, "Credential"},
		{"no signed headers", edit("SignedHeaders=", "S="), codeIncompleteSignature, "SignedHeaders"},
		{"no signature", edit("Signature=", "S="), codeIncompleteSignature, "Signature"},
		{"short scope", edit("/mars-1", ""), codeIncompleteSignature, "Credential"},
		{"region that fits no ARN", edit("mars-1", "mars:1"), codeIncompleteSignature, "Credential"},
		{"host not signed", edit(";host;", ";"), codeIncompleteSignature, "Host"},
		{"target not signed", edit(";x-amz-target", ""), codeIncompleteSignature, "X-Amz-Target"},
		{"no date", func(r *http.Request) { r.Header.Del("X-Amz-Date") }, codeIncompleteSignature, "X-Amz-Date"},
		{"odd date", set("X-Amz-Date", "2026-01-05T15:50:49Z"), codeIncompleteSignature, "ISO-8601"},
		{"unknown key", edit("AKADMIN", "AKNOBODY"), codeUnrecognizedClient, ""},
		{"other key", edit("AKADMIN", "AKCLIENT"), codeInvalidSignature, "does not match"},
		{"other service", edit("/gamelift/", "/dynamodb/"), codeInvalidSignature, "correct service"},
		{"other region", edit("mars-1", "mars-2"), codeInvalidSignature, "does not match"},
		{"old", dated(signedAt.Add(-5*time.Minute - time.Second)), codeInvalidSignature, "Signature expired"},
		{"early", dated(signedAt.Add(5*time.Minute + time.Second)), codeInvalidSignature, "Signature not yet current"},
		{"date moved", set("X-Amz-Date", "20260105T155050Z"), codeInvalidSignature, "does not match"},
		{"header changed", set("X-Odd", "three words here"), codeInvalidSignature, "does not match"},
		{"host changed", func(r *http.Request) { r.Host = "elsewhere" }, codeInvalidSignature, "does not match"},
		{"path changed", func(r *http.Request) { r.RequestURI = "/x" }, codeInvalidSignature, "does not match"},
		{"query added", func(r *http.Request) { r.RequestURI = "/?x=1" }, codeInvalidSignature, "does not match"},
		{"hash of another body", set("X-Amz-Content-Sha256", strings.Repeat("0", 64)), codeInvalidSignature, "does not match"},
	} {
		v := newVerifier()
		_, refused := v.verify(signedRequest(t, "{}", each.change), []byte("{}"), "gamelift")
		if refused == nil || refused.ErrorCode() != each.code || !strings.Contains(refused.ErrorMessage(), each.text) {
			t.Errorf("%s: got %v, want %s with %q", each.name, refused, each.code, each.text)
		}
		if v.signing.Len() != 0 {
			t.Errorf("%s: a wrong signature was remembered", each.name)
		}
	}
	if _, refused := newVerifier().verify(signedRequest(t, "{}", nil), []byte("{ }"), "gamelift"); refused == nil {
		t.Error("another body passed")
	}
}

func TestSkewWithinFiveMinutesPasses(t *testing.T) {
	for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		r := signedRequest(t, "{}", func(r *http.Request) {
			sign(t, r, "{}", keysForTest()["AKADMIN"], "gamelift", "mars-1", signedAt.Add(off))
		})
		if _, refused := newVerifier().verify(r, []byte("{}"), "gamelift"); refused != nil {
			t.Errorf("%s off: %v", off, refused)
		}
	}
}

// A key that was revoked and made again under its old id must not accept the old secret.
func TestNewSecretIsUsedAtOnce(t *testing.T) {
	v := newVerifier()
	keys := v.keys.(testKeys)
	if _, refused := v.verify(signedRequest(t, "{}", nil), []byte("{}"), "gamelift"); refused != nil {
		t.Fatal(refused)
	}
	key := keys["AKADMIN"]
	key.Secret = "another"
	keys["AKADMIN"] = key
	if _, refused := v.verify(signedRequest(t, "{}", nil), []byte("{}"), "gamelift"); refused == nil {
		t.Error("the old secret still signs")
	}
}

func TestDevAcceptsAnyCredentials(t *testing.T) {
	v := newVerifier()
	v.dev = true
	local := localCaller
	local.Address = "192.0.2.1"
	for _, each := range []struct {
		change func(*http.Request)
		want   Caller
	}{
		{func(r *http.Request) { r.Header.Del("Authorization") }, local},
		{func(r *http.Request) { r.Header.Set("Authorization", "nonsense") }, local},
		{func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20010101/there/gamelift/aws4_request, SignedHeaders=host, Signature="+strings.Repeat("0", 64))
		}, Caller{identity.Principal{ID: "any", Account: identity.DefaultAccount, Role: identity.Admin, Address: "192.0.2.1"}, "there"}},
		{nil, Caller{identity.Principal{ID: "AKADMIN", Account: "123456789012", Role: identity.Admin, Address: "192.0.2.1"}, "mars-1"}},
	} {
		caller, refused := v.verify(signedRequest(t, "{}", each.change), nil, "gamelift")
		if refused != nil || caller != each.want {
			t.Errorf("got %+v %v, want %+v", caller, refused, each.want)
		}
	}
}
