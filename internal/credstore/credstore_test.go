package credstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCredentialInTheStore: commands that do not see the credential of the systemd service read the file in the store instead.
func TestCredentialInTheStore(t *testing.T) {
	credentials, store := t.TempDir(), t.TempDir()
	credential, stored := filepath.Join(credentials, "muster.service", "key"), filepath.Join(store, "key")
	for _, step := range []struct {
		made, want string
	}{{"", credential}, {stored, stored}, {credential, credential}} {
		if step.made != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(step.made), 0o700), os.WriteFile(step.made, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if got := visible(credential, credentials, store); got != step.want {
			t.Errorf("after %q was made: got %s, want %s", step.made, got, step.want)
		}
	}
	if got := visible(filepath.Join(t.TempDir(), "muster.service", "key"), credentials, store); got == stored {
		t.Error("a file that is no credential is taken from the store")
	}
}
