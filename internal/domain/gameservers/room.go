package gameservers

import (
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Room is the room's number.
const Room kernel.RoomNo = 1

// Contact deadlines.
const (
	GameServerClaim  = kernel.Wait(Room)*kernel.WaitsOfRoom + iota // the claim of a game server
	GameServerHealth                                               // its next healthy report
)

// Tagger merges tags, with the limit that all kinds of resources share.
type Tagger interface {
	Tagged(own keyvalue.Own, have, add []keyvalue.Pair) ([]keyvalue.Pair, error)
}

// State is the room's records and limits.
type State struct {
	*kernel.Kernel
	Config  *Config
	Records *Records
	tags    Tagger
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel, config *Config, tags Tagger) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, Config: config, Records: NewRecords(), tags: tags}}
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Due ends what has reached deadline d.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	if d.Kind == GameServerClaim {
		t.claimOver(ServerRef(d.Ref))
	} else {
		t.removeGameServer(t.Records.Servers.Get(ServerRef(d.Ref)))
	}
	return false
}

// GroupTags returns the tags of a group.
func (c *State) GroupTags(name string) (kernel.Tagged, error) {
	found, err := c.groupByName(name)
	if err != nil {
		return kernel.Tagged{}, err
	}
	g := *found
	return kernel.Tagged{Tags: g.Tags, Store: func(tags []keyvalue.Pair) kernel.Event { g.Tags = tags; return &GameServerGroupChanged{g} }}, nil
}

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	return []kernel.Frozen{kernel.Freeze(partGroup, c.Records.Groups), kernel.Freeze(partServer, c.Records.Servers)}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partGroup  = 14
	partServer = 15
)

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partGroup:
		return true, kernel.LoadInto(l, body, c.Records.Groups)
	case partServer:
		return true, kernel.LoadInto(l, body, c.Records.Servers)
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(*kernel.Head) error {
	c.Records.Restore()
	for r, x := range c.Records.Servers.All() {
		c.Waiting.Set(GameServerClaim, r.Any(), x.ClaimBy)
		c.Waiting.Set(GameServerHealth, r.Any(), x.HealthBy)
	}
	return nil
}

// GameServerCounts counts the records of the room; the fullest group is the one with most game servers.
func (v *View) GameServerCounts() []kernel.RecordCount {
	c, most := v.c.Records, 0
	for _, g := range c.Groups.All() {
		most = max(most, c.Count(g.Name))
	}
	return []kernel.RecordCount{
		{Kind: "game_server_groups", Count: c.Groups.Len(), Most: v.c.Config.GameServerGroupsMax},
		{Kind: "game_servers", Count: c.Servers.Len()},
		{Kind: "fullest_group_game_servers", Count: most, Most: v.c.Config.GameServersInGroupMax},
	}
}
