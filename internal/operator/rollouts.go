package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// NewRollout is the body of POST rollouts.
type NewRollout struct {
	Alias          string  `json:"alias"`          // id, ARN or a unique name
	To             string  `json:"to"`             // id or ARN of a fleet
	Steps          []int32 `json:"steps"`          // percent of new game sessions, ascending to 100
	StepSeconds    int64   `json:"stepSeconds"`    // of each step
	Failures       int32   `json:"failures"`       // the alias is moved back after this many failures, if they are
	FailurePercent int32   `json:"failurePercent"` // more than this percentage
	Keep           bool    `json:"keep,omitempty"` // the old fleet keeps its hosts
}

// Rollout is the latest rollout of an alias.
type Rollout struct {
	Alias string `json:"alias"`
	Name  string `json:"name"` // the alias's name
	From  string `json:"from"`
	To    string `json:"to"`
	// Phase is MOVING during the steps; DONE when the last step is over and the old fleet drains; UNDONE when the alias points to the old fleet
	// again; and RETURNING while an undo waits for a server process of the old fleet.
	Phase       string    `json:"phase"`
	Why         string    `json:"why,omitempty"` // reason for the phase
	By          string    `json:"by,omitempty"`  // principal that started it
	Started     time.Time `json:"started"`
	Ended       time.Time `json:"ended,omitzero"`
	Steps       []int32   `json:"steps"`
	Step        int       `json:"step"`    // counts from 1
	Percent     int32     `json:"percent"` // of new game sessions that currently go to the new fleet
	StepSeconds int64     `json:"stepSeconds"`
	StepBegan   time.Time `json:"stepBegan"`
	StepEnds    time.Time `json:"stepEnds,omitzero"`

	Failures       int32 `json:"failures"`
	FailurePercent int32 `json:"failurePercent"`
	// Counted since the step began: requests for game sessions by the alias while they are split, and events in the new fleet.
	Requests           int64 `json:"requests"`
	RequestsToNew      int64 `json:"requestsToNew"`
	Processes          int64 `json:"processes"`
	ProcessesFailed    int64 `json:"processesFailed"`
	GameSessions       int64 `json:"gameSessions"`
	GameSessionsFailed int64 `json:"gameSessionsFailed"`

	OldGameSessions int32 `json:"oldGameSessions"` // game sessions that the old fleet currently hosts
	NewGameSessions int32 `json:"newGameSessions"`
}

// RolloutList is the answer to GET rollouts.
type RolloutList struct {
	Rollouts []Rollout `json:"rollouts"`
}

// RolloutUndo is the body of POST rollouts/undo.
type RolloutUndo struct {
	Alias string `json:"alias"` // as in NewRollout
}

func (d *Door) rolloutRoutes() {
	d.handle("GET rollouts", d.looking(d.listRollouts))
	d.handle("POST rollouts", d.forAdmins("begin rollouts", changing(http.StatusCreated, d.startRollout)))
	d.handle("POST rollouts/undo", d.forAdmins("undo rollouts", changing(http.StatusOK, d.undoRollout)))
}

// listRollouts answers with the rollouts of all aliases, or of the one that the query names.
func (d *Door) listRollouts(w http.ResponseWriter, r *http.Request) {
	list := RolloutList{Rollouts: []Rollout{}}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		only := r.URL.Query().Get("alias")
		if only != "" {
			a, err := v.AliasNamed(only)
			if err != nil {
				return err
			}
			only = a.ID
		}
		for _, x := range v.Rollouts() {
			if only == "" || x.Alias == only {
				list.Rollouts = append(list.Rollouts, rolloutOf(v, &x))
			}
		}
		return nil
	})
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, list)
}

func rolloutOf(v *cell.View, r *fleet.Rollout) Rollout {
	x := Rollout{
		Alias: r.Alias, From: r.From, To: r.To, Phase: r.Phase.String(), Why: r.Why, By: r.By, Started: r.Started.Std(), Step: int(r.Step) + 1,
		StepSeconds: int64(r.StepTime / time.Second), StepBegan: r.StepAt.Std(), Failures: r.Failures, FailurePercent: r.FailurePercent,
		Requests: r.Turns, RequestsToNew: r.TurnsNew, Processes: r.Processes, ProcessesFailed: r.ProcessesFailed,
		GameSessions: r.Sessions, GameSessionsFailed: r.SessionsFailed, OldGameSessions: gameSessionsIn(v, r.From), NewGameSessions: gameSessionsIn(v, r.To),
	}
	for _, w := range r.Weights {
		x.Steps = append(x.Steps, w.Percent)
	}
	switch r.Phase {
	case fleet.RolloutMoving:
		x.Percent, x.StepEnds = r.Weight(), v.RolloutStepEnds(r).Std()
	case fleet.RolloutDone, fleet.RolloutReturning:
		x.Percent = 100
	}
	if r.Ended != 0 {
		x.Ended = r.Ended.Std()
	}
	if a, ok := v.Alias(r.Alias); ok {
		x.Name = a.Name
	}
	return x
}

func gameSessionsIn(v *cell.View, fleetID string) (n int32) {
	for _, p := range v.Places(fleetID) {
		n += p.Sessions.GameSessions
	}
	return n
}

func (d *Door) startRollout(r *http.Request, by access.Actor, in *NewRollout) (any, error) {
	if most := int64(hosting.RolloutStepMax / time.Second); in.StepSeconds < 1 || in.StepSeconds > most {
		return nil, domain.Refuse(domain.Invalid, "stepSeconds %d: want 1 to %d", in.StepSeconds, most)
	}
	cmd := hosting.StartRollout{
		Alias: in.Alias, To: in.To[strings.LastIndexByte(in.To, '/')+1:], Weights: in.Steps, StepTime: time.Duration(in.StepSeconds) * time.Second,
		Failures: in.Failures, FailurePercent: in.FailurePercent, Keep: in.Keep, By: by.Cut().Principal,
	}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		return nil, err
	}
	return d.changedRollout(r.Context(), &cmd.Rollout)
}

func (d *Door) undoRollout(r *http.Request, by access.Actor, in *RolloutUndo) (any, error) {
	cmd := hosting.UndoRollout{Alias: in.Alias, By: by.Cut().Principal}
	if err := d.engine.Do(r.Context(), &cmd); err != nil {
		return nil, err
	}
	return d.changedRollout(r.Context(), &cmd.Rollout)
}

// changedRollout describes a rollout that a command has just changed. The rest comes from this node's state, because the answer must not depend on a leader
// once the change is made.
func (d *Door) changedRollout(ctx context.Context, record *fleet.Rollout) (x Rollout, err error) {
	err = d.engine.ReadHere(ctx, func(v *cell.View) error { x = rolloutOf(v, record); return nil })
	return x, err
}

// rolloutEvents is how many of a fleet's newest events an explanation searches for those of a rollout; a fleet keeps 2,000.
const rolloutEvents = 2000

// explainAlias explains an alias, given its id, ARN or name.
func (d *Door) explainAlias(ctx context.Context, id string) (*Explanation, error) {
	x := &Explanation{Kind: "alias"}
	agents, now := d.config.Attention.Agents(), domain.TimeOf(d.engine.Now())
	err := d.engine.Read(ctx, func(v *cell.View) error {
		a, err := v.AliasNamed(id)
		if err != nil {
			return err
		}
		x.ID, x.Status, x.Why = a.ID, "SIMPLE", "New game sessions go to fleet "+a.Fleet+"."
		if a.Terminal {
			x.Status, x.Why = "TERMINAL", "It points to no fleet. Callers get the message: "+a.Message
		}
		if !a.Terminal {
			if why, next := attention.AliasOf(v, &a, agents, now); why != "" {
				x.Why, x.Next = x.Why+" It "+why, next
			}
		}
		x.fact("name", a.Name)
		x.fact("fleet", a.Fleet)
		x.fact("created", clock(a.Created))
		x.fact("updated", clock(a.Updated))
		for _, r := range v.Rollouts() {
			if r.Alias == a.ID {
				x.rollout(v, &r)
			}
		}
		return nil
	})
	return x, err
}

// rollout adds the latest rollout of an alias.
func (x *Explanation) rollout(v *cell.View, r *fleet.Rollout) {
	s := rolloutOf(v, r)
	x.fact("rollout", rolloutInWords(&s))
	x.fact("requests in this step", fmt.Sprintf("%d, %d of them for the new fleet", s.Requests, s.RequestsToNew))
	x.fact("new fleet in this step", fmt.Sprintf("%d of %d server processes ended with an error, %d of %d game sessions were never active; more than %d %% and at least %d bring the alias back",
		s.ProcessesFailed, s.Processes, s.GameSessionsFailed, s.GameSessions, s.FailurePercent, s.Failures))
	x.fact("game sessions", fmt.Sprintf("%d in the old fleet, %d in the new one", s.OldGameSessions, s.NewGameSessions))
	switch r.Phase {
	case fleet.RolloutMoving:
		if r.Shares() {
			x.Why = fmt.Sprintf("%d %% of new game sessions go to fleet %s, the others to fleet %s.", s.Percent, r.To, r.From)
		}
		x.Next = "muster rollout --alias " + r.Alias + " --undo ends the rollout."
	case fleet.RolloutReturning:
		x.Next = "Give fleet " + r.From + " a host: the alias points to it again when a server process of it is ready."
	}
	events := v.FleetEvents(r.To, r.Started, 0, 0, rolloutEvents)
	if len(events) == 0 {
		events = v.FleetEvents(r.From, r.Started, 0, 0, rolloutEvents)
	}
	about := "The rollout of alias " + r.Alias + " "
	for i := range events {
		if strings.HasPrefix(events[i].Message, about) {
			x.moment(events[i].At, events[i].Code, events[i].Message)
		}
	}
	x.sorted()
}

// rolloutInWords describes a rollout in one line.
func rolloutInWords(r *Rollout) string {
	text := fmt.Sprintf("%s from fleet %s to fleet %s, begun at %s", r.Phase, r.From, r.To, r.Started.UTC().Format(timeForm))
	switch {
	case r.Phase == fleet.RolloutMoving.String():
		text += fmt.Sprintf(": step %d of %d, %d %% until %s", r.Step, len(r.Steps), r.Percent, r.StepEnds.UTC().Format(timeForm))
	case r.Why != "":
		text += ": " + r.Why
	}
	return text
}

// rolloutsOf adds the rollouts in which a fleet takes part.
func (x *Explanation) rolloutsOf(v *cell.View, fleetID string) {
	all := slices.DeleteFunc(v.Rollouts(), func(r fleet.Rollout) bool { return !r.Involves(fleetID) })
	for i := range all {
		s := rolloutOf(v, &all[i])
		x.fact("rollout", "of alias "+s.Alias+" ("+s.Name+"): "+rolloutInWords(&s))
	}
}
