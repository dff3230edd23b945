package cell

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
)

// CreateGameSession gives a free server process a game session. The call does not wait for the server.
type CreateGameSession struct {
	Fleet, Location string
	Name            string // last part of the id: the caller's idempotency token, or "gsess-<uuid>"
	Title           string // what the API calls Name
	Data            string
	MatchmakerData  string
	Properties      []session.Property
	Creator         string
	PlayersMax      int32

	// Parameters is a hash of all of the above, when the caller chose Name; else zero. Then a repeat gets the same game
	// session, and Name stays taken for as long as the archive keeps it.
	Parameters uint64
	Archived   *session.GameSession // what the archive has under the id; filled in by the engine
	ArchivedAt uint64               // Cell.Forgotten when it looked

	// Result
	Game session.GameSession
}

// ID names the game session that would be created.
func (cmd *CreateGameSession) ID() session.ID {
	return session.MakeID(cmd.Fleet, cmd.Location, cmd.Name)
}

func (cmd *CreateGameSession) decide(t *tx) error {
	c := t.c
	// Checks. Their order is part of the API: a client sees the first one that fails.
	r, f, err := t.fleetByID(cmd.Fleet)
	if err != nil {
		return err
	}
	if cmd.PlayersMax > c.config.PlayersInGameMax {
		return domain.Refuse(domain.Invalid, "MaximumPlayerSessionCount: %d is more than %d", cmd.PlayersMax, c.config.PlayersInGameMax)
	}
	if err := t.checkProperties(cmd.Properties); err != nil {
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
	p, ok := c.fleets.PickIdle(f.ID, cmd.Location)
	if !ok {
		return domain.Refuse(domain.NoCapacity, "Unable to reserve a process on fleet %s: %s", f.ID, c.whyNoProcess(f.ID, cmd.Location))
	}

	// Facts.
	f = c.fleets.Fleets.Get(r)
	t.emit(&GameSessionCreated{
		ID: id, Process: c.fleets.Processes.Get(p).Key, Name: cmd.Title, Data: cmd.Data, MatchmakerData: cmd.MatchmakerData,
		Properties: cmd.Properties, Creator: cmd.Creator, PlayersMax: cmd.PlayersMax, FullProtection: f.FullProtection,
		ActivateBy: t.activateBy(f), Parameters: cmd.Parameters,
	})
	if period > 0 {
		t.emit(&CreationCounted{fleet.Creation{FleetID: f.ID, Creator: cmd.Creator, At: t.now, Until: t.now.Add(period)}})
	}
	g, _ := c.sessions.Game(id)
	cmd.Game = *c.sessions.Games.Get(g)
	return nil
}

// activateBy is when a game session that a fleet gets now must be active.
func (t *tx) activateBy(f *fleet.Fleet) domain.ContactTime {
	return t.contact.Add(cmp.Or(f.ActivationTimeout(), t.c.config.Activation))
}

// repeated recognises a command that was carried out before, by the id that its caller chose.
func (cmd *CreateGameSession) repeated(t *tx, id session.ID) (done bool, err error) {
	old := cmd.Archived
	if r, ok := t.c.sessions.Game(id); ok {
		old = t.c.sessions.Games.Get(r)
	} else if cmd.Parameters != 0 && cmd.ArchivedAt != t.c.forgotten {
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

// checkProperties checks a whole set of game properties.
func (t *tx) checkProperties(properties []session.Property) error {
	if n, most := len(properties), t.c.config.PropertiesInGameMax; n > most {
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

// checkCreator applies the fleet's creation policy and returns for how long this creation counts; 0 means not at all.
func (t *tx) checkCreator(f *fleet.Fleet, name string) (time.Duration, error) {
	most, period := int32(1), time.Second // without a policy: one a second for each creator
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
	for _, r := range t.c.fleets.CreationsOf(f.ID, name) {
		if t.c.fleets.Creations.Get(r).Until > t.now {
			made++
		}
	}
	if made >= most {
		return 0, domain.Refuse(domain.LimitExceeded, "CreatorId: %q made %d game sessions in fleet %s within %s; the limit is %d",
			name, made, f.ID, period, most)
	}
	return period, nil
}

// gameByID finds a game session in memory or refuses.
func (t *tx) gameByID(id session.ID) (session.Ref, *session.GameSession, error) {
	r, ok := t.c.sessions.Game(id)
	if !ok {
		return 0, nil, domain.Refuse(domain.NotFound, "game session %s not found", id)
	}
	return r, t.c.sessions.Games.Get(r), nil
}

// UpdateGameSession changes what is given and keeps the rest.
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

func (cmd *UpdateGameSession) decide(t *tx) error {
	r, g, err := t.gameByID(cmd.ID)
	switch {
	case err != nil:
		return err
	case g.Status == session.Activating:
		return domain.Refuse(domain.NotReady, "game session %s is ACTIVATING", cmd.ID)
	case g.Status != session.Active:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", cmd.ID, g.Status)
	case cmd.PlayersMax != nil && *cmd.PlayersMax > t.c.config.PlayersInGameMax:
		return domain.Refuse(domain.Invalid, "MaximumPlayerSessionCount: %d is more than %d", *cmd.PlayersMax, t.c.config.PlayersInGameMax)
	}
	if err := t.checkProperties(cmd.Properties); err != nil {
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
		if err := t.checkProperties(merged); err != nil {
			return err
		}
	}
	e := changedFrom(g)
	e.Properties = merged
	set(&e.Name, cmd.Title)
	set(&e.PlayersMax, cmd.PlayersMax)
	set(&e.DenyPlayers, cmd.DenyPlayers)
	set(&e.FullProtection, cmd.FullProtection)
	t.emit(e)
	cmd.Game = *t.c.sessions.Games.Get(r)
	return nil
}

// changedFrom is the event that changes nothing.
func changedFrom(g *session.GameSession) *GameSessionChanged {
	return &GameSessionChanged{
		ID: g.ID, Name: g.Name, PlayersMax: g.PlayersMax, DenyPlayers: g.DenyPlayers, FullProtection: g.FullProtection,
		Properties: g.Properties, Policy: g.Policy,
	}
}

// TerminateGameSession tells the server process to end, and its game session with it.
type TerminateGameSession struct {
	ID    session.ID
	Force bool // kill the process: only an agent on its host can

	// Result
	Game session.GameSession
}

func (cmd *TerminateGameSession) decide(t *tx) error {
	r, g, err := t.gameByID(cmd.ID)
	switch {
	case err != nil:
		return err
	case !g.Live():
		return domain.Refuse(domain.WrongGameStatus, "game session %s is TERMINATED", cmd.ID)
	case cmd.Force:
		return domain.Refuse(domain.Invalid, "TerminationMode: FORCE_TERMINATE needs a host agent, and compute %s has none; use TRIGGER_ON_PROCESS_TERMINATE", g.ComputeName)
	}
	if g.Status != session.Terminating {
		p := g.Process
		t.failPlacementOf(g)
		t.emit(&GameSessionTerminating{cmd.ID})
		t.hostEnding(cmd.ID)
		t.askTermination(p, fleet.EndedForced)
	}
	cmd.Game = *t.c.sessions.Games.Get(r)
	return nil
}

// endGame ends a game session and its player sessions.
func (t *tx) endGame(r session.Ref, reason session.StatusReason, cause session.EndCause) {
	t.hostEnds(r, cause)
	var sitting []*PlayerEnded
	t.c.sessions.PlayersIn(r, func(_ session.Ref, p *session.PlayerSession) bool {
		switch p.Status {
		case session.Reserved:
			sitting = append(sitting, &PlayerEnded{p.ID, session.TimedOut})
		case session.PlayerActive:
			sitting = append(sitting, &PlayerEnded{p.ID, session.Completed})
		}
		return true
	})
	for _, e := range sitting {
		t.emit(e)
	}
	t.backfillLost(t.c.sessions.Games.Get(r).ID)
	g := t.c.sessions.Games.Get(r)
	id, of := g.ID, g.Placement
	t.emit(&GameSessionEnded{id, reason, cause})
	t.placedGameEnded(of, id)
}

// describeProcess is how messages of the event log name a process.
func describeProcess(p *fleet.Process) string {
	return strings.Join([]string{"process", p.Key.Process, "on compute", p.Key.Compute, "in", p.Location}, " ")
}

// ClaimKind is what a Claim names, and what an EndedRecord is.
type ClaimKind uint8

// The kinds.
const (
	Nothing ClaimKind = iota
	AGameSession
	APlayerSession
	APlacement
	ATicket
	AChange // of a player's keys: nobody claims one
)

// Claim is a command whose caller may have chosen the id of what it makes. The engine looks such an id up in the archive
// before it queues the command.
type Claim interface {
	Command
	// Claimed is what the command would make; Nothing if the caller did not choose the id.
	Claimed() (ClaimKind, string)
	// SetArchived takes what the archive had when Cell.Forgotten was at; nil for nothing.
	SetArchived(data []byte, at uint64) error
}

// archivedID is whether the archive knows the id of what a command claims. The engine fills it in.
type archivedID struct {
	Archived   bool
	ArchivedAt uint64 // Cell.Forgotten when it looked
}

// SetArchived takes what the archive had.
func (x *archivedID) SetArchived(data []byte, at uint64) error {
	x.Archived, x.ArchivedAt = data != nil, at
	return nil
}

// Claimed returns the id if it was chosen.
func (cmd *CreateGameSession) Claimed() (ClaimKind, string) {
	if cmd.Parameters == 0 {
		return Nothing, ""
	}
	return AGameSession, string(cmd.ID())
}

// SetArchived takes what the archive had.
func (cmd *CreateGameSession) SetArchived(data []byte, at uint64) error {
	cmd.Archived, cmd.ArchivedAt = nil, at
	if data == nil {
		return nil
	}
	g, err := DecodeGameSession(data)
	cmd.Archived = &g
	return err
}
