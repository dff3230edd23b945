package main

import (
	"testing"

	"github.com/musterhq/muster/internal/identity"
)

// TestKeyOfTheDataDirectory: a command that finds an access key in the data directory does not take one that works only from other networks.
func TestKeyOfTheDataDirectory(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	for _, role := range []identity.Role{identity.ReadOnly, identity.Admin} {
		mustRun(t, nil, "keys", "limit", "--data", dir, keys[role].ID, "--source", "192.0.2.1")
		mustRun(t, nil, "hosts", "--data", dir, "--listen", address)
		mustRun(t, nil, "keys", "limit", "--data", dir, keys[role].ID, "--source", "anywhere")
	}
}
