package gamelift

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// CreateMatchmakingRuleSet makes a rule set, which never changes.
func (s *Service) CreateMatchmakingRuleSet(ctx context.Context, in *gamelift.CreateMatchmakingRuleSetInput) (*gamelift.CreateMatchmakingRuleSetOutput, error) {
	rules, err := compileRuleSet(*in.RuleSetBody)
	if err != nil {
		return nil, err
	}
	warnOf(s.Log, *in.Name, *in.RuleSetBody)
	caller := callerOf(ctx)
	cmd := matchmaking.CreateRuleSet{Compiled: rules, RuleSet: matchmaking.RuleSet{
		Name: *in.Name, Region: caller.Region, Account: caller.Account, Body: *in.RuleSetBody, Tags: tagsFromWire(in.Tags),
	}}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &gamelift.CreateMatchmakingRuleSetOutput{RuleSet: new(ruleSetToWire(&cmd.RuleSet))}, nil
}

// ValidateMatchmakingRuleSet says all that is wrong with a rule set.
func (s *Service) ValidateMatchmakingRuleSet(_ context.Context, in *gamelift.ValidateMatchmakingRuleSetInput) (*gamelift.ValidateMatchmakingRuleSetOutput, error) {
	if _, err := compileRuleSet(*in.RuleSetBody); err != nil {
		return nil, err
	}
	warnOf(s.Log, "", *in.RuleSetBody)
	return &gamelift.ValidateMatchmakingRuleSetOutput{Valid: new(true)}, nil
}

// warningsLogged is how many warnings of a rule set are logged: its author chose how many there are.
const warningsLogged = 5

// warnOf logs the parts of a valid rule set without effect, such as properties with a misspelt name: the answer has no member for them.
func warnOf(log *slog.Logger, name, body string) {
	if log == nil {
		return
	}
	warnings := ruleset.Warnings(body)
	if len(warnings) == 0 {
		return
	}
	texts := make([]string, min(len(warnings), warningsLogged))
	for i := range texts {
		texts[i] = warnings[i].String()
	}
	log.Warn("a rule set has properties without effect", "rule_set", name, "count", len(warnings), "warnings", texts)
}

// compileRuleSet compiles a rule set or refuses it with all of its problems, a line for each.
func compileRuleSet(body string) (*ruleset.RuleSet, error) {
	rules, problems := ruleset.Parse(body)
	if len(problems) == 0 {
		return rules, nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return nil, domain.Refuse(domain.Invalid, "RuleSetBody: %s", strings.Join(lines, "\n"))
}

// DeleteMatchmakingRuleSet removes a rule set that no configuration uses.
func (s *Service) DeleteMatchmakingRuleSet(ctx context.Context, in *gamelift.DeleteMatchmakingRuleSetInput) (*gamelift.DeleteMatchmakingRuleSetOutput, error) {
	return &gamelift.DeleteMatchmakingRuleSetOutput{}, s.engine.Do(ctx, &matchmaking.DeleteRuleSet{Name: lastPart(*in.Name)})
}

// DescribeMatchmakingRuleSets shows the rule sets that are named, or all of them by name.
func (s *Service) DescribeMatchmakingRuleSets(ctx context.Context, in *gamelift.DescribeMatchmakingRuleSetsInput) (*gamelift.DescribeMatchmakingRuleSetsOutput, error) {
	after, err := pageCursor("DescribeMatchmakingRuleSets", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	find := func(v *cell.View, name string) (matchmaking.RuleSet, bool) { return v.RuleSet(name) }
	list := func(v *cell.View, after string, most int) []matchmaking.RuleSet { return v.RuleSets(after, most) }
	size := pageSize(in.Limit, matchmakingPageMax)
	page, next, err := namedPage(ctx, s, in.Names, after, size, find, list, func(x *matchmaking.RuleSet) string { return x.Name })
	if err != nil {
		return nil, err
	}
	if len(in.Names) > 0 && len(page) == 0 && after == "" {
		return nil, domain.Refuse(domain.NotFound, "rule set %s not found", lastPart(in.Names[0]))
	}
	out := &gamelift.DescribeMatchmakingRuleSetsOutput{RuleSets: make([]types.MatchmakingRuleSet, len(page))}
	for i := range page {
		out.RuleSets[i] = ruleSetToWire(&page[i])
	}
	if next != "" {
		out.NextToken = pageToken("DescribeMatchmakingRuleSets", in, next)
	}
	return out, nil
}

// matchmakingPageMax is the model's, which holds for rule sets and is documented for configurations.
const matchmakingPageMax = 10

// namedPage returns a page of the records that are named, as far as there are any, or of all by name. The cursor of the
// former is how many of the names the pages before took.
func namedPage[T any](ctx context.Context, s *Service, names []string, after string, size int,
	find func(*cell.View, string) (T, bool), list func(v *cell.View, after string, most int) []T, name func(*T) string,
) (page []T, next string, err error) {
	if len(names) == 0 {
		err = s.engine.Read(ctx, func(v *cell.View) error { page = list(v, after, size+1); return nil })
		if len(page) > size {
			page = page[:size]
			next = name(&page[size-1])
		}
		return page, next, err
	}
	at := 0
	if after != "" {
		if at, err = strconv.Atoi(after); err != nil || at < 0 || at > len(names) {
			return nil, "", invalid("NextToken is not one of this version of Muster") // it was intact, but not one of ours
		}
	}
	err = s.engine.Read(ctx, func(v *cell.View) error {
		for ; at < len(names) && len(page) < size; at++ {
			wanted := lastPart(names[at])
			if slices.ContainsFunc(page, func(x T) bool { return name(&x) == wanted }) {
				continue
			}
			if x, ok := find(v, wanted); ok {
				page = append(page, x)
			}
		}
		return nil
	})
	if at < len(names) {
		next = strconv.Itoa(at)
	}
	return page, next, err
}

func ruleSetToWire(x *matchmaking.RuleSet) types.MatchmakingRuleSet {
	return types.MatchmakingRuleSet{
		RuleSetName: &x.Name, RuleSetArn: ruleSetARN(x), RuleSetBody: &x.Body, CreationTime: new(x.Created.Std()),
	}
}

func ruleSetARN(x *matchmaking.RuleSet) *string {
	return makeARN(x.Region, x.Account, "matchmakingruleset/"+x.Name)
}
