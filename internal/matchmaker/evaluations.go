package matchmaker

import "maps"

// RuleEvaluations counts, since this node leads, the evaluations of a rule with tickets that have left a configuration's pool.
type RuleEvaluations struct {
	Configuration, Rule string
	Passed, Failed      uint64
}

// RuleEvaluations returns the counts for the rules of all configurations, in no particular order. It returns nothing while another node
// leads.
func (r *Runner) RuleEvaluations() (all []RuleEvaluations) {
	for _, l := range r.all() {
		l.mu.Lock()
		for _, x := range l.evaluations() {
			all = append(all, x)
		}
		l.mu.Unlock()
	}
	return all
}

// evaluations adds the counts of the current pool to those of earlier pools. Rules with the same name count as one.
func (l *lane) evaluations() map[string]RuleEvaluations {
	sums := maps.Clone(l.past)
	if sums == nil {
		sums = map[string]RuleEvaluations{}
	}
	if l.pool == nil {
		return sums
	}
	for _, n := range l.pool.matcher.Gone() {
		x := sums[l.pool.rules.Rules[n.Rule].Name]
		x.Configuration, x.Rule = l.name, l.pool.rules.Rules[n.Rule].Name
		x.Passed += n.Passed
		x.Failed += n.Failed
		sums[x.Rule] = x
	}
	return sums
}
