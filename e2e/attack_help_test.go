package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

func basic(id, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
}

// sentUnsigned lists fleets with a request whose signature does not cover the body.
func sentUnsigned(t *testing.T, url, id, secret string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/", strings.NewReader("{}"))
	must(t, err)
	const unsigned = "UNSIGNED-PAYLOAD"
	r.Header.Set("X-Amz-Target", "GameLift.ListFleets")
	r.Header.Set("Content-Type", amzMedia)
	r.Header.Set("X-Amz-Content-Sha256", unsigned)
	must(t, v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}, r, unsigned, "gamelift", region, time.Now()))
	var headers []string
	for name := range r.Header {
		headers = append(headers, name, r.Header.Get(name))
	}
	status, _, text = sent(t, http.MethodPost, url+"/", "{}", headers...)
	return status, text
}
