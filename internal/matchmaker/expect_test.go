package matchmaker

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// check compares what happened with the expectations of a case.
func (w *world) check() {
	e := &w.c.Expect
	taken := make([]bool, len(w.matches))
	for _, want := range e.Matches {
		found := false
		for i, m := range w.matches {
			if !found && !taken[i] && sameSet(m.tickets, want.Tickets) && want.holds(m.at) && sameTeams(m.teams, want.Teams) {
				found, taken[i] = true, true
			}
		}
		if !found {
			w.t.Errorf("no match of %v with teams %v in its window; matches: %v", want.Tickets, want.Teams, w.matches)
		}
	}
	w.checkCount()
	for _, m := range w.matches {
		if e.NoMatchBefore != nil && m.at < *e.NoMatchBefore {
			w.t.Errorf("match %v, want none before second %d", m, *e.NoMatchBefore)
		}
	}
	for _, ticket := range e.Unmatched {
		if m := w.matchOf(ticket); m != nil {
			w.t.Errorf("ticket %s is in match %v, want it in none", ticket, *m)
		}
	}
	for _, want := range e.Matched {
		for _, ticket := range append(slices.Clone(want.Tickets), want.Ticket) {
			if ticket != "" && !slices.ContainsFunc(w.matches, func(m match) bool { return m.has(ticket) && want.holds(m.at) }) {
				w.t.Errorf("ticket %s is in no match of its window; matches: %v", ticket, w.matches)
			}
		}
	}
	for _, group := range e.Together {
		if !slices.ContainsFunc(w.matches, func(m match) bool { return containsAll(m.tickets, group) }) {
			w.t.Errorf("no match has all of %v: %v", group, w.matches)
		}
	}
	for _, group := range e.Apart {
		for _, m := range w.matches {
			n := 0
			for _, ticket := range group {
				if m.has(ticket) {
					n++
				}
			}
			if n > 1 {
				w.t.Errorf("match %v has %d of %v, want them apart", m, n, group)
			}
		}
	}
	w.checkTeams()
	for _, each := range e.EachMatch {
		if each.WhereTicket != "" && !slices.ContainsFunc(w.c.Tickets, func(t caseTicket) bool { return t.ID == each.WhereTicket }) {
			w.t.Errorf("a constraint is about ticket %q, which the case does not have", each.WhereTicket)
		}
		for i := range w.matches {
			if m := &w.matches[i]; each.WhereTicket == "" || m.has(each.WhereTicket) {
				w.constrain(m, &each)
			}
		}
	}
	w.checkStatus()
	w.checkEvents()
}

func (w *world) matchOf(ticket string) *match {
	for i := range w.matches {
		if w.matches[i].has(ticket) {
			return &w.matches[i]
		}
	}
	return nil
}

func (w *world) checkCount() {
	text := w.c.Expect.MatchCount
	if text == nil {
		return
	}
	var exact int
	var between struct{ Min, Max *int }
	n := len(w.matches)
	if json.Unmarshal(text, &exact) == nil {
		between.Min, between.Max = &exact, &exact
	} else if err := json.Unmarshal(text, &between); err != nil {
		w.t.Fatal(err)
	}
	if between.Min != nil && n < *between.Min || between.Max != nil && n > *between.Max {
		w.t.Errorf("%d matches, want %s: %v", n, text, w.matches)
	}
}

func (w *world) checkTeams() {
	for _, player := range slices.Sorted(maps.Keys(w.c.Expect.PlayerTeam)) {
		text := w.c.Expect.PlayerTeam[player]
		var allowed []string
		var one string
		if json.Unmarshal(text, &one) == nil {
			allowed = []string{one}
		} else if err := json.Unmarshal(text, &allowed); err != nil {
			w.t.Fatal(err)
		}
		seen := false
		for _, m := range w.matches {
			for team, players := range m.teams {
				if slices.Contains(players, player) {
					seen = true
					if !slices.Contains(allowed, team) {
						w.t.Errorf("player %s is on %s, want %v", player, team, allowed)
					}
				}
			}
		}
		if !seen {
			w.t.Errorf("player %s is in no match", player)
		}
	}
	for _, group := range w.c.Expect.SameTeam {
		for _, m := range w.matches {
			for team, players := range m.teams {
				some := slices.ContainsFunc(group, func(p string) bool { return slices.Contains(players, p) })
				if some && !containsAll(players, group) {
					w.t.Errorf("team %s of %v has some of %v, want all or none", team, m, group)
				}
			}
		}
	}
}

func (w *world) checkStatus() {
	for _, want := range w.c.Expect.Status {
		got, known := w.status[want.At][want.Ticket]
		status := got.Status.String()
		if w.rejected[want.Ticket] != nil {
			status, known = "REJECTED", true
		}
		if !known {
			w.t.Errorf("second %d: nothing is known of ticket %s", want.At, want.Ticket)
		}
		if !slices.Contains(want.OneOf, status) {
			w.t.Errorf("second %d: ticket %s is %s, want %v", want.At, want.Ticket, status, want.OneOf)
		}
		reason := got.Reason.Code() + " " + got.Reason.Message("")
		if len(want.ReasonMentionsAny) > 0 && !mentionsAny(reason, want.ReasonMentionsAny) {
			w.t.Errorf("second %d: ticket %s is %s because %q, want that to mention any of %q", want.At, want.Ticket, got.Status, reason, want.ReasonMentionsAny)
		}
	}
	for _, want := range w.c.Expect.Rejected {
		if w.rejected[want.Ticket] == nil {
			w.t.Errorf("ticket %s was taken, want it refused", want.Ticket)
		}
	}
}

func (w *world) checkEvents() {
	for _, want := range w.c.Expect.Events {
		n := 0
		for _, x := range w.events {
			if w.fits(&x, &want) {
				n++
			}
		}
		if want.Count != nil && n != *want.Count || want.Count == nil && n == 0 {
			w.t.Errorf("%d events like %+v; all: %v", n, want, w.events)
		}
	}
	for _, never := range w.c.Expect.NoEvents {
		for _, x := range w.events {
			if w.fits(&x, &never) {
				w.t.Errorf("second %d: event %s of %v, want none", x.at, x.Type, x.Tickets)
			}
		}
	}
}

func (w *world) fits(x *told, want *expectedEvent) bool {
	var tickets []string
	for _, t := range x.Tickets {
		tickets = append(tickets, t.ID)
	}
	return x.Type == want.Type && containsAll(tickets, want.Tickets) && want.holds(x.at) && includes(detailOf(&x.Match), want.Detail)
}

// detailOf returns an event in the form of its document, without the players.
func detailOf(x *notice.Match) map[string]any {
	detail := map[string]any{"type": x.Type}
	for key, text := range map[string]string{"acceptance": x.Acceptance, "reason": x.Reason, "message": x.Message, "matchId": x.ID} {
		if text != "" {
			detail[key] = text
		}
	}
	switch x.Type {
	case "MatchmakingSearching":
		detail["estimatedWaitMillis"] = any("NOT_AVAILABLE")
		if x.WaitKnown {
			detail["estimatedWaitMillis"] = float64(x.EstimatedWait)
		}
	case "PotentialMatchCreated":
		detail["acceptanceRequired"] = x.AcceptanceRequired
		if x.AcceptanceRequired {
			detail["acceptanceTimeout"] = float64(x.AcceptanceTimeout)
		}
	}
	if len(x.Rules) > 0 {
		rules := make([]any, len(x.Rules))
		for i, r := range x.Rules {
			rules[i] = map[string]any{"ruleName": r.Name, "passedCount": float64(r.Passed), "failedCount": float64(r.Failed)}
		}
		detail["ruleEvaluationMetrics"] = rules
	}
	if x.Location != "" {
		detail["gameSessionInfo"] = map[string]any{"gameSessionLocation": x.Location}
	}
	return detail
}

// includes reports whether have contains everything in want. Objects may have further members.
func includes(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := have.(map[string]any)
		for key := range want {
			value, there := object[key]
			ok = ok && there && includes(value, want[key])
		}
		return ok
	case []any:
		list, ok := have.([]any)
		return ok && slices.EqualFunc(list, want, includes)
	}
	return have == want
}

// teamsNamed returns the teams for which a name in a constraint stands.
func (w *world) teamsNamed(name string) (teams []string) {
	for _, t := range w.rules.Teams {
		if name == "*" || t.Name == name || t.Definition == name {
			teams = append(teams, t.Name)
		}
	}
	return teams
}

func (w *world) constrain(m *match, c *constraint) {
	within := func(what string, got float64) {
		if c.Min != nil && got < *c.Min-1e-9 || c.Max != nil && got > *c.Max+1e-9 {
			w.t.Errorf("%s of %v: %s is %g", c.Kind, *m, what, got)
		}
	}
	var all []string
	for _, players := range m.teams {
		all = append(all, players...)
	}
	switch c.Kind {
	case "teamSize":
		teams := w.teamsNamed(c.Team)
		if len(teams) == 0 {
			w.t.Errorf("a constraint is about team %q, which the rule set does not have", c.Team)
		}
		for _, team := range teams {
			within(team, float64(len(m.teams[team])))
		}
	case "playerCount":
		within("the number of players", float64(len(all)))
	case "teamMeanSpread":
		within("the spread", spread(w.perTeam(m, c.Attribute, mean)))
	case "teamSumSpread":
		within("the spread", spread(w.perTeam(m, c.Attribute, sum)))
	case "teamMeanFromMatchMean":
		middle := mean(w.numbers(all, c.Attribute))
		for _, of := range w.perTeam(m, c.Attribute, mean) {
			within("the distance", math.Abs(of-middle))
		}
	case "allEqual":
		for _, p := range all {
			if !reflect.DeepEqual(w.valueOf(p, c.Attribute), w.valueOf(all[0], c.Attribute)) {
				w.t.Errorf("%v: players differ in %s", *m, c.Attribute)
			}
		}
	case "commonValues":
		common := slices.Clone(w.valueOf(all[0], c.Attribute).List)
		common = slices.DeleteFunc(common, func(s string) bool {
			return slices.ContainsFunc(all, func(p string) bool { return !slices.Contains(w.valueOf(p, c.Attribute).List, s) })
		})
		within("the number of common values", float64(len(common)))
	case "countWithValue":
		groups := map[string][]string{"the match": all}
		switch c.Per {
		case "", "match":
		case "team":
			groups = m.teams
		default:
			w.t.Fatalf("a case counts per %s, which this test does not know", c.Per)
		}
		for name, players := range groups {
			within(name, float64(len(slices.DeleteFunc(slices.Clone(players), func(p string) bool { return !w.hasValue(p, c) }))))
		}
	case "commonRegion":
		w.checkRegion(m, all, *c.MaxLatency)
	default:
		w.t.Fatalf("a case has a constraint %s, which this test does not know", c.Kind)
	}
}

func (w *world) checkRegion(m *match, all []string, most float64) {
	for region := range w.player(all[0]).LatencyMs {
		fits := !slices.ContainsFunc(all, func(p string) bool {
			ms, ok := w.player(p).LatencyMs[region]
			return !ok || float64(ms) > most
		})
		if fits {
			return
		}
	}
	w.t.Errorf("%v: no region is within %g ms of all players", *m, most)
}

func (w *world) player(id string) *casePlayer {
	for i := len(w.c.Tickets) - 1; i >= 0; i-- {
		for j := range w.c.Tickets[i].Players {
			if p := &w.c.Tickets[i].Players[j]; p.ID == id {
				return p
			}
		}
	}
	w.t.Fatalf("no ticket has player %s", id)
	return nil
}

// valueOf returns the value that was sent, or the default.
func (w *world) valueOf(player, attribute string) ruleset.Value {
	values, err := w.rules.Player(w.attributes(w.player(player).Attributes))
	column, ok := w.rules.Column(attribute)
	if err != nil || !ok {
		w.t.Fatalf("attribute %s of player %s: %v", attribute, player, err)
	}
	return values[column]
}

func (w *world) hasValue(player string, c *constraint) bool {
	v := w.valueOf(player, c.Attribute)
	switch want := c.Value.(type) {
	case string:
		return v.Text == want || slices.Contains(v.List, want)
	case float64:
		return v.Number == want
	}
	return false
}

func (w *world) numbers(players []string, attribute string) (all []float64) {
	for _, p := range players {
		all = append(all, w.valueOf(p, attribute).Number)
	}
	return all
}

func (w *world) perTeam(m *match, attribute string, of func([]float64) float64) (all []float64) {
	for _, players := range m.teams {
		if len(players) > 0 {
			all = append(all, of(w.numbers(players, attribute)))
		}
	}
	return all
}

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

func mean(all []float64) float64 { return sum(all) / float64(len(all)) }

func spread(all []float64) float64 { return slices.Max(all) - slices.Min(all) }

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func sameTeams(got, want map[string][]string) bool {
	for team, players := range want {
		if !sameSet(got[team], players) {
			return false
		}
	}
	return true
}
