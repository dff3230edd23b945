package matchmaker

import "maps"

// RuleEvaluations counts the evaluations of a rule with the tickets that have left the pool of a configuration, since this node decides.
type RuleEvaluations struct {
	Configuration, Rule string
	Passed, Failed      uint64
}

// RuleEvaluations lists the rules of all configurations, in no particular order. It is empty while another node decides.
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

// evaluations adds the counts of the present pool to those of earlier ones. Rules of the same name count as one.
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
