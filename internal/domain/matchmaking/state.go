package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// Records has all records of matchmaking, with their indexes. Snapshots contain no indexes; they are rebuilt from the records.
type Records struct {
	RuleSets       chunk.Table[RuleSet]
	Configurations chunk.Table[Configuration]
	Tickets        chunk.Table[Ticket]
	Matches        chunk.Table[Match]
	Hosted         chunk.Table[Hosted]
	Recent         chunk.Table[Recent]

	ruleSets       sorted.Map[string, RuleSetRef]
	configurations sorted.Map[string, ConfigurationRef]
	compiled       map[string]*ruleset.RuleSet
	settings       map[string]*Configuration // present settings; shared with matches, never changed in place
	tickets        map[string]TicketRef
	numbers        map[uint64]TicketRef   // of active tickets, by No
	players        map[string]TicketRef   // the newest active ticket of each player
	elders         map[string][]TicketRef // the other active tickets of the few players who have several: those in placement
	backfills      map[string]TicketRef   // the active backfill ticket of each game session
	matches        map[string]MatchRef
	hosted         map[string]HostedRef
	recent         map[string]RecentRef
	counts         map[string]*Counts
	held           quota.Held // tickets
	ruled          quota.Held // rule sets
	configured     quota.Held // configurations
}

// Counts holds the numbers of tickets in a configuration.
type Counts struct {
	Active int // tickets that have not ended
}

// Held counts the tickets in memory, including those that have ended.
func (s *Records) Held() *quota.Held { return &s.held }

// RuleSetsHeld counts the rule sets.
func (s *Records) RuleSetsHeld() *quota.Held { return &s.ruled }

// ConfigurationsHeld counts the configurations.
func (s *Records) ConfigurationsHeld() *quota.Held { return &s.configured }

// NewRecords returns empty Records.
func NewRecords() *Records {
	return &Records{
		RuleSets: chunk.New[RuleSet](), Configurations: chunk.New[Configuration](), Tickets: chunk.New[Ticket](), Matches: chunk.New[Match](), Hosted: chunk.New[Hosted](), Recent: chunk.New[Recent](),
		ruleSets: sorted.NewMap[string, RuleSetRef](), configurations: sorted.NewMap[string, ConfigurationRef](),
		compiled: map[string]*ruleset.RuleSet{}, settings: map[string]*Configuration{},
		tickets: map[string]TicketRef{}, numbers: map[uint64]TicketRef{}, players: map[string]TicketRef{}, elders: map[string][]TicketRef{}, backfills: map[string]TicketRef{},
		matches: map[string]MatchRef{}, hosted: map[string]HostedRef{}, recent: map[string]RecentRef{}, counts: map[string]*Counts{},
	}
}

// RuleSet finds a rule set.
func (s *Records) RuleSet(name string) (RuleSetRef, bool) { return s.ruleSets.Get(name) }

// Compiled returns the compiled form of a rule set; nil if there is none.
func (s *Records) Compiled(name string) *ruleset.RuleSet { return s.compiled[name] }

// KeepCompiled stores the compiled form of a new rule set, so that PutRuleSet need not compile it. It may be nil.
func (s *Records) KeepCompiled(name string, compiled *ruleset.RuleSet) { s.compiled[name] = compiled }

// PutRuleSet stores or replaces a rule set, and compiles its body unless that was done before.
func (s *Records) PutRuleSet(x RuleSet) {
	r, ok := s.ruleSets.Get(x.Name)
	if !ok {
		r, _ = s.RuleSets.Add()
		s.ruleSets.Set(x.Name, r)
		if s.compiled[x.Name] == nil {
			s.compiled[x.Name], _ = ruleset.Parse(x.Body) // it was valid when it was created
		}
	}
	if s.ruled.Add(x.Holder, 0); ok {
		s.ruled.Remove(s.RuleSets.Get(r).Holder, 0)
	}
	*s.RuleSets.Mut(r) = x
}

// RemoveRuleSet removes a rule set that no configuration uses.
func (s *Records) RemoveRuleSet(name string) {
	if r, ok := s.ruleSets.Get(name); ok {
		s.ruled.Remove(s.RuleSets.Get(r).Holder, 0)
		s.ruleSets.Delete(name)
		s.RuleSets.Remove(r)
	}
	delete(s.compiled, name)
}

// RuleSetsFrom yields rule sets, ordered by name, beginning after `after`.
func (s *Records) RuleSetsFrom(after string, yield func(*RuleSet) bool) {
	s.ruleSets.Ascend(after, func(name string, r RuleSetRef) bool { return name == after || yield(s.RuleSets.Get(r)) })
}

// Configuration returns the present settings, which are never changed in place.
func (s *Records) Configuration(name string) (*Configuration, bool) {
	c, ok := s.settings[name]
	return c, ok
}

// PutConfiguration stores or replaces a configuration.
func (s *Records) PutConfiguration(x Configuration) {
	r, ok := s.configurations.Get(x.Name)
	if !ok {
		r, _ = s.Configurations.Add()
		s.configurations.Set(x.Name, r)
	}
	if s.configured.Add(x.Holder, 0); ok {
		s.configured.Remove(s.Configurations.Get(r).Holder, 0)
	}
	*s.Configurations.Mut(r) = x
	s.settings[x.Name] = &x
}

// RemoveConfiguration removes a configuration without active tickets.
func (s *Records) RemoveConfiguration(name string) {
	if r, ok := s.configurations.Get(name); ok {
		s.configured.Remove(s.Configurations.Get(r).Holder, 0)
		s.configurations.Delete(name)
		s.Configurations.Remove(r)
	}
	if r, ok := s.recent[name]; ok {
		delete(s.recent, name)
		s.Recent.Remove(r)
	}
	delete(s.settings, name)
}

// ConfigurationsFrom yields configurations, ordered by name, beginning after `after`.
func (s *Records) ConfigurationsFrom(after string, yield func(*Configuration) bool) {
	s.configurations.Ascend(after, func(name string, r ConfigurationRef) bool { return name == after || yield(s.Configurations.Get(r)) })
}

// UsesRuleSet returns a configuration that uses a rule set or has a pending match made with it.
func (s *Records) UsesRuleSet(name string) (configuration string, used bool) {
	s.configurations.Scan(func(_ string, r ConfigurationRef) bool {
		if c := s.Configurations.Get(r); c.RuleSet == name {
			configuration, used = c.Name, true
		}
		return !used
	})
	for _, m := range s.Matches.All() {
		if !used && m.Of.RuleSet == name {
			return m.Of.Name, true
		}
	}
	return configuration, used
}

func (s *Records) Counts(configuration string) Counts {
	if c := s.counts[configuration]; c != nil {
		return *c
	}
	return Counts{}
}

// Match finds a pending match.
func (s *Records) Match(id string) (MatchRef, bool) {
	r, ok := s.matches[id]
	return r, ok
}

func (s *Records) AddMatch(m Match) MatchRef {
	r, rec := s.Matches.Add()
	*rec = m
	s.matches[m.ID] = r
	return r
}

func (s *Records) RemoveMatch(r MatchRef) {
	delete(s.matches, s.Matches.Get(r).ID)
	s.Matches.Remove(r)
}

// HostedBy finds the record of a game session that a match created.
func (s *Records) HostedBy(game string) (HostedRef, bool) {
	r, ok := s.hosted[game]
	return r, ok
}

// PutHosted stores or replaces the record of a matched game session.
func (s *Records) PutHosted(h Hosted) {
	r, ok := s.hosted[h.Game]
	if !ok {
		r, _ = s.Hosted.Add()
		s.hosted[h.Game] = r
	}
	*s.Hosted.Mut(r) = h
}

func (s *Records) RemoveHosted(game string) {
	if r, ok := s.hosted[game]; ok {
		delete(s.hosted, game)
		s.Hosted.Remove(r)
	}
}

// NoteWait adds a sample to the estimated wait time.
func (s *Records) NoteWait(configuration string, at, start domain.Time) {
	r, ok := s.recent[configuration]
	if !ok {
		r, _ = s.Recent.Add()
		s.Recent.Mut(r).Configuration = configuration
		s.recent[configuration] = r
	}
	s.Recent.Mut(r).note(at, at.Sub(start))
}

func (s *Records) RestoreRecent(x Recent) {
	r, rec := s.Recent.Add()
	*rec = x
	s.recent[x.Configuration] = r
}

// EstimatedWait returns the mean wait of recently matched tickets in seconds; ok is false if there were too few.
func (s *Records) EstimatedWait(configuration string, now domain.Time) (seconds int32, ok bool) {
	r, ok := s.recent[configuration]
	if !ok {
		return 0, false
	}
	return s.Recent.Get(r).estimate(now)
}
