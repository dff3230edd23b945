package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// TokenHasher knows the SHA-256 of the connection token of a player, in hexadecimal digits: always the same for the same details.
type TokenHasher interface {
	TokenHash(player string, host *flow.Host) string
}

// SetFlowConfig changes the configuration of player flow while it is in use. The change is a document; null in it takes back
// what was set before. It is taken as a whole or not at all.
type SetFlowConfig struct {
	Document string
	By       string
	Reason   string
}

// OverridesMax bounds what is set, in bytes: every snapshot holds it.
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
		wrong = flow.Faults{{Message: "all that is set is too long, want at most 64 KiB"}}
	}
	if len(wrong) > 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Faults: wrong}, "%v", wrong)
	}
	t.Emit(&FlowConfigChanged{merged, flow.ConfigChange{At: t.Now, By: cmd.By, Reason: cmd.Reason, Document: cmd.Document}})
	return nil
}

// overrideFlowConfig puts in force what operators have set. What of it does not go with what the service was started with, or
// is not known any more, does not count.
func (c *State) overrideFlowConfig() {
	if c.Limits.Flow != nil && c.Flow.Overrides.Document != "" {
		c.Config, _ = c.Limits.Flow.With(c.Flow.Overrides.Document)
	}
}

// FlowConfig is what is in force: what operators have set, before what the service was started with.
func (v *View) FlowConfig() flow.Config {
	v.Saw(v.c.Flow.Overrides.Changed)
	return v.c.Config
}

// FlowOverrides is what operators have set, and what of it does not count because it does not go with what the service was
// started with.
func (v *View) FlowOverrides() (set flow.Overrides, ignored flow.Faults) {
	set = v.c.Flow.Overrides
	v.Saw(set.Changed)
	if v.c.Limits.Flow != nil && set.Document != "" {
		_, ignored = v.c.Limits.Flow.With(set.Document)
	}
	return set, ignored
}

// AwaitPlayers gives all players who are online time to come back, because the service closes their streams. Meanwhile no player loses a
// key, and none is matched.
type AwaitPlayers struct {
	For  time.Duration // 0: as after a restart
	Node domain.UUID   // whose streams these are; zero: a single node
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

// AnnounceMaintenance tells some of the players who are online that the service will be down: those after place After, so that one
// transaction stays small. The caller repeats it with Next until that is 0, even if it told no player.
type AnnounceMaintenance struct {
	StartsAt domain.Time
	Text     string
	After    flow.PlayerRef
	Limit    int // how many are told

	// Result
	Told int
	Next flow.PlayerRef // 0: these were the last ones
}

// lookedAtForEach is how many players a transaction reads for each that it may tell, because most known players may be away.
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
