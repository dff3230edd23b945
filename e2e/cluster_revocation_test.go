package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/waittest"
)

// A key and a session that are revoked at one node are refused at all nodes. The log of the test has the delays since the command
// returned; docs/guide/credentials.md names them.
func TestRevocationAtEveryNode(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t, "--dev=false")
	admin, adminSecret := nodes[0].key("admin")
	key := func() aws.Credentials {
		id, secret := nodes[0].key("backend")
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	}
	var keyTimes, sessionTimes []time.Duration
	for round := range 5 {
		at := nodes[round%len(nodes)]
		k := key()
		everywhere(t, nodes, k)
		_, err := at.remote(admin, adminSecret, "keys", "revoke", k.AccessKeyID)
		must(t, err)
		keyTimes = append(keyTimes, refusedEverywhere(t, nodes, k)...)

		k = key()
		everywhere(t, nodes, k)
		c := at.assume(k.AccessKeyID, k.SecretAccessKey, "readonly", "report")
		everywhere(t, nodes, c)
		_, err = at.remote(admin, adminSecret, "keys", "revoke-credentials", "--session", c.AccessKeyID)
		must(t, err)
		sessionTimes = append(sessionTimes, refusedEverywhere(t, nodes, c)...)
		everywhere(t, nodes, k) // the key behind the session goes on
	}
	for what, times := range map[string][]time.Duration{"keys": keyTimes, "sessions": sessionTimes} {
		slices.Sort(times)
		t.Logf("revoked %s are refused at all nodes within %s, at half of the nodes within %s", what, times[len(times)-1], times[len(times)/2])
	}
}

// everywhere waits until credentials work at all nodes.
func everywhere(t *testing.T, nodes []*service, c aws.Credentials) {
	t.Helper()
	for _, n := range nodes {
		waittest.Until(t, "credentials to work at every node", func() bool { return n.lists(c) == nil })
	}
}

// refusedEverywhere waits until all nodes refuse credentials, and returns how long each took.
func refusedEverywhere(t *testing.T, nodes []*service, c aws.Credentials) []time.Duration {
	t.Helper()
	began, times := time.Now(), make([]time.Duration, len(nodes))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var asking sync.WaitGroup
	for i, n := range nodes {
		asking.Go(func() {
			for !hasCode(n.lists(c), "UnrecognizedClientException") {
				if ctx.Err() != nil {
					t.Errorf("node %d accepts revoked credentials", i)
					return
				}
				time.Sleep(time.Millisecond)
			}
			times[i] = time.Since(began)
		})
	}
	asking.Wait()
	return times
}
