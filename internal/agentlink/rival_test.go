package agentlink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Two agents with one identity, as on machines from a copied image, are told of each other, and the log tells the operator. No process ends. An agent that only reconnects is no rival.
func TestAgentsThatShareAnIdentity(t *testing.T) {
	w := newWorld(t)
	m := w.rack(0, "rack-1")[0]
	id := 0
	beat := func(a *agent) {
		id++
		a.send(fmt.Sprintf(`{"Action":"SendHeartbeat","RequestId":"%d","Status":"Active","ProcessList":[],"HeartbeatTimeMillis":1}`, id))
		a.wait(fmt.Sprintf(`"RequestId":"%d"`, id))
	}
	first := m.join()
	beat(first)
	again := m.join()
	beat(again)
	beat(again)
	beat(first) // one that was on its way
	if text := w.log.String(); strings.Contains(text, "identity") {
		t.Errorf("an agent that connects again is told of: %s", text)
	}
	beat(first) // and goes on: it is later by more than Rival
	for _, a := range []*agent{first, again} {
		a.wait(`"Action":"HostShared"`, `"127.0.0.1"`)
		if beat(a); a.ended() {
			t.Error("an agent was disconnected")
		}
	}
	beat(first)
	if all := w.door.Reports(); len(all) != 1 || !slices.Equal(all[0].Shared, []string{"127.0.0.1"}) {
		t.Errorf("the agents' reports are %+v", all)
	}
	if text := w.log.String(); strings.Count(text, "several agents use the identity") != 1 || !strings.Contains(text, "host="+m.id) || !strings.Contains(text, "host.json") {
		t.Errorf("the log says %s", text)
	}
}
