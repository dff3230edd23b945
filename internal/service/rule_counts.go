package service

import "github.com/musterhq/muster/internal/domain/notice"

// ruleCounts asks the matchmakers how their rules judged a ticket, for those who tell of its end.
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
