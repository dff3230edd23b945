package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// lookStep bounds the records that one read of the state examines.
const lookStep = 256

// explainProcess explains a server process, given FLEET/COMPUTE/PROCESS or only its id.
func (d *Door) explainProcess(ctx context.Context, id string) (*Explanation, error) {
	keys := keysOf(id)
	p, err := d.process(ctx, keys)
	if err == nil && p == nil && len(keys) == 0 {
		p, err = d.searchProcess(ctx, id)
	}
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return d.forgottenProcess(ctx, id, keys)
	}
	x := &Explanation{Kind: "process", ID: p.Key.String(), Status: p.State.String()}
	x.fact("location", p.Location)
	x.fact("SDK", p.SDK)
	x.fact("engine", p.Tool)
	if p.Port != 0 {
		x.fact("port", fmt.Sprint(p.Port))
	}
	x.fact("health", p.Health.String())
	if p.State != fleet.Ended { // the connection of an ended process tells nothing about it
		x.fact("connection", linkInWords(p.Linked))
	}
	if p.Life > 1 {
		x.fact("life", fmt.Sprintf("the %s under this id", ordinal(p.Life)))
	}
	x.fact("game session", p.Game)
	var game session.GameSession
	if p.Game != "" {
		if game, err = d.engine.GameSession(ctx, session.ID(p.Game)); err != nil && !domain.IsRefused(err, domain.NotFound) {
			return nil, err
		}
	}
	processMoments(x, p, &game)
	if err := d.processEvents(ctx, x, p.Key, p.Connected); err != nil {
		return nil, err
	}
	d.launchFacts(x, p.Key.Fleet, p.Key.Compute)
	x.Why = whyProcess(p, &game)
	if p.State != fleet.Ended && !p.Linked {
		x.Why += d.returnOf(p)
	}
	return x.sorted(), nil
}

// processMoments adds the life of a server process and of its game session, if any.
func processMoments(x *Explanation, p *fleet.Process, game *session.GameSession) {
	x.moment(p.Connected, "CONNECTED", p.SDK)
	x.moment(p.Ready, "READY", fmt.Sprintf("on port %d", p.Port))
	x.moment(p.HealthAt, p.Health.String(), "")
	switch {
	case p.LinkAt == 0 || p.LinkAt == p.Connected:
	case p.Linked:
		x.moment(p.LinkAt, "CONNECTED_AGAIN", "")
	default:
		x.moment(p.LinkAt, "CONNECTION_LOST", "")
	}
	if p.Game != "" {
		gameMoments(x, game)
	}
	x.moment(p.AskedAt, "TOLD_TO_END", p.TerminateWhy.String())
	if p.Game == "" {
		exitMoment(x, p.Exit)
	}
	x.moment(p.EndedAt, "ENDED", p.EndReason.String())
}

// keysOf parses FLEET/COMPUTE/PROCESS. Both a compute's name and a process's id may contain a slash.
func keysOf(id string) (keys []fleet.Key) {
	fleetID, rest, _ := strings.Cut(id, "/")
	for i := range len(rest) {
		if rest[i] == '/' {
			keys = append(keys, fleet.Key{Fleet: fleetID, Compute: rest[:i], Process: rest[i+1:]})
		}
	}
	return keys
}

func (d *Door) process(ctx context.Context, keys []fleet.Key) (found *fleet.Process, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		for _, key := range keys {
			if p, ok := v.Process(key); ok {
				found = &p
				return nil
			}
		}
		return nil
	})
	return found, err
}

// searchProcess searches for a process id on every compute, in small steps.
func (d *Door) searchProcess(ctx context.Context, id string) (found *fleet.Process, err error) {
	var fleets []fleet.Fleet
	for created, after := domain.Time(0), ""; ; {
		err := d.engine.Read(ctx, func(v *cell.View) error { fleets = v.Fleets(created, after, lookStep); return nil })
		if err != nil || len(fleets) == 0 {
			return nil, err
		}
		for _, f := range fleets {
			if found, err := d.searchFleet(ctx, f.ID, id); found != nil || err != nil {
				return found, err
			}
			created, after = f.Created, f.ID
		}
	}
}

func (d *Door) searchFleet(ctx context.Context, fleetID, id string) (found *fleet.Process, err error) {
	for created, after, done := domain.Time(0), "", false; !done && found == nil && err == nil; {
		err = d.engine.Read(ctx, func(v *cell.View) error {
			computes := v.Computes(fleetID, "", created, after, lookStep)
			for _, c := range computes {
				if p, ok := v.Process(fleet.Key{Fleet: fleetID, Compute: c.Name, Process: id}); ok {
					found = &p
				}
				created, after = c.Created, c.Name
			}
			done = len(computes) < lookStep
			return nil
		})
	}
	return found, err
}

// forgottenProcess explains a process that is no longer in memory from its fleet's event log.
func (d *Door) forgottenProcess(ctx context.Context, id string, keys []fleet.Key) (*Explanation, error) {
	for _, key := range keys {
		x := &Explanation{Kind: "process", ID: key.String(), Status: fleet.Ended.String()}
		if err := d.processEvents(ctx, x, key, 0); err != nil {
			return nil, err
		}
		if n := len(x.Timeline); n > 0 {
			x.sorted().Why = "It ended a while ago; only the event log of its fleet still has it: " + x.Timeline[n-1].Detail
			return x, nil
		}
	}
	if len(keys) == 0 {
		return nil, domain.Refuse(domain.NotFound, "process %s not found on any compute; for one that ended a while ago say FLEET/COMPUTE/PROCESS", id)
	}
	return nil, domain.Refuse(domain.NotFound, "process %s not found; one that ended is remembered for %s", id, d.engine.CellConfig().Hosting.EndedKept)
}

// processEvents adds the entries about a process in the fleet's event log.
func (d *Door) processEvents(ctx context.Context, x *Explanation, key fleet.Key, since domain.Time) error {
	name := "process " + key.Process + " on compute " + key.Compute + " "
	before := uint64(0)
	defer x.latestFirst(len(x.Timeline))
	for {
		var page []fleet.Event
		err := d.engine.Read(ctx, func(v *cell.View) error {
			page = v.FleetEvents(key.Fleet, since, 0, before, lookStep)
			return nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if strings.Contains(page[i].Message, name) {
				x.moment(page[i].At, page[i].Code, page[i].Message)
			}
			before = page[i].No
		}
	}
}

// ordinal returns 1st, 2nd, 3rd, 4th, 11th, 21st and so on.
func ordinal(n uint32) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// returnOf tells when a process that lost its connection will probably try to reconnect, and until when it may.
func (d *Door) returnOf(p *fleet.Process) string {
	until := fmt.Sprintf(" It counts as crashed %s after the loss (--link-grace).", d.engine.CellConfig().Hosting.LinkGrace)
	switch next, how := fleet.NextAttempt(p.SDK, p.LinkAt, domain.TimeOf(d.engine.Now())); how {
	case fleet.ReturnNever:
		return " Its SDK, " + p.SDK + ", never connects again." + until
	case fleet.ReturnOver:
		return " Its SDK, " + p.SDK + ", has tried for the last time." + until
	case fleet.ReturnExpected:
		return " Its SDK, " + p.SDK + ", will try again at about " + clock(next) + "." + until
	default:
		return " When " + cmp.Or(p.SDK, "its SDK") + " tries again is not known." + until
	}
}

// The last output of a process in explanations.
const (
	lastOutput = "last output"
	exitOutput = 4 << 10 // bytes of it
)

// hideOutput removes the output of a server process, for callers whose policies do not allow policy.ReadOutput.
func (x *Explanation) hideOutput() {
	x.Facts = slices.DeleteFunc(x.Facts, func(f Fact) bool { return f.Name == lastOutput })
	for i := range x.Timeline {
		m := &x.Timeline[i]
		m.Detail, _, _ = strings.Cut(m.Detail, hosting.OutputInEvent)
	}
}

// exitMoment adds an agent's observation of the end of a server process.
func exitMoment(x *Explanation, report *exit.Report) {
	if report == nil {
		return
	}
	x.moment(report.At, "PROCESS_EXITED", report.How())
	x.fact(lastOutput, report.LastLines(exitOutput))
}

func linkInWords(linked bool) string {
	if linked {
		return "open"
	}
	return "lost"
}

func whyProcess(p *fleet.Process, game *session.GameSession) string {
	switch {
	case p.State == fleet.Ended:
		if p.Exit != nil {
			return "It ended: " + p.Exit.How() + "."
		}
		return "It ended: " + endInWords(p.EndReason) + "."
	case p.TerminateBy != 0:
		return "It was told to end by " + clock(p.TerminationTime) + ": " + endInWords(p.TerminateWhy) + "."
	case p.State == fleet.Initialized:
		return "It has connected and not called ProcessReady yet."
	case p.Session != 0:
		return "It hosts game session " + string(game.ID) + ", which is " + game.Status.String() + "."
	case !p.Linked:
		return "It gets no game session: its connection is lost."
	case p.HadSession:
		return "It gets no game session: it has had one, and a process gets one in its life."
	case p.Health == fleet.Unhealthy:
		return "It gets no game session: it is unhealthy, or silent."
	case p.Eligible():
		return "It is free for a game session."
	default:
		return "It gets no game session before its first good health report."
	}
}

// endReasons describes why a server process ended.
var endReasons = map[fleet.EndReason]string{
	fleet.EndedNormally:       "it reported its own end",
	fleet.EndedCrashed:        "its connection was lost and did not come back in time",
	fleet.EndedReplaced:       "another process took its id",
	fleet.EndedUnhealthy:      "it was unhealthy or silent for too long",
	fleet.EndedForced:         "its game session had to be terminated",
	fleet.EndedNeverReady:     "it did not call ProcessReady in time",
	fleet.EndedWithCompute:    "its compute, location or fleet was removed",
	fleet.EndedActivationLate: "it did not activate its game session in time",
}

func endInWords(r fleet.EndReason) string {
	return cmp.Or(endReasons[r], "the reason is not known")
}
