package inspection

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Survey counts the records of player flow and checks its invariants, in steps between which commands continue. It reads each record once,
// with everything that the record refers to at that moment; the counts are not those of a single moment.
type Survey struct {
	Players  map[flow.Phase]int
	Presence map[flow.Presence]int
	Searches map[SearchKind]int
	Ages     map[string]*SearchAges // ages of the searches, by queue
	Games    map[GameKind]int
	Members  map[flow.MembershipStatus]int

	Violations []Violation // the first ViolationsKept
	Violated   int         // all of them

	of    *Inspection
	stage surveyStage
	after chunk.AnyRef // place in the stage's table
}

// SearchKind is the key by which searches are counted.
type SearchKind struct {
	Queue  string
	Status flow.SearchStatus
}

// GameKind is the key by which game instances are counted.
type GameKind struct {
	Queue  string
	Status flow.InstanceStatus
}

// SearchAgeSteps are the ages by which searches are counted: how many are no older than each.
var SearchAgeSteps = [...]time.Duration{
	5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
}

// SearchAges counts the searches in one queue by age.
type SearchAges struct {
	UpTo   [len(SearchAgeSteps)]int
	Count  int
	Sum    time.Duration
	Oldest time.Duration
}

// ViolationsKept is the most violations that a survey lists; it counts all of them.
const ViolationsKept = 100

type surveyStage uint8

const (
	surveyPlayers surveyStage = iota
	surveyParties
	surveyInstances
	surveyDone
)

// NewSurvey returns a Survey that has not begun.
func NewSurvey() *Survey {
	return &Survey{
		Players: map[flow.Phase]int{}, Presence: map[flow.Presence]int{}, Searches: map[SearchKind]int{}, Ages: map[string]*SearchAges{},
		Games: map[GameKind]int{}, Members: map[flow.MembershipStatus]int{},
	}
}

// Survey continues a survey: it reads at most `most` further records, and reports whether the survey is complete. It begins again if the
// cell was replaced.
func (v *View) Survey(s *Survey, now domain.Time, most int) (done bool) {
	v.SawAll()
	if s.of != v.c {
		*s = *NewSurvey()
		s.of = v.c
	}
	a := auditor{c: v.c}
	for looked := 0; looked < most && s.stage != surveyDone; {
		var n int
		switch s.stage {
		case surveyPlayers:
			n = step(s, v.c.Flow.Players, most-looked, func(r flow.PlayerRef, p *flow.Player) {
				a.player(r, p)
				s.Players[p.Keys.Phase()]++
				s.Presence[p.Presence]++
				if p.Membership() != 0 {
					s.Members[v.c.Flow.Memberships.Get(p.Membership()).Status]++
				}
			})
		case surveyParties:
			n = step(s, v.c.Flow.Parties, most-looked, func(r flow.PartyRef, p *flow.Party) {
				a.party(p)
				if p.Search != nil {
					s.search(v.c.PartyView(r).Search, now)
				}
			})
		case surveyInstances:
			n = step(s, v.c.Flow.Instances, most-looked, func(r flow.InstanceRef, x *flow.Instance) {
				a.instance(r, x)
				if x.Live() {
					s.Games[GameKind{x.Queue, x.Status}]++
				}
			})
		}
		looked += n
	}
	s.Violated += len(a.found)
	s.Violations = append(s.Violations, a.found[:min(len(a.found), ViolationsKept-len(s.Violations))]...)
	return s.stage == surveyDone
}

// step examines up to `most` records of a table, and moves to the next stage at its end.
func step[T any](s *Survey, t chunk.Table[T], most int, look func(chunk.Ref[T], *T)) (n int) {
	var at chunk.Ref[T]
	for record := range t.From(chunk.Ref[T](s.after), &at) {
		if n == most {
			return n
		}
		look(at, record)
		s.after = at.Any()
		n++
	}
	s.stage, s.after = s.stage+1, 0
	return n
}

func (s *Survey) search(x *flow.Search, now domain.Time) {
	s.Searches[SearchKind{x.Queue, x.Status}]++
	ages := s.Ages[x.Queue]
	if ages == nil {
		ages = &SearchAges{}
		s.Ages[x.Queue] = ages
	}
	age := max(now.Sub(x.Entered), 0)
	for i, most := range SearchAgeSteps {
		if age <= most {
			ages.UpTo[i]++
		}
	}
	ages.Count++
	ages.Sum += age
	ages.Oldest = max(ages.Oldest, age)
}

// Overdue returns how late the next deadline is; 0 if it is in the future.
func (v *View) Overdue(now domain.Time) time.Duration {
	if next := v.c.NextDue(); next > kernel.AtOnce && next < now {
		return now.Sub(next)
	}
	return 0
}
