package serverlink

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/sigv4"
)

const (
	signingService = "gamelift"

	// signatureReturn is how much older the signature of a live process may be. SDKs that reconnect repeat their first signature
	// until they have a token, which they receive within this time. C++, which does not send its signature with every connection,
	// gets a token as soon as it is ready: within the five minutes until ProcessReady and one cycle of connection attempts (156
	// s). See docs/spec/server-sdk.md#authentication, #reconnection and #timers.
	signatureReturn = 10 * time.Minute

	// signatureReplaced is how long before its end a signature is replaced by a token. It allows for a repeated RefreshConnection
	// and one cycle of connection attempts.
	signatureReplaced = 5 * time.Minute
)

// signature is the SigV4 variant of authentication. It does not sign a normal SigV4 request, only the three ids.
type signature struct{ algorithm, credential, date, value, token string }

// accessKey returns the id of the key that the signature names.
func (s signature) accessKey() string {
	id, _, _ := strings.Cut(s.credential, "/")
	return id
}

// check verifies the signature with the key's secret.
func (s signature) check(key fleet.Key, secret string) error {
	c, ok := sigv4.ParseCredential(s.credential)
	switch {
	case s.algorithm != sigv4.Algorithm:
		return fmt.Errorf("X-Amz-Algorithm is %.40q, want %q", s.algorithm, sigv4.Algorithm)
	case !ok || c.Service != signingService || c.KeyID != s.accessKey():
		return fmt.Errorf("X-Amz-Credential is %.200q, want %s of the service %s", s.credential, sigv4.CredentialForm, signingService)
	case !strings.HasPrefix(s.date, c.Day+"T"):
		return fmt.Errorf("X-Amz-Date %.40q is not of the credential's day %.40q", s.date, c.Day)
	case !sigv4.NewKey(secret, &c).Matches(s.date, sigv4.AppendIDs(nil, key.Compute, key.Fleet, key.Process), s.value):
		return fmt.Errorf("X-Amz-Signature does not match for access key %.40q", c.KeyID)
	}
	return nil
}

// checkAge returns the age of a signature. It refuses one older than past, or more than ahead in the future. The client's language
// makes no difference, although the C# SDK signs with local time but writes Z: if naming that SDK widened the bound, every client
// could name it. docs/spec/server-sdk.md#authentication; B053.
func (s signature) checkAge(now time.Time, past, ahead time.Duration) (age time.Duration, err error) {
	at, ok := sigv4.ParseTime(s.date)
	if !ok {
		return 0, fmt.Errorf("X-Amz-Date %.40q, want the form YYYYMMDDTHHMMSSZ", s.date)
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
