package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// SetReady sets whether a member is ready for a search. Becoming not ready ends a search.
type SetReady struct {
	Caller
	Ready bool
}

func (cmd *SetReady) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "SetReady", t.parties.of)
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	x := t.Flow.Parties.Get(party)
	i, _ := x.Member(p.ID)
	switch {
	case !p.Keys.Game.IsZero():
		return t.inGame(r)
	case x.Search != nil && !cmd.Ready:
		return t.searches.leave(r, flow.NotReady)
	case x.Search != nil || x.Members[i].Ready == cmd.Ready:
		return nil
	}
	t.changeParty(party, flow.ReadyChanged, p.ID, func(p *flow.Party) { p.Members[i].Ready = cmd.Ready })
	return nil
}

// SetPartyPreferences changes the given fields. All members must then become ready again.
type SetPartyPreferences struct {
	Caller
	Queue       *string
	Regions     *[]string
	Joinability flow.Joinability // 0: unchanged
	Attributes  *string
}

func (cmd *SetPartyPreferences) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "SetPartyPreferences", t.parties.ledBy)
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	if cmd.Queue != nil && *cmd.Queue != "" {
		if _, ok := t.Config.Queue(*cmd.Queue); !ok {
			return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %s not found", *cmd.Queue)
		}
	}
	if cmd.Joinability > flow.Closed {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: unknown value %d", cmd.Joinability)
	}
	change := flow.PreferencesChanged
	if cmd.Attributes != nil && cmd.Queue == nil && cmd.Regions == nil && cmd.Joinability == 0 {
		change = flow.AttributesChanged
	}
	t.changeParty(party, change, p.ID, func(x *flow.Party) {
		kernel.Patch(&x.Queue, cmd.Queue)
		kernel.Patch(&x.Attributes, cmd.Attributes)
		if cmd.Regions != nil {
			x.Regions = *cmd.Regions
		}
		if cmd.Joinability != 0 {
			x.Joinability = cmd.Joinability
		}
		for i := range x.Members {
			x.Members[i].Ready = false
		}
	})
	return nil
}

// SetPlayerPreferences changes a member's latencies, attributes and client version.
type SetPlayerPreferences struct {
	Caller
	Latencies     *[]flow.Latency
	Attributes    *string
	ClientVersion *string
}

func (cmd *SetPlayerPreferences) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "SetPlayerPreferences", t.parties.of)
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	profile := profileOf(p)
	if cmd.Latencies != nil {
		profile.Latencies = *cmd.Latencies
	}
	kernel.Patch(&profile.Attributes, cmd.Attributes)
	kernel.Patch(&profile.ClientVersion, cmd.ClientVersion)
	id := p.ID
	t.changePlayer(r, func(e *PlayerChanged) { e.Profile = &profile })
	t.changeParty(party, flow.PreferencesChanged, id, func(*flow.Party) {})
	return nil
}
