package agentlink

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/hostproof"
)

// restrict attaches a policy with these statements to a target, instead of all others.
func (w *world) restrict(target, statements string) {
	w.Helper()
	err := w.keys.PublishPolicies([]access.Policy{{Name: "p", Text: `{"Version":"2012-10-17","Statement":[` + statements + `]}`}},
		[]access.PolicyAttachment{{Policy: "p", Target: access.ParseTarget(target)}})
	if err != nil {
		w.Fatal(err)
	}
}

const (
	everywhere = `{"Effect":"Allow","Action":"*","Resource":"*"}`
	offBuilt   = everywhere + `,{"Effect":"Deny","Action":"muster:Agent.Connect","Resource":"arn:aws:gamelift:*:*:fleet/` + builtFleet + `"}`
	fromOffice = `{"Effect":"Allow","Action":"muster:Agent.Connect","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}`
)

// Policies of a host, and those of all hosts, apply when its agent connects, while it is connected, and when it starts to serve another fleet.
func TestAttackPoliciesOfAgents(t *testing.T) {
	w := newWorld(t)
	all := w.rack(0, "rack-1", "rack-2")
	m, other := all[0], all[1]
	ended := func(conn *websocket.Conn) {
		t.Helper()
		for {
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := conn.ReadMessage(); err != nil {
				if !websocket.IsCloseError(err, closeRevoked) {
					t.Errorf("the connection ended with %v, want close code %d", err, closeRevoked)
				}
				return
			}
		}
	}
	open := func(m *machine) *websocket.Conn {
		t.Helper()
		conn, _, err := m.proven(hostproof.Sign(m.key, m.claim()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	denied := func(m *machine) {
		t.Helper()
		if why := m.refuse(hostproof.Sign(m.key, m.claim()), http.StatusForbidden); !strings.Contains(why, "not authorized to perform: muster:Agent.Connect") {
			t.Errorf("the answer is %s", why)
		}
	}

	conn, others := open(m), open(other)
	w.restrict("host:"+m.id, fromOffice)
	ended(conn)
	denied(m)
	open(other)
	w.restrict("host:*", fromOffice)
	ended(others)
	denied(other)
	w.restrict("host:none", fromOffice)
	conn = open(m)
	w.restrict("host:*", everywhere)
	open(other)

	w.restrict("host:*", offBuilt)
	w.want(2)
	w.must(&capacity.Plan{})
	ended(conn) // the host serves the fleet now
	denied(m)
	w.restrict("role:admin", offBuilt)
	open(m)
}

// An agent with the token of a compute has the policies of all hosts.
func TestPoliciesOfComputes(t *testing.T) {
	w := newWorld(t)
	w.restrict("host:*", `{"Effect":"Allow","Action":"muster:Agent.Connect","Resource":"arn:aws:gamelift:*:*:fleet/fleet-other"}`)
	by := w.keys.Host("", "192.0.2.1")
	if err := w.door.mayConnect(t.Context(), &by, testFleet); err == nil || !strings.Contains(err.Error(), "host/compute is not authorized") {
		t.Errorf("another fleet: %v", err)
	}
	w.restrict("host:*", everywhere)
	by = w.keys.Host("", "192.0.2.1")
	if err := w.door.mayConnect(t.Context(), &by, testFleet); err != nil {
		t.Errorf("every fleet: %v", err)
	}
}
