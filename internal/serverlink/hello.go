package serverlink

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/domain/fleet"
)

// hello contains the query parameters of a game server's connection request. docs/spec/server-sdk.md#query.
type hello struct {
	key         fleet.Key
	sdkVersion  string
	sdkLanguage string

	authorization string // the auth token, the word SigV4, or empty
	signature     signature

	from string // client address, which is not part of the query
}

// processIDBytes bounds process ids, which become keys in memory. The SDKs allow any text; games use UUIDs.
const processIDBytes = 1024

var (
	fleetIDForm   = regexp.MustCompile(`^[a-zA-Z0-9.-]{1,256}$`)
	computeIDForm = regexp.MustCompile(`^[a-zA-Z0-9-]+(/[a-zA-Z0-9-]+)?$`)
)

const computeIDBytes = 256

// parseHello reads the query. Unknown parameters are ignored; of a repeated one the first counts.
func parseHello(query string) (hello, error) {
	var h hello
	targets := map[string]*string{
		"pID": &h.key.Process, "ComputeId": &h.key.Compute, "FleetId": &h.key.Fleet,
		"sdkVersion": &h.sdkVersion, "sdkLanguage": &h.sdkLanguage, "Authorization": &h.authorization,
		"X-Amz-Algorithm": &h.signature.algorithm, "X-Amz-Credential": &h.signature.credential,
		"X-Amz-Date": &h.signature.date, "X-Amz-Signature": &h.signature.value, "X-Amz-Security-Token": &h.signature.token,
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if target := targets[name]; target != nil {
			*target = decodeValue(value)
			delete(targets, name)
		}
	}
	switch {
	case h.key.Process == "" || len(h.key.Process) > processIDBytes:
		return hello{}, fmt.Errorf("pID has %d bytes, want 1 to %d", len(h.key.Process), processIDBytes)
	case !fleetIDForm.MatchString(h.key.Fleet):
		return hello{}, fmt.Errorf("FleetId %.300q must match %s", h.key.Fleet, fleetIDForm)
	case len(h.key.Compute) > computeIDBytes || !computeIDForm.MatchString(h.key.Compute):
		return hello{}, fmt.Errorf("ComputeId %.300q must match %s, %d characters at most", h.key.Compute, computeIDForm, computeIDBytes)
	}
	return h, nil
}

// signsOnce reports whether the SDK, after signing once, sometimes reconnects without credentials: C++ does when its requests
// have timed out. docs/spec/server-sdk.md#authentication.
func (h *hello) signsOnce() bool { return h.sdkLanguage == "Cpp" }

// decodeValue percent-decodes but leaves '+' unchanged. C++ and C# send raw text, in which a plus is a plus, and none of our
// values contains a space, which Go would encode as a plus. For the same reason, a '%' that starts no escape is kept.
// docs/spec/server-sdk.md#query-parsing.
func decodeValue(raw string) string {
	if !strings.Contains(raw, "%") {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '%' && i+2 < len(raw) {
			hi, ok1 := unhex(raw[i+1])
			lo, ok2 := unhex(raw[i+2])
			if ok1 && ok2 {
				b.WriteByte(hi<<4 | lo)
				i += 2
				continue
			}
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
