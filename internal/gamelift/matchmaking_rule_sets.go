package gamelift

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// CreateMatchmakingRuleSet creates a rule set, which is immutable.
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
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.CreateMatchmakingRuleSetOutput{RuleSet: new(ruleSetToWire(&cmd.RuleSet))}, err
}

// ValidateMatchmakingRuleSet returns all mistakes in a rule set.
func (s *Service) ValidateMatchmakingRuleSet(_ context.Context, in *gamelift.ValidateMatchmakingRuleSetInput) (*gamelift.ValidateMatchmakingRuleSetOutput, error) {
	if _, err := compileRuleSet(*in.RuleSetBody); err != nil {
		return nil, err
	}
	warnOf(s.Log, "", *in.RuleSetBody)
	return &gamelift.ValidateMatchmakingRuleSetOutput{Valid: new(true)}, nil
}

// warningsLogged is how many warnings about a rule set are logged, because its author determines their number.
const warningsLogged = 5

// warnOf logs the parts of a valid rule set that have no effect, such as misspelt properties, because the answer has no member for
// them.
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

// compileRuleSet compiles a rule set, or refuses it with all of its problems, one per line.
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

// DescribeMatchmakingRuleSets shows the named rule sets, or all of them, ordered by name.
func (s *Service) DescribeMatchmakingRuleSets(ctx context.Context, in *gamelift.DescribeMatchmakingRuleSetsInput) (*gamelift.DescribeMatchmakingRuleSetsOutput, error) {
	page, next, err := namedPage(ctx, s, "DescribeMatchmakingRuleSets", in, pageSize(in.Limit, matchmakingPageMax), in.NextToken, in.Names,
		(*cell.View).RuleSet, (*cell.View).RuleSets, func(x *matchmaking.RuleSet) string { return x.Name })
	if err == nil && len(in.Names) > 0 && len(page) == 0 && in.NextToken == nil {
		err = domain.Refuse(domain.NotFound, "rule set %s not found", lastPart(in.Names[0]))
	}
	return &gamelift.DescribeMatchmakingRuleSetsOutput{RuleSets: wires(page, ruleSetToWire), NextToken: next}, err
}

// matchmakingPageMax comes from the model for rule sets and from the documentation for configurations.
const matchmakingPageMax = 10

// namedPage returns a page of the named records that exist, or of all records by name. For named records, the cursor is the number of
// names that earlier pages covered.
func namedPage[T any](ctx context.Context, s *Service, operation string, in any, size int, token *string, names []string,
	get func(*cell.View, string) (T, bool), list func(v *cell.View, after string, most int) []T, name func(*T) string,
) (page []T, next *string, err error) {
	after, err := pageCursor(operation, in, token)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		page, err = read(ctx, s, func(v *cell.View) ([]T, error) { return list(v, after, size+1), nil })
		page, next = cutPage(operation, in, page, size, name)
		return page, next, err
	}
	at := 0
	if after != "" {
		if at, err = strconv.Atoi(after); err != nil || at < 0 || at > len(names) {
			return nil, nil, invalid("NextToken is from another version of Muster") // the token was intact but has another form
		}
	}
	seen := make(map[string]bool, len(names)) // also on earlier pages
	for _, earlier := range names[:at] {
		seen[lastPart(earlier)] = true
	}
	err = s.engine.Read(ctx, func(v *cell.View) error {
		for ; at < len(names) && len(page) < size; at++ {
			wanted := lastPart(names[at])
			if seen[wanted] {
				continue
			}
			seen[wanted] = true
			if x, ok := get(v, wanted); ok {
				page = append(page, x)
			}
		}
		return nil
	})
	if at < len(names) {
		next = pageToken(operation, in, strconv.Itoa(at))
	}
	return page, next, err
}

func ruleSetToWire(x *matchmaking.RuleSet) types.MatchmakingRuleSet {
	return types.MatchmakingRuleSet{
		RuleSetName: &x.Name, RuleSetArn: ruleSetARN(x), RuleSetBody: &x.Body, CreationTime: new(x.Created.Std()),
	}
}

func ruleSetARN(x *matchmaking.RuleSet) *string {
	return makeARN(x.Region, x.Account, "matchmakingruleset/", x.Name)
}
