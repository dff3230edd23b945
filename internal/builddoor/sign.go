package builddoor

import (
	"crypto/subtle"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/sigv4"
)

// apiError is an error of S3.
type apiError struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string

	status int
}

func (e *apiError) Error() string { return e.Message }

func fail(status int, code, format string, args ...any) error {
	return &apiError{Code: code, Message: fmt.Sprintf(format, args...), status: status}
}

func wrongSignature() error {
	return fail(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.")
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// signed is a request with a valid signature.
type signed struct {
	upload    identity.UploadKey
	key       *sigv4.Key
	date      string
	scope     string
	signature string
	payload   string // X-Amz-Content-Sha256, or its replacement
}

const (
	service      = "s3"
	queryPrefix  = "X-Amz-"
	presignedMax = 7 * 24 * time.Hour // the longest validity of a URL that S3 accepts
)

// authenticate checks the signature of a request: in its header, or in the query of a presigned URL. The content is checked when it is read.
func (d *Door) authenticate(r *http.Request) (*signed, error) {
	query := r.URL.Query()
	var a sigv4.Authorization
	s, token := &signed{}, ""
	var until time.Time // of a presigned URL
	var problem string
	if header := r.Header.Get("Authorization"); header != "" {
		a, problem = sigv4.ParseAuthorization(header)
		s.date, s.payload, token = r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Content-Sha256"), r.Header.Get("X-Amz-Security-Token")
	} else if query.Has(queryPrefix + "Signature") {
		a, problem = sigv4.ParseAuthorization(query.Get(queryPrefix+"Algorithm") + " Credential=" + query.Get(queryPrefix+"Credential") +
			",SignedHeaders=" + query.Get(queryPrefix+"SignedHeaders") + ",Signature=" + query.Get(queryPrefix+"Signature"))
		s.date, s.payload, token = query.Get(queryPrefix+"Date"), query.Get("X-Amz-Content-Sha256"), query.Get(queryPrefix+"Security-Token")
		if s.payload == "" {
			s.payload = unsignedPayload
		}
		seconds, err := strconv.ParseInt(query.Get(queryPrefix+"Expires"), 10, 64)
		if err != nil || seconds < 1 || seconds > int64(presignedMax/time.Second) {
			return nil, fail(http.StatusBadRequest, "AuthorizationQueryParametersError", "X-Amz-Expires %.20q: want 1 to %d seconds", query.Get(queryPrefix+"Expires"), presignedMax/time.Second)
		}
		at, _ := sigv4.ParseTime(s.date)
		until = at.Add(time.Duration(seconds) * time.Second)
	} else {
		return nil, d.failed(r, signin.Missing, "", fail(http.StatusForbidden, "AccessDenied", "the request is not signed: RequestUploadCredentials returns credentials for uploads"))
	}
	if problem != "" {
		return nil, d.failed(r, signin.Malformed, "", fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "%s", problem))
	}
	now := d.Now()
	at, ok := sigv4.ParseTime(s.date)
	upload, known := d.Secret.UploadKeyOf(token, a.KeyID)
	switch {
	case !known || !equal(upload.ID, a.KeyID):
		return nil, d.failed(r, signin.UnknownKey, a.KeyID, fail(http.StatusForbidden, "InvalidAccessKeyId", "the access key does not come from RequestUploadCredentials, or its session token is missing"))
	case !ok || s.date[:8] != a.Day:
		return nil, fail(http.StatusForbidden, "AccessDenied", "X-Amz-Date %.40q: want the time of the signature as yyyymmddThhmmssZ, on the day of the credential", s.date)
	case a.Service != service:
		return nil, fail(http.StatusBadRequest, "AuthorizationHeaderMalformed", "the credential is for the service %.40q; want %s", a.Service, service)
	case !a.Signs("host") || until.IsZero() && r.Header.Get("X-Amz-Content-Sha256") != "" && !a.Signs("x-amz-content-sha256"):
		return nil, fail(http.StatusForbidden, "AccessDenied", "host and x-amz-content-sha256 must be signed headers")
	case s.payload == "":
		return nil, fail(http.StatusBadRequest, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	case until.IsZero() && at.Sub(now).Abs() > sigv4.ServerSkew || at.Sub(now) > sigv4.ServerSkew:
		return nil, d.failed(r, signin.Clock, a.KeyID, fail(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large: the service has %s.", now.UTC().Format(sigv4.TimeForm)))
	case !until.IsZero() && now.After(until):
		return nil, fail(http.StatusForbidden, "AccessDenied", "Request has expired")
	}
	s.upload, s.scope, s.signature, s.key = upload, a.Scope, a.Signature, sigv4.NewKey(upload.Secret, &a.Credential)
	if !s.key.Matches(s.date, canonical(r, query, &a, s.payload), a.Signature) {
		return nil, d.failed(r, signin.WrongSecret, a.KeyID, wrongSignature())
	}
	switch {
	case !now.Before(upload.Expires): // revealed only to clients that have the secret
		return nil, fail(http.StatusBadRequest, "ExpiredToken", "The provided token has expired: RequestUploadCredentials returns a new one.")
	case (s.payload == unsignedPayload || s.payload == unsignedTrailers) && !d.Private(r):
		return nil, fail(http.StatusForbidden, "AccessDenied", "%s is accepted over TLS only, because others on the network could change the content", s.payload)
	}
	return s, nil
}

// failed counts a failed sign-in and returns the answer.
func (d *Door) failed(r *http.Request, reason signin.Reason, keyID string, err error) error {
	if slow := d.Signins.Fail(signin.Failure{From: d.Proxies.Of(r), Reason: reason, KeyID: keyID}); slow != nil {
		return fail(http.StatusServiceUnavailable, "SlowDown", "%s", slow)
	}
	return err
}

// canonical returns the text that the client signed. S3 escapes a path once, whereas other services do so twice.
func canonical(r *http.Request, query url.Values, a *sigv4.Authorization, payload string) []byte {
	text := append([]byte(r.Method), '\n')
	text = append(sigv4.AppendEscaped(text, r.URL.Path, "/"), '\n')
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name == queryPrefix+"Signature" {
			continue
		}
		for _, value := range slices.Sorted(slices.Values(query[name])) {
			pairs = append(pairs, string(sigv4.AppendEscaped(append(sigv4.AppendEscaped(nil, name, ""), '='), value, "")))
		}
	}
	text = append(append(text, strings.Join(pairs, "&")...), '\n')
	for name := range strings.SplitSeq(a.SignedHeaders, ";") {
		text = append(append(text, name...), ':')
		text = append(sigv4.AppendHeader(text, r, name), '\n')
	}
	text = append(append(text, '\n'), a.SignedHeaders...)
	return append(append(text, '\n'), payload...)
}
