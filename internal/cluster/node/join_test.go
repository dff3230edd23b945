package node_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/waittest"
)

// joinAs asks a cluster to admit a node of this name, as a program with the token can. It returns the reason of a refusal, or "" if it was admitted.
func joinAs(t *testing.T, token, name string) string {
	t.Helper()
	parsed, err := trust.ParseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(map[string]any{"token": parsed.ID, "secret": parsed.Secret.Text(), "node": name, "address": "127.0.0.1:9", "level": 1000})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := link.Join(t.Context(), parsed, nil, request)
	if err != nil {
		t.Fatal(err)
	}
	var content struct{ Refused, Secret string }
	if err := json.Unmarshal(answer, &content); err != nil || (content.Refused == "") != (content.Secret != "") {
		t.Fatalf("the answer is %s: %v", answer, err)
	}
	return content.Refused
}

func (m *member) tokens() (all []access.JoinToken) {
	m.t.Helper()
	if err := m.Read(m.t.Context(), func(v *cell.View) error { all = v.JoinTokens(); return nil }); err != nil {
		m.t.Error(err)
	}
	return all
}

// A node whose join is complete no longer needs its token: from then on the token admits no node, not even one with the node's name.
func TestTokenOfAJoinedNode(t *testing.T) {
	first := start(t, options(t.TempDir(), ""))
	token := first.token()
	second := start(t, options(t.TempDir(), token))
	waittest.Until(t, "the token is no longer valid", func() bool { return len(first.tokens()) == 0 })
	if why := joinAs(t, token, second.ID()); !strings.Contains(why, "was used") {
		t.Errorf("its name was admitted again: %q", why)
	}
}

// The audit log has the address from which a node joined, not the one that the node advertises, which may be any address.
func TestJoinIsRecordedWithItsOrigin(t *testing.T) {
	first := start(t, options(t.TempDir(), ""))
	if why := joinAs(t, first.token(), "stranger"); why != "" {
		t.Fatalf("refused: %s", why)
	}
	page, err := audit.Read(t.Context(), first.Engine, audit.Filter{Door: audit.DoorCluster}, 0, 10)
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Address != "127.0.0.1" {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// If the token of a joining node is empty, because the command that prints one failed, the node does not begin a second cluster.
func TestEmptyToken(t *testing.T) {
	o := options(t.TempDir(), "")
	o.Joins = true
	for token, want := range map[string]string{"": "the token is empty", "muster-join.of-a-host": "does not begin with muster-join-1/"} {
		o.Join = token
		if n, err := node.Open(t.Context(), o); err == nil {
			_ = n.Close()
			t.Fatalf("opened with %q", token)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v", token, err)
		}
	}
	o.Join, o.Joins = "", false // it may still begin a cluster
	first := start(t, o)
	first.end()
	o.Joins = true // no longer matters
	start(t, o)
}

// A node whose join was interrupted can repeat it with its token, until it is removed.
func TestTokenOfARemovedNode(t *testing.T) {
	first := start(t, options(t.TempDir(), ""))
	token := first.token()
	for range 2 {
		if why := joinAs(t, token, "absent"); why != "" {
			t.Fatalf("refused: %s", why)
		}
	}
	if why := joinAs(t, token, "other"); !strings.Contains(why, "used by another node") {
		t.Errorf("another node: %q", why)
	}
	if _, err := first.Change(t.Context(), node.Change{Do: node.Remove, Node: "absent"}); err != nil {
		t.Fatal(err)
	}
	if why := joinAs(t, token, "absent"); !strings.Contains(why, "was used") {
		t.Errorf("the removed node was admitted again: %q", why)
	}
	// A request that another member had checked before the removal.
	if _, err := first.Change(t.Context(), node.Change{Do: node.Add, Node: "absent", Address: "127.0.0.1:9", Token: "gone"}); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("added with a void token: %v", err)
	}
	if s := first.Status(); len(s.Members) != 1 {
		t.Errorf("the members are %+v", s.Members)
	}
}

// A node that joins at the address of a node whose machine is lost is told to have that one removed first. Its token is still valid afterwards.
func TestJoinAtTheAddressOfALostNode(t *testing.T) {
	first := start(t, options(t.TempDir(), ""))
	if why := joinAs(t, first.token(), "lost"); why != "" {
		t.Fatal(why)
	}
	token := first.token()
	if why := joinAs(t, token, "new"); !strings.Contains(why, "127.0.0.1:9 is the address of node lost") {
		t.Errorf("refused with %q", why)
	}
	if _, err := first.Change(t.Context(), node.Change{Do: node.Remove, Node: "lost"}); err != nil {
		t.Fatal(err)
	}
	if why := joinAs(t, token, "new"); why != "" {
		t.Errorf("refused after the removal: %s", why)
	}
}
