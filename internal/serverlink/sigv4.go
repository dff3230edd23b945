package serverlink

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
)

const (
	signingAlgorithm = "AWS4-HMAC-SHA256"
	signingService   = "gamelift"
	signingEnd       = "aws4_request"
	signingTime      = "20060102T150405Z"

	// DefaultClockSkew is how far the time of a signature may be off the service's clock, in either direction.
	DefaultClockSkew = 15 * time.Minute

	// signatureReturn is how much older the signature of a live process may be. SDKs that reconnect repeat their first one,
	// until they have a token, which they get before this is over. C++, which does not show its signature with every connection,
	// gets one as soon as it is ready: within the five minutes of ProcessReady, and one cycle of attempts to connect (156 s). See
	// docs/spec/server-sdk.md#authentication, #reconnection and #timers.
	signatureReturn = 10 * time.Minute

	// signatureReplaced is how long before its end a signature is replaced by a token: long enough to repeat RefreshConnection and
	// for one cycle of attempts to connect.
	signatureReplaced = 5 * time.Minute
)

// signature is the SigV4 variant of authentication. What is signed is not a normal SigV4 request: only the three ids.
type signature struct{ algorithm, credential, date, value string }

// accessKey is the id of the key that the signature claims.
func (s signature) accessKey() string {
	id, _, _ := strings.Cut(s.credential, "/")
	return id
}

// check verifies the signature with the key's secret.
func (s signature) check(key fleet.Key, secret string) error {
	parts := strings.Split(s.credential, "/")
	switch {
	case s.algorithm != signingAlgorithm:
		return fmt.Errorf("X-Amz-Algorithm is %.40q, must be %q", s.algorithm, signingAlgorithm)
	case len(parts) != 5 || parts[3] != signingService || parts[4] != signingEnd:
		return fmt.Errorf("X-Amz-Credential is %.200q, must be <access key>/<date>/<region>/%s/%s", s.credential, signingService, signingEnd)
	case !strings.HasPrefix(s.date, parts[1]+"T"):
		return fmt.Errorf("X-Amz-Date %.40q is not of the credential's day %.40q", s.date, parts[1])
	}
	text := "ComputeId=" + encodeValue(key.Compute) + "&FleetId=" + encodeValue(key.Fleet) + "&pID=" + encodeValue(key.Process)
	hash := sha256.Sum256([]byte(text))
	toSign := strings.Join([]string{signingAlgorithm, s.date, strings.Join(parts[1:], "/"), hex.EncodeToString(hash[:])}, "\n")

	mac := []byte("AWS4" + secret)
	for _, part := range parts[1:] {
		mac = sign(mac, part)
	}
	want := hex.EncodeToString(sign(mac, toSign))
	if subtle.ConstantTimeCompare([]byte(want), []byte(s.value)) != 1 {
		return fmt.Errorf("X-Amz-Signature does not match for access key %.40q", parts[0])
	}
	return nil
}

// checkAge tells the age of a signature. It refuses one that is older than past, or more than ahead in the future. What the client says of its
// language does not matter: the C# SDK signs with local time but writes Z, and if its claim widened the bound, everybody
// could make it. docs/spec/server-sdk.md#authentication; B053.
func (s signature) checkAge(now time.Time, past, ahead time.Duration) (age time.Duration, err error) {
	at, err := time.Parse(signingTime, s.date)
	if err != nil {
		return 0, fmt.Errorf("X-Amz-Date %.40q must have the form YYYYMMDDTHHMMSSZ", s.date)
	}
	switch age = now.Sub(at); {
	case age > past:
		return age, fmt.Errorf("X-Amz-Date %s is %s before this service's clock, at most %s is accepted%s", s.date, age.Round(time.Second), past, zoneHint)
	case -age > ahead:
		return age, fmt.Errorf("X-Amz-Date %s is %s ahead of this service's clock, at most %s is accepted%s", s.date, (-age).Round(time.Second), ahead, zoneHint)
	}
	return age, nil
}

const zoneHint = " (the C# SDK signs with the host's local time: set the host to UTC, use an auth token, or raise --server-clock-skew)"

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum(nil)
}

// encodeValue percent-encodes by RFC 3986: all but unreserved characters, upper-case digits.
func encodeValue(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
