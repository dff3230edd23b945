package hosting

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// CreateGameSession creates a game session on a free server process. The call does not wait for the server.
type CreateGameSession struct {
	Fleet, Location string
	Alias           string // the alias by which the caller named the fleet; a rollout of the alias may choose another fleet. Empty: the caller named the fleet
	Name            string // last part of the id: the caller's idempotency token, or a session.NameID
	Title           string // Name in the API
	Data            string
	MatchmakerData  string
	Properties      []session.Property
	Creator         string
	PlayersMax      int32
	quota.Taking

	// Parameters is a hash of all fields above if the caller chose Name, else zero. With a chosen Name, a repeat gets the same
	// game session, and Name stays taken while the archive keeps the record.
	Parameters uint64
	Archived   *session.GameSession `cbor:"-"` // the archive's record of the id; filled in by the engine
	ArchivedAt uint64               `cbor:"-"` // Kernel.Forgotten at the time of the look-up

	// Result
	Game session.GameSession
}

// ID returns the id of the game session that the command creates.
func (cmd *CreateGameSession) ID() session.ID {
	return session.MakeID(cmd.Fleet, cmd.Location, cmd.Name)
}

func (cmd *CreateGameSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c := t.State
	// Checks. Their order is part of the API: a client sees the first one that fails.
	cmd.seekRepeated(t)
	turn := t.shareOut(cmd)
	_, f, err := t.fleetByID(cmd.Fleet)
	if err != nil {
		return err
	}
	if cmd.PlayersMax > c.Config.PlayersInGameMax {
		return domain.Refuse(domain.Invalid, "MaximumPlayerSessionCount: %d is more than %d", cmd.PlayersMax, c.Config.PlayersInGameMax)
	}
	if err := t.CheckProperties(cmd.Properties); err != nil {
		return err
	}
	id := cmd.ID()
	if done, err := cmd.repeated(t, id); done || err != nil {
		return err
	}
	if f.Status != fleet.Active {
		return domain.Refuse(domain.WrongFleetStatus, "%s", notActive(f))
	}
	switch status, ok := f.HasLocation(cmd.Location); {
	case cmd.Location == "":
		return domain.Refuse(domain.Invalid, "Location: required for an ANYWHERE fleet; fleet %s has %s", f.ID, locationNames(f))
	case !ok || status != fleet.Active:
		return domain.Refuse(domain.Invalid, "Location: fleet %s has no location %q; it has %s", f.ID, cmd.Location, locationNames(f))
	}
	period, err := t.checkCreator(f, cmd.Creator)
	if err != nil {
		return err
	}
	if err := t.Take(quota.GameSessions, c.Sessions.GamesHeld(), &cmd.Holder, 0); err != nil {
		return err
	}
	p, ok := c.Fleets.PickIdle(f.ID, cmd.Location)
	if !ok {
		return domain.Refuse(domain.NoCapacity, "Unable to reserve a process on fleet %s: %s", f.ID, c.whyNoProcess(f.ID, cmd.Location))
	}

	// Events.
	if turn != nil {
		t.Emit(turn)
	}
	t.Emit(&GameSessionCreated{
		ID: id, Process: c.Process(p).Key, Name: cmd.Title, Data: cmd.Data, MatchmakerData: cmd.MatchmakerData,
		Properties: cmd.Properties, Creator: cmd.Creator, PlayersMax: cmd.PlayersMax, FullProtection: f.FullProtection,
		ActivateBy: t.activateBy(f), Parameters: cmd.Parameters, Holder: cmd.Holder,
	})
	if period > 0 {
		t.Emit(&CreationCounted{fleet.Creation{FleetID: f.ID, Creator: cmd.Creator, At: t.Now, Until: t.Now.Add(period)}})
	}
	g, _ := c.Sessions.Game(id)
	cmd.Game = *c.Game(g)
	return nil
}

// activateBy returns the deadline by which a game session created now must be active.
func (t *Tx) activateBy(f *fleet.Fleet) domain.ContactTime {
	return t.Contact.Add(cmp.Or(f.ActivationTimeout(), t.Config.Activation))
}

// seekRepeated changes the fleet to the one in which an earlier request for the alias created the game session.
func (cmd *CreateGameSession) seekRepeated(t *Tx) {
	if r, ok := t.rollout(cmd.Alias); ok && cmd.Parameters != 0 {
		for _, id := range []string{r.From, r.To} {
			if _, made := t.Sessions.Game(session.MakeID(id, cmd.Location, cmd.Name)); made {
				cmd.Fleet = id
			}
		}
	}
}

// repeated detects a command that was executed before, by the id that its caller chose.
func (cmd *CreateGameSession) repeated(t *Tx, id session.ID) (done bool, err error) {
	old := cmd.Archived
	if r, ok := t.Sessions.Game(id); ok {
		old = t.Game(r)
	} else if cmd.Parameters != 0 && cmd.ArchivedAt != t.Forgotten() {
		return false, domain.Refuse(domain.Stale, "the archive has grown since it was asked for %s", id)
	}
	if old == nil {
		return false, nil
	}
	if old.Parameters != cmd.Parameters || cmd.Parameters == 0 {
		return false, domain.Refuse(domain.TokenMismatch, "IdempotencyToken: %q was used with other parameters before", cmd.Name)
	}
	cmd.Game = *old
	return true, nil
}

// CheckProperties checks a complete set of game properties.
func (t *Tx) CheckProperties(properties []session.Property) error {
	if n, most := len(properties), t.Config.PropertiesInGameMax; n > most {
		return domain.Refuse(domain.Invalid, "GameProperties: %d properties; at most %d are allowed", n, most)
	}
	for i, p := range properties {
		for _, q := range properties[:i] {
			if p.Key == q.Key {
				return domain.Refuse(domain.Invalid, "GameProperties[%d].Key: %q is given twice", i, p.Key)
			}
		}
	}
	return nil
}

// checkCreator applies the fleet's creation policy. It returns how long this creation counts towards the policy; 0 if it does not
// count.
func (t *Tx) checkCreator(f *fleet.Fleet, name string) (time.Duration, error) {
	most, period := int32(1), time.Second // without a policy: one per second and creator
	if p := f.CreationPolicy; p != nil {
		if p.Sessions == 0 || p.Period == 0 {
			return 0, nil
		}
		if name == "" {
			return 0, domain.Refuse(domain.Invalid, "CreatorId: required, because fleet %s limits game sessions for each creator", f.ID)
		}
		most, period = p.Sessions, p.Period
	}
	if name == "" {
		return 0, nil
	}
	made := int32(0)
	for _, r := range t.Fleets.CreationsOf(f.ID, name) {
		if t.Fleets.Creations.Get(r).Until > t.Now {
			made++
		}
	}
	if made >= most {
		return 0, domain.Refuse(domain.LimitExceeded, "CreatorId: %q made %d game sessions in fleet %s within %s; the limit is %d",
			name, made, f.ID, period, most)
	}
	return period, nil
}

func (t *Tx) gameByID(id session.ID) (session.GameRef, *session.GameSession, error) {
	r, ok := t.Sessions.Game(id)
	if !ok {
		return 0, nil, domain.Refuse(domain.NotFound, "game session %s not found", id)
	}
	return r, t.Game(r), nil
}

// UpdateGameSession changes the given fields and keeps the others.
type UpdateGameSession struct {
	ID             session.ID
	Title          *string
	PlayersMax     *int32
	DenyPlayers    *bool
	FullProtection *bool
	Properties     []session.Property // added, or overwriting the value of a key

	// Result
	Game session.GameSession
}

func (cmd *UpdateGameSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, g, err := t.gameByID(cmd.ID)
	switch {
	case err != nil:
		return err
	case g.Status == session.Activating:
		return domain.Refuse(domain.NotReady, "game session %s is ACTIVATING", cmd.ID)
	case g.Status != session.Active:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", cmd.ID, g.Status)
	case cmd.PlayersMax != nil && *cmd.PlayersMax > t.Config.PlayersInGameMax:
		return domain.Refuse(domain.Invalid, "MaximumPlayerSessionCount: %d is more than %d", *cmd.PlayersMax, t.Config.PlayersInGameMax)
	}
	if err := t.CheckProperties(cmd.Properties); err != nil {
		return err
	}
	merged := g.Properties
	if len(cmd.Properties) > 0 {
		merged = slices.Clone(g.Properties)
		for _, p := range cmd.Properties {
			if i := slices.IndexFunc(merged, func(q session.Property) bool { return q.Key == p.Key }); i >= 0 {
				merged[i] = p
			} else {
				merged = append(merged, p)
			}
		}
		if err := t.CheckProperties(merged); err != nil {
			return err
		}
	}
	e := changedFrom(g)
	e.Properties = merged
	kernel.Patch(&e.Name, cmd.Title)
	kernel.Patch(&e.PlayersMax, cmd.PlayersMax)
	kernel.Patch(&e.DenyPlayers, cmd.DenyPlayers)
	kernel.Patch(&e.FullProtection, cmd.FullProtection)
	t.Emit(e)
	cmd.Game = *t.Game(r)
	return nil
}

// changedFrom returns an event with the current values, for the command to overwrite.
func changedFrom(g *session.GameSession) *GameSessionChanged {
	return &GameSessionChanged{
		ID: g.ID, Name: g.Name, PlayersMax: g.PlayersMax, DenyPlayers: g.DenyPlayers, FullProtection: g.FullProtection,
		Properties: g.Properties, Policy: g.Policy,
	}
}

// TerminateGameSession asks the server process of a game session to end; the game session ends when the process does.
type TerminateGameSession struct {
	ID    session.ID
	Force bool // end the game session now and have the process killed, which requires an agent on its host
	Agent bool // with Force: its host has an agent

	// Result
	Game session.GameSession
}

func (cmd *TerminateGameSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, g, err := t.gameByID(cmd.ID)
	switch {
	case err != nil:
		return err
	case !g.Live():
		return domain.Refuse(domain.WrongGameStatus, "game session %s is TERMINATED", cmd.ID)
	case cmd.Force && !cmd.Agent:
		return domain.Refuse(domain.Invalid, "TerminationMode: FORCE_TERMINATE needs a host agent, and none is connected from compute %s; use TRIGGER_ON_PROCESS_TERMINATE", g.ComputeName)
	}
	p := fleet.ProcessRef(g.Process)
	if g.Status != session.Terminating {
		t.failPlacementOf(g)
		t.Emit(&GameSessionTerminating{cmd.ID})
		if t.hooks != nil {
			t.hooks.GameTerminating(cmd.ID)
		}
		if !cmd.Force {
			t.askTermination(p, fleet.EndedForced)
		}
	}
	if cmd.Force { // players do not wait for the agent, which kills the process now or when it has reconnected
		t.endGame(r, session.ForceTerminated, session.EndedByForce)
		t.closeProcess(p, fleet.EndedForced, 0)
	}
	cmd.Game = *t.Game(r)
	return nil
}

func (t *Tx) endGame(r session.GameRef, reason session.StatusReason, cause session.EndCause) {
	if t.hooks != nil {
		t.hooks.GameEnding(r, cause)
	}
	var sitting []*PlayerEnded
	t.Sessions.PlayersIn(r, func(_ session.PlayerRef, p *session.PlayerSession) bool {
		switch p.Status {
		case session.Reserved:
			sitting = append(sitting, &PlayerEnded{p.ID, session.TimedOut})
		case session.PlayerActive:
			sitting = append(sitting, &PlayerEnded{p.ID, session.Completed})
		}
		return true
	})
	for _, e := range sitting {
		t.Emit(e)
	}
	g := t.Game(r)
	id, of := g.ID, g.Placement
	if t.hooks != nil {
		t.hooks.GameEmptied(id)
	}
	t.Emit(&GameSessionEnded{id, reason, cause})
	t.placedGameEnded(of, id)
}

// describeProcess names a process in messages of the event log.
func describeProcess(p *fleet.Process) string {
	return strings.Join([]string{"process", p.Key.Process, "on compute", p.Key.Compute, "in", p.Location}, " ")
}

// Claimed returns the id if the caller chose it.
func (cmd *CreateGameSession) Claimed() (kernel.ClaimKind, string) {
	if cmd.Parameters == 0 {
		return kernel.Nothing, ""
	}
	return kernel.AGameSession, string(cmd.ID())
}

// SetArchived stores the archive's record of the id.
func (cmd *CreateGameSession) SetArchived(data []byte, at uint64) error {
	cmd.Archived, cmd.ArchivedAt = nil, at
	if data == nil {
		return nil
	}
	g, err := DecodeGameSession(data)
	cmd.Archived = &g
	return err
}
