package cell

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
	"github.com/musterhq/muster/internal/sim/canon"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestLoadTogether: a snapshot gives the same cell in whatever order its tasks run, and when they run at the same time.
func TestLoadTogether(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("anna", "ben")
	w.play(false, flow.ReconnectOptional, "anna", "ben")
	for i := range 400 { // more than one task decodes
		w.party(fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
	var snapshot bytes.Buffer
	if err := w.cell.Freeze().Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	for name, together := range map[string]kernel.Together{
		"backwards": func(n int, task func(int)) {
			for i := range n {
				task(n - 1 - i)
			}
		},
		"at the same time": func(n int, task func(int)) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { task(i) })
			}
			all.Wait()
		},
	} {
		loaded := New(w.cell.config)
		if err := loaded.LoadTogether(bytes.NewReader(snapshot.Bytes()), together); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := errors.Join(canon.Differ(name, loaded.Freeze(), w.cell.Freeze()), checkState(loaded)); err != nil {
			t.Error(err)
		}
	}
}

// TestContradictions: records of a snapshot that cannot be together are an error.
func TestContradictions(t *testing.T) {
	const player, login, party, membership = 30, 31, 32, 35
	id := flow.LoginSessionID{1}
	anna := storedPart{player, &flow.Player{ID: "anna"}}
	replaced := storedPart{login, &flow.Login{ID: id, State: flow.LoginReplaced}}
	alone := storedPart{party, &flow.Party{ID: flow.PartyID(id)}}
	for name, parts := range map[string][]storedPart{
		"two players with one id":         {anna, anna},
		"two login sessions with one id":  {replaced, replaced},
		"two parties with one id":         {alone, alone},
		"a login session without player":  {{login, &flow.Login{ID: id, Player: "anna", State: flow.LoginLive}}},
		"a membership without instance":   {anna, {membership, &flow.Membership{Player: "anna", Instance: flow.InstanceID(id)}}},
		"a membership without its player": {{membership, &flow.Membership{Player: "anna"}}},
	} {
		if err := New(DefaultConfig()).Load(bytes.NewReader(stored(parts...))); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want an error that says that it is malformed", name, err)
		}
	}
	if err := New(DefaultConfig()).Load(bytes.NewReader(stored(anna, replaced, alone))); err != nil {
		t.Errorf("without a contradiction: %v", err)
	}
}

// storedPart is a part of a snapshot.
type storedPart struct {
	kind   protowire.Number
	record wire.Message
}

// stored returns a snapshot of these parts.
func stored(parts ...storedPart) (snapshot []byte) {
	const end = 10
	for _, p := range append([]storedPart{{partHead, &kernel.Head{}}}, append(parts, storedPart{end, &kernel.Ticked{}})...) {
		part := protowire.AppendBytes(protowire.AppendTag(nil, p.kind, protowire.BytesType), wire.Append(nil, p.record))
		snapshot = protowire.AppendBytes(snapshot, part)
	}
	return snapshot
}
