package events

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/state"
)

// Every event has a schema, and matches it.
func TestEveryEventHasAForm(t *testing.T) {
	w := Writer{&state.State{Objects: objects.Translator{Sign: func(string, *flow.Host) string { return "" }}}}
	m := &flow.Message{Party: &flow.PartyView{}, Invite: &flow.InviteView{}, Search: &flow.Search{}, Host: &flow.Host{}, Penalty: &flow.Penalty{}}
	kind := flow.OnSync
	for _, form := range forms {
		if form.kind != kind {
			t.Errorf("the forms have %s, want %s", form.kind, kind)
		}
		if kind++; form.kind == flow.OnSync {
			continue
		}
		if got := reflect.TypeOf(w.data(form.kind, m, "ann")); got != form.data {
			t.Errorf("%s is a %s, want %s", form.kind, got, form.data)
		}
	}
	if kind != flow.OnAllowedActionsChanged+1 {
		t.Errorf("the forms end before %s", kind)
	}
	// An earlier release may have written these: they do not stop the service.
	for _, form := range forms[1:] {
		if data := w.data(form.kind, &flow.Message{Invite: m.Invite, Penalty: m.Penalty}, "ann"); data == nil {
			t.Errorf("%s without anything in it is nothing", form.kind)
		}
	}
}

// Every event of the core is in the page about the stream.
func TestEveryEventIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/player-flow/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for kind := flow.OnSync; kind <= flow.OnMaintenance; kind++ {
		if !strings.Contains(string(page), "{const: "+kind.String()+",") {
			t.Errorf("docs/player-flow/asyncapi.yaml says nothing of %s", kind)
		}
	}
}
