package service

import "github.com/musterhq/muster/internal/domain/notice"

// ruleCounts returns how often each rule was evaluated with a ticket, for the notice that the ticket has ended. The
// matchmakers keep the counts.
func (x *Service) ruleCounts(configuration string, ticket uint64) []notice.MatchRule {
	var told []notice.MatchRule
	for _, n := range x.matches.Counts(configuration, ticket) {
		for int(n.Rule) >= len(told) {
			told = append(told, notice.MatchRule{})
		}
		told[n.Rule].Passed, told[n.Rule].Failed = n.Passed, n.Failed
	}
	return told
}
