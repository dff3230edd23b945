package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// SetReady says whether a member is ready for a search. To be not ready ends a search.
type SetReady struct {
	Caller
	Ready bool
}

func (cmd *SetReady) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetReady", t.ownParty)
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
		return t.leaveSearch(r, flow.NotReady)
	case x.Search != nil || x.Members[i].Ready == cmd.Ready:
		return nil
	}
	t.changeParty(party, flow.ReadyChanged, p.ID, func(p *flow.Party) { p.Members[i].Ready = cmd.Ready })
	return nil
}

// SetPartyPreferences changes what is given; nobody is ready for it any more.
type SetPartyPreferences struct {
	Caller
	Queue       *string
	Regions     *[]string
	Joinability flow.Joinability // 0: as it is
	Attributes  *string
}

func (cmd *SetPartyPreferences) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetPartyPreferences", t.ledParty)
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
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: not known")
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

// SetPlayerPreferences changes what a member says about the own client.
type SetPlayerPreferences struct {
	Caller
	Latencies     *[]flow.Latency
	Attributes    *string
	ClientVersion *string
}

func (cmd *SetPlayerPreferences) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetPlayerPreferences", t.ownParty)
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

func profileOf(p *flow.Player) flow.Profile {
	if p.Profile == nil {
		return flow.Profile{}
	}
	return *p.Profile
}

// changePlayer lets f change what is known about a player beside keys and presence.
func (t *Tx) changePlayer(r flow.PlayerRef, f func(*PlayerChanged)) {
	p := t.Flow.Players.Get(r)
	e := &PlayerChanged{
		Player: p.ID, Banned: p.Banned, Leaves: p.Leaves, LeavesSince: p.LeavesSince, RequeueLevel: p.RequeueLevel, RequeueUntil: p.RequeueUntil,
		Profile: p.Profile, LastGame: p.LastGame, Penalties: p.Penalties, Blocked: p.Blocked,
	}
	f(e)
	e.UnlockAt = nextUnlock(e, t.Now)
	t.Emit(e)
}

// nextUnlock is the end of the next lock that ends.
func nextUnlock(e *PlayerChanged, now domain.Time) (next domain.Time) {
	consider := func(until domain.Time) {
		if until > now && (next == 0 || until < next) {
			next = until
		}
	}
	consider(e.RequeueUntil)
	for _, x := range e.Penalties {
		consider(x.Until)
	}
	return next
}
