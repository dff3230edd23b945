package s3

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a machine without credentials and without an endpoint for a machine's role, the error comes soon and names the places for credentials.
func TestNoCredentials(t *testing.T) {
	nowhere, err := net.Listen("tcp", "127.0.0.1:0") // accepts and does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://"+nowhere.Addr().String())
	c, err := Open(t.Context(), Place{Bucket: "games"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = c.FindCredentials(t.Context())
	if took := time.Since(began); err == nil || took > 2*machineWait {
		t.Fatalf("after %v: %v", took, err)
	}
	for _, word := range []string{"s3://games", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "role of this machine"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if c, err = Open(t.Context(), Place{Bucket: "games"}); err != nil {
		t.Fatal(err)
	}
	if err := c.FindCredentials(t.Context()); err != nil {
		t.Error(err)
	}
}
