package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/musterhq/muster/internal/waittest"
)

// limitedKey makes a key with more flags of muster keys create.
func (s *service) limitedKey(role string, flags ...string) (id, secret string) {
	s.t.Helper()
	return s.madeBy(append([]string{"keys", "create", "--data", s.data, "--role", role, "--format", "env"}, flags...)...)
}

// madeBy returns the key in a command's output.
func (s *service) madeBy(args ...string) (id, secret string) {
	s.t.Helper()
	out := s.command(args...)
	found := regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+)\n.*AWS_SECRET_ACCESS_KEY=(\S+)`).FindStringSubmatch(out)
	if found == nil {
		s.t.Fatalf("no key in %q", out)
	}
	return found[1], found[2]
}

// from calls the API with a key as a client that claims to be at an address.
func (s *service) from(address, id, secret, token string) error {
	_, err := gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(s.url()), RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(id, secret, token)}).
		ListFleets(s.t.Context(), &gamelift.ListFleetsInput{}, gamelift.WithAPIOptions(smithyhttp.AddHeaderValue("X-Forwarded-For", address)))
	return err
}

// shows sends id and secret to a door that takes no signatures, and returns the status.
func (s *service) shows(path, address, id, secret string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url()+path, nil)
	must(s.t, err)
	r.SetBasicAuth(id, secret)
	r.Header.Set("X-Forwarded-For", address)
	r.Header.Set("X-Client-Id", "probe")
	answer, err := http.DefaultClient.Do(r)
	must(s.t, err)
	answer.Body.Close()
	return answer.StatusCode
}

// A stolen key that is limited to networks is worthless elsewhere: with forged headers, at doors of all kinds, and for its temporary credentials. An expired key
// is worthless everywhere.
func TestAttackKeysWithLimits(t *testing.T) {
	t.Parallel()
	// Behind a proxy at this address, whose header the service trusts.
	s := newService(t, "--dev=false", "--trusted-proxies", "127.0.0.1/32")
	id, secret := s.limitedKey("admin", "--source", "192.0.2.0/24")
	brief, briefSecret := s.limitedKey("admin", "--expires", "1h")
	s.start()
	must(t, s.from("192.0.2.9", id, secret, ""))
	for _, address := range []string{"198.51.100.1", "", "unknown", "192.0.2.9, 198.51.100.1", "2001:db8::1"} {
		refused(t, "the key from "+address, s.from(address, id, secret, ""), "UnrecognizedClientException")
	}
	unknown := s.from("198.51.100.1", "MUSTAAAAAAAAAAAAAAAA", secret, "").Error()
	if got := s.from("198.51.100.2", id, secret, "").Error(); stripID(got) != stripID(unknown) {
		t.Errorf("a key from elsewhere is answered with\n%s\nan unknown one with\n%s", got, unknown)
	}
	for _, path := range []string{"/metrics", "/session/v1/calls/none"} {
		if here, there := s.shows(path, "192.0.2.9", id, secret), s.shows(path, "198.51.100.3", id, secret); here == http.StatusUnauthorized || there != http.StatusUnauthorized {
			t.Errorf("%s: %d from the network, %d from elsewhere", path, here, there)
		}
	}

	// No proxy is trusted here, so the header counts for nothing.
	other := newService(t, "--dev=false")
	here, hereSecret := other.limitedKey("admin", "--source", "127.0.0.1")
	away, awaySecret := other.limitedKey("admin", "--source", "192.0.2.0/24")
	other.start()
	must(t, other.from("198.51.100.1", here, hereSecret, ""))
	refused(t, "with a forged header", other.from("192.0.2.9", away, awaySecret, ""), "UnrecognizedClientException")
	c := other.assume(here, hereSecret, "readonly", "report")
	must(t, other.lists(c))

	must(t, s.from("198.51.100.1", brief, briefSecret, ""))
	list, err := other.remote(here, hereSecret, "keys", "list")
	must(t, err)
	if !strings.Contains(list, "192.0.2.0/24") {
		t.Errorf("the list has no networks: %s", list)
	}
}

// stripID takes away the id of a request.
func stripID(text string) string {
	return regexp.MustCompile(`RequestID: [^,]*`).ReplaceAllString(text, "")
}

// An operator replaces a key while it is in use: both work, the list shows what still uses the old one, and the second step ends it. With an overlap it ends automatically.
func TestRotateAccessKey(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	admin, adminSecret := s.key("admin")
	id, secret := s.limitedKey("backend", "--name", "lobby", "--expires", "90d")
	s.start()
	if out, err := s.commandFails("keys", "rotate", "--data", s.data, "--finish", id); err == nil || !strings.Contains(out, "not being replaced") {
		t.Errorf("finished without a successor: %v, %s", err, out)
	}
	next, nextSecret := s.madeBy("keys", "rotate", "--data", s.data, "--format", "env", id)
	must(t, s.from("", id, secret, ""))
	must(t, s.from("", next, nextSecret, ""))
	if out, err := s.remote(admin, adminSecret, "keys", "rotate", id); err == nil || !strings.Contains(out, "is being replaced by "+next) {
		t.Errorf("rotated twice: %v, %s", err, out)
	}
	out, err := s.remote(admin, adminSecret, "keys", "list")
	must(t, err)
	if row := regexp.MustCompile(`(?m)^` + next + `.*$`).FindString(out); !strings.Contains(row, "lobby") || !strings.Contains(row, "ListFleets from 127.0.0.1") || strings.Count(row, "T") < 3 {
		t.Errorf("the row of the successor is %q", row)
	}
	if out := s.command("keys", "list", "--data", s.data, "--unused", "1h"); strings.Contains(out, id) {
		t.Errorf("new keys count as unused: %s", out)
	}
	done := s.command("keys", "rotate", "--data", s.data, "--finish", id)
	if !strings.Contains(done, "ListFleets from 127.0.0.1") {
		t.Errorf("the second step says %s", done)
	}
	refused(t, "the old key", s.from("", id, secret, ""), "UnrecognizedClientException")
	must(t, s.from("", next, nextSecret, ""))

	// Over the network, with an end.
	out, err = s.remote(admin, adminSecret, "keys", "rotate", next, "--overlap", "2s", "--source", "127.0.0.0/8")
	must(t, err)
	if !strings.Contains(out, "127.0.0.0/8") {
		t.Errorf("the successor is %s", out)
	}
	waittest.Until(t, "the old key expires", func() bool { return hasCode(s.from("", next, nextSecret, ""), "ExpiredTokenException") })
	out, err = s.remote(admin, adminSecret, "keys", "list")
	must(t, err)
	if row := regexp.MustCompile(`(?m)^` + next + `.*$`).FindString(out); !strings.Contains(row, "expired") || !strings.Contains(row, "replaced by MUST") {
		t.Errorf("the row of the expired key is %q", row)
	}
}

// The limits of a key change while it is in use, and are in force when the command returns. A change that would lock out the requesting key or the last admin key is refused with an explanation.
func TestAttackLimitedExistingKeys(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false", "--trusted-proxies", "127.0.0.1/32")
	admin, adminSecret := s.key("admin")
	id, secret := s.key("backend")
	s.start()
	must(t, s.from("198.51.100.1", id, secret, ""))
	limit := func(args ...string) string {
		t.Helper()
		out, err := s.remote(admin, adminSecret, append([]string{"keys", "limit"}, args...)...)
		must(t, err)
		return out
	}
	if out := limit(id, "--source", "192.0.2.0/24", "--expires", "30d", "--reason", "only from the office"); !strings.Contains(out, "from 192.0.2.0/24") || !strings.Contains(out, "until 20") {
		t.Errorf("the answer is %q", out)
	}
	refused(t, "from elsewhere", s.from("198.51.100.1", id, secret, ""), "UnrecognizedClientException")
	must(t, s.from("192.0.2.9", id, secret, ""))
	limit(id, "--source", "anywhere")
	must(t, s.from("198.51.100.1", id, secret, ""))

	for _, args := range [][]string{{"--source", "192.0.2.0/24"}, {"--expires", "1h"}} {
		if out, err := s.remote(admin, adminSecret, append([]string{"keys", "limit", admin}, args...)...); err == nil || !strings.Contains(out, ", or force ") {
			t.Errorf("%v of the own key: %v %s", args, err, out)
		}
	}
	second, secondSecret := s.key("admin")
	out, err := s.remote(admin, adminSecret, "keys", "limit", admin, "--source", "192.0.2.0/24")
	if err == nil || !strings.Contains(out, "signs this request from 127.0.0.1") {
		t.Errorf("networks without the own address: %v %s", err, out)
	}
	limit(admin, "--source", "192.0.2.0/24", "--force")
	if out, err := s.remote(admin, adminSecret, "keys", "list"); err == nil {
		t.Errorf("the key works from elsewhere: %s", out)
	}
	// With the data directory there is always a way back.
	s.command("keys", "limit", "--data", s.data, second, "--source", "192.0.2.0/24")
	s.command("keys", "limit", "--data", s.data, second, "--source", "anywhere", "--expires", "never")
	for _, args := range [][]string{{second}, {second, "--source", "anywhere,192.0.2.0/24"}, {second, "--source", "192.0.2.1/33"}, {second, "--expires", "2020-01-01T00:00:00Z"}, {"MUSTNOTHING", "--expires", "1h"}} {
		if out, err := s.commandFails(append([]string{"keys", "limit", "--data", s.data}, args...)...); err == nil {
			t.Errorf("keys limit %v: %s", args, out)
		}
	}
	entries, err := s.remote(second, secondSecret, "audit", "--json")
	must(t, err)
	for _, want := range []string{"only from the office", `"Sources"`, "192.0.2.0/24", "keys/{id}/limit"} {
		if !strings.Contains(entries, want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
	stranger, strangerSecret := s.key("backend")
	if out, err := s.remote(stranger, strangerSecret, "keys", "limit", second, "--expires", "1h"); err == nil {
		t.Errorf("a backend limits keys: %s", out)
	}

	// While no service runs, and after a restart.
	s.kill()
	s.command("keys", "limit", "--data", s.data, id, "--source", "203.0.113.0/24")
	s.start()
	refused(t, "from elsewhere, after a restart", s.from("198.51.100.1", id, secret, ""), "UnrecognizedClientException")
	must(t, s.from("203.0.113.9", id, secret, ""))
}
