package gamelift

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/sigv4"
)

// unsignedPayload replaces the hash of a body that the signature does not cover.
const unsignedPayload = "UNSIGNED-PAYLOAD"

// verifier verifies version 4 signatures as AWS clients make them.
type verifier struct {
	keys    identity.Finder
	signing sigv4.Keys
	now     func() time.Time
	dev     bool // accepts any credentials or none
	private func(*http.Request) bool
	proxies *clientaddress.Proxies

	signins, operators *signin.Door // for requests to the API, and for those to other doors
}

// signature is a signature with a valid header: it names a valid access key and a current time. Only proven confirms that it was made
// with that key's secret.
type signature struct {
	sigv4.Authorization
	key    identity.AccessKey
	date   string
	proven bool // for the body whose hash the header contains
	caller Caller
	dev    bool

	door    *signin.Door
	address string // of the client
}

// begin makes all checks that are possible before the body arrives, so that the service does not read strangers' bodies. service must
// be named in the scope. If the client sent and signed a header with the body's hash, the signature is verified completely.
func (v *verifier) begin(r *http.Request, service string) (signature, smithy.APIError) {
	return v.beginAt(v.signins, r, service)
}

func (v *verifier) beginAt(door *signin.Door, r *http.Request, service string) (s signature, refused smithy.APIError) {
	header := r.Header.Get("Authorization")
	s = signature{door: door, address: v.proxies.Of(r)}
	if v.dev {
		s.caller, s.dev = v.trusting(r, s.address), true
		return s, nil
	}
	if header == "" {
		return s, s.failed(signin.Missing, commonError(codeMissingToken, "Missing Authentication Token"))
	}
	a, problem := sigv4.ParseAuthorization(header)
	if problem != "" {
		return s, s.failed(signin.Malformed, commonError(codeIncompleteSignature, "%s", problem))
	}
	s.Authorization = a
	date := r.Header.Get("X-Amz-Date")
	switch {
	case date == "":
		return s, commonError(codeIncompleteSignature, "the request must have an X-Amz-Date header")
	case !a.Signs("host") || !a.Signs("x-amz-date"):
		return s, commonError(codeIncompleteSignature, "'Host' and 'X-Amz-Date' must be signed headers")
	case r.Header.Get("X-Amz-Target") != "" && !a.Signs("x-amz-target"):
		return s, commonError(codeIncompleteSignature, "'X-Amz-Target' must be a signed header")
	case r.Header.Get("X-Amz-Content-Sha256") == unsignedPayload && !v.private(r):
		return s, commonError(codeInvalidSignature, "X-Amz-Content-Sha256: %s is accepted over TLS only, because others on the network could change the body", unsignedPayload)
	}
	key, err := v.keys.With(a.KeyID, r.Header.Get("X-Amz-Security-Token"), s.address)
	switch {
	case errors.Is(err, identity.ErrElsewhere):
		return s, s.failed(signin.Elsewhere, commonError(codeUnrecognizedClient, "The security token included in the request is invalid."))
	case errors.Is(err, identity.ErrExpired):
		return s, s.failed(signin.Expired, commonError(codeExpiredToken, "The security token included in the request is expired"))
	case err != nil:
		return s, s.failed(signin.UnknownKey, commonError(codeUnrecognizedClient, "The security token included in the request is invalid."))
	}
	if refused := v.checkDate(date, &a); refused != nil {
		return s, s.failed(signin.Clock, refused)
	}
	if a.Service != service {
		return s, commonError(codeInvalidSignature, "Credential should be scoped to correct service: '%s'.", service)
	}
	if slow := door.Refuse(s.address, key); slow != nil {
		return s, slowed(slow)
	}
	s.key, s.date, s.caller = key, date, Caller{key.Principal(s.address), a.Region}
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" {
		if s.proven = v.matches(r, []byte(claimed), date, key, &a); !s.proven {
			return s, s.failed(signin.WrongSecret, wrongSignature())
		}
	}
	return s, nil
}

// finish returns the principal that signed the request, after its body has arrived.
func (v *verifier) finish(r *http.Request, body []byte, s signature) (Caller, smithy.APIError) {
	if s.dev {
		return s.caller, nil
	}
	hash := sha256.Sum256(body)
	var payload [2 * sha256.Size]byte
	hex.Encode(payload[:], hash[:])
	if s.proven {
		if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != unsignedPayload && claimed != string(payload[:]) {
			return Caller{}, s.failed(signin.WrongSecret, wrongSignature())
		}
	} else if !v.matches(r, payload[:], s.date, s.key, &s.Authorization) {
		return Caller{}, s.failed(signin.WrongSecret, wrongSignature())
	}
	s.door.Trust(s.address, s.key)
	return s.caller, nil
}

// failed counts a failed sign-in and returns the answer: the reason, or that there were too many failures.
func (s *signature) failed(reason signin.Reason, refused smithy.APIError) smithy.APIError {
	if slow := s.door.Fail(signin.Failure{From: s.address, Reason: reason, KeyID: s.KeyID}); slow != nil {
		return slowed(slow)
	}
	return refused
}

func slowed(slow *signin.Slowed) smithy.APIError {
	return commonError(codeThrottling, "Rate exceeded: %s", slow)
}

func wrongSignature() smithy.APIError {
	return commonError(codeInvalidSignature, "The request signature we calculated does not match the signature you provided. "+
		"Check your secret access key and signing method.")
}

// verify, for doors other than the API, returns the principal that signed a request with its body.
func (v *verifier) verify(r *http.Request, body []byte, service string) (Caller, smithy.APIError) {
	s, refused := v.beginAt(v.operators, r, service)
	if refused != nil {
		return Caller{}, refused
	}
	return v.finish(r, body, s)
}

// trusting accepts any credentials. A known key keeps its role, so that roles can be tested.
func (v *verifier) trusting(r *http.Request, address string) Caller {
	caller := localCaller
	caller.Address = address
	a, problem := sigv4.ParseAuthorization(r.Header.Get("Authorization"))
	if problem != "" {
		return caller
	}
	caller.ID, caller.Region = a.KeyID, a.Region
	if key, err := v.keys.With(a.KeyID, r.Header.Get("X-Amz-Security-Token"), address); err == nil {
		caller.Principal = key.Principal(address)
	}
	return caller
}

// checkDate must run before the signature is verified: SDKs recognize a wrong clock by the message, and retry with a corrected time.
func (v *verifier) checkDate(date string, a *sigv4.Authorization) smithy.APIError {
	signed, ok := sigv4.ParseTime(date)
	if !ok {
		return commonError(codeIncompleteSignature, "Date must be in ISO-8601 'basic format'. Got '%s'.", excerpt.Short(date))
	}
	now := v.now().UTC()
	switch {
	case signed.Before(now.Add(-sigv4.ClientSkew)):
		return commonError(codeInvalidSignature, "Signature expired: %s is now earlier than %s (%s - 5 min.)",
			date, now.Add(-sigv4.ClientSkew).Format(sigv4.TimeForm), now.Format(sigv4.TimeForm))
	case signed.After(now.Add(sigv4.ClientSkew)):
		return commonError(codeInvalidSignature, "Signature not yet current: %s is still later than %s (%s + 5 min.)",
			date, now.Add(sigv4.ClientSkew).Format(sigv4.TimeForm), now.Format(sigv4.TimeForm))
	case date[:8] != a.Day:
		return commonError(codeInvalidSignature, "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s'.",
			a.Day, date[:8])
	default:
		return nil
	}
}

var canonicalBuffers = sync.Pool{New: func() any { return new([]byte) }}

// matches computes the expected signature of the request and compares in constant time. payload is the hex hash of the body, or its
// replacement.
func (v *verifier) matches(r *http.Request, payload []byte, date string, key identity.AccessKey, a *sigv4.Authorization) bool {
	pooled := canonicalBuffers.Get().(*[]byte)
	defer canonicalBuffers.Put(pooled)
	text := appendCanonicalRequest((*pooled)[:0], r, a, payload)
	*pooled = text
	return v.signing.Match(key.Secret, &a.Credential, date, text, a.Signature)
}

func appendCanonicalRequest(dst []byte, r *http.Request, a *sigv4.Authorization, payload []byte) []byte {
	path, query := r.RequestURI, ""
	if path == "" || path[0] != '/' { // from a test, or sent to a proxy
		path, query = r.URL.EscapedPath(), r.URL.RawQuery
	} else if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i+1:]
	}
	dst = append(append(dst, r.Method...), '\n')
	dst = append(appendCanonicalPath(dst, path), '\n')
	dst = append(sigv4.AppendQuery(dst, query), '\n')
	for name := range strings.SplitSeq(a.SignedHeaders, ";") {
		dst = append(append(dst, name...), ':')
		dst = append(sigv4.AppendHeader(dst, r, name), '\n')
	}
	dst = append(dst, '\n')
	dst = append(append(dst, a.SignedHeaders...), '\n')
	return append(dst, payload...)
}

// appendCanonicalPath escapes the path as it arrived, so escapes are escaped twice, as for all services except S3.
func appendCanonicalPath(dst []byte, path string) []byte {
	if path == "" {
		return append(dst, '/')
	}
	return sigv4.AppendEscaped(dst, path, "/")
}
