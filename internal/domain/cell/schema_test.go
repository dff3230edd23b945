package cell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const protoDir = "../../../proto"

func compile(t *testing.T, path string) protoreflect.FileDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{protoDir}})}
	files, err := c.Compile(context.Background(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return files[0]
}

// TestSchema compares every hand-written message with proto/journal.proto, in both directions, with random contents.
func TestSchema(t *testing.T) {
	file := compile(t, "journal.proto")
	messages := map[string]func() wire.Message{
		"Location": func() wire.Message { return &fleet.Location{} }, "Fleet": func() wire.Message { return &fleet.Fleet{} },
		"Compute": func() wire.Message { return &fleet.Compute{} }, "Process": func() wire.Message { return &fleet.Process{} },
		"FleetEvent": func() wire.Message { return &fleet.Event{} }, "Creation": func() wire.Message { return &fleet.Creation{} },
		"GameSession": func() wire.Message { return &session.GameSession{} }, "PlayerSession": func() wire.Message { return &hosting.PlayerSession{} },
		"GameServerGroup": func() wire.Message { return &gameservers.Group{} }, "GameServer": func() wire.Message { return &gameservers.Server{} },
		"Build":                    func() wire.Message { return &fleet.Build{} },
		"Rollout":                  func() wire.Message { return &fleet.Rollout{} },
		"Alias":                    func() wire.Message { return &fleet.Alias{} },
		"Queue":                    func() wire.Message { return &placement.Queue{} },
		"Placement":                func() wire.Message { return &placement.Placement{} },
		"Notice":                   func() wire.Message { return &notice.Notice{} },
		"Subscription":             func() wire.Message { return &notice.Subscription{} },
		"RuleSet":                  func() wire.Message { return &matchmaking.RuleSet{} },
		"MatchmakingConfiguration": func() wire.Message { return &matchmaking.Configuration{} },
		"Ticket":                   func() wire.Message { return &matchmaking.Ticket{} },
		"MatchPlayer":              func() wire.Message { return &matchmaking.Player{} },
		"Match":                    func() wire.Message { return &matchmaking.Match{} },
		"Hosted":                   func() wire.Message { return &matchmaking.Hosted{} },
		"RecentWaits":              func() wire.Message { return &matchmaking.Recent{} },
		"SnapshotHead":             func() wire.Message { return &kernel.Head{} },
		"FlowPlayer":               func() wire.Message { return &flow.Player{} },
		"LoginSession":             func() wire.Message { return &flow.Login{} }, "Party": func() wire.Message { return &flow.Party{} },
		"PartyInvite": func() wire.Message { return &flow.Invite{} }, "GameInstance": func() wire.Message { return &flow.Instance{} },
		"Membership": func() wire.Message { return &flow.Membership{} }, "AnsweredRequest": func() wire.Message { return &flow.Request{} },
		"LoginTicket": func() wire.Message { return &flow.LoginTicket{} }, "FlowQueue": func() wire.Message { return &flow.Queue{} },
		"SearchAdvice": func() wire.Message { return &flow.Advice{} },
		"FlowMessage":  func() wire.Message { return &flow.Message{} },
		"GameNotice":   func() wire.Message { return &flow.Notice{} }, "GameServerOutbox": func() wire.Message { return &flow.ServerOutbox{} },
		"EventSubscription": func() wire.Message { return &flow.Subscription{} }, "StudioEvent": func() wire.Message { return &flow.StudioEvent{} },
		"FlowFeed":      func() wire.Message { return &playerflow.FeedPart{} },
		"FlowChange":    func() wire.Message { return &flow.Change{} },
		"FlowOverrides": func() wire.Message { return &flow.Overrides{} },
		"AccessKey":     func() wire.Message { return &access.Key{} }, "AccessTakenOver": func() wire.Message { return &access.TakenOver{} },
		"Assignment": func() wire.Message { return &capacity.Assignment{} }, "Scaling": func() wire.Message { return &capacity.Scaling{} },
		"GrantDevice": func() wire.Message { return &grants.Device{} }, "GrantUsed": func() wire.Message { return &grants.Used{} },
		"Host": func() wire.Message { return &hosts.Host{} }, "HostToken": func() wire.Message { return &hosts.Token{} },
		"SignIn": func() wire.Message { return &people.SignIn{} }, "Person": func() wire.Message { return &people.Person{} },
		"AuditHead": func() wire.Message { return &audit.Head{} }, "AuditWaiting": func() wire.Message { return &audit.Waiting{} },
		"Loss": func() wire.Message { return &access.Loss{} }, "Node": func() wire.Message { return &membership.Node{} },
	}
	events := file.Messages().ByName("Event").Oneofs().ByName("event").Fields()
	for i := range events.Len() {
		f := events.Get(i)
		if e := kinds().NewEvent(kernel.Kind(f.Number())); e == nil {
			t.Errorf("no event for %s = %d", f.Name(), f.Number())
		} else if name := reflect.TypeOf(e).Elem().Name(); name != string(f.Message().Name()) {
			t.Errorf("kind %d is %s, the schema says %s", f.Number(), name, f.Message().Name())
		} else {
			messages[name] = func() wire.Message { return kinds().NewEvent(kernel.Kind(f.Number())) }
			if got := kernel.LevelOf(e); got != levelOf(f) {
				t.Errorf("%s has level %d, the schema says %d", name, got, levelOf(f))
			}
		}
	}
	parts := file.Messages().ByName("SnapshotPart").Oneofs().ByName("part").Fields()
	for i := range parts.Len() {
		f := parts.Get(i)
		if record := messages[string(f.Message().Name())]; record != nil && kernel.LevelOf(record()) != levelOf(f) {
			t.Errorf("part %s has level %d, the schema says %d", f.Name(), kernel.LevelOf(record()), levelOf(f))
		}
	}
	for k := range 512 {
		if kinds().NewEvent(kernel.Kind(k)) != nil && events.ByNumber(protoreflect.FieldNumber(k)) == nil {
			t.Errorf("kind %d is not in the schema", k)
		}
	}
	for name, empty := range messages {
		descriptor := file.Messages().ByName(protoreflect.Name(name))
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			want := dynamicpb.NewMessage(descriptor)
			fill(random, want)
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			ours := empty()
			if err := wire.Unmarshal(b, ours); err != nil {
				t.Fatalf("%s: read %v: %v", name, want, err)
			}
			got := dynamicpb.NewMessage(descriptor)
			if err := proto.Unmarshal(wire.Append(nil, ours), got); err != nil {
				t.Fatalf("%s: the protobuf library does not read what was written: %v", name, err)
			}
			if !proto.Equal(normal(got), normal(want)) {
				t.Fatalf("%s:\n got %v\nwant %v", name, got, want)
			}
		}
	}
}

// normal returns m without message fields that are present but empty: they are the same to us.
func normal(m *dynamicpb.Message) proto.Message {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				normal(v.List().Get(i).Message().Interface().(*dynamicpb.Message))
			}
		default:
			if normal(v.Message().Interface().(*dynamicpb.Message)); proto.Size(v.Message().Interface()) == 0 {
				m.Clear(f)
			}
		}
		return true
	})
	return m
}

func fill(r *rand.Rand, m *dynamicpb.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case r.IntN(4) == 0:
		case f.IsList():
			list := m.Mutable(f).List()
			for range r.IntN(4) {
				list.Append(value(r, f, list.NewElement))
			}
		default:
			m.Set(f, value(r, f, func() protoreflect.Value { return m.NewField(f) }))
		}
	}
}

func value(r *rand.Rand, f protoreflect.FieldDescriptor, empty func() protoreflect.Value) protoreflect.Value {
	// Numbers stay within the smallest Go type that stands for them: statuses are bytes, ports two of them.
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(2) == 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.Repeat("ä", r.IntN(100)))
	case protoreflect.BytesKind:
		b := make([]byte, 16)
		for i := range b {
			b[i] = byte(r.IntN(255) + 1)
		}
		return protoreflect.ValueOfBytes(b)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(r.Int64N(1 << 26))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(r.Int32())
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(r.IntN(5)))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(r.Uint64())
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(r.Float64())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(r.Float32())
	case protoreflect.MessageKind:
		v := empty()
		fill(r, v.Message().Interface().(*dynamicpb.Message))
		return v
	}
	panic(fmt.Sprint("no value for ", f.FullName()))
}

// levelOf returns the level of an event or a part of a snapshot in the schema.
func levelOf(f protoreflect.FieldDescriptor) uint {
	level := uint(1)
	f.Options().ProtoReflect().Range(func(x protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if x.IsExtension() && x.Name() == "level" {
			level = uint(v.Uint())
		}
		return true
	})
	return level
}

// checkLevels checks that what was added since a release has a higher level than all of that release, and what is of that release has kept its own. Releases before
// levels ran on single machines only.
func checkLevels(t *testing.T, release string, then, now protoreflect.FileDescriptor, message, oneof protoreflect.Name) {
	if then.Extensions().ByName("level") == nil {
		return
	}
	old, fields := then.Messages().ByName(message).Oneofs().ByName(oneof).Fields(), now.Messages().ByName(message).Oneofs().ByName(oneof).Fields()
	highest := uint(1)
	for i := range old.Len() {
		highest = max(highest, levelOf(old.Get(i)))
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		if was := old.ByNumber(f.Number()); was != nil && levelOf(was) != levelOf(f) || was == nil && levelOf(f) <= highest {
			t.Errorf("%s of %s has level %d; %s knows levels up to %d", f.Name(), message, levelOf(f), release, highest)
		}
	}
}

// TestSchemaNeverBreaks compares the schema with that of every release: data that a release wrote must stay readable.
func TestSchemaNeverBreaks(t *testing.T) {
	released, err := filepath.Glob(filepath.Join(protoDir, "released", "*.proto"))
	if err != nil || len(released) == 0 {
		t.Fatalf("no released schemas: %v", err)
	}
	now := compile(t, "journal.proto")
	for _, path := range released {
		name, _ := filepath.Rel(protoDir, path)
		then := compile(t, name)
		checkLevels(t, name, then, now, "Event", "event")
		checkLevels(t, name, then, now, "SnapshotPart", "part")
		for i := range then.Messages().Len() {
			old := then.Messages().Get(i)
			m := now.Messages().ByName(old.Name())
			if m == nil {
				t.Errorf("%s: message %s is gone", name, old.Name())
				continue
			}
			for j := range old.Fields().Len() {
				was := old.Fields().Get(j)
				is := m.Fields().ByNumber(was.Number())
				if is == nil || is.Name() != was.Name() || is.Kind() != was.Kind() || is.Cardinality() != was.Cardinality() {
					t.Errorf("%s: %s was %v, is %v", name, was.FullName(), was, is)
				}
			}
		}
	}
	if _, err := os.Stat(filepath.Join(protoDir, "journal.proto")); err != nil {
		t.Error(err)
	}
}
