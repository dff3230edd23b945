package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// TokenHasher computes the SHA-256 of a player's connection token in hexadecimal digits. The same details always give the same hash.
type TokenHasher interface {
	TokenHash(player string, host *flow.Host) string
}

// SetFlowConfig changes the configuration of player flow at run time. The change is a document in which null resets an option to its
// startup value. It is applied as a whole or not at all.
type SetFlowConfig struct {
	Document string
	By       string
	Reason   string
}

// OverridesMax bounds the size of all overrides in bytes, because every snapshot contains them.
const OverridesMax = 64 << 10

func (cmd *SetFlowConfig) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	t.Cause = "SetConfig"
	merged, wrong := flow.MergeDocuments(t.Flow.Overrides.Document, cmd.Document)
	_, more := t.Limits.Flow.With(merged)
	wrong = append(wrong, more...)
	if len(wrong) == 0 && len(merged) > OverridesMax {
		wrong = flow.Faults{{Message: "all options together are too long, want at most 64 KiB"}}
	}
	if len(wrong) > 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Faults: wrong}, "%v", wrong)
	}
	t.Emit(&FlowConfigChanged{merged, flow.ConfigChange{At: t.Now, By: cmd.By, Reason: cmd.Reason, Document: cmd.Document}})
	return nil
}

// overrideFlowConfig applies the operators' overrides. It ignores those that are unknown or conflict with the startup configuration.
func (c *State) overrideFlowConfig() {
	if c.Limits.Flow != nil && c.Flow.Overrides.Document != "" {
		c.Config, _ = c.Limits.Flow.With(c.Flow.Overrides.Document)
	}
}

// FlowConfig returns the configuration in force: the operators' overrides on top of the startup configuration.
func (v *View) FlowConfig() flow.Config {
	v.Saw(v.c.Flow.Overrides.Changed)
	return v.c.Config
}

// FlowOverrides returns the operators' overrides, and those that are ignored because they conflict with the startup configuration.
func (v *View) FlowOverrides() (set flow.Overrides, ignored flow.Faults) {
	set = v.c.Flow.Overrides
	v.Saw(set.Changed)
	if v.c.Limits.Flow != nil && set.Document != "" {
		_, ignored = v.c.Limits.Flow.With(set.Document)
	}
	return set, ignored
}

// AwaitPlayers gives all online players time to return, because the service closes their streams. Meanwhile no player loses a key or is
// matched.
type AwaitPlayers struct {
	For  time.Duration // 0: as after a restart
	Node domain.UUID   // the node that has the streams; zero: a single node
}

func (cmd *AwaitPlayers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	node, err := t.nodes.Holder(cmd.Node)
	if err != nil {
		return err
	}
	wait := cmd.For
	if wait == 0 {
		wait = t.Config.Sessions.RestartGrace
	}
	if t.Flow.Players.Len() > 0 {
		t.Emit(&PlayersAwaited{t.Contact.Add(wait), node})
	}
	return nil
}

func (c *State) applyPlayersAwaited(e *PlayersAwaited) {
	c.Touch()
	for r, p := range c.Flow.Players.All() {
		if p.Here() && (e.Node == 0 || e.Node == p.Node) {
			c.awaitPlayer(r, e.PresenceBy)
		}
	}
}

// AnnounceMaintenance tells a batch of online players that the service will be down. The batch begins after place After, so that each
// transaction stays small. The caller repeats it with Next until Next is 0, even if a batch told no player.
type AnnounceMaintenance struct {
	StartsAt domain.Time
	Text     string
	After    flow.PlayerRef
	Limit    int // most players to tell

	// Result
	Told int
	Next flow.PlayerRef // 0: the last batch
}

// lookedAtForEach is how many players a transaction examines for each that it may tell, because most known players may be offline.
const lookedAtForEach = 16

func (cmd *AnnounceMaintenance) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	t.Cause = "AnnounceMaintenance"
	var to []string
	cmd.Next = 0
	looked := 0
	var at flow.PlayerRef
	for p := range t.Flow.Players.From(cmd.After, &at) {
		if p.Here() {
			to = append(to, p.ID)
		}
		if looked++; len(to) == cmd.Limit || looked == lookedAtForEach*cmd.Limit {
			cmd.Next = at
			break
		}
	}
	cmd.Told = len(to)
	t.tellPlayers(flow.OnMaintenance, flow.Message{Deadline: cmd.StartsAt, Text: cmd.Text}, to...)
	return nil
}
