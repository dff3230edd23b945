package operator

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// feedScope collects what belongs to the feed of one object.
type feedScope struct {
	d       *Door
	until   domain.Time // nothing later is read
	known   bool        // the object is in the state or the archive
	horizon domain.Time // entries at this time or earlier are incomplete; 0: all are complete

	entries []FeedEntry // causes before effects; those of one object in order of time
	events  []feedLog
	changed map[auditSubject]span // audit log entries about these objects, within these times
	below   []auditSubject        // and about objects whose ids have these prefixes
	seen    map[string]bool       // records already included, by kind and id
	leftOut []string              // what is too much for a feed
}

// feedLog selects entries of a fleet's event log.
type feedLog struct {
	fleet string
	about string // part of the message; empty: all
	of    span
}

// span is a period, including both ends.
type span struct{ from, to domain.Time }

// auditSubject names an object in the terms of the audit log.
type auditSubject struct{ kind, id string }

const forever = domain.Time(1<<63 - 1)

// ever is all of time.
var ever = span{0, forever}

// around returns the life of an object, until now if ended is 0, plus a minute before and after, because a change shortly before may be the cause.
func around(began, ended domain.Time) span {
	const margin = 60_000
	if ended == 0 {
		return span{began - margin, forever}
	}
	return span{began - margin, ended + margin}
}

// changes adds the changes of an object made by people.
func (s *feedScope) changes(kind, id string, when span) {
	subject := auditSubject{kind, id}
	if id == "" {
		return
	}
	if had, ok := s.changed[subject]; ok {
		when = span{min(had.from, when.from), max(had.to, when.to)}
	}
	s.changed[subject] = when
}

// once reports whether a record is new to the scope, and marks it as included.
func (s *feedScope) once(kind, id string) bool {
	key := kind + " " + id
	if id == "" || s.seen[key] {
		return false
	}
	s.seen[key] = true
	return true
}

// lacks records that entries at this time or earlier may be missing.
func (s *feedScope) lacks(until domain.Time) { s.horizon = max(s.horizon, until) }

// add adds the moments of an object.
func (s *feedScope) add(kind, id string, moments []Moment) {
	for _, m := range moments {
		s.entries = append(s.entries, FeedEntry{At: m.At, What: m.What, Detail: m.Detail, Kind: kind, ID: id})
	}
}

// moments adds the life of an object.
func (s *feedScope) moments(kind, id string, write func(x *Explanation)) {
	var x Explanation
	write(&x)
	s.add(kind, id, x.sorted().Timeline)
}

// entriesOf returns the entries of a period without duplicates, newest first. For the same instant, effects come above their cause.
func (s *feedScope) entriesOf(since, until domain.Time) (all []feedStep) {
	seen := map[FeedEntry]bool{}
	for _, e := range s.entries {
		at := domain.TimeOf(e.At)
		if at < since || at > until || seen[e] {
			continue
		}
		seen[e] = true
		all = append(all, feedStep{FeedEntry: e, sort: at})
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, laterFirst)
	return all
}

// processIn finds the server process named in a fleet event.
var processIn = regexp.MustCompile(`process (\S+) on compute (\S+) `)

// readEvents adds the fleet events of the scope.
func (s *feedScope) readEvents(ctx context.Context, since, until domain.Time) error {
	for _, log := range s.events {
		from, to := max(since, log.of.from), min(until, log.of.to)
		if from > to {
			continue
		}
		var some []fleet.Event
		err := s.d.engine.Read(ctx, func(v *cell.View) error { some = v.FleetEvents(log.fleet, from, to, 0, feedEvents); return nil })
		if err != nil {
			return err
		}
		if len(some) == feedEvents {
			s.lacks(some[len(some)-1].At)
		}
		for i := range slices.Backward(some) {
			e := &some[i]
			s.known = true
			if !strings.Contains(e.Message, log.about) {
				continue
			}
			kind, id := "fleet", log.fleet
			if of := processIn.FindStringSubmatch(e.Message); of != nil {
				kind, id = "process", fleet.Key{Fleet: log.fleet, Compute: of[2], Process: of[1]}.String()
			}
			s.entries = append(s.entries, FeedEntry{At: e.At.Std(), What: e.Code, Detail: timesOver(e), Kind: kind, ID: id})
		}
	}
	return nil
}

// readAudit returns the audit log entries about the scope from a position on, and the position after those examined.
func (s *feedScope) readAudit(ctx context.Context, since domain.Time, at feedPlace) (all []feedStep, behind uint64, err error) {
	f := audit.Filter{Until: (at.At + 1).Std(), About: s.about}
	if since > 0 {
		f.Since = since.Std()
	}
	page, err := audit.Read(ctx, s.d.engine, f, at.Audit, feedAudit)
	if err != nil {
		return nil, 0, err
	}
	behind = page.Next
	if behind != 0 { // older ones were not examined
		s.lacks(min(domain.TimeOf(page.Reached), at.At))
	} else if behind = at.Audit; len(page.Entries) > 0 {
		behind = page.Entries[len(page.Entries)-1].No
	}
	sort := at.At
	for i := range page.Entries {
		e := &page.Entries[i]
		sort = min(sort, domain.TimeOf(e.At)) // numbers take precedence where a clock was wrong
		kind := cmp.Or(explainedKinds[e.Kind], e.Kind)
		all = append(all, feedStep{FeedEntry: FeedEntry{At: e.At, What: e.What, Detail: changesInWords(e), Kind: kind, ID: e.ID, By: cmp.Or(e.Who, e.Address), Reason: e.Reason, Audit: e.No}, sort: sort})
	}
	return all, behind, nil
}

func (s *feedScope) about(kind, id string, at domain.Time) bool {
	if when, ok := s.changed[auditSubject{kind, id}]; ok && at >= when.from && at <= when.to {
		return true
	}
	return slices.ContainsFunc(s.below, func(b auditSubject) bool { return b.kind == kind && strings.HasPrefix(id, b.id) })
}

// explainedKinds maps kinds of the audit log to the names used in explanations.
var explainedKinds = map[string]string{"game session": "game-session", "game instance": "game-instance", "matchmaking configuration": "configuration"}

// changesInWords describes the outcome of an audit log entry, and what it changed.
func changesInWords(e *audit.Document) string {
	parts := []string{"by the door " + e.Door}
	if e.Outcome != "done" {
		parts = append(parts, e.Outcome)
	}
	for _, c := range e.Changes {
		parts = append(parts, c.Field+": "+cmp.Or(c.Before, "–")+" → "+cmp.Or(c.After, "–"))
	}
	return strings.Join(parts, "; ")
}
